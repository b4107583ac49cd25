"""``searchsorted``, ``digitize`` and ``interp`` of tables known while tracing, as fused loads.

A search is ``bit_length(n)`` steps without branches, each a ``Gather`` and a comparison, over the
table padded to ``2**k - 1`` elements: every index is in range, whatever the keys are.  A table
must be *proved* sorted, for NumPy's result in others depends on the keys before; other tables
are library calls.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fusec.ir.sizes.symbolic_numbers import Symbolic
from fusec.ops.rows.gather import INDEX

from ..arrays.creation import array
from ..facts.constant_values import constant_value
from ..library.arguments import has_open_numbers
from ..library.calls import call_library
from ..operands.operands import as_traced, cast
from ..values.array import TracedArray, from_value
from ..values.handlers import entry
from ..values.trace import Trace

F64 = np.dtype(np.float64)
_NUMBERS = (bool, int, float, np.generic)
_FEW = 15  # elements of a table that are compared one after another
_MOST = 1 << 12  # elements of a table: beyond, NumPy's memory of the key before is worth more


# ----------------------------------------------------------------------------------------- tables


def _known_table(trace: Trace, x: Any) -> np.ndarray | None:
    """The contents of a real vector that no call changes; None of any other argument."""
    if type(x) is TracedArray:
        x = constant_value(x.value) if x.type.is_static and x.ndim == 1 else None
    elif type(x) is np.ndarray:
        is_constant = id(x) in trace.local.arrays and not trace.local.memory.is_traced(x)
        x = x if is_constant else None
    elif type(x) in (list, tuple):
        is_plain = all(isinstance(i, _NUMBERS) and type(i) is not Symbolic for i in x)
        x = np.array(x) if is_plain else None
    fits = type(x) is np.ndarray and x.ndim == 1 and 1 <= x.size <= _MOST
    return x if fits and x.dtype.kind in "biuf" else None


def _is_sorted(table: np.ndarray) -> bool:
    """Whether it ascends as ``np.sort`` does, NaN last."""
    numbers = table[: _numbers(table)]
    return not np.isnan(numbers).any() and bool((numbers[:-1] <= numbers[1:]).all())


def _numbers(table: np.ndarray) -> int:
    return table.size - int(np.count_nonzero(np.isnan(table)))


def _padded(table: np.ndarray) -> np.ndarray:
    """The table, padded by a value not below any key to a size of ``2**k - 1``."""
    last = np.nan if table.dtype.kind == "f" else np.iinfo(table.dtype).max
    padded = np.full((1 << table.size.bit_length()) - 1, last, table.dtype)
    padded[: table.size] = table
    return padded


def constant_table(trace: Trace, table: np.ndarray) -> TracedArray:
    """The table as an array of the trace that no call changes."""
    trace.local.arrays[id(table)] = table
    return TracedArray(trace, trace.capture(table))


def load(table: TracedArray, index: TracedArray) -> Any:
    """``table[index]`` for an index known to be in range."""
    kind = {} if index.is_array else {"kind": "scalar"}
    element = table.trace.emit("Gather", table.value, index.value, axes=(0,), at=0, **kind)
    return from_value(table.trace, element)


def _fits(x: Any, kinds: str = "biuf") -> bool:
    """Whether it is an array of keys: not a number, and of sizes that no data decide."""
    return (type(x) is TracedArray and x.is_array and x.ndim > 0 and x.type.is_static
            and x.dtype.kind in kinds)


# ----------------------------------------------------------------------------------------- search


def _count(trace: Trace, numbers: np.ndarray, keys: Any, right: bool) -> Any:
    """How many elements of a sorted table are below each key (``right``: or equal to it).

    A NaN key counts none.
    """
    if numbers.size <= _FEW:
        return _count_each(trace, numbers, keys, right)
    table = constant_table(trace, _padded(numbers))
    is_below: Any = np.less_equal if right else np.less
    count: Any = as_traced(trace, np.int64(0))
    step = (table.size + 1) // 2
    while step:
        below = is_below(load(table, count + np.int64(step - 1)), keys)
        count = count + np.where(below, np.int64(step), np.int64(0))
        step //= 2
    return count


def _count_each(trace: Trace, table: np.ndarray, keys: Any, right: bool) -> Any:
    """The same by comparing with every element: vectors, where loads go one by one."""
    is_below: Any = np.less_equal if right else np.less
    count: Any = as_traced(trace, np.int64(0))
    for element in table:
        count = count + from_value(trace, cast(trace, is_below(element, keys).value, INDEX))
    return count


def search(trace: Trace, table: np.ndarray, x: TracedArray, right: bool) -> TracedArray:
    """``np.searchsorted`` in a sorted table, of an array."""
    dtype = np.promote_types(table.dtype, x.dtype)
    dtype = np.dtype(np.uint8) if dtype.kind == "b" else dtype
    keys = from_value(trace, cast(trace, x.value, dtype))
    table, size = table.astype(dtype), table.size
    numbers = _numbers(table)
    index = _count(trace, table[:numbers], keys, right)
    if dtype.kind == "f":
        index = np.where(np.isnan(keys), np.int64(size if right else numbers), index)
    elif right:
        index = np.minimum(index, np.int64(size))
    return from_value(trace, cast(trace, index.value, INDEX))


def sorted_table(trace: Trace, a: Any) -> np.ndarray | None:
    """The contents of a sorted vector that no call changes; None of any other argument."""
    table = _known_table(trace, a)
    return table if table is not None and _numbers(table) and _is_sorted(table) else None


@entry(np.searchsorted, method="searchsorted")
def searchsorted(trace: Trace, a: Any, v: Any, side: Any = "left", sorter: Any = None) -> Any:
    """``np.searchsorted``: a fused search of a sorted table that is known while tracing."""
    is_plain = side in ("left", "right") and sorter is None and _fits(v)
    table = sorted_table(trace, a) if is_plain else None
    if table is None:
        return call_library(trace, "Searchsorted", (a, v), {"side": side, "sorter": sorter})
    return search(trace, table, v, side == "right")


@entry(np.digitize)
def digitize(trace: Trace, x: Any, bins: Any, right: Any = False) -> Any:
    """``np.digitize``: as NumPy's, a search in the bins or in those reversed."""
    table = _known_table(trace, bins) if _fits(x) and type(right) is bool else None
    if table is not None and not np.isnan(table).any():
        if _is_sorted(table):
            return search(trace, table, x, not right)
        if _is_sorted(table[::-1]) and not _is_sorted(table.astype(F64)):
            index: Any = search(trace, table[::-1], x, not right)
            return np.int64(table.size) - index
    return call_library(trace, "Digitize", (x, bins, right), {})


