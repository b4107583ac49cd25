"""The nodes between the results of a differentiation and its variables."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from fusec.core.records import dataclass
from fusec.ir import Node, Value
from fusec.ops import get
from fusec.ops.calls.given_derivatives import GIVEN, RuleOperands
from fusec.ops.derivatives import DIFFERENTIABLE, Refused, Zero, refusal


@dataclass(frozen=True)
class Dependents:
    """The nodes of which a derivative may be other than zero, in order, and those values."""

    nodes: list[Node]
    values: set[Value]


def dependents(results: Sequence[Value], variables: Collection[Value]) -> Dependents:
    """The values behind the results that depend on the variables and have a derivative by them.

    Raises ``UnsupportedError`` for nodes without a rule that give integers of them: through these
    the results would depend on the variables and nobody would notice.
    """
    given = set(variables)
    oldest = min((v.node.id for v in given), default=0)
    behind = _nodes_behind(results, lambda v: v in given or v.node.id < oldest)
    values, nodes = {v for v in given if is_differentiable(v)}, []
    for node in behind:
        if not values.isdisjoint(node.inputs) and not is_zero(node):
            active = [v for v in node.outputs if is_differentiable(v)]
            if active:
                values.update(active)
                nodes.append(node)
            else:
                _check_has_rule(node)
    return Dependents(nodes, values)


def _nodes_behind(results: Sequence[Value], is_known: Callable[[Value], bool]) -> list[Node]:
    """The nodes behind the results, without those of which a rule of the program's says the
    derivative: these may have none."""
    nodes: dict[int, Node] = {}
    todo = [v.node for v in results if not is_known(v)]
    while todo:
        node = todo.pop()
        if node.id not in nodes:
            nodes[node.id] = node
            todo += [v.node for v in _followed(node) if not is_known(v)]
    return [nodes[i] for i in sorted(nodes)]


def _followed(node: Node) -> Sequence[Value]:
    """The operands that derivatives go through."""
    if node.op != GIVEN:
        return node.inputs
    operands = RuleOperands.of(node)
    return (*operands.closed, *operands.primals)


def is_differentiable(value: Value) -> bool:
    """Whether values of its dtype have tangents and cotangents."""
    return value.dtype.kind in DIFFERENTIABLE


def is_zero(node: Node) -> bool:
    """Whether the derivative of its results is zero by nature."""
    row = get(node.op)
    return isinstance(row.partials, Zero) or isinstance(row.vjp, Zero)


def _check_has_rule(node: Node) -> None:
    row = get(node.op)
    rule = row.vjp if row.partials is None else row.partials
    if isinstance(rule, Refused):
        raise refusal(node, rule.reason)
    if rule is None and row.decompose is None and not row.is_control:
        raise refusal(node, "fusec has no rule for it")
