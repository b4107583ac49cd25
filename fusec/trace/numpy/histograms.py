"""``bincount`` and ``histogram`` as fused counting: scatters that add.

The bin of each element is computed with NumPy's own operations in NumPy's order, then one is added
there, or the element's weight: one after another as NumPy does, so sums have NumPy's bits (but the
sum of all weights, by which a density is divided, is fusec's).  Edges that no data decide are
computed while tracing, by NumPy; those between the extremes of the data are a library call on these
two.  Elements outside the range add 0 to a bin.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from fusec.core.records import dataclass
from fusec.ir import TensorType, Value
from fusec.ir.sizes.symbolic_sizes import is_symbolic
from fusec.ops.regions.cones import view_base
from fusec.ops.rows.gather import INDEX

from ..facts.layout import contiguous
from ..index.gathers import are_static
from ..library.calls import call_library, result_like
from ..library.stand_ins import ask_on_stand_ins
from ..operands.integer_bounds import bounds
from ..operands.operands import as_traced, cast, spread
from ..operands.sizes import define, new_size
from ..values.array import TracedArray, from_value
from ..values.handlers import entry
from ..values.trace import Trace
from .table_search import constant_table, load, search, sorted_table

F64 = np.dtype(np.float64)
_BLOCK = 65536  # NumPy's: weights are added up in float64 over blocks of so many elements
_CHUNK = 16384  # elements counted together where the order does not matter: a thread takes several
_MOST_COUNTERS = 1024  # of a chunk, so that clearing and adding them up costs little
_MOST_BINS = 65536  # float32 computes the bin to within less than one up to here
_NUMBERS = (int, float, np.integer, np.floating)
_KEYS = "iuf"


# ---------------------------------------------------------------------------------------- counting


def _add_up(
    trace: Trace, target: Value, value: Any, indices: Sequence[TracedArray], chunk: int = 0
) -> TracedArray:
    """The target with a value (an array, or one number) added at each index, in order.

    ``chunk``: blocks of so many elements have counters of their own.
    """
    spread_value = spread(trace, as_traced(trace, value).value, indices[0].shape)
    places = [i.value for i in indices]
    sums = trace.emit("Scatter", target, cast(trace, spread_value, target.dtype), *places,
                      axes=tuple(range(len(places))), at=0, combine="Add",
                      **({"chunk": chunk} if chunk else {}))
    return from_value(trace, sums)


def _zeros(trace: Trace, shape: tuple[int, ...], dtype: np.dtype) -> Value:
    return spread(trace, trace.builder.const(dtype.type(0)), shape)


def _is_counted(x: Any) -> bool:
    """Whether it is an array of a size known while tracing that is not empty."""
    return type(x) is TracedArray and x.is_array and are_static(x) and x.type.size > 0


# ---------------------------------------------------------------------------------------- bincount


def _is_countable(trace: Trace, x: Any) -> bool:
    """Whether it is one axis of so many elements, or in a loop, where a call of NumPy would take
    longer than the counting, of as many as only the run knows."""
    return type(x) is TracedArray and x.ndim == 1 and (
        _is_counted(x) or (trace.in_region and not x.type.is_static))


def _is_weight(weights: Any, x: TracedArray) -> bool:
    return _is_counted(weights) if x.type.is_static else (
        type(weights) is TracedArray and weights.shape == x.shape)


def _ends(index: TracedArray) -> tuple[Any, Any]:
    """The lowest and the highest; where there may be none, bounds that need no counter."""
    if index.type.is_static:
        return np.min(index), np.max(index)
    return np.min(index, initial=0), np.max(index, initial=-1)


@entry(np.bincount)
def bincount(trace: Trace, x: Any, weights: Any = None, minlength: Any = 0) -> Any:
    """``np.bincount``: of as many counters as the largest element, or ``minlength``, asks for."""
    operands = [x] if weights is None else [x, weights]
    if not _is_countable(trace, x) or type(minlength) is not int or not (
            weights is None or _is_weight(weights, x)):
        return call_library(trace, "Bincount", (x, weights, minlength), {})
    like = ask_on_stand_ins(
        trace, lambda x, w=None: np.bincount(x, w, minlength), operands, minlength)
    low, high = bounds(x.value)
    is_bounded = low >= 0 and high < minlength
    in_memory = view_base(x.value).node.op == "Input"
    if not is_bounded and in_memory and not trace.in_region and minlength < x.type.size:
        # NumPy is as fast on its own
        return call_library(trace, "Bincount", (x, weights, minlength), {})
    index = from_value(trace, cast(trace, x.value, INDEX))
    if is_bounded and weights is None:
        return result_like(trace, like, _counts(trace, index, 1, minlength).value)
    if is_bounded:
        target = _zeros(trace, (minlength,), like.dtype)
    else:
        ends = [as_traced(trace, end).value for end in _ends(index)]
        results = (TensorType(like.dtype, (new_size(trace),)),)
        target = trace.emit("Counters", *ends, results=results, minlength=minlength)
        define(trace, target)
    totals = _add_up(trace, target, 1 if weights is None else weights, [index])
    return result_like(trace, like, totals.value)


# --------------------------------------------------------------------------------------- histogram


@dataclass(frozen=True)
class _Bins:
    """Equal bins: the ends, NumPy's denominator and the edges, known or traced."""

    first: Any
    last: Any
    width: Any
    edges: TracedArray
    count: int


