"""Python's and NumPy's iterators: over sequences that a loop of the graph can index they become
traced sequences, over anything else they are Python's own."""

from __future__ import annotations

import itertools
import math
import operator
from types import GeneratorType
from typing import Any

import numpy as np

from fusec.errors import unsupported
from fusec.ir.sizes.symbolic_sizes import is_symbolic, plain
from fusec.ops.shapes import broadcast

from ..arrays.shaping import in_numpys_words
from ..control.iterators import Enumerate, Map, NdEnumerate, Product, Reversed, Zip
from ..control.ranges import all_one, listed, parts
from ..control.sequences import PythonIterator, TracedRange
from ..control.unrolling import UNROLL
from ..objects.tracing_hooks import TracingHooks
from ..values.array import TracedArray
from ..values.handlers import any_traced, everywhere, when_called
from ..values.operations import OPERATIONS
from ..values.rows import elements
from ..values.trace import Trace


def _is_sequence(hooks: TracingHooks, x: Any) -> bool:
    """Whether its items can be counted, or may be (its own parts decide)."""
    return type(x) in (range, TracedRange, TracedArray) or isinstance(x, PythonIterator) or (
        listed(hooks.trace, x) is not None or all_one(hooks.trace, x) is not None)


def _is_short_list(x: Any) -> bool:
    """A list that Python itself goes over, which may change meanwhile."""
    return type(x) is list and len(x) <= UNROLL


def _length(x: Any) -> Any:
    """The number of items; an object that equals no other where it is not known."""
    if type(x) is TracedArray:
        return x.shape[0] if x.ndim else object()
    return len(x) if hasattr(x, "__len__") and type(x) is not TracedRange else object()


@everywhere(enumerate)
def _enumerate(hooks: TracingHooks, iterable: Any, start: Any = 0) -> Any:
    if not _is_sequence(hooks, iterable) or not isinstance(start, int | TracedArray) or (
            _is_short_list(iterable)):
        return enumerate(iterable, start)
    return Enumerate((hooks.iterate(hooks.where, iterable), start))


@everywhere(zip)
def _zip(hooks: TracingHooks, *parts: Any, strict: bool = False) -> Any:
    lengths = [_length(part) for part in parts] if strict else []
    if any(length != lengths[0] for length in lengths[1:]):
        return zip(*parts, strict=True)
    if not parts or not all(_is_sequence(hooks, p) for p in parts) or all(
            map(_is_short_list, parts)):
        return zip(*parts, strict=False)
    return Zip(tuple(hooks.iterate(hooks.where, p) for p in parts))


@everywhere(map)
def _map(hooks: TracingHooks, function: Any, *parts: Any) -> Any:
    wrapped = hooks.wrap(function)
    if not parts or not all(_is_sequence(hooks, p) for p in parts) or all(
            map(_is_short_list, parts)):
        return map(wrapped, *parts)
    return Map((Zip(tuple(hooks.iterate(hooks.where, p) for p in parts)), wrapped))


@everywhere(list)
def _list(hooks: TracingHooks, *iterable: Any) -> Any:
    """A list of items that can be counted, which a loop of the graph makes where they are many."""
    if len(iterable) != 1 or not isinstance(iterable[0], PythonIterator):
        return list(*map(_taken_at_once, iterable))
    return hooks.list_of(hooks.where, iterable[0], _itself, None, list)


@everywhere(tuple)
def _tuple(hooks: TracingHooks, *iterable: Any) -> Any:
    is_counted = len(iterable) == 1 and isinstance(iterable[0], PythonIterator)
    return tuple(_list(hooks, *iterable)) if is_counted else tuple(*map(_taken_at_once, iterable))


@everywhere(dict)
def _dict(hooks: TracingHooks, *items: Any, **named: Any) -> Any:
    return dict(*map(_taken_at_once, items), **named)


def _taken_at_once(iterable: Any) -> Any:
    """An iterable that Python goes over while nothing of the program runs."""
    if isinstance(iterable, PythonIterator):
        return iterable.at_once(_taken_at_once)
    items = elements(iterable)
    return iterable if items is None else items


