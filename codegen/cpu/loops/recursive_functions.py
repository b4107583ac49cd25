"""Functions that call themselves, as functions of the native code.

A `Call` becomes a function beside that of the loop: numbers are passed in registers, arrays, which
it only reads, by address.  It shares the argument block; what needs memory for each of its calls
(an array that it computes) cannot be native.  A call deeper than Python's own limit, or whose
frames take more of the stack than `MOST_STACK`, is a ``RecursionError``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from fusec.codegen.backend import NotNativeError
from fusec.codegen.control_program import ErrorExit
from fusec.codegen.cpu.emitter import Operand, scalar_type
from fusec.ir import Node, Value
from fusec.ops.recursion import recursions
from fusec.records import dataclass, field

from .arrays import ArrayRef, Location, Strides, contiguous, is_dense
from .frame import Frame
from .graph_emitter import GraphEmitter
from .polls import budget, poll_call, prepare_polls

MOST_STACK = 2 << 20  # bytes of frames; threads of most systems have 8 MB
Emit = Callable[[GraphEmitter], None]


@dataclass
class FunctionFrame(Frame):
    """The frame of such a function."""

    function: str = ""  # by which graphs call it
    callee: str = ""  # its name in the code
    passed_on: list[str] = field(default_factory=list)  # what is the same in all of its calls

    def temporary(
        self, shape: Sequence[int], dtype: np.dtype, kind: str = "temp"
    ) -> ArrayRef:
        raise NotNativeError("a function that calls itself and computes arrays")


def call(emitter: GraphEmitter, node: Node, emit: Emit) -> None:
    """Emit the function, and the first call of it; the body itself if it does not call itself."""
    frame = emitter.frame
    if not any(recursions(node.attrs["body"], node.attrs["function"])):
        _emit_body(emitter, node, emit)
        return
    _check_results(node)
    strides = [_strides(emitter, node, position) for position in range(len(node.inputs))]
    prepare_polls(frame)
    inner = _frame_of(frame, node)
    _emit_function(inner, node, strides, emit)
    root = frame.em
    root.functions.update(inner.em.functions)
    root.declarations |= inner.em.declarations
    root.links.update(inner.em.links)
    root.functions[inner.callee] = _text(inner, node)
    arguments = [_passed(emitter, value) for value in node.inputs]
    _emit_call(emitter, node, inner.callee, arguments)


def _emit_body(emitter: GraphEmitter, node: Node, emit: Emit) -> None:
    operands = [emitter.location(value) for value in node.inputs]
    inner = GraphEmitter.of(emitter.frame, node.attrs["body"], operands)
    emit(inner)
    emitter.env.update(zip(node.outputs, inner.outputs(), strict=True))


def recursion(emitter: GraphEmitter, node: Node) -> None:
    """Emit a call of the function that is being emitted."""
    frame = emitter.frame
    if not isinstance(frame, FunctionFrame) or frame.function != node.attrs["function"]:
        raise NotNativeError("a step of a function that calls itself")
    arguments = [_passed(emitter, value) for value in node.inputs]
    for value in node.inputs:
        location = emitter.location(value)
        if isinstance(location, ArrayRef) and not is_dense(
                location.shape, location.strides, location.dtype.itemsize):
            raise NotNativeError("a part of an array for a function that calls itself")
    _emit_call(emitter, node, frame.callee, [*arguments, *frame.passed_on])


# ------------------------------------------------------------------------------------ the function


def _check_results(node: Node) -> None:
    if any(t.kind == "array" for t in node.types):
        raise NotNativeError("a function that calls itself and gives arrays")
    if any(not v.type.is_static for v in node.inputs):
        raise NotNativeError("a function that calls itself, and arrays of sizes that only the run "
                             "knows")


def _strides(emitter: GraphEmitter, node: Node, position: int) -> Strides:
    """How an operand lies in memory: arguments in C order, as every call passes them."""
    location = emitter.location(node.inputs[position])
    if not isinstance(location, ArrayRef):
        return ()
    dense = contiguous(location.shape, location.dtype.itemsize)
    if position < node.attrs["own"]:
        if not is_dense(location.shape, location.strides, location.dtype.itemsize):
            raise NotNativeError("a part of an array for a function that calls itself")
        return dense
    if any(isinstance(step, str) for step in location.strides):
        raise NotNativeError("an array that lies in memory as only the run knows")
    return location.strides


def _frame_of(outer: Frame, node: Node) -> FunctionFrame:
    """A frame that shares the block of the outer one."""
    symbol = f"{getattr(outer, 'callee', 'call')}_{len(outer.em.functions)}"
    frame = FunctionFrame(
        words=outer.words, nests=outer.nests, exits=outer.exits, sites=outer.sites,
        limits=outer.limits, outer=outer.outer, passed=outer.passed, budget="%budget",
        caller=outer, function=node.attrs["function"], callee=symbol)
    frame.numbers = outer.numbers
    return frame


def _emit_function(
    frame: FunctionFrame, node: Node, strides: Sequence[Strides], emit: Emit
) -> None:
    em, body = frame.em, node.attrs["body"]
    operands = [_parameter(frame, k, value, strides[k]) for k, value in enumerate(body.inputs)]
    frame.passed_on = _parameters(node)[node.attrs["own"]:]
    deepest = frame.word("deepest")
    shallow = em.value(f"icmp slt i64 %depth, {deepest}")
    frame.fail_unless(em.value(f"and i1 {shallow}, {_has_stack(frame)}"), ErrorExit(node))
    poll_call(frame, body)
    emitter = GraphEmitter.of(frame, body, operands)
    emit(emitter)
    for number, value in enumerate(emitter.graph.outputs):
        em.store(f"%r{number}", emitter.scalar(value))


def _has_stack(frame: Frame) -> str:
    em = frame.em
    here = _stack_address(frame)
    used = em.value(f"sub i64 %stack, {here}")
    return em.value(f"icmp slt i64 {used}, {MOST_STACK}")


def _stack_address(frame: Frame) -> str:
    em = frame.em
    em.declare("declare ptr @llvm.frameaddress.p0(i32)")
    return em.value(f"ptrtoint ptr {em.value('call ptr @llvm.frameaddress.p0(i32 0)')} to i64")


def _parameter(frame: Frame, position: int, value: Value, strides: Strides) -> Location:
    type_ = value.type
    if type_.kind != "array":
        return Operand(f"%p{position}", type_.dtype, 1)
    token = frame.token(f"%p{position}", type_.nbytes, type_.dtype)
    return ArrayRef(token, type_.shape, strides, type_.dtype)


def _parameters(node: Node) -> list[str]:
    """``double %p0``, ``ptr %p1``."""
    return [f"{'ptr' if v.type.kind == 'array' else scalar_type(v.dtype)} %p{k}"
            for k, v in enumerate(node.attrs["body"].inputs)]


def _text(frame: FunctionFrame, node: Node) -> str:
    parameters = ["ptr %block", "ptr %budget", "i64 %depth", "i64 %stack", *_parameters(node),
                  *(f"ptr noalias %r{k}" for k in range(len(node.types)))]
    head = f"define internal i64 @{frame.callee}({', '.join(parameters)}) nounwind {{"
    return frame.whole(head)


# --------------------------------------------------------------------------------------- its calls


def _passed(emitter: GraphEmitter, value: Value) -> str:
    """An argument with its type."""
    if value.type.kind != "array":
        return str(emitter.scalar(value))
    return f"ptr {emitter.frame.address(emitter.array(value))}"


def _emit_call(
    emitter: GraphEmitter, node: Node, symbol: str, arguments: Sequence[str]
) -> None:
    frame, em = emitter.frame, emitter.frame.em
    is_inner = isinstance(frame, FunctionFrame) and frame.callee == symbol
    depth = em.value("add i64 %depth, 1") if is_inner else "0"
    begun = "%stack" if is_inner else _stack_address(frame)
    slots = [frame.variable(t.dtype) for t in node.types]
    passed = [f"ptr {budget(frame)}", f"i64 {depth}", f"i64 {begun}", *arguments,
              *(f"ptr {slot}" for slot in slots)]
    status = em.value(f"call i64 @{symbol}(ptr %block, {', '.join(passed)})")
    _leave_unless_done(frame, status)
    for value, slot in zip(node.outputs, slots, strict=True):
        emitter.env[value] = em.load(slot, value.dtype, 1)


def _leave_unless_done(frame: Frame, status: str) -> None:
    em = frame.em
    failed, done = em.fresh("failed"), em.fresh("done")
    em.line(f"br i1 {em.value(f'icmp eq i64 {status}, 0')}, label %{done}, label %{failed}")
    em.label(failed)
    frame.leave(status)
    em.label(done)

