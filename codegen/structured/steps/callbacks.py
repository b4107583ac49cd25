"""Calls of Python: random generators, prints and library functions.

Operands, or the addresses of arrays, are passed in words; results come back in words too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from fusec.codegen.structured.not_native import NotNativeError
from fusec.ir import Node, TensorType, Value
from fusec.ir.sizes.dims import Dim, symbols_of
from fusec.ops.calls.drawings import Drawing
from fusec.ops.calls.host_calls import called_on_host
from fusec.ops.calls.library import LIBRARY, called_name, selects
from fusec.ops.rows.sizes import operand_symbols

from ...plan.control_program import ErrorExit, HostSite, HostSize, HostValue
from ..analyses.bounds import bound_of
from ..builder import Builder
from ..loops.graph_builder import GraphBuilder
from ..memory import BOOL, Location, Operand, Register, Variable, View
from ..statements import CallPython, CanDraw, Draw, If
from . import draws


def host_call(graph: GraphBuilder, node: Node) -> None:
    """A call of the user's object.  The code's own order is the order of such calls."""
    order, *values = node.inputs
    *types, _ = node.types
    request = draws.request_of(graph, node)
    if request is None:
        _call(graph, node, called_on_host(node.attrs), values, types)
    else:
        graph.env[node.out()] = _drawn(graph, node, request)
    graph.env[node.out(len(types))] = graph.location(order)


def _drawn(graph: GraphBuilder, node: Node, request: draws.Request) -> Location:
    """Numbers that NumPy's own function draws, or Python where that does not."""
    build, type_, number = graph.builder, node.types[0], len(graph.builder.shared.sites)
    home = (graph.temporary(type_.shape, type_.dtype) if type_.kind == "array"
            else build.variable(type_.dtype))
    ready = build.register(BOOL)
    build.add(CanDraw(ready, number))
    for held in request.holds:
        ready = build.let("and", BOOL, ready, held)
    with build.block() as drawing:
        _drawn_into(build, number, request, home)
    with build.block() as calling:
        result = home if isinstance(home, View) else build.register(type_.dtype)
        _call_site(graph, node, called_on_host(node.attrs), node.inputs[1:], (type_,), (result,),
                   request.drawing)
        if isinstance(home, Variable) and isinstance(result, Register):
            build.set(home, result)
    build.add(If(ready, tuple(drawing), tuple(calling)))
    return home if isinstance(home, View) else build.get(home)


def _drawn_into(
    build: Builder, number: int, request: draws.Request, home: Variable | View
) -> None:
    """Into an array, or a variable of the same or a wider dtype."""
    drawing = request.drawing
    if isinstance(home, View):
        build.add(Draw(number, drawing, request.arguments, home))
        return
    result = build.register(drawing.dtype)
    build.add(Draw(number, drawing, request.arguments, result))
    if request.chosen_from is not None:
        result = _element(build, request.chosen_from, result)
    build.set(home, result if result.dtype == home.dtype else (
        build.let("cast", home.dtype, result)))


def _element(build: Builder, array: View, index: Register) -> Register:
    """Of an array of one axis."""
    offset = build.moved(array.offset, index, build.stride(array.strides[0], array.dtype))
    return build.load(View(array.memory, (), (), array.dtype, offset, array.element))


def library_call(graph: GraphBuilder, node: Node) -> None:
    """A call of NumPy or SciPy.  Run-time sizes of its results need an upper bound."""
    name, limits = _title(node), graph.builder.limits
    if symbols_of(tuple(v for k, v in node.attrs.items() if k != "results")):
        raise NotNativeError(f"{name} is a library call told a size that only the run knows",
                             node.loc)
    fresh = [d.name for t in node.types for d in t.shape if isinstance(d, Dim) and d.name]
    for symbol in fresh:
        if symbol not in limits:
            if selects(node):
                limits[symbol] = _elements(graph, node)
            elif not all(graph.builder.guess(t.shape) for t in node.types):
                raise NotNativeError(f"{name} is a library call whose result has any size",
                                     node.loc)
    _call(graph, node, name, node.inputs, node.types)


def _elements(graph: GraphBuilder, node: Node) -> int:
    """The upper bound of the number of elements of the first array."""
    shape = next(v.shape for v in node.inputs if v.type.kind == "array")
    return math.prod(bound_of(size, graph.builder.limits) for size in shape)


def _title(node: Node) -> str:
    if node.op in LIBRARY:
        return called_name(node.op, node.attrs["form"])
    return "np.matmul" if node.op == "MatMul" else node.op


def _call(
    graph: GraphBuilder, node: Node, name: str, values: Sequence[Value],
    types: Sequence[TensorType],
) -> None:
    results = tuple(
        graph.temporary(t.shape, t.dtype) if t.kind == "array" else graph.builder.register(t.dtype)
        for t in types)
    _call_site(graph, node, name, values, types, results)
    graph.env.add(zip(node.outputs, results, strict=False))


def _call_site(
    graph: GraphBuilder, node: Node, name: str, values: Sequence[Value],
    types: Sequence[TensorType], results: tuple[Register | View, ...],
    drawing: Drawing | None = None,
) -> None:
    """A call of Python whose results come into registers and views."""
    build = graph.builder
    operands = tuple(graph.array(v) if v.type.kind == "array" else graph.scalar(v) for v in values)
    site = HostSite(
        node, name,
        tuple(_word(build, v.type, x) for v, x in zip(values, operands, strict=True)),
        tuple(_word(build, t, x, node) for t, x in zip(types, results, strict=True)), drawing)
    number = len(build.shared.sites)
    build.shared.sites.append(site)
    exit_ = build.exit(ErrorExit(node, -1, 0))
    build.add(CallPython(number, site, exit_, operands, results))
    for word in site.results:
        _note_sizes(build, word)


def _note_sizes(build: Builder, result: HostValue) -> None:
    """Set the upper bounds of the symbols whose values are sizes of this result."""
    for size in result.sizes:
        if size.defines:
            name = _dim(result.type, size.axis).name
            assert name is not None
            build.note_size(name, build.limits[name])


def _word(
    build: Builder, type_: TensorType, location: Operand | View, node: Node | None = None
) -> HostValue:
    """A new word for a number, or for an array's address.

    ``node``: the call that this is a result of; None for an operand.
    """
    number = build.shared.count("host")
    if not isinstance(location, View):
        return HostValue(number, type_, None)
    sizes = [_size(build, type_, axis, node) for axis, size in enumerate(type_.shape)
             if isinstance(size, Dim)]
    return HostValue(number, type_, location.strides, tuple(sizes))


def _size(build: Builder, type_: TensorType, axis: int, node: Node | None) -> HostSize:
    dim, number = _dim(type_, axis), build.shared.count("host")
    is_written = node is None or dim.name is None or dim.name in operand_symbols(node)
    if is_written:
        build.require(dim)
    limit = None if is_written or dim.name is None else build.limits[dim.name]
    return HostSize(axis, number, not is_written, limit, dim.name in build.shared.guessed)


def _dim(type_: TensorType, axis: int) -> Dim:
    size = type_.shape[axis]
    assert isinstance(size, Dim)
    return size
