"""The forward derivative of a branch: the branch itself, with tangents of its results."""

from __future__ import annotations

from collections.abc import Sequence

from fusec.core.locations import of_gradient
from fusec.ir import Node, Value
from fusec.ops import Builder
from fusec.ops.derivatives import Term, full

from .bodies import adjoint_type, name_of, of_kind, placeholder
from .branches import BranchSide, MoreOfBranch, extended_cond, sides_of
from .dependents import dependents, is_differentiable
from .forward_mode import control_rule, push


@control_rule("Cond")
def forward_cond(
    builder: Builder, node: Node, given: Sequence[Term | None]
) -> Sequence[Term | None]:
    """The tangents of the branch's results."""
    changed, operands = node.attrs["changed"], node.inputs[1:]
    tangents = {n: t for n, t in enumerate(given[1:])
                if t is not None and is_differentiable(operands[n])}
    sides = sides_of(builder, node)
    outputs, arrays = _varied(sides, list(tangents), changed)
    for n in arrays:
        tangents.setdefault(n, full(builder, operands[n].dtype.type(0), operands[n]))
    more = [_more(builder, node, side, tangents, outputs, arrays) for side in sides]
    builder.loc, builder.device = of_gradient(node.loc), node.device
    branch = extended_cond(builder, node, sides, more)
    count = len(sides[0].outputs)
    first = count + len(outputs) + changed
    found = {k: Term(builder, branch.out(count + at)) for at, k in enumerate(outputs)}
    found |= {count + n: Term(builder, branch.out(first + at)) for at, n in enumerate(arrays)}
    return [found.get(k) for k in range(len(node.types))]


def _varied(
    sides: Sequence[BranchSide], given: Sequence[int], changed: int
) -> tuple[list[int], list[int]]:
    """The results, and the arrays that are changed, that have tangents."""
    outputs: set[int] = set()
    arrays: set[int] = set()
    for side in sides:
        inside = side.body.parameters
        found = dependents([*side.outputs, *side.ends], [inside[n] for n in given]).values
        outputs |= {k for k, v in enumerate(side.outputs) if v in found and is_differentiable(v)}
        arrays |= {n for n in range(changed)
                   if side.ends[n] in found and is_differentiable(inside[n])}
    return sorted(outputs), sorted(arrays)


def _more(
    builder: Builder, node: Node, side: BranchSide, tangents: dict[int, Term],
    outputs: Sequence[int], arrays: Sequence[int],
) -> MoreOfBranch:
    inside, operands = side.body.parameters, node.inputs[1:]
    seeds = {n: placeholder(builder, adjoint_type(inside[n]), f"t_{name_of(inside[n])}")
             for n in sorted(tangents)}
    results = [side.outputs[k] for k in outputs] + [side.ends[n] for n in arrays]
    pushed = push(builder, {inside[n]: Term(builder, seed) for n, seed in seeds.items()}, results)
    values = [of_kind(t or full(builder, v.dtype.type(0), v), adjoint_type(v).kind)
              for v, t in zip(results, pushed, strict=True)]
    given: dict[int, Value] = {
        n: of_kind(t, adjoint_type(operands[n]).kind) for n, t in tangents.items()}
    return MoreOfBranch(
        values[: len(outputs)],
        [(given[n], seeds[n], end) for n, end in zip(arrays, values[len(outputs):], strict=True)],
        [(given[n], seeds[n]) for n in seeds if n not in arrays])
