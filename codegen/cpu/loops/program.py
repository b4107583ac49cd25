"""A control node as a compiled function, and the words of its argument block."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence

from fusec import locks
from fusec.codegen.control_program import ControlProgram, LoopNest
from fusec.codegen.cpu.abi import nest_block
from fusec.codegen.cpu.code_cache import CodeCache
from fusec.codegen.cpu.compile import compile_forms
from fusec.codegen.cpu.emitter import METADATA, UNLIKELY, Emitter
from fusec.codegen.llvm import NativeCode, compile_ir
from fusec.codegen.native_nest import CompileStats, NativeNest
from fusec.ir import Graph, Node, Value
from fusec.ops import get
from fusec.ops.structured import changed_operands

from . import steps
from .arrays import ArrayRef, Location, Strides, contiguous
from .copying import copy
from .frame import Frame, NestCall
from .graph_emitter import GraphEmitter
from .outer_sizes import outer_limits, outer_sizes

LOOP_SPEED = 3  # LLVM's own pipeline, its vectoriser included: scalar loops are emitted as they are
BRANCH_SPEED = 2  # code that runs once
# An unrolled loop of many branches makes a long function that is no hot loop, and LLVM's time grows
# faster than its length: 2.8 MB of text took 8.5 s at speed 3, 4.5 s at this one.
LONG_TEXT, LONG_SPEED = 500_000, 1
UNKNOWN = -1  # the number of bytes of an operand that is only read

_codes: CodeCache[str, NativeCode] = CodeCache()
_lock = locks.Lock()


def compile_control(
    node: Node, strides: Sequence[Strides], stats: CompileStats
) -> ControlProgram:
    """The node as one function; ``strides`` are those of its operands in bytes.

    Raises `NotNativeError` where a part can only run step by step.
    """
    start = time.perf_counter()
    frame = Frame(outer=outer_sizes(node), limits=outer_limits(node), has_loops=_has_loops(node))
    copied = _emit(frame, node, strides)
    stats.codegen_ms += 1e3 * (time.perf_counter() - start)
    codes = compile_forms([n.form for n in frame.nests], stats)
    code = _compiled(frame, LOOP_SPEED if frame.has_loops else BRANCH_SPEED, stats)
    nests = [_nest(call, native) for call, native in zip(frame.nests, codes, strict=True)]
    return ControlProgram(node, code.address("run"), code, frame.words, nests, frame.exits, copied,
                          frame.sites, frame.passed)


def _has_loops(node: Node) -> bool:
    inside = (op for graph in node.graphs for op in graph.ops)
    return any(get(op).repeats for op in (node.op, *inside))


def _compiled(frame: Frame, speed: int, stats: CompileStats) -> NativeCode:
    text = _module(frame.em, frame.text("run"))
    links = frame.em.links  # the text has their symbols, which depend on their contents
    key = hashlib.sha256(text.encode()).hexdigest()
    with _lock:
        code = _codes.get(key)
        if code is None:
            start = time.perf_counter()
            speed = LONG_SPEED if len(text) > LONG_TEXT else LOOP_SPEED if links else speed
            code = _codes.add(key, compile_ir(text, speed, links))
            stats.llvm_ms += 1e3 * (time.perf_counter() - start)
        return code


def clear_cache() -> None:
    """Forget compiled functions; plans keep those that they use."""
    with _lock:
        _codes.clear()


def _module(em: Emitter, function: str) -> str:
    functions = [*em.functions.values(), function]
    weights = [METADATA] if any(UNLIKELY in text for text in functions) else []
    return "\n\n".join([*sorted(em.declarations), *functions, *weights]) + "\n"


def _nest(call: NestCall, native: NativeNest) -> LoopNest:
    return LoopNest(nest_block(call.form, call.params), native)


# ---------------------------------------------------------------------------------------- emitting


def _emit(frame: Frame, node: Node, strides: Sequence[Strides]) -> list[int]:
    """Emit the node as the only step of a graph, then move the results to their targets."""
    copied = changed_operands(node)
    graph = _wrapped(node)
    operands: list[Location] = []
    owned = {}
    for position, value in enumerate(node.inputs):
        location = _operand(frame, position, value, strides[position], copied)
        operands.append(location)
        if position in copied and isinstance(location, ArrayRef):
            owned[position] = location.token
            frame.watch(copied.index(position), location.token)
    emitter = GraphEmitter.of(frame, graph, operands, owned.values())
    steps.emit(emitter)
    _finish(emitter)
    return copied


def _wrapped(node: Node) -> Graph:
    inputs = []
    for position, value in enumerate(node.inputs):
        attrs = {"index": position, "path": f"operand_{position}", "type": value.type}
        inputs.append(Node("Input", (), (value.type,), attrs, name=f"operand_{position}").out())
    types = get(node.op).infer([v.type for v in inputs], node.attrs)
    copy = Node(node.op, inputs, types, node.attrs, name=node.name, loc=node.loc)
    return Graph.build(inputs, copy.outputs, name=node.name)


def _operand(
    frame: Frame, position: int, value: Value, strides: Strides, copied: Sequence[int]
) -> Location:
    type_ = value.type
    if value.node.op == "Const":
        return frame.constant(type_.dtype, value.node.attrs["value"])
    if type_.kind != "array":
        address = frame.scalar_address("scalar", position, type_.dtype)
        return frame.em.load(address, type_.dtype, 1)
    if value.node.op == "Extent":  # the array that only has the size
        return frame.em.const(type_.dtype, False)
    if position in copied:
        address = frame.early_word("target", copied.index(position), "ptr")
        strides = contiguous(type_.shape, type_.dtype.itemsize)
    else:
        address = frame.early_word("operand", position, "ptr")
    nbytes = type_.nbytes if type_.is_static else UNKNOWN
    return ArrayRef(frame.token(address, nbytes, type_.dtype), type_.shape, strides, type_.dtype)


def _finish(emitter: GraphEmitter) -> None:
    """Move the results to their targets: loops may have swapped the memory of several."""
    frame, arrays = emitter.frame, {}
    for number, value in enumerate(emitter.graph.outputs):
        location = emitter.location(value)
        if isinstance(location, ArrayRef):
            arrays[number] = location
        else:
            frame.em.store(frame.scalar_address("result", number, location.dtype), location)
    targets = {number: frame.early_word("target", number, "ptr") for number in arrays}
    sources = {
        number: _set_aside(frame, location, [
            targets[n] for n, other in arrays.items()
            if n != number and other.token.nbytes == location.token.nbytes])
        for number, location in arrays.items()}
    for number, source in sources.items():
        _deliver(frame, source, targets[number])


def _set_aside(frame: Frame, array: ArrayRef, others: Sequence[str]) -> ArrayRef:
    """The array, or a copy where it lies in another result's target, which would overwrite it."""
    em = frame.em
    if not others or not array.is_whole:  # loops swap whole arrays of equal size only
        return array
    base = em.value(f"load ptr, ptr {array.token.slot}", "base")
    # The address is for now: tokens begin in the entry block.
    token = frame.token(others[0], array.token.nbytes, array.dtype)
    em.line(f"store ptr {base}, ptr {token.slot}")
    source = ArrayRef(token, array.shape, array.strides, array.dtype)
    lies = [em.value(f"icmp eq ptr {base}, {target}") for target in others]
    anywhere = lies[0]
    for is_equal in lies[1:]:
        anywhere = em.value(f"or i1 {anywhere}, {is_equal}")
    with em.branch(anywhere):
        dense = frame.temporary(array.shape, array.dtype)
        copy(frame, dense, array)
        em.line(f"store ptr {em.value(f'load ptr, ptr {dense.token.slot}')}, ptr {token.slot}")
    return source


def _deliver(frame: Frame, source: ArrayRef, target: str) -> None:
    base = frame.em.value(f"load ptr, ptr {source.token.slot}", "base")
    with frame.em.branch(frame.em.value(f"icmp ne ptr {base}, {target}")):
        token = frame.token(target, source.token.nbytes, source.dtype)
        dense = contiguous(source.shape, source.dtype.itemsize)
        copy(frame, ArrayRef(token, source.shape, dense, source.dtype), source)


__all__ = ["compile_control"]
