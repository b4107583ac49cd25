"""Choices that are the same for a whole loop: a branch, of which only the side taken is computed.

``select(p == 2, x*x, pow(x, p))`` with a number ``p`` would compute all of its operands for every
element.  Where the test does not vary along the vectorised loop, expressions of one side alone
stand in a branch, which the processor foresees.  The values are the same: a branch changes no bit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fusec.core.records import dataclass, field
from fusec.ops.calls.scalar_calls import CALLS

from ...kernels.loop_ir import CHECKS, Expr, Stage, walk
from ...kernels.scalar_rules import scalar_cost

WORTH_A_BRANCH = 8.0  # additions saved where the other side is taken
MOST_BRANCHES = 16  # of a stage: LLVM's time grows with the cube of the branches within branches
Side = tuple[int, int]  # a select, and which of its operands


@dataclass(frozen=True)
class Sides:
    """The selects that branch, and the innermost side that each expression is needed by alone."""

    selects: dict[int, Expr] = field(default_factory=dict)
    side_of: dict[int, Side] = field(default_factory=dict)


def find_sides(stage: Stage, is_even: Callable[[Expr], bool]) -> Sides:
    """The branches of a stage; ``is_even``: whether a leaf is one value along the loop."""
    sides = Sides()
    order = list(walk(stage.roots))
    if not any(e.op == "select" for e in order):
        return sides
    users: dict[int, set[int]] = {id(root): {0} for root in stage.roots}
    for e in order:
        for arg in e.args:
            users.setdefault(id(arg), set()).add(id(e))
    even = _even(order, is_even)
    for e in reversed(order):  # the outer ones first: what is inside of both belongs to the inner
        if e.op != "select" or id(e.args[0]) not in even or id(e) in even:
            continue  # what is one value as a whole is computed once, before the loop
        if len(sides.selects) == MOST_BRANCHES:
            break
        operands = {k: _needed_by(e, k, users) for k in (1, 2)}
        inside = [x for part in operands.values() for x in part]
        if any(x.op in CHECKS or x.op in CALLS or x.op == "scan" for x in inside) or (
                sum(scalar_cost(x.op) for x in inside) < WORTH_A_BRANCH):
            continue
        sides.selects[id(e)] = e
        for k, part in operands.items():
            sides.side_of.update((id(x), (id(e), k)) for x in part)
    return sides


def _even(order: Sequence[Expr], is_even: Callable[[Expr], bool]) -> set[int]:
    """The expressions of which every leaf is one value along the loop."""
    even: set[int] = set()
    for e in order:
        if all(id(arg) in even for arg in e.args) if e.args else is_even(e):
            even.add(id(e))
    return even


def _needed_by(select: Expr, side: int, users: dict[int, set[int]]) -> list[Expr]:
    """The expressions that only this operand of the select needs, not looking further."""
    others = {id(select.args[0]), id(select.args[3 - side])}
    used: dict[int, int] = {}  # by how many that this operand alone needs
    exclusive: list[Expr] = []
    todo = [select.args[side]]
    while todo:
        e = todo.pop()
        used[id(e)] = used.get(id(e), 0) + 1
        if used[id(e)] == len(users[id(e)]) and id(e) not in others:
            exclusive.append(e)
            todo += {id(arg): arg for arg in e.args}.values()
    return exclusive
