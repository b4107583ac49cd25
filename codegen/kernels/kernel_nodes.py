"""Which nodes become kernels, for back ends that have nothing else: asked before fusion."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

from fusec.ir import Node
from fusec.ops import get
from fusec.ops.calls.checks import is_check
from fusec.ops.regions.cones import is_copied_whole
from fusec.ops.rows.picking import PICKS

LARGE = 1 << 18  # elements of an array that a kernel of a branch or loop reads or computes


def is_of_kernels(node: Node) -> bool:
    """Whether the node is a kernel's or will be a part of one, or a view of what lies in C order;
    not a copy or a call of NumPy's, nor a branch or loop."""
    if node.op == "Fused":
        return True
    if node.op == "Reshape":
        return all(t.is_static for t in (*node.types, *(v.type for v in node.inputs)))
    row = get(node.op)
    is_computed = row.lowering == "fused" or (row.kind == "source" and not row.is_given)
    return is_computed and not row.is_control and not is_copied_whole(node)


def is_control_of(node: Node, has_kernel: Callable[[Node], bool]) -> bool:
    """Whether it is a branch or loop of kernels, which its device runs.

    One that reads or writes elements at indices of the run is where its arrays are large: the CPU
    goes through elements one by one sooner than a device launches a kernel.
    """
    return get(node.op).is_control and _is_inside(node, has_kernel) and (
        not any(n.op in PICKS for n in _all_inside(node)) or _most_points(node) >= LARGE)


def why_not_control(node: Node, has_kernel: Callable[[Node], bool]) -> str:
    """Why a branch or loop is not one of kernels, so that the CPU runs it; "": it is one."""
    if is_control_of(node, has_kernel):
        return ""
    if not all(t.is_static for n in (node, *_all_inside(node)) for t in n.types):
        return "it has arrays of sizes that calls or the run decide"
    missing = next((n for n in _all_inside(node) if not _is_inside(n, has_kernel)), None)
    if missing is not None:
        return f"{missing.op}{f' at {missing.loc}' if missing.loc else ''} inside has none"
    return (f"it goes through elements one by one, beside arrays of fewer than {LARGE:,}: a CPU "
            f"takes some nanoseconds for each, a device some hundred")


def _is_inside(node: Node, has_kernel: Callable[[Node], bool]) -> bool:
    if not all(t.is_static for t in node.types):
        return False
    if get(node.op).is_control:
        return bool(node.graphs) and all(
            _is_inside(n, has_kernel) for graph in node.graphs for n in graph.nodes)
    is_of_numbers = all(v.type.kind != "array" for v in node.inputs)
    is_element = node.op in PICKS and node.inputs[0].type.is_static
    return is_element or get(node.op).is_given or has_kernel(node) or (
        is_check(node) and is_of_numbers)


def _all_inside(node: Node) -> Iterator[Node]:
    """The nodes of its graphs, and of those of branches and loops in them."""
    for graph in node.graphs:
        for inner in graph.nodes:
            yield inner
            yield from _all_inside(inner)


def _most_points(node: Node) -> int:
    """Elements of the largest array of a kernel inside."""
    kernels = (n for n in _all_inside(node) if get(n.op).lowering == "fused" and n.op not in PICKS)
    return max((math.prod(v.shape) for n in kernels for v in (*n.inputs, *n.outputs)
                if v.type.is_static), default=0)
