"""Which loops over lanes are kernels: asked before fusion, of nodes.

A thread of a GPU takes some thirty times as long for a lane as a core of a CPU takes for one of a
vector's, so few lanes are the CPU's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from fusec.ir import Node
from fusec.ops import get
from fusec.ops.calls.checks import is_check
from fusec.ops.calls.subgraph_ops import lane_operands

from ...kernels.kernel_nodes import is_of_kernels

LEAST_LANES = 256


def lanes_refusal(node: Node, of_kernel: Callable[[Node], str]) -> str:
    """Why a loop over lanes is the CPU's; "": it is a kernel.  ``of_kernel``: why an operation of
    kernels is none of this device's."""
    count = node.inputs[lane_operands(node)[1]].node
    if count.op == "Const" and int(count.attrs["value"]) < LEAST_LANES:
        return (f"it has {int(count.attrs['value'])} lanes, and with fewer than {LEAST_LANES} a "
                "CPU has done all before a GPU's threads have")
    for inner in (node, *_all_inside(node)):
        reason = _refusal(inner, of_kernel)
        if reason:
            where = f"{inner.op}{f' at {inner.loc}' if inner.loc else ''}"
            return f"{where} in a lane {reason}"
    return ""


def _refusal(node: Node, of_kernel: Callable[[Node], str]) -> str:
    row = get(node.op)
    if not all(t.is_static for t in (*node.types, *(v.type for v in node.inputs))):
        return "has a size that a lane's data decide"
    if row.is_control:
        return "" if node.graphs and node.op != "Call" else "calls itself"
    if row.picks or row.is_given or is_check(node):
        return ""
    if not is_of_kernels(node):
        return "is a call of a library"
    return of_kernel(node)


def _all_inside(node: Node) -> Iterator[Node]:
    for graph in node.graphs:
        for inner in graph.nodes:
            yield inner
            yield from _all_inside(inner)