def _is_number(x: Any) -> bool:
    return type(x) is not TracedArray and isinstance(x, _NUMBERS) and not isinstance(x, bool)


def _is_range(x: Any) -> bool:
    return type(x) in (tuple, list) and len(x) == 2 and all(map(_is_number, x)) and (
        not is_symbolic(tuple(x)))  # bounds that follow from sizes are NumPy's


def _difference(last: Any, first: Any) -> Any:
    """``last - first`` of two plain numbers as NumPy takes it: without overflow."""
    dtype = np.result_type(last, first)
    unsigned = np.dtype(f"u{dtype.itemsize}") if dtype.kind == "i" else dtype
    ends = [np.asarray(end, dtype) for end in (last, first)]
    with np.errstate(all="ignore"):
        return np.subtract(*ends, casting="unsafe", dtype=unsigned)


def _known_bins(trace: Trace, x: TracedArray, count: int, ends: Sequence[Any]) -> _Bins | None:
    first, last = ends
    empty = np.empty(0, x.dtype)
    try:
        edges = np.histogram_bin_edges(empty, count, (first, last))
    except (ValueError, TypeError) as error:
        raise trace.error(error, [x.value], ["operand 0"]) from None
    if first == last:
        first, last = first - 0.5, last + 0.5
    width = _difference(last, first)
    if not np.isfinite(width) or edges.dtype not in (np.float32, F64):
        return None
    return _Bins(first, last, width, constant_table(trace, edges), count)


def _found_bins(trace: Trace, x: TracedArray, count: int) -> _Bins:
    """Bins between the extremes of the data; NumPy computes the edges when the code runs."""
    low, high = np.min(x), np.max(x)
    ends = np.stack([low, high])
    edges: Any = call_library(trace, "HistogramBinEdges", (ends, count), {})
    half = np.float64(0.5) if x.dtype.kind in "iu" else x.dtype.type(0.5)
    is_one = np.equal(low, high)
    first = np.where(is_one, low - half, low)
    last = np.where(is_one, high + half, high)
    if x.dtype.kind in "iu":
        dtype = np.dtype(f"u{x.dtype.itemsize}")
        apart = np.subtract(_cast(trace, high, dtype), _cast(trace, low, dtype))
        width: Any = np.where(is_one, np.float64(1.0), _cast(trace, apart, F64))
    else:
        width = last - first
    return _Bins(_checked(first, width, edges), last, width, edges, count)


def _checked(first: Any, width: Any, edges: Any) -> Any:
    """The first end; where bins are too wide to be computed, NumPy's ``IndexError``."""
    if width.dtype == first.dtype == edges.dtype:
        first = edges[np.where(np.isfinite(width), np.int64(0), np.iinfo(INDEX).min)]
    return first


def _cast(trace: Trace, x: Any, dtype: np.dtype) -> Any:
    return from_value(trace, cast(trace, as_traced(trace, x).value, dtype))


def _bin_of(trace: Trace, x: TracedArray, keep: Any, bins: _Bins) -> Any:
    """The bin of each element in the order of NumPy's operations; 0 where it is not kept."""
    dtype = bins.edges.dtype
    first = _cast(trace, bins.first, dtype) if type(bins.first) is TracedArray else dtype.type(
        bins.first)
    inside: Any = np.where(keep, _cast(trace, x, dtype), first)
    place: Any = np.subtract(inside, first) / bins.width * bins.count
    index: Any = _cast(trace, place, INDEX)
    last = np.int64(bins.count - 1)
    index = as_traced(trace, np.where(np.equal(index, np.int64(bins.count)), last, index))
    edge_at = partial(load, bins.edges)  # every bin exists: at most `_MOST_BINS`, of finite width
    index = index - _cast(trace, inside < edge_at(index), INDEX)
    above = (inside >= edge_at(index + np.int64(1))) & np.not_equal(index, last)
    return index + _cast(trace, above, INDEX)


def _equal_bins(trace: Trace, x: TracedArray, count: Any, ends: Any) -> _Bins | None:
    if type(count) is not int or not 0 < count <= _MOST_BINS or x.dtype == np.float16:
        return None
    if ends is None:
        return _found_bins(trace, x, count)
    return _known_bins(trace, x, count, ends) if _is_range(ends) else None


