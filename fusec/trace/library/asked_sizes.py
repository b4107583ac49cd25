"""Questions to NumPy about operands whose sizes are symbols: for the traced call's sizes now, for
others when a plan is made of the trace.

The sizes of the answer are guessed from those of the operands, and from numbers of the call that
follow from sizes (equal, half, a sum, a product); each plan asks NumPy again, on stand-ins and with
numbers of its own sizes, whether they are, and whether the results have the dtypes and lie in
memory as here.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from fusec.core.records import dataclass, field
from fusec.ir import TensorType
from fusec.ir.sizes.bindings import resolve
from fusec.ir.sizes.dims import Dim, Size
from fusec.ir.sizes.instantiate import Instantiation
from fusec.ir.sizes.symbolic_numbers import Symbolic, is_int, text_of_number
from fusec.ir.sizes.symbolic_sizes import is_symbolic
from fusec.ops.calls.library import leaves_of

from ..facts.layout import Strides, like_order
from ..facts.trees import leaves_in
from .short_axes import MOST_LENGTH, Lengths, short_lengths, told_length

At = Callable[[Symbolic], Any]


def hint_of(number: Symbolic) -> Any:
    """The number in the traced call."""
    return number.hint


def form_at(form: Any, at: At) -> Any:
    """Plain data with the numbers of ``at`` in the place of those that follow from sizes."""
    if type(form) is tuple:
        return tuple([form_at(item, at) for item in form])
    return at(form) if type(form) is Symbolic else form


def symbols_in(form: Any) -> Iterator[Symbolic]:
    """The numbers of plain data that follow from sizes."""
    return (item for item in leaves_in(form) if type(item) is Symbolic)


@dataclass(frozen=True)
class OperandLayout:
    """The type and layout of an operand; ``number``: of one that is a size; ``contents``: of one
    that is a constant, where these are asked about."""

    type: TensorType
    strides: Strides
    number: Any = None
    contents: Any = field(default=None, compare=False)

    @property
    def dtype(self) -> np.dtype:
        return self.type.dtype

    @property
    def is_symbolic(self) -> bool:
        return is_symbolic((self.type.shape, self.strides, self.number))

    def at(self, sizes: Instantiation) -> OperandLayout:
        return OperandLayout(sizes.type(self.type), sizes.data(self.strides),
                             sizes.data(self.number), self.contents)


@dataclass(frozen=True, eq=False)
class Asked:
    """A question to NumPy: a function of a list of plain operands and of ``form``, plain data in
    which numbers may follow from sizes.

    ``stand_in(operand, lengths=...)`` makes a plain operand; ``given``: numbers that the function
    itself holds.
    """

    function: Callable[[list[Any], Any], Any]
    stand_in: Callable[..., Any]
    form: Any = ()
    given: Any = ()


@dataclass(frozen=True, eq=False)
class Told:
    """NumPy's answer on stand-ins, those, and the shapes that its results have of operands of their
    own lengths: stand-ins may be shorter."""

    value: Any
    stand_ins: list[Any]
    shapes: Sequence[tuple[int, ...]]


def told(
    asked: Asked, operands: Sequence[OperandLayout], at: At = hint_of, is_trial: bool = False
) -> Told:
    """The answer for these operands; ``at`` gives the value of a number of the form.  Exceptions on
    stand-ins of full length are raised; in a trial, whose exceptions nobody reads, those on short
    ones.
    """
    shapes = [shape for x in operands if (shape := _hints(x.type.shape)) is not None]
    sizes = [resolve(x.number, {}) for x in operands if is_int(x.number)]
    known = {n for shape in shapes for n in shape}
    numbers = dict.fromkeys(_lengths(asked.form, at))
    lengths: list[tuple[int, ...]] = [(n,) for n in numbers if n not in known]
    fixed = form_at(asked.form, lambda number: None)
    sets = short_lengths((*shapes, *lengths), (
        fixed, asked.given, [n for n in sizes if n not in known]))
    answer = _told_of_short(
        asked, operands, at, sets, (shapes, lengths), is_trial) if sets else None
    if answer is not None:
        return answer
    stand_ins = [asked.stand_in(x) for x in operands]
    value = asked.function(stand_ins, form_at(asked.form, at))
    return Told(value, stand_ins, [np.shape(leaf) for leaf in leaves_of(value)])


def _hints(shape: tuple[Size, ...]) -> tuple[int, ...] | None:
    """The sizes in the traced call; None where the run decides one."""
    return None if any(type(n) is Dim for n in shape) else resolve(shape, {})


def _lengths(form: Any, at: At) -> Iterator[int]:
    """The numbers of a form that follow from sizes, and may be lengths themselves."""
    if type(form) is tuple:
        for item in form:
            yield from _lengths(item, at)
    elif is_int(form) and type(form) is Symbolic and 0 < (n := abs(at(form))) < MOST_LENGTH:
        yield n


def _told_of_short(
    asked: Asked, operands: Sequence[OperandLayout], at: At, sets: Sequence[Lengths],
    shapes: tuple[list[tuple[int, ...]], list[tuple[int, ...]]], is_trial: bool,
) -> Told | None:
    """The answer of short stand-ins; None where long ones have another.  ``shapes``: of operands,
    and numbers of the form."""
    answers = []
    for lengths in sets:
        stand_ins = [asked.stand_in(x, lengths=lengths) for x in operands]
        try:
            form = form_at(asked.form, partial(_short, at, lengths))
            answers.append(Told(asked.function(stand_ins, form), stand_ins, ()))
        except Exception:  # of what it minds, lengths are shown
            if is_trial:
                raise
            return None
    if len({_layout(answer.value) for answer in answers}) > 1:
        return None
    found = []
    for leaves in zip(*(leaves_of(answer.value) for answer in answers), strict=True):
        sizes = [_told_length(column, sets, *shapes)
                 for column in zip(*map(np.shape, leaves), strict=True)]
        if None in sizes:
            return None
        found.append(tuple(sizes))
    told: Any = found
    return Told(answers[0].value, answers[0].stand_ins, told)


def _short(at: At, lengths: Lengths, number: Symbolic) -> Any:
    """The number that stands for this one where arrays are shorter."""
    value = at(number)
    if not is_int(number):
        return value
    return lengths.get(value, value) if value >= 0 else -lengths.get(-value, -value)


def _told_length(
    column: Sequence[int], sets: Sequence[Lengths], shapes: list[tuple[int, ...]],
    numbers: list[tuple[int, ...]],
) -> int | None:
    length = told_length(column, sets, shapes)
    return told_length(column, sets, [*shapes, *numbers]) if length is None and numbers else length


@dataclass(eq=False)
class Answer:
    """The question whether NumPy's answer is the same, but for sizes."""

    asked: Asked
    operands: tuple[OperandLayout, ...]
    shapes: tuple[Any, ...]
    layout: tuple[Any, ...]
    name: str

    def evaluate(self, sizes: Mapping[str, int]) -> bool:
        """Whether it is for these sizes."""
        at = Instantiation(sizes)
        try:
            answer = told_at(self.asked, self.operands, at)
        except Exception:  # a trace for these sizes says what NumPy does
            return False
        return _layout(answer.value) == self.layout and list(answer.shapes) == list(
            at.data(self.shapes))

    def __str__(self) -> str:
        shapes = (",".join(map(text_of_number, shape)) for shape in self.shapes)
        return f"{self.name} gives {', '.join(f'[{shape}]' for shape in shapes)}"


