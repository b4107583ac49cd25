"""Calls of libraries: those along one axis, and ufuncs that have no row of their own."""

from __future__ import annotations

from typing import Any

import numpy as np

from fusec.ir import Node, TensorType, Value

from .. import registry
from .protocol import BlockSite, Links, Read, SplitRule, declare, sizes_of

# Functions of one array that go along one axis, which the result has too, or has not.
SORTS = ("Sort", "Argsort")
_GONE = ("Median", "Nanmedian", "Quantile", "Percentile", "Nanquantile", "Nanpercentile")
_NAMES = {"axis", "kind", "method"}


def _named(node: Node) -> dict[str, Any]:
    """What a call is given by name."""
    return dict(pair[1:] for pair in node.attrs["named"][1:])


def _axis(node: Node, names: set[str], is_gone: bool) -> int | None:
    """The axis that a call of one array goes along, which its one result has not, or has too; None
    where the call is another one, or is given more than these by name."""
    named = _named(node)
    axis = named.get("axis")
    if type(axis) is not int or len(node.inputs) != 1 or len(node.types) != 1:
        return None
    expected = list(node.inputs[0].shape)
    axis %= len(expected)
    if is_gone:
        del expected[axis]
    return axis if tuple(expected) == node.types[0].shape and named.keys() <= names else None


def _library_axis(node: Node) -> int | None:
    return _axis(node, _NAMES, node.op in _GONE)


def _links_along(node: Node, along: int, is_gone: bool) -> Links:
    return tuple(None if axis == along else Read(axis - (is_gone and axis > along))
                 for axis in range(node.inputs[0].type.rank))


def _library_links(node: Node, number: int) -> Links:
    along = _library_axis(node)
    assert along is not None
    return _links_along(node, along, node.op in _GONE)


def _again(site: BlockSite) -> Value:
    node = site.node
    type_ = TensorType(node.types[0].dtype, sizes_of(site.box), node.types[0].kind)
    operands = [site.operand(k) for k in range(len(node.inputs))]
    return site.emit(node.op, *operands, **{**node.attrs, "results": (type_,)})


def _sorted_axes(node: Node) -> tuple[int, ...]:
    along = _library_axis(node)
    return () if along is None or node.op in _GONE else (along,)


declare(SplitRule(_library_links, _again, keeps=lambda node: _library_axis(node) is not None,
                  whole=_sorted_axes),
        *(name for name in (*SORTS, *_GONE) if name in registry._ROWS))


# ---------------------------------------------------------------------------------------- ufuncs


def _ufunc_axis(node: Node) -> int | None:
    """The axis of ``np.logaddexp.reduce(x, axis=1)``, or of an ``accumulate``."""
    if node.attrs["form"][3:] != (("operand", 0),):
        return None
    method = node.attrs["form"][2]
    if method == "reduce" and _named(node).get("keepdims", False) is False:
        return _axis(node, {"axis", "keepdims"}, is_gone=True)
    return _axis(node, {"axis"}, is_gone=False) if method == "accumulate" else None


def _is_elementwise(node: Node) -> bool:
    """Whether it is a call of a ufunc, of arrays alone, that has one result."""
    operands = tuple(("operand", k) for k in range(len(node.inputs)))
    form = node.attrs["form"]
    return (form[2], form[3:]) == ("__call__", operands) and len(node.types) == 1 and not (
        _named(node)) and node.types[0].shape == np.broadcast_shapes(
            *(v.shape for v in node.inputs))


def _ufunc_links(node: Node, number: int) -> Links:
    along = _ufunc_axis(node)
    if along is not None:
        return _links_along(node, along, node.attrs["form"][2] == "reduce")
    shape = node.inputs[number].shape
    before = node.types[0].rank - len(shape)
    return tuple(None if size == 1 else Read(axis + before) for axis, size in enumerate(shape))


def _accumulated(node: Node) -> tuple[int, ...]:
    along = _ufunc_axis(node)
    return () if along is None or node.attrs["form"][2] == "reduce" else (along,)


declare(SplitRule(
    _ufunc_links, _again, whole=_accumulated,
    keeps=lambda node: _is_elementwise(node) or _ufunc_axis(node) is not None), "Ufunc")

__all__ = ["SORTS"]
