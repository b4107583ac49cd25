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
from fusec.ir.bindings import resolve
from fusec.ir.dims import Dim, Size
from fusec.ir.instantiate import Instantiation
from fusec.ir.symbolic_numbers import Symbolic, is_int, text_of_number
from fusec.ir.symbolic_sizes import is_symbolic
from fusec.ops.library import leaves_of
from fusec.records import dataclass

from ..facts.layout import Strides, like_order
from .short_axes import Lengths, short_lengths, told_length


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


@dataclass(frozen=True, eq=False)
class Told:
    """NumPy's answer on stand-ins, those, and the shapes that its results have of operands of their
    own lengths: stand-ins may be shorter."""

    value: Any
    stand_ins: list[Any]
    shapes: Sequence[tuple[int, ...]]


def told(
    function: Callable[[list[Any]], Any], stand_in: Callable[..., Any],
    operands: Sequence[Operand], given: Any,
) -> Told:
    """What ``function`` gives for operands of which ``stand_in(operand, lengths=...)`` makes plain
    values; ``given``: what else decides it.  What it raises on stand-ins of full length is raised.
    """
    shapes = [shape for x in operands if (shape := _hints(x.type.shape)) is not None]
    sizes = [resolve(x.number, {}) for x in operands if is_int(x.number)]
    known = {n for shape in shapes for n in shape}
    sets = short_lengths(shapes, (given, [n for n in sizes if n not in known]))
    answer = _told_of_short(function, stand_in, operands, sets, shapes) if sets else None
    if answer is not None:
        return answer
    stand_ins = [stand_in(x) for x in operands]
    value = function(stand_ins)
    return Told(value, stand_ins, [np.shape(leaf) for leaf in leaves_of(value)])


def _hints(shape: tuple[Size, ...]) -> tuple[int, ...] | None:
    """The sizes in the traced call; None where the run decides one."""
    return None if any(type(n) is Dim for n in shape) else resolve(shape, {})


def _told_of_short(
    function: Callable[[list[Any]], Any], stand_in: Callable[..., Any],
    operands: Sequence[Operand], sets: Sequence[Lengths], shapes: Sequence[tuple[int, ...]],
) -> Told | None:
    """What short stand-ins tell; None where that is not what it is for long ones."""
    answers = []
    for lengths in sets:
        stand_ins = [stand_in(x, lengths=lengths) for x in operands]
        try:
            answers.append(Told(function(stand_ins), stand_ins, ()))
        except Exception:  # of what it minds, lengths are shown
            return None
    if len({_layout(answer.value) for answer in answers}) > 1:
        return None
    found = []
    for leaves in zip(*(leaves_of(answer.value) for answer in answers), strict=True):
        sizes = [told_length(column, sets, shapes)
                 for column in zip(*map(np.shape, leaves), strict=True)]
        if None in sizes:
            return None
        found.append(tuple(sizes))
    told: Any = found
    return Told(answers[0].value, answers[0].stand_ins, told)


@dataclass(eq=False)
class Answer:
    """The question whether NumPy's answer is the same, but for sizes.  ``stand_in`` makes a plain
    value of an operand."""

    function: Callable[..., Any]
    stand_in: Callable[..., Any]
    operands: tuple[Operand, ...]
    shapes: tuple[Any, ...]
    layout: tuple[Any, ...]
    name: str
    given: Any

    def evaluate(self, sizes: Mapping[str, int]) -> bool:
        """Whether it is for these sizes."""
        instance = Instantiation(sizes)
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                answer = told(lambda plain: self.function(*plain), self.stand_in,
                              [x.at(instance) for x in self.operands], self.given)
            except Exception:  # a trace for these sizes says what NumPy does
                return False
        return _layout(answer.value) == self.layout and list(answer.shapes) == list(
            instance.data(self.shapes))

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
    function: Callable[..., Any], stand_in: Callable[..., Any], operands: Sequence[Operand],
    answer: Told, name: str, given: Any,
) -> list[tuple[Size, ...]]:
    """The shapes of the results, in symbols; plans will ask whether they are right."""
    given = [n for x in operands for n in (*x.type.shape, x.number, x.type.size) if is_int(n)]
    symbols = [n for n in dict.fromkeys(map(_Known, given)) if type(n.size) is Symbolic]
    shapes = [tuple(_guessed(n, symbols) for n in shape) for shape in answer.shapes]
    sizes = symbols[0].size.sizes
    sizes.note(Answer(
        function, stand_in, tuple(operands), tuple(shapes), _layout(answer.value), name, given),
        True)
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
