"""Sizes of a library call's results where its operands, or their contents, leave them open.

NumPy is asked several times, on stand-ins of different sizes and contents.  A size that is always
the same is static; one that is always an operand's size, or a simple expression of them, is that;
any other is a new symbol, which the run binds.  The run checks every size, so a wrong guess is an
error and never a wrong value.
"""

from __future__ import annotations

import itertools
import math
import operator
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import optree

from fusec.core.records import dataclass
from fusec.errors import unsupported
from fusec.ir import Node, TensorType, Value
from fusec.ir.sizes.bindings import Bindings, resolve
from fusec.ir.sizes.dims import Dim, Size, maximum, symbols_of
from fusec.ir.sizes.size_questions import Computed, value_at
from fusec.ir.sizes.symbolic_numbers import Symbolic, dim_of, expressions
from fusec.ir.sizes.symbolic_sizes import is_symbolic, plain
from fusec.ops.calls.library import LIBRARY, LibraryCall, called_name, leaves_of, run_call

from ..facts.trees import leaves_in
from ..operands.sizes import (
    APART,
    EQUAL,
    ORDINARY,
    OTHER,
    OTHER_EQUAL,
    all_of_size,
    new_size,
    size_of,
)
from ..values.trace import Trace
from .short_axes import AS_THEY_ARE, Lengths, in_short, short_lengths, told_length

# Symbols, and the results' shapes; None where NumPy refuses the operands.
Contents = Callable[[int, tuple[int, ...]], Any]
Shapes = list[tuple[int, ...]]


@dataclass(frozen=True)
class Sample:
    """Sizes for symbols, lengths in the place of long ones, and the shapes of NumPy's results;
    None where it refused."""

    sizes: Bindings
    lengths: Lengths
    shapes: Shapes | None


MOST_OF_SIZED = 1 << 10  # elements of operands that are filled with many contents
_MOST_JOINED = 1 << 16  # elements of an operand that another one may have to match in one row
_MOST_NUMBERS = 8  # of a call's own that operands are filled with
_FAR = 17  # by how much a size may be cut to fit a known one
_FEW = 2  # contents for all but the first set of short lengths
_LARGE = 1 << 16  # a number that may be one of elements: of results, where contents decide that


def _counting(position: int, shape: tuple[int, ...]) -> np.ndarray:
    return np.arange(int(np.prod(shape))).reshape(shape)


# What operands hold, by position: one of them gives the result of a data-dependent function
# another size than the rest.
_SMALL_CONTENTS: tuple[Contents, ...] = (
    lambda position, shape: 0,
    lambda position, shape: 1,
    lambda position, shape: _counting(position, shape) % 2,  # two indices
    lambda position, shape: position,
    lambda position, shape: np.nan,  # which no element equals; 0 of integers
)
_CONTENTS: tuple[Contents, ...] = (
    *_SMALL_CONTENTS, _counting,
    lambda position, shape: 100 + 1000 * _counting(position, shape),
)


# What divides evenly, and what is no array worth the name.
LAST_RESORT: tuple[Bindings, ...] = (*map(all_of_size, (60, 840)), *map(all_of_size, (1, 0)))


def sized_types(
    trace: Trace, call: LibraryCall, operands: Sequence[Value], form: Any, named: Any,
    types: tuple[TensorType, ...], stand_ins: Sequence[Any],
) -> tuple[TensorType, ...]:
    """The results' types with every size that the run decides as an expression."""
    if not call.sized and not _has_symbols(operands):
        return types
    given = *(s for v in operands for s in v.shape), *leaves_in((form, named))
    symbol = next((s for s in given if type(s) is Symbolic), None)
    operands = [_in_dims(v) for v in operands]
    shapes = static_shapes(operands)
    arguments, tried, sets = _asked(call, operands, form, named, stand_ins)
    samples = [s for s in tried if s.shapes is not None]
    if any(len(s.shapes or ()) != len(types) for s in samples):
        raise unsupported("a call with as many results as data decides", loc=trace.loc,
                          cure="call it before or after the compiled function")
    terms = _terms(operands, arguments)
    if len(samples) < len(tried) and _has_symbols(operands):
        terms = []  # sizes that must agree may also broadcast: only the run tells the result's
    fresh: dict[tuple[int, ...], Size] = {}

    # That nothing was found in any stand-in of some elements says nothing about others.
    may_find = call.sized and not any(0 in v.shape for v in operands)

    def size(column: tuple[int, ...]) -> Size:
        if len(set(column)) == 1 and not (may_find and column[0] == 0):
            return column[0]
        for candidate in _candidates(terms):
            if all(resolve(candidate, s.sizes) == n
                   for s, n in zip(samples, column, strict=True)):
                return candidate if symbol is None else symbol.sizes.number(candidate)
        length = told_length(column, [s.lengths for s in samples], shapes) if sets else None
        if length is not None:
            return length
        return fresh.setdefault(column, new_size(trace)) if column not in fresh else fresh[column]

    columns = [zip(*(s.shapes[i] for s in samples if s.shapes is not None), strict=True)
               for i in range(len(types))]
    return tuple(replace(t, shape=tuple(map(size, of_result)))
                 for t, of_result in zip(types, columns, strict=True))


