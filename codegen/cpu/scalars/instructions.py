"""Single LLVM instructions on operands: the vocabulary of the scalar ops."""

from __future__ import annotations

import numpy as np

from ..emitter import BOOL, LlvmEmitter, LlvmValue


def binary(
    em: LlvmEmitter, instruction: str, dtype: np.dtype, a: LlvmValue, b: LlvmValue
) -> LlvmValue:
    text = em.value(f"{instruction} {a}, {b.text}")
    return LlvmValue(text, dtype, a.lanes)


def compare(em: LlvmEmitter, predicate: str, a: LlvmValue, b: LlvmValue) -> LlvmValue:
    """``predicate`` as LLVM spells it for the operands' kind: ``slt``, ``olt``."""
    instruction = "fcmp" if a.dtype.kind == "f" else "icmp"
    return binary(em, f"{instruction} {predicate}", BOOL, a, b)


def select(em: LlvmEmitter, condition: LlvmValue, a: LlvmValue, b: LlvmValue) -> LlvmValue:
    text = em.value(f"select {condition}, {a}, {b}")
    return LlvmValue(text, a.dtype, a.lanes)


def both(em: LlvmEmitter, a: LlvmValue, b: LlvmValue) -> LlvmValue:
    """Bitwise and."""
    return binary(em, "and", a.dtype, a, b)


def negated(em: LlvmEmitter, x: LlvmValue) -> LlvmValue:
    """Bitwise not."""
    ones = em.const(x.dtype, True if x.dtype == BOOL else -1, x.lanes)
    return binary(em, "xor", x.dtype, x, ones)


def either(em: LlvmEmitter, a: LlvmValue, b: LlvmValue) -> LlvmValue:
    """Bitwise or."""
    return binary(em, "or", a.dtype, a, b)


def isnan(em: LlvmEmitter, x: LlvmValue) -> LlvmValue:
    return compare(em, "uno", x, x)


def lowest_int(dtype: np.dtype) -> int:
    """The smallest value of an integer dtype."""
    return int(np.iinfo(dtype).min)
