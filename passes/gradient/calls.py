"""Derivatives of calls of functions: of the nodes that such a function would be in their place."""

from __future__ import annotations

from collections.abc import Sequence

from fusec.ir import Node, Value
from fusec.ops import Builder
from fusec.ops.calls.recursion import recursions
from fusec.ops.derivatives import Term, refusal

from . import forward_mode, reverse_mode
from .bodies import OpenedGraph, opened


def _inlined(builder: Builder, node: Node) -> OpenedGraph:
    """The function's graph over placeholders; raises for one that calls itself."""
    body = node.attrs["body"]
    if any(True for _ in recursions(body, node.attrs["function"])):
        raise refusal(node, "a function that calls itself, to a depth that only the run knows",
                      "write it as a loop")
    return opened(builder, body)


@reverse_mode.control_rule("Call")
def reverse_call(
    state: reverse_mode.Reverse, node: Node, given: Sequence[Term | None]
) -> None:
    """Add to the totals of the call's operands."""
    values = _in_place(state.builder, node)
    wanted = [v for v in dict.fromkeys(node.inputs) if v in state.dependents.values]
    cotangents = {values[k]: ct for k, ct in enumerate(given) if ct is not None}
    for value, total in zip(wanted, reverse_mode.pull(
            state.builder, cotangents, wanted, state.inside), strict=True):
        state.add(value, total)


@forward_mode.control_rule("Call")
def forward_call(
    builder: Builder, node: Node, given: Sequence[Term | None]
) -> Sequence[Term | None]:
    """The tangents of the call's results."""
    values = _in_place(builder, node)
    tangents = {v: t for v, t in zip(node.inputs, given, strict=True) if t is not None}
    return forward_mode.push(builder, tangents, values)


def _in_place(builder: Builder, node: Node) -> list[Value]:
    """The function's results, by nodes of its own over the call's operands."""
    body = node.attrs["body"]
    inside = _inlined(builder, node)
    values: dict[Value, Value] = dict(zip(inside.parameters, node.inputs, strict=True))
    for inner in inside.nodes:
        copy = inner.with_(inputs=[values[v] for v in inner.inputs],
                           name=builder.namer.fresh(inner.name), control_inputs=())
        values.update(zip(inner.outputs, copy.outputs, strict=True))
    return [values[inside.values[v]] for v in body.outputs]
