"""Algebraic simplification.

does:   applies the rules of `passes.rules`, first match first, drops broadcasts that an
        elementwise op does by itself, and updates that `covered_updates` finds overwritten.
needs:  constants folded, so that rules see ``Const`` operands.
leaves: every value bit for bit; nodes that became unused, for `prune`.
"""

from __future__ import annotations

from functools import partial

from fusec.ir import Graph, Node, Value
from fusec.ops import registry
from fusec.ops.shapes import broadcast

from ..backward.covered_updates import put_back, without_covered
from ..rewrite import Replacement, Rewriter, rewrite
from .match import apply_rule, index_by_op, operand_ops
from .rules import RULES

BY_OP = index_by_op(RULES)


def simplify(graph: Graph) -> Graph:
    """The graph with rules applied until none applies; itself when none does."""
    return rewrite(graph, _simplify)


def rules_used(graph: Graph) -> dict[str, list[str]]:
    """The texts of the rules that `simplify` applies to each node, by its name in the graph, in
    turn."""
    used: dict[str, list[str]] = {}
    rewrite(graph, partial(_simplify, used=used))
    return used


def _simplify(
    node: Node, rewriter: Rewriter, used: dict[str, list[str]] | None = None
) -> Replacement:
    """Rules apply to results of rules, too; operands are already simple."""
    best: list[Value] | None = None
    told = None if used is None else used.setdefault(node.name, [])
    step = _step(node, rewriter, told)
    while step is not None:
        best = [step]
        step = _step(step.node, rewriter, told) if step.node in rewriter.pending else None
    if used is not None and not told:
        del used[node.name]
    return best


def _step(node: Node, rewriter: Rewriter, told: list[str] | None = None) -> Value | None:
    """The result of the first rule for ``node`` that fits where the visited node stood; ``told``
    gets its text."""
    rules = BY_OP.get(node.op, ())
    ops = operand_ops(node) if rules else ()
    for item in rules:
        if not item.operands.issubset(ops):
            continue
        mark = len(rewriter.pending)
        value = apply_rule(item, node, rewriter)
        if value is not None and rewriter.fits([value]):
            if told is not None:
                told.append(item.text)
            return value
        del rewriter.pending[mark:]
    if node.op == "SliceUpdate":
        return _fitting(without_covered(node, rewriter), rewriter) or _fitting(
            put_back(node), rewriter)
    return _drop_broadcasts(node, rewriter)


def _fitting(value: Value | None, rewriter: Rewriter) -> Value | None:
    return value if value is not None and rewriter.fits([value]) else None


def _drop_broadcasts(node: Node, rewriter: Rewriter) -> Value | None:
    """``Add(x, BroadcastTo(y)) -> Add(x, y)`` where the shape stays the same."""
    if registry.get(node.op).kind != "elementwise" or not node.types[0].shape:
        return None
    operands = list(node.inputs)
    for position, value in enumerate(node.inputs):
        if value.node.op != "BroadcastTo":
            continue
        shapes = [v.shape for v in operands]
        shapes[position] = value.node.inputs[0].shape
        if broadcast(shapes) == node.types[0].shape:
            operands[position] = value.node.inputs[0]
    if operands == list(node.inputs):
        return None
    return rewriter.add(node.with_inputs(operands))
