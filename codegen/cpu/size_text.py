"""Sizes as LLVM text: integers that follow from symbols, and numbers computed of them."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from fusec.core.records import dataclass
from fusec.ir.sizes.dims import Dim, Size, is_at_least
from fusec.ir.sizes.polynomials import Call
from fusec.ir.sizes.size_questions import Computed
from fusec.ir.sizes.symbolic_numbers import Symbolic

from ..exported.parts import NoTextError
from .emitter import I64, LlvmEmitter, LlvmValue, literal, scalar_type

F64 = np.dtype(np.float64)


@dataclass
class SizeText:
    """Prints sizes where the emitter stands; ``constant`` and ``symbol`` print their parts."""

    em: LlvmEmitter
    symbol: Callable[[str], str]
    constant: Callable[[int], str] = str

    def number(self, value: Size) -> str:
        """The text of an int64."""
        value = value.expression if type(value) is Symbolic else value
        if isinstance(value, Dim):
            return self._polynomial(value)
        if isinstance(value, Computed):
            return _as_integer(self.em, self.computed(value)).text
        if not isinstance(value, (int, np.integer)):
            raise NoTextError(f"whether {value}, as NumPy says for given sizes")
        return self.constant(int(value))

    def _polynomial(self, size: Dim) -> str:
        em, total = self.em, ""
        for monomial, factor in size.terms:
            product = str(factor)
            for atom in monomial:
                value = self.symbol(atom) if isinstance(atom, str) else self._call(atom)
                product = value if product == "1" else em.mul(value, product)
            total = em.add(total, product) if total else product
        return total

    def _call(self, call: Call) -> str:
        em = self.em
        a, b = self.number(call.left), self.number(call.right)
        if call.function in ("min", "max"):
            em.declare(f"declare i64 @llvm.s{call.function}.i64(i64, i64)")
            return em.value(f"call i64 @llvm.s{call.function}.i64(i64 {a}, i64 {b})")
        if not is_at_least(call.left, 0):
            return self._rounded_down(call.function, a, b)
        return em.value(f"{'udiv' if call.function == '//' else 'urem'} i64 {a}, {b}")

    def _rounded_down(self, function: str, a: str, b: str) -> str:
        """Python's quotient or remainder, of any integer by a positive one."""
        em = self.em
        rest = em.value(f"srem i64 {a}, {b}")
        negative = em.value(f"icmp slt i64 {rest}, 0")
        rest = em.add(rest, em.value(f"select i1 {negative}, i64 {b}, i64 0"))
        if function == "%":
            return rest
        return em.value(f"sdiv i64 {em.value(f'sub i64 {a}, {rest}')}, {b}")

    def magnitude(self, value: Size) -> str:
        """A double that is no less than the number, nor than what it is computed of."""
        em = self.em
        value = value.expression if type(value) is Symbolic else value
        if isinstance(value, Call):
            left, right = self.magnitude(value.left), self.magnitude(value.right)
            return em.value(f"fadd double {left}, {right}")
        if not isinstance(value, Dim):
            return em.value(f"sitofp i64 {self.number(value)} to double")
        total = ""
        for monomial, factor in value.terms:
            product = literal(F64, float(abs(factor)))
            for atom in monomial:
                x = em.value(f"sitofp i64 {self.symbol(atom)} to double") if isinstance(
                    atom, str) else self.magnitude(atom)
                product = em.value(f"fmul double {product}, {x}")
            total = em.value(f"fadd double {total}, {product}") if total else product
        return total or literal(F64, 0.0)

    # -- numbers that are no sizes

    def computed(self, x: Any) -> LlvmValue:
        """A number of any type: an expression, or a plain number in one."""
        x = x.expression if type(x) is Symbolic else x
        if not isinstance(x, Computed):
            dtype = F64 if isinstance(x, float) else x.dtype if isinstance(x, np.generic) else I64
            text = self.number(x) if dtype == I64 else literal(dtype, x)
            return LlvmValue(text, dtype, 1)
        rule = _FUNCTIONS.get(x.fn)
        if rule is None:
            raise NoTextError(f"{x} follows from sizes by {getattr(x.fn, '__name__', x.fn)}")
        return rule(self.em, [self.computed(arg) for arg in x.args])

    def as_dtype(self, x: Any, dtype: np.dtype) -> LlvmValue:
        """The number converted, as NumPy converts it."""
        return _converted(self.em, self.computed(x), dtype)