def told_at(
    asked: Asked, operands: Sequence[OperandLayout], sizes: Instantiation, is_trial: bool = False
) -> Told:
    """NumPy's answer for operands of these sizes."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return told(asked, [x.at(sizes) for x in operands], sizes.data, is_trial)


def _layout(answer: Any) -> tuple[Any, ...]:
    """The results but for their sizes: types, dtypes, layouts."""
    return tuple(_layout_of(leaf) for leaf in leaves_of(answer))


def _layout_of(leaf: Any) -> tuple[Any, ...]:
    if type(leaf) is not np.ndarray:  # a float or a number of NumPy's is content
        return type(leaf), None if isinstance(leaf, (np.generic, float, complex)) else leaf
    signs = tuple(np.sign(leaf.strides).tolist())
    is_column = leaf.ndim == 1 and leaf.strides[0] > leaf.itemsize
    return leaf.dtype, tuple(like_order(leaf.strides)), signs, is_column and leaf.strides


def note_answer(
    asked: Asked, operands: Sequence[OperandLayout], answer: Told, name: str
) -> list[tuple[Size, ...]]:
    """The shapes of the results, in symbols; plans will ask whether they are right."""
    known = [n for x in operands for n in (*x.type.shape, x.number, x.type.size) if is_int(n)]
    known += filter(is_int, symbols_in(asked.form))
    symbols = [n.size for n in dict.fromkeys(map(_Known, known)) if type(n.size) is Symbolic]
    sizes = symbols[0].sizes if symbols else next(symbols_in(asked.form)).sizes
    shapes = tuple(tuple(map(partial(_guesses, symbols), shape)) for shape in answer.shapes)
    guessed = _told_apart(asked, operands, sizes.hints, shapes)
    sizes.note(Answer(asked, tuple(operands), guessed, _layout(answer.value), name), True)
    return list(guessed)


class _Known:
    """A size, equal to others of the same expression."""

    def __init__(self, size: Any) -> None:
        self.size, self.key = size, getattr(size, "expression", size)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Known) and type(self.key) is type(other.key) and bool(
            self.key == other.key)

    def __hash__(self) -> int:
        return hash(self.key)


def _guesses(symbols: Sequence[Symbolic], number: int) -> list[Size]:
    """The expressions that a result's size of this number may be, the likeliest first."""
    if number < 2:
        return [number]
    found = [s for s in _candidates(number, symbols) if resolve(s, {}) == number]
    return [n.size for n in dict.fromkeys(map(_Known, [*found, number]))]


