"""Nodes of loops over sizes that the run decides for which no element is computed: copies of parts,
and the places of what is not 0."""

from __future__ import annotations

from fusec.ir import Node

_COPIES = ("Reserve", "Concat", "SliceUpdate")
_PLACES = ("Nonzero", "Flatnonzero")


def is_selection(node: Node) -> bool:
    """Whether it gives places in one axis, as many as data decide."""
    if node.op not in _PLACES:
        return False
    value = node.inputs[0]
    return len(value.shape) == 1 and value.dtype.kind in "biuf" and value.dtype.str[1:] != "f2"


def is_part_of_sizes(node: Node) -> bool:
    """Whether a loop copies parts for it, or finds places."""
    return node.op in _COPIES or is_selection(node)
