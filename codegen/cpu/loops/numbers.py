"""Numbers of the structured IR as LLVM instructions."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from fusec.codegen.cpu.emitter import BOOL, I64, UNLIKELY, LlvmEmitter, LlvmValue
from fusec.codegen.structured.statements import CallScalar, Let

from ..scalars.instructions import binary, compare, select
from ..scalars.scalar_calls import call_once
from ..scalars.scalar_ops import emit_operation
from .frame import Frame


def let(frame: Frame, statement: Let) -> None:
    """A scalar op of the loop IR or of the structured IR."""
    if statement.op == "wrap_index":
        _wrapped_index(frame, statement)
        return
    known = frame.inside.get(statement.args) if statement.op == "in_range" else None
    if known is not None:
        frame.values[statement.result] = known
        return
    args = [frame.operand(a) for a in statement.args]
    frame.values[statement.result] = computed(frame, statement, args)


def computed(frame: Frame, statement: Let, args: list[LlvmValue]) -> LlvmValue:
    """The result of an op; of vectors of lanes a vector, but for complex numbers."""
    op, dtype = statement.op, statement.result.dtype
    rule = _RULES.get(op)
    if rule is not None:
        lanes = max(a.lanes for a in args)
        return rule(frame.em, [frame.em.splat(a, lanes) for a in args])
    if op == "part":
        return _part(frame, args[0], statement.attr, dtype)
    if op == "complex":
        return _joined(frame, args, dtype)
    return emit_operation(frame.em, op, dtype, args)


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


def wrap_index(em: LlvmEmitter, args: Sequence[LlvmValue]) -> LlvmValue:
    index, size = args
    negative = compare(em, "slt", index, em.const(I64, 0, index.lanes))
    from_end = binary(em, "add", I64, index, size) if size.text != "0" else index
    return select(em, negative, from_end, index)


def _wrapped_index(frame: Frame, statement: Let) -> None:
    """Of one lane: in range as it is, but for a jump that is hardly ever taken.  A select before
    each load costs more; whether the index is in range then is known on either side."""
    em, (index, size) = frame.em, (frame.operand(a) for a in statement.args)
    place, inside = frame.variable(I64), em.alloca("i1", "inside")
    em.store(place, index)
    em.line(f"store i1 true, ptr {inside}")
    with em.branch(compare(em, "uge", index, size).text, UNLIKELY):
        wrapped = wrap_index(em, [index, size])
        em.store(place, wrapped)
        em.line(f"store {compare(em, 'ult', wrapped, size)}, ptr {inside}")
    frame.values[statement.result] = em.load(place, I64, 1)
    known = em.value(f"load i1, ptr {inside}")
    frame.inside[statement.result, statement.args[1]] = LlvmValue(known, BOOL, 1)


def _extremum(name: str) -> Callable[[LlvmEmitter, Sequence[LlvmValue]], LlvmValue]:
    return lambda em, args: em.intrinsic(name, I64, args[0].lanes, *args)


_RULES: dict[str, Callable[[LlvmEmitter, Sequence[LlvmValue]], LlvmValue]] = {
    "wrap_index": wrap_index,
    "in_range": lambda em, args: compare(em, "ult", *args),
    "quotient": lambda em, args: binary(em, "udiv", I64, *args),
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