_Asked = tuple[Any, list[Sample], Sequence[Lengths]]


def _asked(
    call: LibraryCall, operands: Sequence[Value], form: Any, named: Any, stand_ins: Sequence[Any],
) -> _Asked:
    """The arguments, samples of NumPy's results, and their lengths.

    Arguments that follow from sizes stay open where they decide neither how many results there are
    nor their ranks, and where NumPy accepts them for any sizes.
    """
    if not call.is_named:
        open_ = expressions((form, named))
        asked = _tried(call, operands, stand_ins, open_)
        if any(s.shapes is not None for s in asked[1]):
            return asked
    asked = _tried(call, operands, stand_ins, plain((form, named)))
    if not any(s.shapes is not None for s in asked[1]):
        raise AssertionError(f"internal error: {call.op} has no result on stand-ins")
    return asked


def _tried(
    call: LibraryCall, operands: Sequence[Value], stand_ins: Sequence[Any], arguments: Any
) -> _Asked:
    fixed = resolve(arguments, LAST_RESORT[-1]) if _is_open(arguments) else arguments
    sets = short_lengths(static_shapes(operands), fixed, MOST_OF_SIZED)
    assigned = (*assignments(operands, arguments), *_apart(operands, arguments))
    attempts = [(assigned, sets)] if sets else []
    attempts.append((assigned, ()))
    if not _is_open(arguments):
        attempts.append((LAST_RESORT, ()))  # it fits one size only
    for attempt in attempts:
        samples = list(_samples(call, operands, arguments, stand_ins, *attempt))
        tried = [s for s in samples if s.shapes is not None or s.sizes is not APART]
        if any(s.shapes is not None for s in tried):
            break
    return arguments, tried, sets


def _is_open(arguments: Any) -> bool:
    """Whether numbers of a call follow from sizes."""
    return any(type(n) in (Dim, Computed) for n in leaves_in(arguments))


def _terms(operands: Sequence[Value], arguments: Any) -> list[Dim]:
    """Sizes that results may have."""
    known = [s for v in operands for s in (*v.shape, v.type.size, size_of(v))]
    return list(dict.fromkeys(s for s in (*known, *leaves_in(arguments)) if isinstance(s, Dim)))


def _arguments_at(arguments: Any, sizes: Bindings) -> Any:
    if type(arguments) is tuple:
        return tuple([_arguments_at(item, sizes) for item in arguments])
    return value_at(arguments, sizes)


def static_shapes(operands: Sequence[Value]) -> list[tuple[int, ...]]:
    """Of the operands, those whose sizes are numbers in the traced call."""
    return [resolve(v.shape, {}) for v in operands if not any(type(n) is Dim for n in v.shape)]


def _in_dims(value: Value) -> Value:
    """A value of the type, sizes of arguments as symbols like those that the run decides."""
    if not is_symbolic(value.shape):
        return value
    dims: list[Any] = [dim_of(n) for n in value.shape]
    shape = tuple(operator.index(n) if d is None else d
                  for n, d in zip(value.shape, dims, strict=True))
    type_ = replace(value.type, shape=shape)
    return Node("Input", types=[type_]).out()


def _has_symbols(operands: Sequence[Value]) -> bool:
    return bool(symbols_of(tuple((*v.shape, size_of(v)) for v in operands)))


def assignments(operands: Sequence[Value], arguments: Any = ()) -> tuple[Bindings, ...]:
    """Sizes to try where the run decides some: any, all equal, and equal to one that is known.

    Sizes of arguments are those of the run, too; ``arguments`` are the other ones of the call.
    """
    symbols = symbols_of(tuple((*v.shape, size_of(v)) for v in operands))
    if not symbols:
        is_open = any(type(n) is Dim for v in operands for n in v.shape)  # of arguments' sizes
        return (ORDINARY, OTHER) if is_open or _is_open(arguments) else (ORDINARY,)
    operands = [v for v in operands if not is_symbolic(v.shape)]
    numbers = {n for v in operands for n in v.shape if not isinstance(n, Dim)}
    numbers |= {n for v in operands if v.type.is_static and (n := v.type.size) <= _MOST_JOINED}
    equal = (EQUAL, OTHER_EQUAL) if len(symbols) > 1 else ()
    joined = sorted(numbers - {0}, reverse=True)
    return ORDINARY, OTHER, *equal, *map(all_of_size, [*joined, *_fitting(operands, numbers)])


