"""``np.apply_along_axis``: the function of each row, in a loop of the graph where it can be."""

from __future__ import annotations

from typing import Any

import numpy as np

from fusec.ir.sizes.dims import is_static
from fusec.ops.shapes import normalise_axis

from ..arrays.joining import stack
from ..arrays.shaping import in_numpys_words, moveaxis, reshape, transpose
from ..choice.row_results import RowResults
from ..control.iterators import Product
from ..control.unrolling import UNROLL
from ..objects.tracing_hooks import TracingHooks
from ..operands.operands import as_traced, spread_scalar
from ..values.array import TracedArray
from ..values.handlers import when_called


@when_called(np.apply_along_axis)
def _apply_along_axis(
    hooks: TracingHooks, func1d: Any, axis: Any, arr: Any, *args: Any, **kwargs: Any
) -> Any:
    trace, where = hooks.trace, hooks.where
    x = spread_scalar(as_traced(trace, arr))
    axis = in_numpys_words(trace, normalise_axis, axis, x.ndim)
    rows = moveaxis(trace, x, axis, -1)
    outer = rows.shape[:-1]
    if is_static(outer) and 0 in outer:
        raise trace.error(ValueError(
            "Cannot apply_along_axis when any iteration dimensions are 0"), [x.value])

    def of_row(place: tuple[Any, ...]) -> TracedArray:
        with trace.part(RowResults).of(func1d):
            result = hooks.call(where, func1d, rows[place], *args, **kwargs)
        return spread_scalar(as_traced(trace, result))

    results = hooks.list_of(where, Product(tuple(map(range, outer))), of_row, None,
                            lambda places: [of_row(place) for place in places])
    return _placed(hooks, results, outer, axis)


def _placed(hooks: TracingHooks, results: list[Any], outer: tuple[Any, ...], axis: int) -> Any:
    """The results in the places of the rows, in the first one's dtype."""
    trace, dtype = hooks.trace, results[0].dtype
    if len(results) <= UNROLL:
        results = [x if x.dtype == dtype else x.astype(dtype) for x in results]
    whole = stack(trace, results)
    parts = reshape(trace, whole, (*outer, *whole.shape[1:]))
    own = range(len(outer), parts.ndim)
    return transpose(trace, parts, (*range(axis), *own, *range(axis, len(outer))))
