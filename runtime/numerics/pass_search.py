"""The pass after which a graph makes an infinity or NaN that the traced graph does not make.

The graphs of the pass log are run node by node, in order, until one makes it.  What passes did to a
branch or loop is tried pass by pass, too: those that simplified its sub-graphs, and those that ran
when it was lowered, which are in no graph of the log.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from fusec.codegen.plan.call_plan import CallPlan
from fusec.ir import Graph, Node
from fusec.ir.sizes.bindings import bind
from fusec.ops.graphs.origins import Origin, OriginSearch
from fusec.passes.pipeline import BodyPasses, PassRecord
from fusec.passes.subgraphs import optimise_subgraphs


class FoundPass(NamedTuple):
    """What a pass led to; ``part``: the sub-graph that it ran on, "" for the graph itself."""

    origin: Origin
    name: str
    part: str = ""


def origin_in(graph: Graph, inputs: Sequence[Any], seen: Sequence[int]) -> Origin | None:
    """The first infinity or NaN that one of these results of the graph has, run node by node."""
    sizes: dict[str, int] = {}
    for value, given in zip(graph.inputs, inputs, strict=True):
        bind(value.type.shape, np.shape(given), sizes)
    search = OriginSearch()
    outputs, updates = search.outputs(graph, inputs, sizes)
    return search.first([*(outputs[i] for i in seen), *(x for _, x in updates)])


def pass_that_makes(
    plan: CallPlan, records: Sequence[PassRecord], inputs: Sequence[Any], seen: Sequence[int]
) -> FoundPass | None:
    """The first pass whose graph makes one; None where no pass's does.

    ``seen``: the outputs that are looked at.
    """
    for record in records:
        if record.changed and (origin := origin_in(record.after, inputs, seen)) is not None:
            return (_inside(record.before, record.inner, inputs, seen)
                    or FoundPass(origin, record.name))
    lowered = [part for step in plan.steps if (run := getattr(step, "run", None)) is not None
               for part in run.passes]
    return _inside(plan.graph, lowered, inputs, seen)


def _inside(
    graph: Graph, parts: Sequence[BodyPasses], inputs: Sequence[Any], seen: Sequence[int]
) -> FoundPass | None:
    """The first pass on a sub-graph that makes one."""
    for part, record, changed in _with_parts(graph, parts):
        if (origin := origin_in(changed, inputs, seen)) is not None:
            return FoundPass(origin, record.name, part.body)
    return None


def _with_parts(
    graph: Graph, parts: Sequence[BodyPasses]
) -> Iterator[tuple[BodyPasses, PassRecord, Graph]]:
    """The graph with sub-graphs as they are after each pass that changed one."""
    now: dict[int, Graph] = {}  # by the sub-graph as it was before its first pass

    def latest(inner: Graph, _: Node) -> Graph:
        return optimise_subgraphs(now.get(id(inner), inner), latest)

    for part in parts:
        for record in part.records:
            if record.changed:
                now[id(part.records[0].before)] = record.after
                yield part, record, optimise_subgraphs(graph, latest)