def _candidates(number: int, symbols: Sequence[Symbolic]) -> Iterator[Size]:
    """Sizes that an answer of this size may have."""
    yield from symbols
    for a, b in itertools.combinations_with_replacement(symbols, 2):
        yield from (a + b, a * b, a + b - 1)
    for size in symbols:
        yield size // 2 + 1  # of the transform of real numbers
        yield 2 * size - 2  # and back
        yield from ((size + 7) // 8, 8 * size)  # of bits
    for a, b in itertools.permutations(symbols, 2):
        yield a - b + 1  # of places of one in the other
    for size in symbols:
        if abs(number - size.hint) <= NEAR:
            yield size + (number - size.hint)


NEAR = 16  # how many elements more or less than an operand a result may have


def _told_apart(
    asked: Asked, operands: Sequence[OperandLayout], hints: Mapping[str, int],
    shapes: Sequence[Sequence[list[Size]]],
) -> tuple[tuple[Size, ...], ...]:
    """Of the expressions the first that is right where operands have other lengths, too."""
    is_open = any(len(guesses) > 1 for shape in shapes for guesses in shape)
    for factor, more in _OTHER if is_open else ():
        at = Instantiation({name: factor * size + more for name, size in hints.items()})
        try:
            others = told_at(asked, operands, at, is_trial=True).shapes
        except Exception:  # of arrays of such lengths NumPy makes nothing
            continue
        if [*map(len, others)] == [*map(len, shapes)]:
            return tuple(
                tuple(map(partial(_fitting, at), shape, other))
                for shape, other in zip(shapes, others, strict=True))
    return tuple(tuple(guesses[0] for guesses in shape) for shape in shapes)


_OTHER = (2, 1), (2, 0), (1, 1), (3, 2)  # lengths: so many times as long, and so many elements more


def _fitting(at: Instantiation, guesses: list[Size], number: int) -> Size:
    return next((guess for guess in guesses if at.data(guess) == number), guesses[0])
