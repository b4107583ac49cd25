"""Calls of Python from a native loop: random generators, prints and library functions.

The function stores the operands, or the addresses of arrays, in words of its argument block.  Then
it takes the interpreter's lock back and calls a callback, whose address is in another word.
Results come back in words too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from fusec.codegen.backend import NotNativeError
from fusec.codegen.control_program import ErrorExit, HostSite, HostSize, HostValue
from fusec.codegen.cpu.emitter import I64, Operand
from fusec.ir import Node, TensorType, Value
from fusec.ir.dims import Dim, symbols_of
from fusec.ops.host_calls import called_on_host
from fusec.ops.library import LIBRARY, called_name, selects

from .arrays import ArrayRef, Location
from .bounds import bound_of
from .frame import Frame
from .graph_emitter import GraphEmitter
from .polls import call_python


def host_call(emitter: GraphEmitter, node: Node) -> None:
    """A call of the user's object.  The code's own order is the order of such calls."""
    order, *values = node.inputs
    *types, _ = node.types
    _call(emitter, node, called_on_host(node.attrs), values, types)
    emitter.env[node.out(len(types))] = emitter.location(order)


def library_call(emitter: GraphEmitter, node: Node) -> None:
    """A call of NumPy or SciPy.  Run-time sizes of its results need an upper bound."""
    name, limits = _title(node), emitter.frame.limits
    if symbols_of(tuple(v for k, v in node.attrs.items() if k != "results")):
        raise NotNativeError(f"{name} is a library call told a size that only the run knows",
                             node.loc)
    fresh = [d.name for t in node.types for d in t.shape if isinstance(d, Dim) and d.name]
    for symbol in fresh:
        if symbol not in limits:
            if not selects(node):
                raise NotNativeError(f"{name} is a library call whose result has any size",
                                     node.loc)
            limits[symbol] = _elements(emitter, node)
    _call(emitter, node, name, node.inputs, node.types)


def _elements(emitter: GraphEmitter, node: Node) -> int:
    """The upper bound of the number of elements of the first array."""
    shape = next(v.shape for v in node.inputs if v.type.kind == "array")
    return math.prod(bound_of(size, emitter.frame.limits) for size in shape)


def _title(node: Node) -> str:
    if node.op in LIBRARY:
        return called_name(node.op, node.attrs["form"])
    return "np.matmul" if node.op == "MatMul" else node.op


def _call(
    emitter: GraphEmitter, node: Node, name: str, values: Sequence[Value],
    types: Sequence[TensorType],
) -> None:
    frame, em = emitter.frame, emitter.frame.em
    operands = tuple(_passed(emitter, v) for v in values)
    places = [emitter.temporary(t.shape, t.dtype) if t.kind == "array" else None for t in types]
    results = tuple(
        _word(emitter, t, place, node) for t, place in zip(types, places, strict=True))
    number = len(frame.sites)
    frame.sites.append(HostSite(node, name, operands, results))
    frame.fail_unless(call_python(frame, number), ErrorExit(node, -1, 0), "0")
    for value, result, place in zip(node.outputs, results, places, strict=False):
        _define(frame, result)
        emitter.env[value] = place or em.load(
            frame.word_address("host", result.word), value.dtype, 1)


def _define(frame: Frame, result: HostValue) -> None:
    """Set the symbols whose values are sizes of this result."""
    for size in result.sizes:
        if size.defines:
            name = _dim(result.type, size.axis).name
            assert name is not None
            number = frame.em.value(f"load i64, ptr {frame.word_address('host', size.word)}", "n")
            frame.define(name, number, frame.limits[name])


def _passed(emitter: GraphEmitter, value: Value) -> HostValue:
    is_array = value.type.kind == "array"
    location: Location = emitter.array(value) if is_array else emitter.scalar(value)
    word = _word(emitter, value.type, location if isinstance(location, ArrayRef) else None)
    if isinstance(location, Operand):
        emitter.frame.em.store(emitter.frame.word_address("host", word.word), location)
    return word


def _word(
    emitter: GraphEmitter, type_: TensorType, array: ArrayRef | None, node: Node | None = None
) -> HostValue:
    """A new word for a number or, with ``array``, for its address.

    ``node``: the call that this is a result of; None for an operand.
    """
    frame = emitter.frame
    number = frame.host_word(type_.dtype if array is None else I64)
    at = frame.word_address("host", number)
    if array is None:
        return HostValue(number, type_, None)
    frame.em.line(f"store ptr {frame.address(array)}, ptr {at}")
    sizes = [_size(frame, type_, axis, node) for axis, size in enumerate(type_.shape)
             if isinstance(size, Dim)]
    return HostValue(number, type_, array.strides, tuple(sizes))


def _size(frame: Frame, type_: TensorType, axis: int, node: Node | None) -> HostSize:
    dim, number = _dim(type_, axis), frame.host_word()
    is_written = node is None or dim.name is None or any(
        dim.name in symbols_of(v.shape) for v in node.inputs)
    if is_written:
        at = frame.word_address("host", number)
        frame.em.line(f"store i64 {frame.number(dim)}, ptr {at}")
    limit = None if is_written or dim.name is None else frame.limits[dim.name]
    return HostSize(axis, number, not is_written, limit)


def _dim(type_: TensorType, axis: int) -> Dim:
    size = type_.shape[axis]
    assert isinstance(size, Dim)
    return size
