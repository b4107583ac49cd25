"""Assignments that the program has made before it may raise: carried out when it does.

A call in which a check failed is repeated through NumPy up to the node that raises; that run
computes the assigned values.  Calls that do not raise never compute them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fusec.core.records import dataclass, field
from fusec.ir import Node, Value
from fusec.ir.sizes.instantiate import Instantiation

Read = Callable[[Value], Any]


@dataclass(frozen=True)
class CheckedValue:
    value: Value
    is_array: bool


@dataclass(frozen=True)
class State:
    """The assignments, with the structure of the values and their leaves; arrays that have other
    content, by input."""

    assigned: list[tuple[Any, Any, list[Any]]]
    written: list[tuple[int, Value]]

    def at_sizes(self, mapping: Instantiation) -> State:
        """The same, of values of the graph for one call's sizes."""
        return State([(assignment, tree, [_leaf_at(mapping, leaf) for leaf in leaves])
                      for assignment, tree, leaves in self.assigned],
                     [(number, mapping.value(value)) for number, value in self.written])

    def apply(self, read: Read, inputs: Sequence[Any]) -> None:
        """Carry out the assignments; ``read`` gives a graph value's content in this call."""
        # Copies: one argument may be assigned what another one was.
        content = [(inputs[number], np.array(read(value))) for number, value in self.written]
        assigned = [(assignment, tree.unflatten([_leaf(x, read) for x in leaves]))
                    for assignment, tree, leaves in self.assigned]
        for array, value in content:
            array[...] = value
        for assignment, value in assigned:
            assignment.apply(value)


@dataclass
class States:
    """The states of one trace, each with the node before which it was so.

    ``at_checks``: at nodes that check indices, in the order of the program; those of which nothing
    needs the elements stand at the end of the graph.
    """

    noted: list[tuple[Node, State]] = field(default_factory=list)
    at_checks: dict[Node, State | None] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.noted or self.at_checks)

    def before(self, node: Node, nodes: Sequence[Node]) -> State | None:
        """The state noted for ``node``, one of these nodes in order, or the latest before it."""
        if node in self.at_checks:
            return self.at_checks[node]
        order = _positions(nodes)
        end, latest = order.get(node, -1), None
        for at, state in self.noted:  # in the program's order
            if order.get(at, end + 1) <= end:
                latest = state
        return latest

    def at(self, node: Node) -> State | None:
        """The state noted for the node itself."""
        return next((state for at, state in self.noted if at is node), None)

    def in_order(self, nodes: Sequence[Node]) -> list[Node]:
        """The nodes in the program's order, as far as the checks of indices are concerned."""
        place: dict[Node, float] = dict(_positions(nodes))
        following = float(len(nodes))
        for check in reversed([check for check in self.at_checks if check in place]):
            ready = max((place[v.node] for v in check.inputs if v.node in place), default=-1.0)
            if place[check] > following > ready:
                place[check] = (ready + following) / 2
            following = place[check]
        return sorted(nodes, key=place.__getitem__)


def _positions(nodes: Sequence[Node]) -> dict[Node, int]:
    return {node: i for i, node in enumerate(nodes)}


@dataclass(frozen=True)
class StatesAtSizes:
    """``of``, for the sizes of one call: made where a call raises."""

    of: States
    mapping: Instantiation

    def __bool__(self) -> bool:
        return bool(self.of)

    def before(self, node: Node, nodes: Sequence[Node]) -> State | None:
        """As `States.before`; these nodes are made already."""
        state = self._marks().before(node, nodes)
        return None if state is None else state.at_sizes(self.mapping)

    def in_order(self, nodes: Sequence[Node]) -> list[Node]:
        return self._marks().in_order(nodes)

    def _marks(self) -> States:
        """The states as they are, at nodes of these sizes."""
        at = self.mapping.node
        return States([(at(node), state) for node, state in self.of.noted],
                      {at(node): state for node, state in self.of.at_checks.items()})


def _leaf_at(mapping: Instantiation, leaf: Any) -> Any:
    if type(leaf) is CheckedValue:
        return CheckedValue(mapping.value(leaf.value), leaf.is_array)
    return mapping.data(leaf)


def _leaf(leaf: Any, read: Read) -> Any:
    if type(leaf) is not CheckedValue:
        return leaf
    value = read(leaf.value)
    if leaf.is_array:
        return np.array(value)
    if leaf.value.type.is_weak:
        return value.item() if isinstance(value, np.generic | np.ndarray) else value
    return leaf.value.dtype.type(value)
