"""Numbers of the structured IR as LLVM instructions."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from fusec.codegen.cpu.emitter import BOOL, I64, LlvmEmitter, LlvmValue
from fusec.codegen.structured.statements import CallScalar, Let

from ..scalars.scalar_calls import call_once
from ..scalars.scalar_ops import emit_operation
from .frame import Frame


def let(frame: Frame, statement: Let) -> None:
    """A scalar op of the loop IR or of the structured IR."""
    result, args = statement.result, [frame.operand(a) for a in statement.args]
    rule = _RULES.get(statement.op)
    if rule is not None:
        frame.values[result] = LlvmValue(rule(frame.em, args), result.dtype, 1)
    elif statement.op == "part":
        frame.values[result] = _part(frame, args[0], statement.attr, result.dtype)
    elif statement.op == "complex":
        frame.values[result] = _joined(frame, args, result.dtype)
    else:
        frame.values[result] = emit_operation(frame.em, statement.op, result.dtype, args)


def call_scalar(frame: Frame, statement: CallScalar) -> None:
    """A function of ``fusec.vectorize``."""
    em, args = frame.em, [frame.operand(a) for a in statement.args]
    result, status = call_once(em, statement.function, statement.result.dtype, args)
    for word, x in zip(statement.words, args, strict=False):  # none where it cannot raise
        em.store(frame.host_word(word, x.dtype), x)
    frame.values[statement.result] = result
    if statement.words:
        holds = em.value(f"icmp eq i32 {status}, 0")
        frame.values[statement.holds] = LlvmValue(holds, BOOL, 1)


def wrap_index(em: LlvmEmitter, args: Sequence[LlvmValue]) -> str:
    index, size = args
    negative = em.value(f"icmp slt i64 {index.text}, 0")
    from_end = em.add(index.text, size.text) if size.text != "0" else index.text
    return em.value(f"select i1 {negative}, i64 {from_end}, i64 {index.text}")


def _extremum(name: str) -> Callable[[LlvmEmitter, Sequence[LlvmValue]], str]:
    def emit(em: LlvmEmitter, args: Sequence[LlvmValue]) -> str:
        return em.intrinsic(name, I64, 1, *args).text

    return emit


_RULES: dict[str, Callable[[LlvmEmitter, Sequence[LlvmValue]], str]] = {
    "wrap_index": wrap_index,
    "in_range": lambda em, args: em.value(f"icmp ult {args[0]}, {args[1].text}"),
    "quotient": lambda em, args: em.value(f"udiv {args[0]}, {args[1].text}"),
    "smallest": _extremum("smin"),
    "largest": _extremum("smax"),
}


def _part(frame: Frame, x: LlvmValue, number: int, dtype: np.dtype) -> LlvmValue:
    """The real (0) or imaginary part (1) of a complex number's bits."""
    place = frame.variable(x.dtype)
    frame.em.store(place, x)
    if number:
        place = frame.em.offset(place, frame.number(number * dtype.itemsize))
    return frame.em.load(place, dtype, 1)


def _joined(frame: Frame, parts: Sequence[LlvmValue], dtype: np.dtype) -> LlvmValue:
    """A complex number's bits."""
    em, slot = frame.em, frame.variable(dtype)
    for number, part in enumerate(parts):
        em.store(em.offset(slot, str(number * part.dtype.itemsize)), part)
    return em.load(slot, dtype, 1)
