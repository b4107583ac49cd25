"""Where the elements of an array are that are not 0."""

from __future__ import annotations

from fusec.ir import Node

from ..analyses.bounds import bound_of
from ..loops.graph_builder import GraphBuilder
from ..memory import I64
from ..statements import Nonzero
from .callbacks import library_call


def nonzero(graph: GraphBuilder, node: Node) -> None:
    """The indices into one axis; NumPy's, by a call of it, into several."""
    value = node.inputs[0]
    symbol = getattr(node.types[0].shape[0], "name", None)
    if len(value.shape) != 1 or symbol is None or value.dtype.str[1:] == "f2" or (
            value.dtype.kind == "c"):
        library_call(graph, node)
        return
    build, size = graph.builder, value.shape[0]
    build.limits[symbol] = bound_of(size, build.limits)
    source, indices = graph.array(value), graph.temporary(node.types[0].shape, I64)
    build.require(size)
    count = build.register(I64)
    build.add(Nonzero(count, indices, source))
    build.define(symbol, count, size)
    graph.env[node.out()] = indices
