"""Elements in steps among zeros are added in their own places.

does:   Add(x, SliceUpdate(zeros, a)) with steps other than 1 -> SliceUpdate(x, Add(Slice(x), a))
needs:  the body of a loop that gradients made, where the sign of a zero does not matter.
leaves: updates in place: no array of zeros is filled, nor one added of which every other element
        is 0.
"""

from __future__ import annotations

from fusec.ir import Graph, Node, Value
from fusec.ir.uses import use_counts
from fusec.ops.regions.cones import is_padding

from ..rewrite import Replacement, Rewriter, rewrite


def strided_additions(graph: Graph) -> Graph:
    """The graph with such additions in place; itself where there are none."""
    counts = use_counts(graph.nodes, graph.roots)

    def visit(node: Node, rewriter: Rewriter) -> Replacement:
        if node.op != "Add":
            return None
        for x, other in (node.inputs, node.inputs[::-1]):
            old = rewriter.old.inputs[node.inputs.index(other)]
            if counts[old] == 1 and _is_in_steps_among_zeros(other) and x.shape == other.shape:
                return [_added(x, other.node, rewriter)]
        return None

    return rewrite(graph, visit, ops=("Add",))


def _is_in_steps_among_zeros(value: Value) -> bool:
    node = value.node
    return is_padding(node) and set(node.attrs["steps"]) != {1} and (
        node.inputs[0].node.inputs[0].node.attrs["value"] == 0)


def _added(x: Value, update: Node, rewriter: Rewriter) -> Value:
    part = rewriter.emit("Slice", x, **update.attrs)
    total = rewriter.emit("Add", part, update.inputs[1])
    return rewriter.emit("SliceUpdate", x, total, **update.attrs)
