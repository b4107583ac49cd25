"""Sums of the way back may be added up in parts: the boxes that a kernel's domain is cut into.

does:   Sum(x) -> Sum(x) in parts; where arrays of x's shape are padded in the same graph, of x
        among zeros in the middle one of their places, so that the kernel that adds them up sums
        x too.
needs:  the body of a loop that gradients made, where no order of additions is promised.
leaves: sums over all axes with ``in_parts``, which `lower_nest` adds up box by box;
        those that a comparison is computed from as they are, see `decisive_values`.
"""

from __future__ import annotations

from collections.abc import Sequence

from fusec.ir import Graph, Node, TensorType, Value
from fusec.ir.sizes.dims import is_static
from fusec.ops.regions.cones import is_padding

from ..rewrite import Replacement, Rewriter, rewrite
from ..rules.match import emit_filled
from .decisive_values import decisive_values

MOST_SUMS = 8  # more of them take longer to compile than they save
LEAST = 8  # points of the inside along an axis

# The shape of what arrays are padded to, and where they begin in it.
Place = tuple[tuple[int, ...], tuple[int, ...]]


def sums_in_parts(graph: Graph) -> Graph:
    """The graph with its sums in parts; itself where none may be."""
    sums = [node for node in graph.nodes if node.op == "Sum" and _is_of_all(node)]
    if not 0 < len(sums) <= MOST_SUMS:
        return graph
    places, decisive = _places(graph), decisive_values(graph)

    def visit(node: Node, rewriter: Rewriter) -> Replacement:
        return None if rewriter.old.out() in decisive else _in_parts(node, places, rewriter)

    return rewrite(graph, visit, ops=("Sum",))


def _is_of_all(node: Node) -> bool:
    """Whether it sums all elements of an array of a known size."""
    x = node.inputs[0]
    return x.dtype.kind == "f" and len(node.attrs["axes"]) == len(x.shape) > 0 and is_static(
        x.shape) and 0 not in x.shape


def _places(graph: Graph) -> dict[tuple[int, ...], Place]:
    """By the shape of arrays that are padded at different places, the padded shape and the middle
    place.  (Arrays of one axis are in the cache, and other kernels go over them as they are.)"""
    starts: dict[tuple[tuple[int, ...], tuple[int, ...]], set[tuple[int, ...]]] = {}
    for node in graph.nodes:
        if _pads(node):
            shapes = node.inputs[1].shape, node.inputs[0].shape
            starts.setdefault(shapes, set()).add(node.attrs["starts"])
    return {inner: (outer, _middle(found)) for (inner, outer), found in starts.items()
            if len(found) > 1 < len(inner) and _have_an_inside(inner, found)}


def _pads(node: Node) -> bool:
    """Whether it is an array between constants, of known size and without gaps."""
    return is_padding(node) and bool(node.inputs[1].shape) and set(node.attrs["steps"]) == {1} and (
        is_static((*node.inputs[0].shape, *node.inputs[1].shape, *node.attrs["starts"])))


def _middle(starts: set[tuple[int, ...]]) -> tuple[int, ...]:
    return tuple((min(axis) + max(axis)) // 2 for axis in zip(*starts, strict=True))


def _have_an_inside(shape: Sequence[int], starts: set[tuple[int, ...]]) -> bool:
    """Whether the arrays that begin there overlap in most of their elements."""
    return all(size - max(axis) + min(axis) >= LEAST
               for axis, size in zip(zip(*starts, strict=True), shape, strict=True))


def _in_parts(
    node: Node, places: dict[tuple[int, ...], Place], rewriter: Rewriter
) -> Replacement:
    if not _is_of_all(node) or "in_parts" in node.attrs:
        return None
    x = node.inputs[0]
    if x.shape in places:
        x = _padded(x, *places[x.shape], rewriter)
    return [rewriter.emit("Sum", x, axes=node.attrs["axes"], in_parts=True)]


def _padded(
    x: Value, shape: tuple[int, ...], starts: tuple[int, ...], rewriter: Rewriter
) -> Value:
    zeros = emit_filled(rewriter, 0, TensorType(x.dtype, shape))
    return rewriter.emit("SliceUpdate", zeros, x, starts=starts, steps=(1,) * len(shape),
                         sizes=x.shape)
