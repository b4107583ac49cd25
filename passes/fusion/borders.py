"""Arrays of which only borders are set anew: a native loop sets them in place.

That takes no time beside a kernel over the array, so such a kernel is not to wait for it to be
done, nor to be split by readers of the array next to where it is set: it would go over other arrays
once more.
"""

from __future__ import annotations

from collections.abc import Collection

from fusec.ir import Graph, Node, Value
from fusec.ir.uses import readers
from fusec.ops.regions.cones import is_boundary


def borders(graph: Graph, stored: Collection[Value]) -> set[Value]:
    """The stored values that are others with rows or columns replaced, where nothing else reads
    more than those of the others."""
    read_by, roots = readers(graph.nodes), set(graph.roots)
    return {v for v in stored if _is_border(v, stored, read_by, roots)}


def _is_border(
    value: Value, stored: Collection[Value], read_by: dict[Value, list[Node]], roots: set[Value]
) -> bool:
    before = value
    while before.node.op == "SliceUpdate" and _is_thin(before.node):
        before = before.node.inputs[0]
        if before in roots or not all(map(_is_thin, read_by[before])):
            return False
        if before in stored or is_boundary(before.node):
            return before.node.op != "Const" and len(before.shape) > 1
    return False


def _is_thin(node: Node) -> bool:
    """Whether it reads or writes a part that is one element wide."""
    return 1 in node.attrs.get("sizes", ())


__all__ = ["borders"]