def _itself(item: Any) -> Any:
    return item


@everywhere(reversed)
def _reversed(hooks: TracingHooks, sequence: Any) -> Any:
    is_array = type(sequence) is TracedArray and sequence.ndim
    if not is_array and type(sequence) not in (range, TracedRange) and (
            parts(hooks.trace, sequence) is None):
        return reversed(sequence)
    return Reversed((sequence,))


@everywhere(np.fromiter)
def _fromiter(
    hooks: TracingHooks, iterable: Any, dtype: Any, count: Any = -1, **named: Any
) -> Any:
    """The items as a list, which a loop of the graph makes where it can, in an array."""
    trace, most = hooks.trace, operator.index(count)
    if isinstance(iterable, PythonIterator | GeneratorType) and most < 0:
        items = hooks.call(hooks.where, list, iterable)
    else:
        items = [*(iterable if most < 0 else itertools.islice(iterable, most))]
    if named or (not any_traced(tuple(items[-1:]), {}) and not any_traced(tuple(items), {})):
        return np.fromiter(items, dtype, count, **named)
    if len(items) < most:
        raise trace.error(ValueError(f"iterator too short: Expected {most} but iterator had only "
                                     f"{len(items)} items."))
    x: Any = OPERATIONS.array(trace, items)
    if x.ndim != 1:
        raise trace.error(ValueError("setting an array element with a sequence."))
    return x.astype(np.dtype(dtype))


@everywhere(itertools.product)
def _product(hooks: TracingHooks, *parts: Any, repeat: int = 1) -> Any:
    if not parts or any(
            isinstance(p, PythonIterator) or not _is_sequence(hooks, p) for p in parts):
        return itertools.product(*parts, repeat=repeat)
    return Product(tuple(hooks.iterate(hooks.where, p) for p in parts) * repeat)


@everywhere(np.ndindex)
def _ndindex(hooks: TracingHooks, *shape: Any) -> Any:
    if len(shape) == 1 and isinstance(shape[0], tuple):
        (shape,) = shape
    if any_traced(shape, {}):  # which become known, or are refused
        shape = tuple(map(operator.index, shape))
    if not shape or not all(isinstance(n, int) and n >= 0 for n in shape):
        return in_numpys_words(hooks.trace, np.ndindex, *map(plain, shape))
    return Product(tuple(map(range, shape)))


@when_called(np.ndenumerate)
def _ndenumerate(hooks: TracingHooks, arr: Any) -> Any:
    if type(arr) is not TracedArray or not arr.is_array or not arr.ndim:
        raise unsupported("np.ndenumerate of a scalar", loc=hooks.loc)
    return NdEnumerate((Product(tuple(map(range, arr.shape))), arr))


class Broadcast:
    """The attributes of ``np.broadcast``; iterating over it is refused."""

    def __init__(self, trace: Trace, arrays: tuple[Any, ...]) -> None:
        self.trace = trace
        shapes = [np.shape(a) for a in arrays]
        self.shape = broadcast(shapes) if any(map(is_symbolic, shapes)) else (
            np.broadcast_shapes(*shapes))
        self.ndim = self.nd = len(self.shape)
        self.size, self.numiter = math.prod(self.shape), len(arrays)

    def __iter__(self) -> Any:
        raise unsupported("going through np.broadcast", loc=self.trace.loc,
                          cure="go through np.broadcast_arrays(...)")


@when_called(np.broadcast)
def _broadcast(hooks: TracingHooks, *arrays: Any) -> Broadcast:
    try:
        return Broadcast(hooks.trace, arrays)
    except ValueError as error:
        raise hooks.trace.error(error) from None


@when_called(np.nditer)
def _nditer(hooks: TracingHooks, *args: Any, **kwargs: Any) -> Any:
    raise unsupported("np.nditer", loc=hooks.loc,
                      cure="loop over x.flat, np.ndenumerate(x) or np.ndindex(x.shape)")