def _fitting(operands: Sequence[Value], numbers: set[int]) -> list[int]:
    """Sizes of all symbols at which a size made of them is one that is known: of ``x[mask][4:]``.
    """
    made = {n for v in operands for n in v.shape if isinstance(n, Dim) and n.name is None}
    near = sorted({n + k for n in numbers for k in range(_FAR) if n + k not in numbers})
    return [k for k in near if any(resolve(n, all_of_size(k)) in numbers for n in made)][:_FEW]


def _apart(operands: Sequence[Value], arguments: Any) -> tuple[Bindings, ...]:
    """A sample that tells sizes of arguments from those of the run, if NumPy accepts that."""
    given = *(n for v in operands for n in v.shape), *leaves_in(arguments)
    sizes = [n for n in given if type(n) is Dim]
    has_both = any(n.symbols for n in sizes) and not all(n.symbols for n in sizes)
    return (APART,) if has_both else ()


def _candidates(terms: Sequence[Dim]) -> Iterator[Size]:
    yield from terms
    for size in terms:
        yield from (maximum(size - 1, 0), size + 1)
    for a, b in itertools.combinations_with_replacement(terms, 2):
        yield from (a + b, a * b)


def _samples(
    call: LibraryCall, operands: Sequence[Value], arguments: Any, stand_ins: Sequence[Any],
    assigned: Sequence[Bindings], sets: Sequence[Lengths] = (),
) -> Iterator[Sample]:
    for at, lengths in enumerate(sets or (AS_THEY_ARE,)):
        for sizes in assigned:
            try:
                given = _arguments_at(arguments, sizes)
            except ArithmeticError:
                yield Sample(sizes, lengths, None)
                continue
            tried = _contents(call, *given)
            most = 0  # elements of results so far
            for contents in tried if not at else tried[:_FEW]:
                if _is_number_of_many(contents, most):
                    continue
                arrays = [_filled(v, s, sizes, contents, i, lengths)
                          for i, (v, s) in enumerate(zip(operands, stand_ins, strict=True))]
                shapes = _shapes(call, arrays, *given)
                most = max(most, *map(math.prod, shapes or [()]))
                yield Sample(sizes, lengths, shapes)


def _is_number_of_many(contents: Any, most: int) -> bool:
    """Whether it is a large number of the call's own where sizes follow from contents."""
    return isinstance(contents, _Number) and abs(contents.number) > _LARGE < most


def _contents(call: LibraryCall, form: Any, named: Any) -> Sequence[Any]:
    """The usual contents, and the call's other arguments: the 2 of ``np.setdiff1d(x, 2)``; None
    where contents decide nothing."""
    if call.op in LIBRARY and called_name(call.op, form).endswith("repeat"):  # of a sum of many
        return _SMALL_CONTENTS
    if not call.sized:
        return (None,)
    both: Any = (form, named)
    given = dict.fromkeys(
        n for n in optree.tree_leaves(both)
        if isinstance(n, (bool, int, float, np.bool_, np.number)))
    return *_CONTENTS, *map(_Number, itertools.islice(given, _MOST_NUMBERS))


@dataclass(frozen=True)
class _Number:
    """Contents that are everywhere this number of the call's own."""

    number: Any

    def __call__(self, position: int, shape: tuple[int, ...]) -> Any:
        return self.number


def _filled(
    value: Value, stand_in: Any, sizes: Bindings, contents: Any, position: int, lengths: Lengths,
) -> Any:
    if value.type.kind != "array":
        number = size_of(value)
        if contents is not None and number is None:  # data, such as a mask of rank 0
            return type(stand_in)(_in_dtype(contents(position, ()), value.dtype).item())
        if number is None:
            return stand_in
        number = resolve(number, sizes)
        return type(stand_in)(lengths.get(number, number))
    shape = in_short(resolve(value.shape, sizes), lengths)
    if contents is None:
        array = np.empty(shape, value.dtype)
        array[...] = stand_in.flat[0] if stand_in.size and not _is_eye(stand_in) else np.eye(
            shape[-2], shape[-1]) if len(shape) > 1 else 0
        return array
    return np.broadcast_to(_in_dtype(contents(position, shape), value.dtype), shape).copy()


def _in_dtype(contents: Any, dtype: np.dtype) -> np.ndarray:
    if contents is np.nan and dtype.kind not in "fc":
        contents = 0
    return np.asarray(contents).astype(dtype)


def _is_eye(array: np.ndarray) -> bool:
    """Whether the stand-in is an identity matrix, as linear algebra's are."""
    return array.ndim > 1 and bool(array.any()) and not bool(array.all())


def _shapes(
    call: LibraryCall, arrays: Sequence[Any], form: Any, named: Any
) -> list[tuple[int, ...]] | None:
    """The results' shapes, None where NumPy refuses these contents."""
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return [np.shape(leaf) for leaf in leaves_of(run_call(call, arrays, form, named))]
    except (ValueError, TypeError, IndexError, ArithmeticError, np.linalg.LinAlgError):
        return None
