"""Elements at indices of the run as kernels, in branches and loops of devices with kernels alone.

does    Pick(x, i) -> Gather(x, CheckIndex(i, n)), PickUpdate(x, v, i) -> Scatter(x, v, CheckIndex)
        in a branch or loop that then has kernels for all that is inside, if these are large
needs   constraints as the program gives them
leaves  other branches and loops as they are: the CPU reads and writes their elements
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

from fusec.ir import Graph, Node, Value
from fusec.ops import get
from fusec.ops.rows.picking import PICKS, picked_axes

from ..rewrite import Replacement, Rewriter, rewrite
from ..rules.unchecked_indices import from_the_end
from .machine import DeviceModel

LARGE = 1 << 18  # elements of an array that a kernel inside reads or computes
Named = Callable[[Node], Sequence[DeviceModel]]


def with_element_kernels(graph: Graph, named: Named) -> Graph:
    """The graph with such branches and loops changed; ``named``: the devices that a node may be on.
    """
    def visit(node: Node, rewriter: Rewriter) -> Replacement:
        devices = [d for d in named(node) if d.runs_kernels_alone and not d.supports(node)]
        if not devices or _most_points(node) < LARGE:
            return None
        changed = _with_kernels(node)
        fits = any(d.supports(changed) for d in devices)
        return rewriter.add(changed).node.outputs if fits else None

    after = rewrite(graph, visit, _picks_inside)
    return after if after is graph else Graph(
        after.inputs, after.outputs, after.updates, after.nodes, graph.name, graph.assumed)


def _picks_inside(node: Node) -> bool:
    return get(node.op).is_control and any(n.op in PICKS for n in _inside(node))


def _inside(node: Node) -> Iterator[Node]:
    """The nodes of its graphs, and of those of branches and loops in them."""
    for graph in node.graphs:
        for inner in graph.nodes:
            yield inner
            yield from _inside(inner)


def _most_points(node: Node) -> float:
    """Elements of the largest array of a kernel inside."""
    kernels = (n for n in _inside(node) if get(n.op).lowering == "fused" and n.op not in PICKS)
    return max((math.prod(v.shape) for n in kernels for v in (*n.inputs, *n.outputs)
                if v.type.is_static), default=0)


def _with_kernels(node: Node) -> Node:
    attrs = {k: rewrite(v, _visit, _has_picks) if isinstance(v, Graph) else v
             for k, v in node.attrs.items()}
    return node.with_(attrs=attrs)


def _has_picks(node: Node) -> bool:
    return node.op in PICKS or _picks_inside(node)


def _visit(node: Node, rewriter: Rewriter) -> Replacement:
    if node.op not in PICKS:
        return rewriter.add(_with_kernels(node)).node.outputs
    if not node.inputs[0].type.is_static:
        return None
    indices = [_checked(node, axis, index, rewriter) for axis, index in picked_axes(node)]
    where = {"axes": node.attrs["axes"], "at": min(node.attrs["axes"])}
    if node.op == "PickUpdate":
        return [rewriter.emit("Scatter", *node.inputs[:2], *indices, **where)]
    return [rewriter.emit("Gather", node.inputs[0], *indices, **where,
                          kind=node.attrs.get("kind", "array"))]


def _checked(node: Node, axis: int, index: Value, rewriter: Rewriter) -> Value:
    """The index of an axis, counted from its beginning."""
    if axis in node.attrs["safe"]:
        return index
    size = rewriter.const(index.dtype.type(node.inputs[0].shape[axis]))
    if node.attrs.get("unchecked"):
        return from_the_end(rewriter, index, size, index.type.kind)
    return rewriter.emit("CheckIndex", index, size, axis=axis)
