"""Single LLVM instructions on operands: the vocabulary of the scalar ops."""

from __future__ import annotations

import numpy as np

from ..emitter import BOOL, Emitter, Operand


def binary(em: Emitter, instruction: str, dtype: np.dtype, a: Operand, b: Operand) -> Operand:
    text = em.value(f"{instruction} {a}, {b.text}")
    return Operand(text, dtype, a.lanes)


def compare(em: Emitter, predicate: str, a: Operand, b: Operand) -> Operand:
    """``predicate`` as LLVM spells it for the operands' kind: ``slt``, ``olt``."""
    instruction = "fcmp" if a.dtype.kind == "f" else "icmp"
    return binary(em, f"{instruction} {predicate}", BOOL, a, b)


def select(em: Emitter, condition: Operand, a: Operand, b: Operand) -> Operand:
    text = em.value(f"select {condition}, {a}, {b}")
    return Operand(text, a.dtype, a.lanes)


def both(em: Emitter, a: Operand, b: Operand) -> Operand:
    """Bitwise and."""
    return binary(em, "and", a.dtype, a, b)


def negated(em: Emitter, x: Operand) -> Operand:
    """Bitwise not."""
    ones = em.const(x.dtype, True if x.dtype == BOOL else -1, x.lanes)
    return binary(em, "xor", x.dtype, x, ones)


def either(em: Emitter, a: Operand, b: Operand) -> Operand:
    """Bitwise or."""
    return binary(em, "or", a.dtype, a, b)


def isnan(em: Emitter, x: Operand) -> Operand:
    return compare(em, "uno", x, x)


def lowest_int(dtype: np.dtype) -> int:
    """The smallest value of an integer dtype."""
    return int(np.iinfo(dtype).min)
