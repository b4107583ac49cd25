"""Sorting, and elements that the data selects.

NaN comes last, as in NumPy.  Of equal elements the first comes first, whatever ``kind`` says.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from fusec.ir import Node

from ..counting import NEGATIVE
from .protocol import (
    BOOL,
    NotExportedError,
    OnnxNodes,
    dtype_of,
    ints,
    number,
    rule,
    vector,
    where,
)
from .reductions import rows_of

# Dtypes that ONNX Runtime's TopK lacks, and those that have their values.
_SORTED = {"b1": "u1", "u2": "i4", "u4": "i8"}


def _arguments(node: Node, *names: str) -> dict[str, Any]:
    """The arguments of a library call behind its first array, which are constants."""
    form, named = node.attrs["form"][1:], node.attrs["named"][1:]
    given = dict(zip(names, form[1:], strict=False)) | {pair[1]: pair[2] for pair in named}
    known = all(type(v) is not tuple or v[0] in ("tuple", "list") for v in given.values())
    if not form or form[0] != ("operand", 0) or len(node.inputs) != 1 or not known or (
            len(form) - 1 > len(names)) or not given.keys() <= set(names):
        raise NotExportedError("of such arguments")
    return given


def _sorted(nodes: OnnxNodes, x: str, dtype: Any, size: Any, axis: int) -> tuple[str, str]:
    """The elements in order along an axis, and where they were."""
    if dtype.str[1:] in ("u8", "f2"):
        raise NotExportedError(f"of {dtype}")
    key = _SORTED.get(dtype.str[1:])
    values = nodes.cast(x, np.dtype(key)) if key else x
    if dtype.kind == "f":
        nans = nodes.node("IsNaN", x)
        values = nodes.node("Where", nans, nodes.constant(dtype.type(math.inf)), x)
    count = vector(nodes, [size])
    top = {"axis": axis, "largest": 0, "sorted": 1}
    ordered, places = nodes.node_of("TopK", [values, count], 2, **top)
    if dtype.kind != "f":
        return nodes.cast(ordered, dtype) if key else ordered, places
    moved = nodes.cast(nodes.node("GatherElements", nans, places, axis=axis), np.dtype("i4"))
    is_nan, again = nodes.node_of("TopK", [moved, count], 2, **top)
    places = nodes.node("GatherElements", places, again, axis=axis)
    ordered = nodes.node("Where", nodes.cast(is_nan, np.dtype("?")), nodes.constant(
        dtype.type(math.nan)), nodes.node("GatherElements", ordered, again, axis=axis))
    return ordered, places


@rule("Sort", "Argsort")
def _sort(nodes: OnnxNodes, node: Node, inputs: Sequence[str]) -> str:
    given = _arguments(node, "axis", "kind", "order", "stable")
    x, shape, axis = inputs[0], node.inputs[0].shape, given.get("axis", -1)
    if given.get("order") is not None or (axis is not None and type(axis) is not int):
        raise NotExportedError("of such arguments")
    if axis is None or not shape:
        x, shape, axis = nodes.node("Reshape", x, ints(nodes, [-1])), (math.prod(shape),), 0
    if 0 in shape:
        raise NotExportedError("of no elements")
    ordered, places = _sorted(nodes, x, dtype_of(node), shape[axis], axis % len(shape))
    return ordered if node.op == "Sort" else places


@rule("Median", "Percentile", "Quantile")
def _quantile(nodes: OnnxNodes, node: Node, inputs: Sequence[str]) -> str:
    """Between the two neighbours in order, as NumPy's method ``linear``; NaN where there is one."""
    given = _arguments(node, *(() if node.op == "Median" else ("q",)), "axis")
    dtype, shape, axis = node.types[0].dtype, node.inputs[0].shape, given.get("axis")
    axes = range(len(shape)) if axis is None else [axis]
    count = math.prod(shape[k] for k in axes)
    x = inputs[0] if dtype_of(node) == dtype else nodes.cast(inputs[0], dtype)
    if type(axis) not in (int, type(None)) or type(count) is not int or (
            not count):
        raise NotExportedError("of such arguments")
    matrix, rest = rows_of(nodes, x, shape, axes)
    ordered, _ = _sorted(nodes, matrix, dtype, count, 1)
    q = given.get("q", 50.0)
    scale = 1.0 if node.op == "Quantile" else 100.0
    parts = [_at(nodes, ordered, dtype, float(p) / scale * (count - 1), count, node.op == "Median")
             for p in (q[1:] if type(q) is tuple else [q])]
    if type(q) is tuple:
        joined = nodes.node("Concat", *(nodes.node("Unsqueeze", p, ints(nodes, [0]))
                                        for p in parts), axis=0)
        return nodes.node("Reshape", joined, vector(nodes, [len(parts), *rest]), allowzero=1)
    return nodes.node("Reshape", parts[0], vector(nodes, rest), allowzero=1)


