"""Which steps may leave a native loop early, where arrays are seen as they are by then."""

from __future__ import annotations

from fusec.ir import Node
from fusec.ir.sizes.dims import is_static
from fusec.ops import get


def may_leave(node: Node) -> bool:
    """Whether an early exit, which leaves arrays as they are by then, may be in its statements."""
    row = get(node.op)
    if "safe" in node.attrs:
        return len(node.attrs["safe"]) < len(node.attrs["axes"])
    if node.graphs:
        return any(may_leave(inner) for graph in node.graphs for inner in graph.nodes)
    if row.chooses and not is_static(node.inputs[0].shape):
        return True
    if node.attrs.get("raises") or row.may_raise or row.stateful:
        return True
    return row.raises == "often" or (row.lowering == "library" and row.raises != "never")
