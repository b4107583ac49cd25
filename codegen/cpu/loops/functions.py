"""Functions that call themselves, as functions beside that of the loop.

They share its argument block.  Numbers are passed in registers, arrays by address.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fusec.codegen.cpu.emitter import LlvmValue, scalar_type
from fusec.codegen.structured.memory import Constant, Memory, Register, View
from fusec.codegen.structured.statements import Block, CallFunction, DefineFunction, Function

from .frame import Frame
from .polls import budget, prepare_polls

MOST_STACK = 2 << 20  # bytes of frames; threads of most systems have 8 MB
Print = Callable[[Frame, Block], None]


def define(frame: Frame, statement: DefineFunction, print_block: Print) -> None:
    """Print the function."""
    prepare_polls(frame)
    inner = _frame_of(frame, statement.function)
    _print_function(inner, statement.function, print_block)
    root = frame.em
    root.functions.update(inner.em.functions)
    root.declarations |= inner.em.declarations
    root.links.update(inner.em.links)
    name = inner.callees[statement.function]
    root.functions[name] = _text(inner, name, statement.function)
    if root.origins is not None and inner.em.origins is not None:
        root.origins |= inner.em.origins
        root.origins[name] = inner.first_line, inner.em.of_lines


def _frame_of(outer: Frame, function: Function) -> Frame:
    """A frame that shares the block of the outer one."""
    around = outer.callees[outer.function] if outer.function is not None else "call"
    outer.callees[function] = f"{around}_{len(outer.em.functions)}"
    frame = Frame(
        outer.exits, words=outer.words, nests=outer.nests, outer=outer.outer, passed=outer.passed,
        budget="%budget", caller=outer, function=function, callees=outer.callees)
    frame.numbers = outer.numbers
    frame.em.origins = None if outer.em.origins is None else {}
    return frame


def _print_function(frame: Frame, function: Function, print_block: Print) -> None:
    em = frame.em
    for position, parameter in enumerate(function.parameters):
        if isinstance(parameter, Register):
            frame.values[parameter] = LlvmValue(f"%p{position}", parameter.dtype, 1)
    # Parameters that are arrays are declared by the first statements.
    declared = sum(isinstance(p, View) for p in function.parameters)
    print_block(frame, function.body[:declared])
    deepest = frame.word("deepest")
    shallow = em.value(f"icmp slt i64 %depth, {deepest}")
    frame.fail_unless(em.value(f"and i1 {shallow}, {_has_stack(frame)}"), function.too_deep)
    print_block(frame, function.body[declared:])
    for number, value in enumerate(function.results):
        em.store(f"%r{number}", frame.operand(value))


def parameter_address(memory: Memory) -> str:
    return f"%p{memory.position}"


def _has_stack(frame: Frame) -> str:
    em = frame.em
    here = _stack_address(frame)
    used = em.value(f"sub i64 %stack, {here}")
    return em.value(f"icmp slt i64 {used}, {MOST_STACK}")


def _stack_address(frame: Frame) -> str:
    em = frame.em
    em.declare("declare ptr @llvm.frameaddress.p0(i32)")
    return em.value(f"ptrtoint ptr {em.value('call ptr @llvm.frameaddress.p0(i32 0)')} to i64")


def _parameters(function: Function) -> list[str]:
    """``double %p0``, ``ptr %p1``."""
    return [f"{'ptr' if isinstance(p, View) else scalar_type(p.dtype)} %p{k}"
            for k, p in enumerate(function.parameters)]


def _text(frame: Frame, name: str, function: Function) -> str:
    parameters = ["ptr %block", "ptr %budget", "i64 %depth", "i64 %stack", *_parameters(function),
                  *(f"ptr noalias %r{k}" for k in range(len(function.types)))]
    return frame.whole(f"define internal i64 @{name}({', '.join(parameters)}) nounwind {{")


# --------------------------------------------------------------------------------------- its calls


def call(frame: Frame, statement: CallFunction) -> None:
    """The first call, or one from the function's own body."""
    arguments = [_passed(frame, x) for x in statement.args]
    function = statement.function
    if frame.function is function:
        passed_on = _parameters(function)[function.own:]
        _emit_call(frame, statement, [*arguments, *passed_on])
    else:
        _emit_call(frame, statement, arguments)


def _passed(frame: Frame, x: Register | Constant | View) -> str:
    """An argument with its type."""
    return f"ptr {frame.address(x)}" if isinstance(x, View) else str(frame.operand(x))


def _emit_call(frame: Frame, statement: CallFunction, arguments: Sequence[str]) -> None:
    em, symbol = frame.em, frame.callees[statement.function]
    is_inner = frame.function is statement.function
    depth = em.value("add i64 %depth, 1") if is_inner else "0"
    begun = "%stack" if is_inner else _stack_address(frame)
    slots = [frame.variable(result.dtype) for result in statement.results]
    passed = [f"ptr {budget(frame)}", f"i64 {depth}", f"i64 {begun}", *arguments,
              *(f"ptr {slot}" for slot in slots)]
    status = em.value(f"call i64 @{symbol}(ptr %block, {', '.join(passed)})")
    _leave_unless_done(frame, status)
    for result, slot in zip(statement.results, slots, strict=True):
        frame.values[result] = em.load(slot, result.dtype, 1)


def _leave_unless_done(frame: Frame, status: str) -> None:
    em = frame.em
    failed, done = em.fresh("failed"), em.fresh("done")
    em.line(f"br i1 {em.value(f'icmp eq i64 {status}, 0')}, label %{done}, label %{failed}")
    em.label(failed)
    frame.leave(status)
    em.label(done)
