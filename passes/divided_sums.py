"""Sums of the way back in parts, so that a kernel over a stencil's inside can compute most of them.

does:   Sum(x) -> Sum of x's inside + sums of the strips around it, where arrays of x's shape are
        padded, at different places, in the same graph: the inside is where they all overlap, which
        is the largest box that the kernel of their sum is cut into.
needs:  the body of a loop that gradients made, where no order of additions is promised.
leaves: sums of slices; `fusec.codegen.joined_kernels` makes one loop nest of the inside's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fusec.ir import Graph, Node, Value
from fusec.ir.dims import is_static

from .rewrite import Replacement, Rewriter, rewrite

MOST_SUMS = 8  # more of them take longer to compile than they save
LEAST = 8  # points of the inside along an axis

Region = tuple[tuple[int, int], ...]  # along each axis from where to where


def divided_sums(graph: Graph) -> Graph:
    """The graph with its sums divided; itself where nothing is padded."""
    sums = [node for node in graph.nodes if node.op == "Sum"]
    if not 0 < len(sums) <= MOST_SUMS:
        return graph
    insides = _insides(graph)
    return rewrite(graph, lambda node, rewriter: _divided(node, insides, rewriter),
                   ops=("Sum",)) if insides else graph


def _insides(graph: Graph) -> dict[tuple[int, ...], Region]:
    """By the shape of what is padded at two places or more where all of that overlaps, in its own
    indices at the middle one of the places.  (Arrays of one axis are in the cache as they are.)"""
    starts: dict[tuple[int, ...], set[tuple[int, ...]]] = {}
    for node in graph.nodes:
        if _pads(node):
            starts.setdefault(node.inputs[1].shape, set()).add(node.attrs["starts"])
    found: dict[tuple[int, ...], Region] = {}
    for shape, places in starts.items():
        axes = list(zip(*places, strict=True))
        inside = tuple((max(axis) - _middle(axis), size + min(axis) - _middle(axis))
                       for axis, size in zip(axes, shape, strict=True))
        if len(places) > 1 < len(shape) and all(end - start >= LEAST for start, end in inside):
            found[shape] = inside
    return found


def _middle(places: Sequence[int]) -> int:
    return (min(places) + max(places)) // 2


def _pads(node: Node) -> bool:
    """Whether it is an array between constants, of known size and without gaps."""
    return node.op == "SliceUpdate" and node.inputs[0].node.op == "BroadcastTo" and (
        bool(node.inputs[1].shape) and set(node.attrs["steps"]) == {1}
        and is_static((*node.inputs[1].shape, *node.attrs["starts"])))


def _divided(
    node: Node, insides: dict[tuple[int, ...], Region], rewriter: Rewriter
) -> Replacement:
    x = node.inputs[0]
    inside = insides.get(x.shape)
    if inside is None or len(node.attrs["axes"]) != len(x.shape) or x.dtype.kind != "f":
        return None
    total: Value | None = None  # the inside comes last, next to the kernel that goes over it
    for region in (*_around(x.shape, inside), inside):
        part = rewriter.emit(
            "Slice", x, starts=tuple(start for start, _ in region), steps=(1,) * len(region),
            sizes=tuple(end - start for start, end in region))
        one = rewriter.emit("Sum", part, **node.attrs)
        total = one if total is None else rewriter.emit("Add", total, one)
    assert total is not None
    return [total]


def _around(shape: Sequence[int], inside: Region) -> Iterator[Region]:
    """Boxes that have everything else between them."""
    for axis, (size, (start, end)) in enumerate(zip(shape, inside, strict=True)):
        for edge in ((0, start), (end, size)):
            if edge[0] < edge[1]:
                yield (*inside[:axis], edge, *((0, n) for n in shape[axis + 1:]))


__all__ = ["divided_sums"]
