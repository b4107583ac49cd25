"""Which nodes become kernels, for back ends that have nothing else: asked before fusion."""

from __future__ import annotations

from fusec.ir import Node
from fusec.ops import get
from fusec.ops.cones import is_copied_whole


def is_of_kernels(node: Node) -> bool:
    """Whether the node is a kernel's or will be a part of one; not what NumPy copies or computes,
    nor a branch or loop."""
    if node.op == "Fused":
        return True
    row = get(node.op)
    return row.lowering == "fused" and not row.is_control and node.op != "Reshape" and (
        not is_copied_whole(node))
