"""How many nodes a pass changed."""

from __future__ import annotations

from typing import Any

from fusec.ir import Graph, Node
from fusec.ir.text.text import print_attr


def count_rewrites(before: Graph, after: Graph) -> int:
    """How many nodes of ``before`` a pass removed, replaced or changed.

    A node that merely reads the replacement of another node is not counted.
    """
    if after is before:
        return 0
    by_name = {node.name: node for node in after.nodes}
    return sum(
        1 for node in before.nodes
        if node.name not in by_name or (by_name[node.name] is not node and _differs(node, by_name))
    )


def _differs(old: Node, by_name: dict[str, Node]) -> bool:
    new = by_name[old.name]
    if old.op != new.op or len(old.inputs) != len(new.inputs) or not _same_attrs(old, new):
        return True
    pairs = zip(old.inputs, new.inputs, strict=True)
    return any(a.name != b.name and a.node.name in by_name for a, b in pairs)


def _same_attrs(old: Node, new: Node) -> bool:
    return old.attrs.keys() == new.attrs.keys() and all(
        _same_attr(v, new.attrs[k]) for k, v in old.attrs.items())


def _same_attr(a: Any, b: Any) -> bool:
    if a is b or isinstance(a, Graph):  # passes return the graph itself when they are idle
        return a is b
    return print_attr(a, locs=False) == print_attr(b, locs=False)
