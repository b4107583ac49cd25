"""Functions that call themselves, as functions of the code.

A `Call` becomes a function beside that of the loop: numbers are passed in registers, arrays, which
it only reads, by address.  What needs memory for each of its calls (an array that it computes)
cannot be native.  A call deeper than Python's own limit, or whose frames take too much of the
stack, is a ``RecursionError``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fusec.codegen.structured.not_native import NotNativeError
from fusec.ir import Node, Value
from fusec.ops.calls.recursion import recursions

from ...plan.control_program import ErrorExit
from ..builder import Builder
from ..loops.counted import graph_cost
from ..loops.graph_builder import GraphBuilder
from ..memory import Operand, Register, Strides, View, contiguous
from ..statements import CallFunction, DefineFunction, Function, Poll

Build = Callable[[GraphBuilder], None]


def call(graph: GraphBuilder, node: Node, build: Build) -> None:
    """The function, and the first call of it; the body itself if it does not call itself."""
    if not any(recursions(node.attrs["body"], node.attrs["function"])):
        _inline(graph, node, build)
        return
    _check_results(node)
    strides = [_strides(graph, node, position) for position in range(len(node.inputs))]
    function = _function(graph.builder, node, strides, build)
    graph.builder.add(DefineFunction(function))
    _call(graph, node, function, node.inputs)


def _inline(graph: GraphBuilder, node: Node, build: Build) -> None:
    operands = [graph.location(value) for value in node.inputs]
    inner = GraphBuilder.of(graph.builder, node.attrs["body"], operands)
    build(inner)
    graph.env.add(zip(node.outputs, inner.outputs(), strict=True))


def recursion(graph: GraphBuilder, node: Node) -> None:
    """A call of the function that is being built."""
    function = graph.builder.function
    if function is None or graph.builder.called != node.attrs["function"]:
        raise NotNativeError("a step of a function that calls itself")
    for value in node.inputs:
        location = graph.location(value)
        if isinstance(location, View) and not location.is_dense:
            raise NotNativeError("a part of an array for a function that calls itself")
    _call(graph, node, function, node.inputs)


# ------------------------------------------------------------------------------------ the function


def _check_results(node: Node) -> None:
    if any(t.kind == "array" for t in node.types):
        raise NotNativeError("a function that calls itself and gives arrays")
    if any(not v.type.is_static for v in node.inputs):
        raise NotNativeError("a function that calls itself, and arrays of sizes that only the run "
                             "knows")


def _strides(graph: GraphBuilder, node: Node, position: int) -> Strides:
    """How an operand lies in memory: arguments in C order, as every call passes them."""
    location = graph.location(node.inputs[position])
    if not isinstance(location, View):
        return ()
    if position < node.attrs["own"]:
        if not location.is_dense:
            raise NotNativeError("a part of an array for a function that calls itself")
        return contiguous(location.shape, location.dtype.itemsize)
    if any(isinstance(step, Register) for step in location.strides):
        raise NotNativeError("an array that lies in memory as only the run knows")
    return location.strides


def _function(
    outer: Builder, node: Node, strides: Sequence[Strides], build: Build
) -> Function:
    body = node.attrs["body"]
    inner = Builder(outer.shared, called=node.attrs["function"])
    parameters = tuple(_parameter(inner, k, value, strides[k]) for k, value in
                       enumerate(body.inputs))
    function = inner.function = Function(
        inner.shared.count("function"), parameters, node.attrs["own"],
        tuple(t.dtype for t in node.types), inner.exit(ErrorExit(node)))
    inner.add(Poll(graph_cost(body)))
    graph = GraphBuilder.of(inner, body, parameters)
    build(graph)
    function.results = tuple(graph.scalar(value) for value in graph.graph.outputs)
    function.body = tuple(inner.statements)
    return function


def _parameter(builder: Builder, position: int, value: Value, strides: Strides) -> Register | View:
    type_ = value.type
    if type_.kind != "array":
        return builder.register(type_.dtype)
    memory = builder.memory(type_.nbytes, type_.dtype, "parameter", position)
    return View(memory, type_.shape, strides, type_.dtype)


# --------------------------------------------------------------------------------------- its calls


def _call(
    graph: GraphBuilder, node: Node, function: Function, values: Sequence[Value]
) -> None:
    args = tuple(_passed(graph, value) for value in values)
    results = tuple(graph.builder.register(t.dtype) for t in node.types)
    graph.builder.add(CallFunction(function, args, results))
    graph.env.add(zip(node.outputs, results, strict=True))


def _passed(graph: GraphBuilder, value: Value) -> Operand | View:
    return graph.array(value) if value.type.kind == "array" else graph.scalar(value)
