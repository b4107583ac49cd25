"""Counters, of which the largest of the things counted decides the number."""

from __future__ import annotations

from fusec.codegen.structured.not_native import NotNativeError
from fusec.ir import Node

from ...plan.control_program import OF_NUMBERS, ErrorExit
from ..analyses.bounds import ROOM
from ..memory import BOOL, I64, ZERO, Constant, View
from .graph_builder import GraphBuilder

_ONE = Constant(1, I64)


def counters(graph: GraphBuilder, node: Node) -> None:
    """Zeros for up to `ROOM` things, or as many as are asked for; a run that has more is repeated
    step by step."""
    build, (type_,) = graph.builder, node.types
    symbol, least = getattr(type_.shape[0], "name", None), node.attrs["minlength"]
    room = max(ROOM, least)
    if symbol is None or not build.guess(type_.shape, room):
        raise NotNativeError("np.bincount gives any number of counters", node.loc)
    lowest, highest = (graph.index(v) for v in node.inputs)
    is_counted = build.let("ge", BOOL, lowest, ZERO)
    build.check(is_counted, ErrorExit(node, OF_NUMBERS), lowest)
    # Asked of the highest itself: one more than 2**63 - 1 would be a small number.
    build.check(build.let("lt", BOOL, highest, build.constant(I64, room)),
                ErrorExit(node, outgrown=True))
    counted = build.let("add", I64, highest, _ONE)
    count = build.let("largest", I64, counted, build.constant(I64, least))
    build.define(symbol, count, room)
    counters = graph.temporary(type_.shape, type_.dtype)
    build.copy(counters, _repeated_zero(graph, counters))
    graph.env[node.out()] = counters


def _repeated_zero(graph: GraphBuilder, like: View) -> View:
    zero = graph.builder.temporary((), like.dtype)
    graph.builder.store(zero, Constant(like.dtype.type(0), like.dtype))
    return View(zero.memory, like.shape, (0,), like.dtype)
