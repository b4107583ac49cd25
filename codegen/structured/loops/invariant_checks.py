"""Checks of a loop that every iteration makes of the same numbers: made once, before the loop.

``dt / dx`` in a loop raises where ``dx`` is 0.  A loop that may be left in the middle has to keep
its arrays as the program has them by then, which costs copies; one that is left before its first
iteration, or not at all, does not.
"""

from __future__ import annotations

from collections.abc import Sequence

from fusec.ir import Graph, Node, Value
from fusec.ops import get
from fusec.ops.calls.checks import has_effects, may_raise
from fusec.ops.regions.loop_numbers import writes_part

from ...plan.control_program import ErrorExit
from ..builder import Builder
from ..exits import may_leave
from ..memory import BOOL, Constant, Operand

_TRUE = Constant(True, BOOL)


def invariant_checks(loop: Node) -> list[Node]:
    """Checks of the body before which an iteration does nothing that shows, and whose conditions
    are of numbers that the loop does not carry; and later ones of the same conditions."""
    body: Graph = loop.attrs["body"]
    if any(map(has_effects, loop.attrs["test"].nodes)):  # it is asked once more
        return []
    fixed = set(body.inputs[loop.attrs["carried"]:])
    found: list[Node] = []
    shows = False
    for node in body.nodes:
        if node.op == "Check":
            again = any(node.inputs == n.inputs for n in found)
            if again or (node.inputs[0] in fixed and not shows):
                found.append(node)
            else:
                shows = True
        elif _is_number_of(node, fixed):
            fixed.update(node.outputs)
        elif node.op != "Input" and _shows(node):
            shows = True
    return found


def _is_number_of(node: Node, fixed: set[Value]) -> bool:
    """Whether it computes a number of such values, and does nothing else."""
    return node.op == "Const" or (
        get(node.op).kind == "elementwise" and not node.types[0].shape and not may_raise(node)
        and fixed.issuperset(node.inputs))


def _shows(node: Node) -> bool:
    """Whether somebody might see that it has run: it writes, raises, or does not end."""
    row = get(node.op)
    return row.is_control or row.kind in ("extern", "call") or writes_part(node) or (
        may_raise(node) or may_leave(node))


def without(body: Graph, checks: Sequence[Node]) -> Graph:
    """The body without these checks, and without what only they need."""
    gone = set(checks)
    wanted = {v.node for v in body.roots}
    for node in reversed(body.nodes):
        if node not in gone and (node in wanted or may_raise(node) or node.op == "Input"):
            wanted.add(node)
            wanted.update(v.node for v in node.inputs)
            wanted.update(node.control_inputs)
    nodes = tuple(n for n in body.nodes if n in wanted and n not in gone)
    return Graph(body.inputs, body.outputs, body.updates, nodes, body.name)


def conditions(body: Graph, checks: Sequence[Node]) -> Graph:
    """What the checks check, each condition once, as a graph of its own."""
    values = dict.fromkeys(check.inputs[0] for check in checks)
    return Graph.build(body.inputs, values, name="checked")


def make(builder: Builder, checks: Sequence[Node], held: Sequence[Operand], runs: Operand) -> None:
    """Leave where a condition does not hold, if the loop has an iteration."""
    values = list(dict.fromkeys(check.inputs[0] for check in checks))
    for value, holds in zip(values, held, strict=True):
        first = next(check for check in checks if check.inputs[0] == value)
        made = builder.let("select", BOOL, runs, holds, _TRUE)
        builder.check(made, ErrorExit(first))


__all__ = ["conditions", "invariant_checks", "make", "without"]
