"""Derivatives that the program gives itself: `fusec.custom_vjp` and `fusec.custom_jvp`.

A rule is linear in its arguments, cotangents or tangents; the other direction is its transpose,
which is its own derivative by that (Radul et al., *You Only Linearize Once*, POPL 2023).
"""

from __future__ import annotations

from collections.abc import Sequence

from fusec.ir import Graph, Node, Value
from fusec.ops import Builder
from fusec.ops.calls.given_derivatives import GIVEN, RuleOperands
from fusec.ops.derivatives import Term, full, refusal

from . import forward_mode, reverse_mode
from .bodies import of_kind
from .loops.stacks import LoopContext


@reverse_mode.control_rule(GIVEN)
def reverse_given(
    state: reverse_mode.Reverse, node: Node, given: Sequence[Term | None]
) -> None:
    """Add the rule's cotangents to the totals of the primals."""
    operands, builder = RuleOperands.of(node), state.builder
    _check_closed(node, [v in state.dependents.values for v in operands.closed])
    if node.attrs["direction"] == "back":
        found: Sequence[Term | None] = _applied(builder, node, given, node.outputs)
    else:
        found = _transposed(builder, node, given, operands.primals, state.inside)
    for value, ct in zip(operands.primals, found, strict=True):
        if value in state.dependents.values:
            state.add(value, ct)


@forward_mode.control_rule(GIVEN)
def forward_given(
    builder: Builder, node: Node, given: Sequence[Term | None]
) -> Sequence[Term | None]:
    """The values' tangents, from those of the primals."""
    operands = RuleOperands.of(node)
    first = len(node.inputs) - len(operands.primals)
    _check_closed(node, [t is not None for t in given[first - len(operands.closed): first]])
    if node.attrs["direction"] == "forward":
        return _applied(builder, node, given[first:], operands.primals)
    return _transposed(builder, node, given[first:], node.outputs, None)


def _check_closed(node: Node, active: Sequence[bool]) -> None:
    """Raise where the function depends on the variables in a way that its rule cannot
    know: the derivative would lack that part."""
    for value, is_active in zip(RuleOperands.of(node).closed, active, strict=True):
        if is_active:
            raise refusal(
                node, f"it reads {value.type} from outside of its arguments, on which the result "
                      "depends too, and its rule says nothing of that",
                "pass it as an argument that is none of nondiff_argnums")


def _applied(
    builder: Builder, node: Node, given: Sequence[Term | None], likes: Sequence[Value]
) -> list[Term | None]:
    """The rule of these directions, zeros for None."""
    rule: Graph = node.attrs["rule"]
    directions = [_zero(builder, like) if term is None else term.value
                  for term, like in zip(given, likes, strict=True)]
    return [Term(builder, v) for v in _placed(builder, node, rule, directions)]


def _transposed(
    builder: Builder, node: Node, given: Sequence[Term | None], likes: Sequence[Value],
    inside: LoopContext | None,
) -> list[Term | None]:
    """The transpose of the rule: its derivative by its arguments."""
    zeros = [builder.emit("Pos", _zero(builder, like)) for like in likes]
    outputs = _placed(builder, node, node.attrs["rule"], zeros, zeros)
    results: dict[Value, Term] = {}
    for value, term in zip(outputs, given, strict=True):
        if term is not None:
            results[value] = results[value] + term if value in results else term
    return reverse_mode.pull(builder, results, zeros, inside)


def _zero(builder: Builder, like: Value) -> Value:
    return full(builder, like.dtype.type(0), like).value


def _placed(
    builder: Builder, node: Node, rule: Graph, directions: Sequence[Value],
    parameters: list[Value] | None = None,
) -> list[Value]:
    """The rule's results, by nodes of its own."""
    operands = [of_kind(Term(builder, v), p.type.kind) for v, p in zip(
        directions, rule.inputs, strict=False)]
    if parameters is not None:
        parameters[:] = operands
    values = dict(zip(rule.inputs, (*operands, *RuleOperands.of(node).read), strict=True))
    names: dict[str, str] = {}
    for inner in rule.nodes:
        if inner.op == "Input":
            continue
        name = names[inner.name] = builder.namer.fresh(inner.name)
        attrs = dict(inner.attrs)
        if attrs.get("extends") in names:
            attrs["extends"] = names[attrs["extends"]]
        copy = inner.with_(inputs=[values[v] for v in inner.inputs], attrs=attrs, name=name,
                           control_inputs=())
        values.update(zip(inner.outputs, copy.outputs, strict=True))
    return [values[v] for v in rule.outputs]