# ------------------------------------------------------------------------------------------ interp


@entry(np.interp)
def interp(
    trace: Trace, x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None,
    period: Any = None,
) -> Any:
    """``np.interp`` in NumPy's order of operations where ``xp`` is known and sorted."""
    xp, fp = (array(trace, list(v)) if type(v) in (list, tuple) and has_open_numbers(v) else v
              for v in (xp, fp))
    table = _known_table(trace, xp) if _fits(x) and period is None else None
    ys = _known_table(trace, fp)
    values = None if table is None else _values(trace, fp, ys, table.size)
    if (values is None or table is None or np.isnan(table).any() or not _is_sorted(table)
            or not all(_is_side(v) for v in (left, right))):
        ends = {"left": left, "right": right, "period": period}
        return call_library(trace, "Interp", (x, xp, fp), ends)
    keys = from_value(trace, cast(trace, x.value, F64))
    grid = table.astype(F64)
    inner = _interpolated(trace, keys, grid, values, None if ys is None else ys.astype(F64))
    low = values[0] if left is None else np.float64(left)
    high = values[-1] if right is None else np.float64(right)
    result: Any = np.where(keys < grid[0], low, np.where(keys > grid[-1], high, inner))
    result = np.where(np.isnan(keys), keys, result)
    return from_value(trace, result.value)


def _is_side(x: Any) -> bool:
    return x is None or type(x) in (bool, int, float) or isinstance(x, (np.floating, np.integer))


def _values(trace: Trace, fp: Any, ys: np.ndarray | None, size: int) -> Any:
    """The ordinates as float64; None where the library must judge."""
    if ys is not None:
        return constant_table(trace, ys.astype(F64)) if ys.size == size > 1 else None
    if size < 2 or type(fp) not in (TracedArray, np.ndarray, list, tuple):
        return None
    y = as_traced(trace, fp)
    if not _fits(y) or y.shape != (size,):
        return None
    return from_value(trace, cast(trace, y.value, F64))


def _interpolated(
    trace: Trace, keys: Any, grid: np.ndarray, values: Any, known_values: np.ndarray | None
) -> Any:
    """Within the grid; of ordinates that are known the slopes are a table."""
    table = constant_table(trace, _padded(grid))
    at: Any = np.clip(_count(trace, grid, keys, True) - np.int64(1), np.int64(0),
                      np.int64(grid.size - 2))
    x0, y0 = load(table, at), load(values, at)
    if known_values is not None and _is_tame(grid, known_values):
        slopes = _slopes(grid, known_values)
        inner: Any = load(constant_table(trace, slopes), at) * (keys - x0) + y0
    else:
        inner = _guarded(keys, x0, load(table, at + np.int64(1)), y0,
                         load(values, at + np.int64(1)))
    inner = np.where(x0 == keys, y0, inner)
    return np.where(keys == grid[-1], values[-1], inner)


def _slopes(grid: np.ndarray, values: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        return np.diff(values) / np.diff(grid)


def _is_tame(grid: np.ndarray, values: np.ndarray) -> bool:
    """Whether nothing between two points can be NaN: no infinities, differences or jumps."""
    with np.errstate(all="ignore"):
        width = grid[-1] - grid[0]
    return bool(np.isfinite(width) and np.isfinite(values).all()
                and np.isfinite(_slopes(grid, values)).all())


def _guarded(x: Any, x0: Any, x1: Any, y0: Any, y1: Any) -> Any:
    """From the point before; if that is NaN from the one behind, or their common value."""
    slope = (y1 - y0) / (x1 - x0)
    forward, backward = slope * (x - x0) + y0, slope * (x - x1) + y1
    other = np.where(np.isnan(backward) & (y0 == y1), y0, backward)
    return np.where(np.isnan(forward), other, forward)
