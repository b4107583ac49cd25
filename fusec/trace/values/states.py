"""Assignments that the program has made before it may raise: carried out when it does.

A call in which a check failed is repeated through NumPy up to the node that raises; that run
computes the assigned values.  Calls that do not raise never compute them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fusec.ir import Node, Value
from fusec.records import dataclass, field

Read = Callable[[Value], Any]


@dataclass(frozen=True)
class Computed:
    value: Value
    is_array: bool


@dataclass(frozen=True)
class State:
    """What is assigned, with the structure of the values and their leaves; arrays that have other
    content, by input."""

    assigned: list[tuple[Any, Any, list[Any]]]
    written: list[tuple[int, Value]]

    def apply(self, read: Read, inputs: Sequence[Any]) -> None:
        """Carry out the assignments; ``read`` gives a graph value's content in this call."""
        content = [(inputs[number], read(value)) for number, value in self.written]
        assigned = [(assignment, tree.unflatten([_leaf(x, read) for x in leaves]))
                    for assignment, tree, leaves in self.assigned]
        for array, value in content:
            array[...] = value
        for assignment, value in assigned:
            assignment.apply(value)


@dataclass
class States:
    """The states of one trace, each with the node before which it was so."""

    noted: list[tuple[Node, State]] = field(default_factory=list)

    def before(self, node: Node, nodes: Sequence[Node]) -> State | None:
        """The latest state noted at or before ``node``, one of these nodes in order."""
        order = {n: i for i, n in enumerate(nodes)}
        end, latest = order.get(node, -1), None
        for at, state in self.noted:  # in the program's order
            if order.get(at, end + 1) <= end:
                latest = state
        return latest


def _leaf(leaf: Any, read: Read) -> Any:
    if type(leaf) is not Computed:
        return leaf
    value = read(leaf.value)
    if leaf.is_array:
        return np.array(value)
    if leaf.value.type.is_weak:
        return value.item() if isinstance(value, np.generic | np.ndarray) else value
    return leaf.value.dtype.type(value)
