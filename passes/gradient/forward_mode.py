"""Forward mode: from tangents of variables to those of the results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from fusec.core.locations import of_gradient
from fusec.errors import InternalError
from fusec.ir import Node, Value
from fusec.ops import Builder, get
from fusec.ops.derivatives import Refused, Site, Term, broadcast_to, refusal

from .dependents import dependents
from .partial_rules import partial_of, product

# Of nodes that run graphs: the tangents of a node's results, given its operands'.
ControlRule = Callable[[Builder, Node, Sequence[Term | None]], Sequence[Term | None]]
CONTROL: dict[str, ControlRule] = {}


def control_rule(op: str) -> Callable[[ControlRule], ControlRule]:
    """The function below is that of nodes of this op."""
    def registered(rule: ControlRule) -> ControlRule:
        CONTROL[op] = rule
        return rule

    return registered


def push(
    builder: Builder, variables: Mapping[Value, Term], results: Sequence[Value]
) -> list[Term | None]:
    """The results' tangents, given those of variables; None where they are zero.

    New nodes go to the builder, each at the line of the node that it is the derivative of.  Raises
    ``UnsupportedError``, at the user's line, for nodes that have no derivative.
    """
    found = dependents(results, variables)
    tangents = {v: t for v, t in variables.items() if v in found.values}
    for node in found.nodes:
        given = [tangents.get(v) for v in node.inputs]
        if any(t is not None for t in given):
            builder.loc, builder.device = of_gradient(node.loc), node.device
            for value, tangent in zip(node.outputs, _results(builder, node, given), strict=True):
                if tangent is not None and value in found.values:
                    _check(value, tangent)
                    tangents[value] = tangent
    return [tangents.get(value) for value in results]


def _results(
    builder: Builder, node: Node, given: Sequence[Term | None]
) -> Sequence[Term | None]:
    row = get(node.op)
    if node.op in CONTROL:
        return CONTROL[node.op](builder, node, given)
    site = Site(builder, node, tuple(t is not None for t in given))
    if row.partials is not None:
        return [_elementwise(site, row.partials, given)]
    if isinstance(row.jvp, Refused):
        raise refusal(node, row.jvp.reason)
    if row.jvp is not None:
        tangents: Sequence[Term | None] = row.jvp(site, given)
        return tangents
    if row.decompose is not None:
        parts = {v: t for v, t in zip(node.inputs, given, strict=True) if t is not None}
        return push(builder, parts, row.decompose(builder, node))
    raise refusal(node, "fusec has no rule for it")


def _elementwise(site: Site, partials: object, given: Sequence[Term | None]) -> Term | None:
    """The sum of the operands' tangents times partial derivatives."""
    total: Term | None = None
    for number, tangent in enumerate(given):
        if tangent is None:
            continue
        part = product(partial_of(site, partials, number), tangent)
        if part is not None:
            total = part if total is None else total + part
    return None if total is None else broadcast_to(total, site.results[0].shape)


def _check(value: Value, tangent: Term) -> None:
    if tangent.dtype != value.dtype or tangent.shape != value.shape:
        raise InternalError(f"the tangent of {value} is {tangent.value.type}", loc=value.node.loc)
