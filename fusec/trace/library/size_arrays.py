"""Arrays that NumPy makes of sizes of arguments alone: ``np.arange(n)``, ``np.linspace(0, 1, n)``.

In a trace for one size they are constants.  In a trace for several each plan has its own, which
NumPy makes when the plan is: an input of the graph that no call gives.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from fusec.ir.sizes.computed_forms import (
    MAKERS,
    NamedCall,
    part_of,
    size_of_axis,
    tuple_of,
)
from fusec.ir.sizes.dims import Size
from fusec.ir.sizes.size_questions import Computed
from fusec.ir.sizes.symbolic_numbers import Sizes, Symbolic, applied, dim_of, is_int, stored
from fusec.ir.sizes.symbolic_sizes import is_symbolic, length_of_range, plain_int

from ..facts.layout import contiguous
from ..facts.origins import access_path
from ..facts.trees import leaves_in
from ..values.array import TracedArray, from_value
from ..values.trace import Trace


def depends_on_sizes(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether a call makes arrays of numbers, among them such that follow from sizes."""
    given = (*args, *kwargs.values())
    return any(fn is maker for maker in MAKERS) and any(map(_has_symbol, given)) and (
        not any(isinstance(x, np.ndarray) or type(x) is TracedArray for x in given))


def _has_symbol(x: Any) -> bool:
    return type(x) is Symbolic or (type(x) is tuple and any(type(n) is Symbolic for n in x))


def arrays_of_sizes(
    trace: Trace, fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """The call's results: arrays that each plan has its own of."""
    given = (*map(_stored, args), *map(_stored, kwargs.values()))
    call = Computed(NamedCall(fn, tuple(kwargs)), given)
    hint = fn(*map(_hint, args), **{name: _hint(x) for name, x in kwargs.items()})
    leaves = list(leaves_in((args, tuple(kwargs.values()))))
    numbers = [plain_int(x) for x in leaves if dim_of(x) is not None]
    numbers += _steps(args) if fn is np.arange and not kwargs else []
    return _placeholders(trace, call, hint, leaves, numbers)


def _placeholders(
    trace: Trace, call: Computed, hint: Any, given: list[Any], numbers: list[Any]
) -> Any:
    """The array that a call makes, or each; ``given``: its arguments."""
    sizes = next(x.sizes for x in given if type(x) is Symbolic)
    if type(hint) is not tuple:
        return _placeholder(trace, call, hint, sizes, numbers)
    return tuple(_placeholder(trace, Computed(part_of, (call, at)), part, sizes, numbers)
                 for at, part in enumerate(hint))


def _steps(args: tuple[Any, ...]) -> list[Any]:
    """The length of ``arange(start, stop, step)`` of whole numbers."""
    bounds = (0, *args, 1)[:3] if len(args) == 1 else (*args, 1)[:3]
    whole = [int(x) if type(x) is float and x.is_integer() else x for x in bounds]
    return [length_of_range(*whole)] if all(map(is_int, whole)) and whole[2] != 0 else []


def grid_of_sizes(trace: Trace, grid: Any, key: Any) -> Any:
    """``np.mgrid[0:n, 0:2]``: its result for slices with ends that follow from sizes."""
    slices = tuple((s.start, s.stop, s.step) for s in (key if type(key) is tuple else (key,)))
    call = Computed(_grid, (grid is np.ogrid, type(key) is tuple, _stored(slices)))
    hint = call.fn(*call.args[:2], _hint(slices))
    ends = [(0 if first is None else first, last, 1 if step is None else step)
            for first, last, step in slices]
    numbers = [n for end in ends for n in (*end, *_steps(end))]
    return _placeholders(trace, call, hint, list(leaves_in(slices)), numbers)


def _grid(is_sparse: bool, is_tuple: bool, slices: tuple[Any, ...]) -> Any:
    keys = tuple(slice(*ends) for ends in slices)
    grid: Any = np.ogrid if is_sparse else np.mgrid
    return grid[keys if is_tuple else keys[0]]


def position_of_sizes(fn: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    """``np.unravel_index(i, shape)`` and ``np.ravel_multi_index(indices, shape)`` of numbers that
    follow from sizes; None where NumPy answers, or raises."""
    if len(args) != 2 or not (fn is np.unravel_index or fn is np.ravel_multi_index):
        return None
    index, shape = args[0], (args[1],) if is_int(args[1]) else args[1]
    indices = index if fn is np.ravel_multi_index else (index,)
    if not all(type(x) is tuple and x and all(map(is_int, x)) for x in (indices, shape)):
        return None
    if not is_symbolic((indices, shape)) or math.prod(shape) > _MOST_PLACES:
        return None
    limits = shape if fn is np.ravel_multi_index else (math.prod(shape),)
    fits = len(indices) == len(limits) and all(
        0 <= i < n for i, n in zip(indices, limits, strict=True))
    return (_flat if fn is np.ravel_multi_index else _places)(index, shape) if fits else None


_MOST_PLACES = (1 << 63) - 1


def _flat(indices: tuple[Any, ...], shape: tuple[Any, ...]) -> Any:
    place = 0
    for index, size in zip(indices, shape, strict=True):
        place = place * size + index
    return applied(np.int64, place)


def _places(index: Any, shape: tuple[Any, ...]) -> tuple[Any, ...]:
    found = []
    for size in reversed(shape):
        found.append(applied(np.int64, index % size))
        index = index // size
    return tuple(reversed(found))


def _placeholder(
    trace: Trace, call: Computed, hint: np.ndarray, sizes: Sizes, numbers: list[Any]
) -> TracedArray:
    """An array of the graph that each plan makes; ``numbers`` are sizes that it may have."""
    if not hint.ndim:
        raise trace.error(TypeError(f"{call} is no array"))
    shape = tuple(_length(sizes, call, axis, n, numbers) for axis, n in enumerate(hint.shape))
    layout = shape, contiguous(shape, hint.itemsize)
    what = access_path("an array made in the function")
    storage = trace.add_array(np.ascontiguousarray(hint), what, layout)
    storage.writeable = False
    trace.feeds.outside[len(trace.feeds.inputs) - 1] = str(call)
    trace.feeds.captured.append(call)
    return from_value(trace, storage.value)


def _length(sizes: Sizes, call: Computed, axis: int, hint: int, numbers: list[Any]) -> Size:
    """One of the numbers that the call was given where it has this size, which is then asked of
    each plan; else the array's own."""
    length = Symbolic(sizes, hint, Computed(size_of_axis, (call, axis)))
    for size in numbers:
        if type(size) is Symbolic and size.hint == hint and length == size:
            return size
    return hint if hint < 2 and length == hint else length


def _stored(x: Any) -> Any:
    return Computed(tuple_of, tuple(map(_stored, x))) if type(x) is tuple else stored(x)


def _hint(x: Any) -> Any:
    if type(x) is tuple:
        return tuple(map(_hint, x))
    return x.hint if type(x) is Symbolic else x
