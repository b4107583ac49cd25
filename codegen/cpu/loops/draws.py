"""Draws of a native loop: calls of NumPy's own C functions, whose addresses are words."""

from __future__ import annotations

from fusec.codegen.cpu.emitter import BOOL, I64, LlvmValue, memory_type
from fusec.codegen.structured.memory import Register, View
from fusec.codegen.structured.statements import CanDraw, Draw

from .frame import Frame
from .polls import spend

DRAW_NS = 8  # of one number


def can_draw(frame: Frame, statement: CanDraw) -> None:
    """Whether the run has found the function."""
    word = frame.word("draw", statement.number, "ptr")
    is_known = frame.em.value(f"icmp ne ptr {word}, null")
    frame.values[statement.result] = LlvmValue(is_known, BOOL, 1)


def draw(frame: Frame, statement: Draw) -> None:
    """One number, or one for each element of an array."""
    rule = _fill if statement.drawing.is_bounded else _one_by_one
    rule(frame, statement)


def _one_by_one(frame: Frame, statement: Draw) -> None:
    em, result = frame.em, statement.result
    if isinstance(result, Register):
        frame.values[result] = _number(frame, statement)
        return
    count, first = _count(frame, result), frame.address(result)
    spend(frame, em.mul(count, str(DRAW_NS)))
    with em.loop(0, count) as counter:
        number = _number(frame, statement)
        place = em.value(f"getelementptr {memory_type(result.dtype)}, ptr {first}, i64 {counter}")
        em.store(place, number)


def _number(frame: Frame, statement: Draw) -> LlvmValue:
    function, state = _function_and_state(frame, statement)
    arguments = [f"ptr {state}", *(str(frame.operand(x)) for x in statement.arguments)]
    dtype = statement.drawing.dtype
    kind = memory_type(dtype)
    return LlvmValue(frame.em.value(f"call {kind} {function}({', '.join(arguments)})"), dtype, 1)


def _fill(frame: Frame, statement: Draw) -> None:
    """Integers of a range: the function shares random bits between the elements of an array."""
    em, result, dtype = frame.em, statement.result, statement.drawing.dtype
    function, state = _function_and_state(frame, statement)
    if isinstance(result, Register):
        place, count = frame.variable(dtype), "1"
    else:
        place, count = frame.address(result), _count(frame, result)
        spend(frame, em.mul(count, str(DRAW_NS)))
    low, more, masked = (frame.text_of(x) for x in statement.arguments)
    bounds = ", ".join(_unsigned(frame, x, dtype.itemsize * 8) for x in (low, more))
    em.line(f"call void {function}(ptr {state}, {bounds}, i64 {count}, i1 zeroext {masked}, "
            f"ptr {place})")
    if isinstance(result, Register):
        frame.values[result] = em.load(place, dtype, 1)


def _unsigned(frame: Frame, text: str, bits: int) -> str:
    if bits == 8 * I64.itemsize:
        return f"i64 {text}"
    narrow = frame.em.value(f"trunc i64 {text} to i{bits}")
    return f"i{bits} {'zeroext ' if bits < 32 else ''}{narrow}"


def _function_and_state(frame: Frame, statement: Draw) -> tuple[str, str]:
    number = statement.number
    return frame.word("draw", number, "ptr"), frame.word("source", number, "ptr")


def _count(frame: Frame, result: View) -> str:
    """How many elements the result has."""
    total = "1"
    for size in result.shape:
        total = frame.em.mul(total, frame.number(size))
    return total