def _at(
    nodes: OnnxNodes, ordered: str, dtype: Any, place: float, count: int, is_median: bool
) -> str:
    """The rows' values at a place between their first and last element."""
    def column(k: int) -> str:
        return nodes.node("Gather", ordered, nodes.constant(np.int64(k)), axis=1)

    low = min(int(place), count - 1)
    a, b, part = column(low), column(min(low + 1, count - 1)), place - low
    if is_median:
        value = a if part == 0 else nodes.node("Mul", nodes.node("Add", a, b), nodes.constant(
            dtype.type(0.5)))
    else:
        step = nodes.node("Sub", b, a)
        value = nodes.node("Add", a, nodes.node("Mul", step, nodes.constant(dtype.type(part)))
                           ) if part < 0.5 else nodes.node("Sub", b, nodes.node(
                               "Mul", step, nodes.constant(dtype.type(1 - part))))
    last = column(count - 1)  # NaN, where there is any
    return nodes.node("Where", nodes.node("IsNaN", last), last, value)


# --- elements that the data selects


@rule("Nonzero", "Flatnonzero", "Argwhere")
def _nonzero(nodes: OnnxNodes, node: Node, inputs: Sequence[str]) -> Any:
    _arguments(node)
    x, rank = inputs[0], node.inputs[0].type.rank
    if not rank:
        raise NotExportedError("of a number")
    zero = nodes.constant(dtype_of(node).type(0))
    found = x if dtype_of(node) == np.bool_ else nodes.node("Not", nodes.node("Equal", x, zero))
    if node.op == "Flatnonzero":
        found, rank = nodes.node("Reshape", found, ints(nodes, [-1])), 1
    rows = nodes.node("NonZero", found)
    if node.op == "Argwhere":
        return nodes.node("Transpose", rows, perm=[1, 0])
    results = [nodes.node("Gather", rows, nodes.constant(np.int64(k)), axis=0)
               for k in range(rank)]
    return results if node.op == "Nonzero" else results[0]


@rule("SetItem")
def _set_item(nodes: OnnxNodes, node: Node, inputs: Sequence[str]) -> str:
    """At a mask of the first axes, or of the last ones behind an ellipsis, where the value is a
    number; else rows, as many as the mask has ones."""
    target, mask = node.inputs[:2]
    _, array, key, given = node.attrs["form"]
    is_last = key == ("tuple", ("ellipsis",), ("operand", 1))
    if array != ("operand", 0) or not (is_last or key == ("operand", 1)) or (
            len(node.attrs["named"]) > 1 or mask.dtype != BOOL or not mask.type.rank):
        raise NotExportedError("at such an index")
    x, chosen = inputs[:2]
    value = inputs[2] if given == ("operand", 2) else nodes.constant(target.dtype.type(given))
    shape = node.inputs[2].shape if given == ("operand", 2) else ()
    if given == ("operand", 2) and node.inputs[2].dtype != target.dtype:
        value = nodes.cast(value, target.dtype)
    rest = target.shape[mask.type.rank:]
    if not shape:
        if not is_last and rest:
            chosen = nodes.node("Unsqueeze", chosen, ints(
                nodes, [*range(mask.type.rank, target.type.rank)]))
        return where(nodes, target.dtype, chosen, value, x)
    if is_last or shape[1:] != rest:
        raise NotExportedError("at such an index")
    places = nodes.node("Transpose", nodes.node("NonZero", chosen), perm=[1, 0])
    count = nodes.node("Squeeze", nodes.node("Shape", places, start=0, end=1), ints(nodes, [0]))
    return nodes.node("ScatterND", x, places, nodes.node(
        "Expand", value, vector(nodes, [count, *rest])))


@rule("Counters")
def _counters(nodes: OnnxNodes, node: Node, inputs: Sequence[str]) -> str:
    """Zeros; the run ends where the lowest of what is counted is negative."""
    lowest, highest = inputs
    dtype, least = node.types[0].dtype, number(nodes, node.attrs["minlength"])
    zero, one = (nodes.constant(np.int64(n)) for n in (0, 1))
    nodes.require(nodes.node("GreaterOrEqual", lowest, zero), f"ValueError: {NEGATIVE}")
    count = nodes.node("Max", nodes.node("Add", highest, one), least)
    return nodes.node("Expand", nodes.constant(dtype.type(0)), vector(nodes, [count]))