def _converted(em: LlvmEmitter, x: LlvmValue, dtype: np.dtype) -> LlvmValue:
    kind = scalar_type(dtype)
    if x.dtype == dtype:
        return x
    if dtype.kind == "f":
        word = "sitofp" if x.dtype.kind in "iu" else (
            "fptrunc" if dtype.itemsize < x.dtype.itemsize else "fpext")
    elif x.dtype.kind in "iu" and dtype.kind in "iu":
        word = "trunc" if dtype.itemsize < x.dtype.itemsize else "sext"
        if dtype.itemsize == x.dtype.itemsize:
            return LlvmValue(x.text, dtype, 1)
    else:
        raise NoTextError(f"a number of {x.dtype} that follows from sizes, as {dtype}")
    return LlvmValue(em.value(f"{word} {x} to {kind}"), dtype, 1)


def _as_integer(em: LlvmEmitter, x: LlvmValue) -> LlvmValue:
    if x.dtype.kind == "f":
        return LlvmValue(em.value(f"fptosi {x} to i64"), I64, 1)
    return _converted(em, x, I64)


def _common(em: LlvmEmitter, args: list[LlvmValue]) -> list[LlvmValue]:
    """The operands as NumPy takes them together: floats where one is, the wider of two."""
    floats = [a.dtype for a in args if a.dtype.kind == "f"]
    dtype = max(floats, key=lambda d: d.itemsize) if floats else I64
    return [_converted(em, a, dtype) for a in args]


def _arithmetic(of_floats: str, of_integers: str) -> Callable[..., LlvmValue]:
    def emit(em: LlvmEmitter, args: list[LlvmValue]) -> LlvmValue:
        a, b = _common(em, args)
        word = of_floats if a.dtype.kind == "f" else of_integers
        return LlvmValue(em.value(f"{word} {a}, {b.text}"), a.dtype, 1)

    return emit


def _quotient(em: LlvmEmitter, args: list[LlvmValue]) -> LlvmValue:
    a, b = _common(em, [_converted(em, x, F64) if x.dtype.kind in "iu" else x for x in args])
    return LlvmValue(em.value(f"fdiv {a}, {b.text}"), a.dtype, 1)


def _negated(em: LlvmEmitter, args: list[LlvmValue]) -> LlvmValue:
    (x,) = args
    text = f"fneg {x}" if x.dtype.kind == "f" else f"sub i64 0, {x.text}"
    return LlvmValue(em.value(text), x.dtype, 1)


def _root(em: LlvmEmitter, args: list[LlvmValue]) -> LlvmValue:
    x = _converted(em, args[0], F64) if args[0].dtype.kind in "iu" else args[0]
    return em.intrinsic("sqrt", x.dtype, 1, x)


def _power(em: LlvmEmitter, args: list[LlvmValue]) -> LlvmValue:
    """By the C library, as Python has it: a root that LLVM makes of it is rounded otherwise."""
    x, y = (_converted(em, a, F64) for a in args)
    em.declare("declare double @pow(double, double)")
    return LlvmValue(em.value(f"call double @pow({x}, {y}) nobuiltin"), F64, 1)


def _cast(dtype: Any) -> Callable[..., LlvmValue]:
    return lambda em, args: _converted(em, args[0], np.dtype(dtype))


_FUNCTIONS: dict[Any, Callable[..., LlvmValue]] = {
    **dict.fromkeys((operator.add, np.add), _arithmetic("fadd", "add")),
    **dict.fromkeys((operator.sub, np.subtract), _arithmetic("fsub", "sub")),
    **dict.fromkeys((operator.mul, np.multiply), _arithmetic("fmul", "mul")),
    **dict.fromkeys((operator.truediv, np.true_divide), _quotient),
    operator.neg: _negated, operator.pos: lambda em, args: args[0],
    **dict.fromkeys((np.sqrt, math.sqrt), _root),
    operator.pow: _power, math.pow: _power,  # floats: powers that are integers are products
    operator.lshift: lambda em, args: LlvmValue(
        em.value(f"shl {args[0]}, {args[1].text}"), I64, 1),
    float: _cast(np.float64), np.float64: _cast(np.float64), np.float32: _cast(np.float32),
    np.int64: lambda em, args: _as_integer(em, args[0]),
    int: lambda em, args: _as_integer(em, args[0]),
}
