"""From a call to its plan over replicas: the batch in pieces, sums over them, then the rest.

A step is divided as a call with arrays in blocks is (`fusec.distributed.split_plan`), a piece of
the batch being a block.  A worker computes each stage for its own pieces; what is not in pieces
every worker computes for itself; partial results of all pieces are joined in a ring.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fusec.core.records import dataclass, field
from fusec.errors import unsupported
from fusec.ir import Graph, Loc, Value
from fusec.ops.calls.checks import has_effects
from fusec.passes.options import PassOptions
from fusec.passes.split.split_states import Chunks
from fusec.passes.split.stages import Stages
from fusec.trace.objects.variables import Met
from fusec.trace.tracer import Traced

from ..counters import constants_of, with_counters
from ..split_plan import check_pure, staged, with_views

Sizes = Sequence[int]  # the lengths of the pieces


@dataclass(frozen=True)
class ReplicaResult:
    """A leaf of a call's result: a value of the plan, ``axis`` being the one in pieces (None:
    none); the argument of that input (-1: none); or an object."""

    value: Value | None = None
    axis: int | None = None
    argument: int = -1
    object: Any = None


@dataclass
class ReplicaPlan:
    """A step over pieces of a batch, whichever worker has which.

    ``variables`` are those that it reads or assigns, ``updates`` pairs of an input and the value
    that it gets; ``chunks``: of the inputs in pieces, by axis.
    """

    name: str
    traced: Graph  # the step as the program wrote it
    stages: Stages
    chunks: Chunks
    pieces: Sizes
    variables: Sequence[Met]
    updates: Sequence[tuple[int, Value]]
    results: Sequence[ReplicaResult]
    captured: Mapping[int, Any] = field(default_factory=dict)  # what reads inputs from outside

    @property
    def inputs(self) -> Sequence[Value]:
        return self.stages.graph.inputs

    def axis_of(self, value: Value) -> int | None:
        """The axis of a value that is in pieces."""
        places = self.stages.states.of(value)
        return next((axis for axis, place in enumerate(places) if place is not None), None)


def plan_of_step(
    name: str, traced: Traced, options: PassOptions, chunks: Chunks, pieces: Sizes,
    loc: Loc | None = None,
) -> ReplicaPlan:
    """The plan of a trace, of which these inputs are in pieces; ``loc``: of the function.

    Raises ``UnsupportedError``, with the user's line, for what pieces cannot compute.
    """
    graph: Graph = traced.graph.made
    variables = {met.input: met for met in traced.variables}
    _check(graph, traced, variables)
    viewed, numbers = with_views(graph, traced, loc)
    updates = list(graph.updates)
    whole = Graph.build(
        viewed.inputs, [*viewed.outputs, *(value for _, value in updates)], name=name,
        extra=[node for node in viewed.nodes if has_effects(node)])
    first_captured = len(graph.inputs) - len(traced.captured)
    whole = with_counters(whole, constants_of(traced, first_captured))
    made = staged(whole, chunks, options, {})
    stages = made.stages
    outputs = stages.graph.outputs
    split = stages.graph.inputs
    plan = ReplicaPlan(
        name, graph, stages, chunks, pieces, [variables[n] for n in sorted(variables)], [], [],
        {first_captured + k: source for k, source in enumerate(traced.captured)
         if first_captured + k not in variables} | dict(made.numbers))
    plan.updates = [(number, outputs[len(viewed.outputs) + k])
                    for k, (number, _) in enumerate(updates)]
    for number, value in plan.updates:
        if plan.axis_of(value) is not None:
            raise unsupported(
                f"assigning a part of the batch to {variables[number].title}", loc=value.node.loc,
                cure="assign a mean or a sum over the batch")
    plan.results = [
        ReplicaResult(outputs[n], plan.axis_of(outputs[n])) if n is not None else
        ReplicaResult(split[o.index], None) if o.kind == "input" and o.index in variables else
        ReplicaResult(argument=o.index) if o.kind == "input" else ReplicaResult(object=o.value)
        for n, o in zip(numbers, traced.outputs, strict=True)]
    return plan


def _check(graph: Graph, traced: Traced, variables: Mapping[int, Met]) -> None:
    """Refuse what replicas cannot do."""
    check_pure(traced, graph, "in a replicated step", variables)
    for node in graph.nodes:
        if has_effects(node):
            raise unsupported("a check of values in a replicated step", loc=node.loc,
                              cure="check them before the call")
        if node.device and node.op != "Input":
            raise unsupported(f"a scope ({node.device}) in a replicated step", loc=node.loc,
                              cure="leave it out: every worker does all of the step for its pieces")


__all__ = ["ReplicaPlan", "ReplicaResult", "plan_of_step"]
