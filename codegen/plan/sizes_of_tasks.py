"""Sizes that the run finds, over several devices: what learns each, and who waits for that."""

from __future__ import annotations

from collections.abc import Mapping

from fusec.ir import Node
from fusec.ir.sizes.dims import symbols_of
from fusec.ops.rows.sizes import learnt_symbols, needed_symbols
from fusec.passes.placement.partition import Partition


def learners_of(partition: Partition) -> dict[str, Node]:
    """The node that learns each size that the run finds: of several the first in the program.

    Others may come after what needs the size; a gradient repeats the call that learnt it.
    """
    copies = {i: copy for part in partition.parts.values() for i, copy in part.homes.items()}
    learners: dict[str, Node] = {}
    for node in partition.whole.nodes:
        if node.id in copies:
            for symbol in learnt_symbols(node):
                learners.setdefault(symbol, copies[node.id])
    for value in partition.whole.inputs:
        for symbol in symbols_of(value.shape):
            learners.pop(symbol, None)
    return learners


def tellers(node: Node, learners: Mapping[str, Node]) -> list[Node]:
    """What learns the sizes that a node needs and its operands do not show."""
    unknown = needed_symbols(node) - symbols_of(tuple(v.shape for v in node.inputs))
    return [learners[s] for s in unknown if s in learners and learners[s] is not node]
