"""Sizes that are defined before a native loop: words of its block, with their upper bounds."""

from __future__ import annotations

from fusec.codegen.structured.not_native import NotNativeError
from fusec.ir import Node
from fusec.ir.sizes.dims import symbols_of
from fusec.ir.walks import nodes_behind
from fusec.ops.calls.library import size_limits
from fusec.ops.rows.windows import UNLIMITED

from .bounds import bound_of


def outer_sizes(node: Node) -> frozenset[str]:
    """The symbols in the shapes of the operands."""
    return symbols_of(tuple(v.shape for v in node.inputs))


def outer_limits(node: Node) -> dict[str, int]:
    """Their upper bounds, where slices and selections before the loop give one."""
    if not outer_sizes(node):
        return {}
    limits: dict[str, int] = {}
    for before in nodes_behind(node.inputs):
        for name, limit in size_limits(before):
            try:
                bound = bound_of(limit, limits)
            except NotNativeError:  # no bound, which only temporaries need
                continue
            if bound < UNLIMITED:
                limits[name] = bound
    return limits