def _totals(trace: Trace, index: Any, keep: Any, weights: TracedArray | None, count: int) -> Any:
    """The bins' counts, or their weights: summed in float64 block by block, as NumPy does."""
    if weights is None:
        return _counts(trace, index, _cast(trace, keep, INDEX), count)
    w: Any = np.where(keep, _cast(trace, weights, F64), np.float64(0.0))
    blocks = -(-index.shape[0] // _BLOCK)
    if blocks == 1:
        return _cast(trace, _add_up(trace, _zeros(trace, (count,), F64), w, [index]), weights.dtype)
    sums = _by_chunk(trace, index, w, (blocks, count), F64, _BLOCK)
    sums = _cast(trace, sums, weights.dtype)
    column: Any = np.broadcast_to(_counter(trace, count), (blocks, count))
    return _add_up(trace, _zeros(trace, (count,), weights.dtype), sums, [column])


def _by_chunk(
    trace: Trace, index: Any, value: Any, shape: tuple[int, int], dtype: np.dtype, chunk: int
) -> TracedArray:
    """The totals of each chunk of elements; threads do chunks at the same time."""
    number: Any = _counter(trace, index.shape[0]) >> np.int64(chunk.bit_length() - 1)
    return _add_up(trace, _zeros(trace, shape, dtype), value, [number, index], chunk)


def _counts(trace: Trace, index: Any, value: Any, count: int) -> Any:
    """How often each index occurs (with a value of 1), in counters of each chunk of elements."""
    chunks = -(-index.shape[0] // _CHUNK)
    if index.ndim > 1 or chunks < 2 or count > _MOST_COUNTERS:
        return _add_up(trace, _zeros(trace, (count,), INDEX), value, [index])
    by_chunk: Any = _by_chunk(trace, index, value, (chunks, count), INDEX, _CHUNK)
    return np.sum(by_chunk, axis=0)


def _counter(trace: Trace, size: int) -> Any:
    return from_value(trace, trace.emit("Iota", size=size, dtype=INDEX))


def _between_edges(trace: Trace, x: TracedArray, table: np.ndarray) -> TracedArray:
    """How many elements are between neighbouring edges, the last of which counts as inside."""
    last = np.int64(table.size - 2)
    position: Any = search(trace, table, x, right=True)
    index: Any = position - np.int64(1)
    keys = _cast(trace, x, np.promote_types(x.dtype, table.dtype))
    index = np.where(np.equal(keys, table.astype(keys.dtype)[-1]), last, index)
    keep = (index >= np.int64(0)) & (index <= last) & ~np.isnan(x)
    return _totals(trace, np.clip(index, np.int64(0), last), keep, None, table.size - 1)


def _counted(
    trace: Trace, x: TracedArray, bins: Any, ends: Any, weights: TracedArray | None
) -> tuple[Any, Any] | None:
    """The histogram and its edges; None where NumPy must compute them."""
    table = _edge_table(trace, bins)
    if table is not None:
        if weights is not None or ends is not None:
            return None
        edges = constant_table(trace, table) if type(bins) in (list, tuple) else bins
        return _between_edges(trace, x, table), edges
    grid = _equal_bins(trace, x, bins, ends)
    if grid is None:
        return None
    keep = (x >= grid.first) & (x <= grid.last)
    index = _bin_of(trace, x, keep, grid)
    return _totals(trace, index, keep, weights, grid.count), grid.edges


def _edge_table(trace: Trace, bins: Any) -> np.ndarray | None:
    """Edges that are known while tracing and ascend."""
    if not isinstance(bins, (TracedArray, np.ndarray, list, tuple)):
        return None
    table = sorted_table(trace, bins)
    return table if table is not None and table.size > 1 and not np.isnan(table).any() else None


def _weights_of(x: Any, weights: Any) -> bool:
    """Whether the weights are none, or real numbers that are added up as float64 or int64."""
    return weights is None or (_is_counted(weights) and weights.shape == x.shape
                               and weights.dtype.kind in "iuf" and weights.dtype != np.uint64)


def _is_flat(x: TracedArray) -> bool:
    """Whether it is an argument that can be raveled without a copy."""
    itemsize = x.dtype.itemsize
    return x.value.node.op == "Input" and x.strides == contiguous(x.shape, itemsize, range(x.ndim))


@entry(np.histogram)
def histogram(
    trace: Trace, a: Any, bins: Any = 10, range: Any = None, density: Any = None,
    weights: Any = None,
) -> Any:
    """``np.histogram`` with equal bins or known edges, as one loop over the data."""
    result = None
    if _is_counted(a) and a.ndim and a.dtype.kind in _KEYS and _weights_of(a, weights) and (
            density is None or type(density) is bool):
        if weights is not None:
            weights = weights.reshape(-1)
        if weights is not None or _is_flat(a):
            a = a.reshape(-1)
        result = _counted(trace, a, bins, range, weights)
    if result is None:
        named = {"bins": bins, "range": range, "density": density, "weights": weights}
        return call_library(trace, "Histogram", (a,), named)
    counts, edges = result
    if density:
        counts = counts / _cast(trace, np.diff(edges), F64) / np.sum(counts)
    return counts, edges
