"""Which intermediate values are worth storing instead of recomputing them in every consumer.

A value is stored when a library or the caller needs it, or when recomputing it at its different
indices costs more than a store and a load.  The decision reads no sizes other than 1, so that a new
shape makes the same kernels.
"""

from __future__ import annotations

from collections.abc import Iterable

from fusec.ir import Graph, Node, Value
from fusec.ops import get
from fusec.ops.cones import (
    can_split,
    cone_cost,
    has_unit_region,
    is_boundary,
    is_piecewise,
    operands,
    root_operands,
    view_base,
)
from fusec.ops.index_maps import IndexMap

# A store and a load of 8 bytes through memory take about as long as this many vectorised additions
# (2 ns against 0.08 ns); in cache it is a tenth of that, so the figure leans towards recomputing.
RECOMPUTE_LIMIT = 24.0
# The same when a value is recomputed along an axis it does not have: the factor is unbounded.
BROADCAST_LIMIT = 4.0

Context = tuple[tuple[int, ...], IndexMap, bool]  # domain, map, whether a reduction evaluates it


def required_values(graph: Graph) -> set[Value]:
    """Values that must be in memory: results, updates, and what libraries and reshapes read."""
    needed = set(graph.roots)
    for node in graph.nodes:
        if is_boundary(node) and get(node.op).kind != "reduce":
            needed.update(map(view_base, node.inputs))
    return {v for v in needed if v.node.op != "Const" and not is_boundary(v.node)}


def materialised_values(graph: Graph, extra: Iterable[Value] = ()) -> set[Value]:
    """The values that get storage of their own, decided from the results backwards."""
    chosen = required_values(graph) | set(extra)
    contexts: dict[Value, set[Context]] = {}
    for node in reversed(graph.nodes):
        if node.op in ("Const", "Input"):
            continue
        if is_boundary(node):
            if get(node.op).kind == "reduce":
                _start(node.out(), contexts, reduction=True)
            continue
        value = node.out()
        uses = contexts.get(value, set())
        if value not in chosen and _is_worth_storing(value, uses, chosen):
            chosen.add(value)
        if value in chosen:
            _start(value, contexts, reduction=False)
        else:
            _propagate(node, uses, contexts)
    return chosen


def _start(value: Value, contexts: dict[Value, set[Context]], reduction: bool) -> None:
    domain, reads = root_operands(value)
    for operand, index in reads:
        contexts.setdefault(operand, set()).add((domain, index, reduction))


def _propagate(node: Node, uses: set[Context], contexts: dict[Value, set[Context]]) -> None:
    for domain, index, reduction in uses:
        for operand, inner in operands(node, index):
            contexts.setdefault(operand, set()).add((domain, inner, reduction))


def _is_worth_storing(value: Value, uses: set[Context], chosen: set[Value]) -> bool:
    if is_piecewise(value.node):
        return _is_awkward_piecewise(value, uses)
    cost = cone_cost(value, chosen, RECOMPUTE_LIMIT + 1)
    distinct = len({(domain, index) for domain, index, _ in uses})
    if distinct > 1 and (distinct - 1) * cost > RECOMPUTE_LIMIT:
        return True
    return cost > BROADCAST_LIMIT and any(_is_repeated(d, index) for d, index, _ in uses)


def _is_awkward_piecewise(value: Value, uses: set[Context]) -> bool:
    if not has_unit_region(value.node) or len(uses) > 1:
        return True
    return any(reduction or not can_split(value.node, i) for _, i, reduction in uses)


def _is_repeated(domain: tuple[int, ...], index: IndexMap) -> bool:
    """Whether an inner loop varies while an outer one, that the value lacks, repeats the work.

    A value that lacks only the innermost loops is computed once outside them.
    """
    present = {i.loop for i in index if i.loop >= 0}
    missing = [loop for loop, size in enumerate(domain) if size != 1 and loop not in present]
    return any(loop < max(present, default=-1) for loop in missing)

