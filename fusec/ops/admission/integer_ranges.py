"""Between which integers the numbers of a graph lie, as far as the ops that make them say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from fusec.ir import Value
from fusec.ir.sizes.dims import Dim, maximum
from fusec.ir.sizes.symbolic_numbers import Symbolic

Interval = tuple[Any, Any]  # least and greatest value; None where no limit is known
Around = Mapping[Value, Interval]  # of parameters of the graphs around
_ANY: Interval = (None, None)


def exact(value: Value, numbers: Mapping[Value, int]) -> int | None:
    """An integer that follows from constants and these numbers; None where it does not."""
    low, high = interval(value, {v: (number, number) for v, number in numbers.items()})
    return low if isinstance(low, int) and isinstance(high, int) and low == high else None


def interval(value: Value, around: Around) -> Interval:
    """Between which integers a number of the graph lies."""
    if value in around:
        return around[value]
    node = value.node
    if value.shape or value.dtype.kind not in "iu":
        return _ANY
    if node.op == "Const":
        number = node.attrs["value"]
        number = number if isinstance(number, Symbolic | Dim) else int(number)
        return number, number
    if node.op == "Size":
        size = node.attrs["size"]
        return (size, size) if not isinstance(size, Dim) or not size.symbols else (0, None)
    rule = _RULES.get(node.op)
    if rule is None:
        return _ANY
    result: Interval = rule(*(interval(v, around) for v in node.inputs))
    return result if _is_held(result, value) else _ANY


def is_wide(dtype: np.dtype) -> bool:
    """Whether numbers are taken to stay within this dtype, as sizes and counters do in int64."""
    return bool(dtype == np.int64)


def _is_held(result: Interval, value: Value) -> bool:
    """Whether numbers from there do not wrap around in the value's dtype: ``300`` is 44 in int8,
    and ``3 - 5`` is large in unsigned integers."""
    if is_wide(value.dtype) and all(v.dtype != np.uint64 for v in value.node.inputs):
        return True
    low, high = result
    limits = np.iinfo(value.dtype)
    return isinstance(low, int) and isinstance(high, int) and bool(
        limits.min <= low and high <= limits.max)


def _sum(a: Interval, b: Interval) -> Interval:
    return tuple(None if None in pair else pair[0] + pair[1]  # type: ignore[return-value]
                 for pair in zip(a, b, strict=True))


def _negated(a: Interval) -> Interval:
    return None if a[1] is None else -a[1], None if a[0] is None else -a[0]


def _product(a: Interval, b: Interval) -> Interval:
    if None in a or None in b or any(type(x) is Symbolic for x in (*a, *b)):
        return _ANY
    ends = [x * y for x in a for y in b]
    return min(ends), max(ends)


def _least(a: Interval, b: Interval) -> Interval:
    low = None if None in (a[0], b[0]) else -maximum(-a[0], -b[0])
    highs = [x for x in (a[1], b[1]) if x is not None]
    return low, (None if not highs else highs[0] if len(highs) == 1 else -maximum(
        -highs[0], -highs[1]))


_RULES: dict[str, Any] = {
    "Add": _sum, "Sub": lambda a, b: _sum(a, _negated(b)), "Neg": _negated, "Mul": _product,
    "Minimum": _least, "Maximum": lambda a, b: _negated(_least(_negated(a), _negated(b))),
    "Cast": lambda a: a, "Pos": lambda a: a,
}
