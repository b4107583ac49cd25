"""Which nodes of one lane are done for all lanes at once, and which in a loop over lanes.

Nodes are put into *stages*, by what they depend on.  Even stages are batched.  An odd one is a loop
over lanes: it holds the nodes that are done alone, and those between them.  A library call that can
do all lanes at once ends an odd stage, so that it is one call; other nodes between two that are
done alone are cheaper in the loop, where a lane's numbers stay in registers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Sequence

from fusec.core.records import dataclass, field
from fusec.ir import Node, Value
from fusec.ir.sizes.dims import symbols_of
from fusec.ops import get
from fusec.ops.batching import Alone, NoLanes, refusal
from fusec.ops.calls.checks import may_raise
from fusec.ops.rows.sizes import defined_symbols, needed_symbols


@dataclass
class LaneStages:
    """The stage of each node that depends on lanes, in order, and why nodes are done alone."""

    nodes: list[Node] = field(default_factory=list)
    of: dict[int, int] = field(default_factory=dict)  # by a node's id
    reasons: dict[int, str] = field(default_factory=dict)  # of nodes that are done alone
    symbols: set[str] = field(default_factory=set)  # sizes that a lane's data decide

    def loops(self, results: Collection[Value] = ()) -> dict[int, list[Node]]:
        """For each odd stage the nodes that its loop does; ``results`` are read outside.

        Numbers of a lane that only a loop reads, or that follow from its own, stay in registers
        there; so do parts of its arrays, in place of which the whole would be kept.
        """
        found = self._needed()
        kept = {v.node.id for v in results}
        for stage, nodes in found.items():
            inside = {node.id for node in nodes}
            others = {node.id for loop in found.values() for node in loop} - inside
            self._add_before(stage, inside, kept | others)
            self._add_after(stage, inside, others)
            nodes[:] = [node for node in self.nodes if node.id in inside]
        return found

    def _add_before(self, stage: int, inside: set[int], kept: Collection[int]) -> None:
        """Numbers that nobody else reads, but for those ``kept``."""
        readers: dict[int, set[int]] = {}
        for node in self.nodes:
            for value in node.inputs:
                readers.setdefault(value.node.id, set()).add(node.id)
        for node in reversed(self.nodes):
            own = readers.get(node.id, set())
            if own and own <= inside and node.id not in kept and self.of[node.id] < stage and (
                    _is_number(node)):
                inside.add(node.id)

    def _add_after(self, stage: int, inside: set[int], others: Collection[int]) -> None:
        """What follows from the loop, and from values before it."""
        for node in self.nodes:
            of_lanes = [v.node.id for v in node.inputs if v.node.id in self.of]
            follows = self.of[node.id] == stage and not inside.isdisjoint(of_lanes) and all(
                n in inside or self.of[n] < stage for n in of_lanes)
            if follows and node.id not in others and (_is_number(node) or _is_part(node)):
                inside.add(node.id)

    def _needed(self) -> dict[int, list[Node]]:
        """Nodes that are done alone, and those between them."""
        found: dict[int, list[Node]] = {}
        needed: set[int] = set()
        for node in reversed(self.nodes):
            stage = self.of[node.id]
            if stage % 2 and (node.id in self.reasons or node.id in needed):
                found.setdefault(stage, []).insert(0, node)
                needed.update(v.node.id for v in node.inputs
                              if self.of.get(v.node.id) == stage)
        return found


def staged(
    nodes: Iterable[Node], lane_values: Collection[Value], alone: dict[int, str],
    is_cheap_loop: Callable[[Node], bool] = lambda node: True,
) -> LaneStages:
    """The stages of the nodes that depend on ``lane_values``; ``alone``: by the id of a node why it
    is done alone, though its row has a rule."""
    stages, level = LaneStages(), dict.fromkeys(lane_values, 0)
    for node in nodes:
        before = [level[v] for v in node.inputs if v in level]
        own = stages.symbols.intersection(needed_symbols(node)) if stages.symbols else None
        if not before and not own:
            continue
        reason = _reason(node, stages.symbols, alone)
        stage = max(before, default=0)
        if reason:
            stages.reasons[node.id] = reason
            stages.symbols.update(defined_symbols(node))
            stage += 1 - stage % 2
        elif get(node.op).kind == "extern" and node.op != "BoundsCheck":
            stage += stage % 2
        stages.nodes.append(node)
        stages.of[node.id] = stage
        level.update(dict.fromkeys(node.outputs, stage))
    return stages


def _is_number(node: Node) -> bool:
    """Whether it is an operation on numbers that cannot fail."""
    row = get(node.op)
    return row.kind == "elementwise" and not may_raise(node) and all(
        v.shape == () for v in (*node.inputs, *node.outputs))


def _is_part(node: Node) -> bool:
    """Whether it shows a part of an array."""
    return get(node.op).kind == "view" and all(t.is_static for t in (
        *node.types, *(v.type for v in node.inputs))) and (
            math.prod(node.types[0].shape) < math.prod(node.inputs[0].shape) or (
                node.types[0].shape == ()))


def _reason(node: Node, symbols: set[str], alone: dict[int, str]) -> str:
    """Why a node is done alone; nothing where it is not."""
    rule = get(node.op).batching
    if rule is None:
        raise refusal(node, "fusec has no rule for it", "do it outside of the function")
    if isinstance(rule, NoLanes):
        raise refusal(node, rule.reason, rule.cure)
    if isinstance(rule, Alone):
        return rule.reason
    if symbols and not symbols.isdisjoint(_sizes(node)):
        return "a lane's data decide sizes of it"
    return alone.get(node.id, "")


def _sizes(node: Node) -> frozenset[str]:
    shapes: Sequence[object] = [v.shape for v in node.inputs] + [t.shape for t in node.types]
    return symbols_of(tuple(shapes)) | needed_symbols(node)
