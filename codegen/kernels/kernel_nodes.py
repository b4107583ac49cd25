"""Which nodes become kernels, for back ends that have nothing else: asked before fusion."""

from __future__ import annotations

from collections.abc import Callable

from fusec.ir import Node
from fusec.ops import get
from fusec.ops.calls.checks import is_check
from fusec.ops.regions.cones import is_copied_whole


def is_of_kernels(node: Node) -> bool:
    """Whether the node is a kernel's or will be a part of one; not a copy or a call of
    NumPy's, nor a branch or loop."""
    if node.op == "Fused":
        return True
    row = get(node.op)
    is_computed = row.lowering == "fused" or (row.kind == "source" and not row.is_given)
    return is_computed and not row.is_control and node.op != "Reshape" and (
        not is_copied_whole(node))


def is_control_of(node: Node, has_kernel: Callable[[Node], bool]) -> bool:
    """Whether it is a branch or loop in which everything has kernels: it runs on their device,
    each kernel launched by itself."""
    return get(node.op).is_control and bool(node.graphs) and _has_sizes(node) and all(
        _is_inside(n, has_kernel) for graph in node.graphs for n in graph.nodes)


def _is_inside(node: Node, has_kernel: Callable[[Node], bool]) -> bool:
    is_of_numbers = all(v.type.kind != "array" for v in node.inputs)
    return _has_sizes(node) and (get(node.op).is_given or has_kernel(node) or (
        is_check(node) and is_of_numbers))


def _has_sizes(node: Node) -> bool:
    return all(t.is_static for t in node.types)
