"""Counters, of which the largest of the things counted decides the number."""

from __future__ import annotations

from fusec.codegen.backend import NotNativeError
from fusec.codegen.control_program import OF_NUMBERS, ErrorExit
from fusec.ir import Node

from .bounds import ROOM
from .builder import Builder
from .graph_builder import GraphBuilder
from .memory import BOOL, I64, ZERO, Constant, Operand, View
from .statements import DefineSize

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
    counted = build.let("add", I64, highest, _ONE)
    count = build.let("largest", I64, counted, build.constant(I64, least))
    _leave_where_outgrown(build, node, count, room)
    build.sizes.add(symbol)
    build.add(DefineSize(symbol, count))
    counters = graph.temporary(type_.shape, type_.dtype)
    build.copy(counters, _repeated_zero(graph, counters))
    graph.env[node.out()] = counters


def _leave_where_outgrown(build: Builder, node: Node, count: Operand, room: int) -> None:
    beyond = build.let("lt", BOOL, build.constant(I64, room), count)
    build.check(build.let("eq", BOOL, beyond, Constant(False, BOOL)),
                ErrorExit(node, outgrown=True))


def _repeated_zero(graph: GraphBuilder, like: View) -> View:
    zero = graph.builder.temporary((), like.dtype)
    graph.builder.store(zero, Constant(like.dtype.type(0), like.dtype))
    return View(zero.memory, like.shape, (0,), like.dtype)
