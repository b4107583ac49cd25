"""What NumPy is asked about operands whose sizes are symbols: for the traced call's sizes now, for
others when a plan is made of the trace.

The sizes of the answer are guessed from those of the operands (equal, half, a sum, a product);
each plan asks NumPy again, on stand-ins of its own sizes, whether they are, and whether the results
have the dtypes and lie in memory as here.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from fusec.ir import TensorType
from fusec.ir.dims import Size
from fusec.ir.instantiate import Instantiation
from fusec.ir.symbolic_numbers import Symbolic, is_int, text_of_number
from fusec.ir.symbolic_sizes import is_symbolic
from fusec.ops.library import leaves_of
from fusec.records import dataclass

from ..facts.layout import Strides, like_order


@dataclass(frozen=True)
class Operand:
    """The type and layout of an operand; ``number``: of one that is a size."""

    type: TensorType
    strides: Strides
    number: Any = None

    @property
    def dtype(self) -> np.dtype:
        return self.type.dtype

    @property
    def is_symbolic(self) -> bool:
        return is_symbolic((self.type.shape, self.strides, self.number))

    def at(self, sizes: Instantiation) -> Operand:
        return Operand(sizes.type(self.type), sizes.data(self.strides), sizes.data(self.number))


@dataclass(eq=False)
class Answer:
    """The question whether NumPy's answer is the same, but for sizes.  ``stand_in`` makes a plain
    value of an operand."""

    function: Callable[..., Any]
    stand_in: Callable[[Operand], Any]
    operands: tuple[Operand, ...]
    shapes: tuple[Any, ...]
    layout: tuple[Any, ...]
    name: str

    def evaluate(self, sizes: Mapping[str, int]) -> bool:
        """Whether it is for these sizes."""
        instance = Instantiation(sizes)
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                answer = self.function(*[self.stand_in(x.at(instance)) for x in self.operands])
            except Exception:  # a trace for these sizes says what NumPy does
                return False
        return _layout(answer) == self.layout and [
            np.shape(leaf) for leaf in leaves_of(answer)] == list(instance.data(self.shapes))

    def __str__(self) -> str:
        shapes = (",".join(map(text_of_number, shape)) for shape in self.shapes)
        return f"{self.name} gives {', '.join(f'[{shape}]' for shape in shapes)}"


def _layout(answer: Any) -> tuple[Any, ...]:
    """What results are, but for their sizes: types, dtypes, and how they lie in memory."""
    return tuple(_layout_of(leaf) for leaf in leaves_of(answer))


def _layout_of(leaf: Any) -> tuple[Any, ...]:
    if type(leaf) is not np.ndarray:  # a number of NumPy's is content, one of Python's may be none
        return type(leaf), None if isinstance(leaf, np.generic) else leaf
    signs = tuple(np.sign(leaf.strides).tolist())
    is_column = leaf.ndim == 1 and leaf.strides[0] > leaf.itemsize
    return leaf.dtype, tuple(like_order(leaf.strides)), signs, is_column and leaf.strides


def note_answer(
    function: Callable[..., Any], stand_in: Callable[[Operand], Any], operands: Sequence[Operand],
    answer: Any, name: str,
) -> list[tuple[Size, ...]]:
    """The shapes of the results, in symbols; plans will ask whether they are right."""
    given = [n for x in operands for n in (*x.type.shape, x.number, x.type.size) if is_int(n)]
    symbols = [n for n in dict.fromkeys(map(_Known, given)) if type(n.size) is Symbolic]
    shapes = [tuple(_guessed(n, symbols) for n in np.shape(leaf)) for leaf in leaves_of(answer)]
    sizes = symbols[0].size.sizes
    sizes.note(Answer(
        function, stand_in, tuple(operands), tuple(shapes), _layout(answer), name), True)
    return shapes


class _Known:
    """A size, equal to others of the same expression."""

    def __init__(self, size: Any) -> None:
        self.size, self.key = size, getattr(size, "expression", size)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Known) and type(self.key) is type(other.key) and bool(
            self.key == other.key)

    def __hash__(self) -> int:
        return hash(self.key)


def _guessed(number: int, symbols: Sequence[_Known]) -> Size:
    return number if number < 2 else next(
        (s for s in _candidates(number, [symbol.size for symbol in symbols]) if s.hint == number),
        number)


def _candidates(number: int, symbols: Sequence[Symbolic]) -> Iterator[Symbolic]:
    """Sizes that an answer of this size may have, the likeliest first."""
    yield from symbols
    for a, b in itertools.combinations_with_replacement(symbols, 2):
        yield from (a + b, a * b, a + b - 1)
    for size in symbols:
        yield size // 2 + 1  # of the transform of real numbers
        if abs(number - size.hint) <= NEAR:
            yield size + (number - size.hint)


NEAR = 16  # how many elements more or less than an operand a result may have
