"""The forward derivative of a loop: the loop itself, with tangents of carried values."""

from __future__ import annotations

from collections.abc import Sequence

from fusec.ir import Node, Value
from fusec.ops import Builder
from fusec.ops.derivatives import Term, full

from ..bodies import adjoint_type, name_of, of_kind, placeholder
from ..forward_mode import control_rule, push
from .loop_parts import LoopAndBody, MoreOfLoop, extended_loop, varied_values


@control_rule("Loop")
def forward_loop(
    builder: Builder, node: Node, given: Sequence[Term | None]
) -> Sequence[Term | None]:
    """The tangents of the loop's carried values in the end."""
    parts = LoopAndBody.of(builder, node)
    varied = varied_values(parts, {n for n, t in enumerate(given) if t is not None})
    if not varied:
        return [None] * len(node.types)
    inside = parts.body.parameters
    seeds = {n: placeholder(builder, adjoint_type(inside[n]), f"t_{name_of(inside[n])}")
             for n in sorted(varied)}
    carried = [n for n in seeds if n < parts.carried]
    ends = push(builder, {inside[n]: Term(builder, seed) for n, seed in seeds.items()},
                [parts.ends[n] for n in carried])
    builder.loc, builder.device = node.loc, node.device
    states: list[tuple[Value, Value, Value]] = []
    for n, end in zip(carried, ends, strict=True):
        kind, zero = seeds[n].type.kind, full(builder, inside[n].dtype.type(0), inside[n])
        first = given[n] or full(builder, inside[n].dtype.type(0), node.inputs[n])
        states.append((of_kind(first, kind), seeds[n], of_kind(end or zero, kind)))
    for n in seeds:  # what the loop reads keeps its tangent
        if n >= parts.carried:
            tangent = given[n]
            assert tangent is not None
            states.append((of_kind(tangent, seeds[n].type.kind), seeds[n], seeds[n]))
    loop = extended_loop(parts, MoreOfLoop(states=states))
    found: dict[int, Term | None] = {
        n: Term(builder, loop.out(parts.carried + k)) for k, n in enumerate(carried)}
    return [found.get(n) for n in range(len(node.types))]
