"""Lists in the order of keys that data decides: NumPy sorts the array of the keys, stably as Python
does, and the items are taken by the positions that it finds."""

from __future__ import annotations

from typing import Any

import numpy as np

from fusec.errors import UnsupportedError
from fusec.ir.sizes.dims import is_static

from ..control.ranges import stacked
from ..control.sequences import table
from ..facts.trees import leaves_in
from ..objects.tracing_hooks import TracingHooks
from ..operands.operands import as_traced
from ..values.array import TracedArray
from ..values.operations import OPERATIONS
from ..values.rows import nested
from ..values.selected_arrays import roots
from ..values.trace import Trace


def in_order_of(
    hooks: TracingHooks, items: list[Any], keys: list[Any], reverse: bool
) -> list[Any] | None:
    """The items in the order of their keys; None where either are no numbers of one type, or tuples
    of such."""
    trace, columns = hooks.trace, _columns(hooks.trace, keys)
    if columns is None or any(c.ndim != 1 or c.dtype.kind not in "biuf" for c, _ in columns):
        return None
    found = columns if items is keys else _columns(trace, items)
    if found is None:
        return None
    for column, _ in columns:
        check_no_nan(trace, column)
    order = _order([column for column, _ in columns], reverse)
    sorted_columns = [_taken(trace, column, kind, items, order) for column, kind in found]
    return [*zip(*sorted_columns, strict=True)] if type(items[0]) is tuple else sorted_columns[0]


def check_no_nan(trace: Trace, x: TracedArray) -> None:
    """NaN is neither smaller nor larger: Python's order of it depends on the algorithm."""
    if x.dtype.kind == "f":
        numbers: Any = x == x
        trace.check(numbers.all().value if x.ndim else numbers.value, UnsupportedError(
            "sorted() of numbers with NaN in them is not supported inside a fusec.jit "
            "function: sort an array, with np.sort"))


def _order(columns: list[TracedArray], reverse: bool) -> TracedArray:
    """Where the items lie, the first first; equal ones stay in their order."""
    if reverse:
        columns = [column[::-1] for column in columns]
    *others, last = columns
    order: Any = np.argsort(last, kind="stable")
    for column in reversed(others):
        order = order[np.argsort(column[order], kind="stable")]
    return len(order) - 1 - order[::-1] if reverse else order


def _columns(trace: Trace, items: list[Any]) -> list[tuple[TracedArray, str]] | None:
    """The numbers or arrays as an array, or those of tuples as one for each place; with the kind of
    these."""
    if type(items[0]) is not tuple:
        column = _column(trace, items)
        return None if column is None else [column]
    if not all(type(x) is tuple and len(x) == len(items[0]) for x in items) or not items[0]:
        return None
    columns = [_column(trace, x) for x in zip(*items, strict=True)]
    found = [column for column in columns if column is not None]
    return found if len(found) == len(columns) else None


def _column(trace: Trace, items: Any) -> tuple[TracedArray, str] | None:
    numbers = table(trace, items)
    if numbers is not None:
        is_numpys = isinstance(items[0], np.generic)
        known = None if numbers.columns else as_traced(trace, np.asarray(items))
        return None if known is None else (known, "scalar" if is_numpys else "weak")
    stack = stacked(trace, items) if all(type(x) is TracedArray for x in items) else None
    if stack is not None:
        return stack, items[0].type.kind
    (dtype, kind, _), *others = set(map(_kind, items))
    return None if others or dtype is None else (
        OPERATIONS.array(trace, list(items), dtype), kind)


def _kind(x: Any) -> tuple[np.dtype | None, str, tuple[int, ...]]:
    """The dtype of a number or array, whose it is, and the shape; no dtype for others."""
    if type(x) is TracedArray:
        return (x.dtype, x.type.kind, x.shape) if is_static(x.shape) else (None, "", ())
    if type(x) in (bool, int, float):
        return np.asarray(x).dtype, "weak", ()
    is_numpys = isinstance(x, np.number | np.bool_)
    return (x.dtype, "scalar", ()) if is_numpys else (None, "", ())


def _taken(
    trace: Trace, column: TracedArray, kind: str, items: list[Any], order: TracedArray
) -> list[Any]:
    """The parts of an array in this order; arrays are views that are not to be written through."""
    held = {x.storage: None for x in leaves_in(items) if type(x) is TracedArray} if (
        kind == "array") else {}
    others = {root: None for storage in held if storage is not None for root in roots(storage)}
    return nested(trace, column[order].value, (len(items),), kind, [*others])
