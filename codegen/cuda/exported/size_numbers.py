"""Sizes as the host's numbers and as C++: integers that follow from symbols, numbers computed of
them, and the questions that a trace asked."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from fusec.ir.sizes.dims import Dim
from fusec.ir.sizes.polynomials import LEAST_ARGUMENT, Call
from fusec.ir.sizes.size_questions import Computed, Question
from fusec.ir.sizes.symbolic_numbers import Symbolic

from ...exported.parts import NoTextError
from .host_numbers import HostExpr, HostNumber, extremum, plain, text_number


class CppValue(NamedTuple):
    """A C++ expression of type ``int64_t``, ``double`` or ``float``."""

    text: str
    kind: str


class SizeNumbers:
    """Sizes of one variant; ``symbols``: the C++ name, or the value, of each symbol."""

    def __init__(self, symbols: dict[str, str | int]) -> None:
        self.symbols = symbols

    def number(self, size: Any) -> Any:
        """The size as an int or a `HostNumber`."""
        size = size.expression if type(size) is Symbolic else size
        if isinstance(size, Computed):
            return text_number(_as_integer(self.computed(size)).text)
        if not isinstance(size, Dim):
            return int(size)
        total: Any = 0
        for monomial, factor in size.terms:
            product: Any = factor
            for atom in monomial:
                product = product * (self._symbol(atom) if isinstance(atom, str) else
                                     self._call(atom))
            total = total + product
        return total

    def _symbol(self, name: str) -> Any:
        given = self.symbols[name]
        return given if isinstance(given, int) else text_number(given, LEAST_ARGUMENT)

    def _call(self, call: Call) -> Any:
        a, b = self.number(call.left), self.number(call.right)
        if call.function in ("min", "max"):
            return extremum(call.function, a, b)
        return a // b if call.function == "//" else a % b

    def magnitude(self, size: Any) -> str:
        """A double that is no less than the size, nor than what it is computed of."""
        size = size.expression if type(size) is Symbolic else size
        if isinstance(size, Call):
            return f"({self.magnitude(size.left)} + {self.magnitude(size.right)})"
        if isinstance(size, Computed):
            return f"double({self.computed(size).text})"
        if not isinstance(size, Dim):
            return f"{abs(float(size))!r}"
        products = []
        for monomial, factor in size.terms:
            atoms = [f"double({self.symbols[a]})" if isinstance(a, str) else self.magnitude(a)
                     for a in monomial]
            products.append(" * ".join([repr(abs(float(factor))), *atoms]))
        return f"({' + '.join(products)})"

    # -- numbers that are no sizes

    def computed(self, x: Any) -> CppValue:
        """A number of any type: an expression, or a plain number in one."""
        x = x.expression if type(x) is Symbolic else x
        if isinstance(x, Computed):
            rule = _FUNCTIONS.get(x.fn)
            if rule is None:
                raise NoTextError(f"{x} follows from sizes by {getattr(x.fn, '__name__', x.fn)}")
            return rule([self.computed(arg) for arg in x.args])
        if isinstance(x, Dim):
            return CppValue(expression(self.number(x)), "int64_t")
        if isinstance(x, (bool, int, np.integer)):
            return CppValue(f"int64_t({int(x)}LL)", "int64_t")
        if isinstance(x, (float, np.float32)):  # np.float64 is a float
            is_single = isinstance(x, np.float32)
            return CppValue(_float(x, is_single), "float" if is_single else "double")
        raise NoTextError(f"the number {x!r}, which follows from sizes")

    def bits(self, value: Any, dtype: np.dtype) -> str:
        """The bytes of a number that follows from sizes, zero-extended, as an int64_t."""
        x = self.computed(value)
        if dtype.kind == "f" and dtype.itemsize >= 4:
            return f"detail::bits({_as(x, 'double' if dtype.itemsize == 8 else 'float').text})"
        if dtype.kind in "iu" and x.kind == "int64_t":
            return x.text if dtype.itemsize == 8 else (
                f"int64_t(uint{8 * dtype.itemsize}_t({x.text}))")
        raise NoTextError(f"a number of {dtype} that follows from sizes")

    def holds(self, question: Question) -> str:
        """The condition that the question has its answer."""
        asked, answer = question
        if isinstance(asked, Computed) and asked.fn in _SIGNS and type(answer) is bool:
            text = self._compared(_SIGNS[asked.fn], *asked.args)
        elif type(answer) is bool:
            text = self._compared("!=", asked, 0)
        elif isinstance(answer, (int, float, np.integer, np.floating)):
            return self._compared("==", asked, answer)
        else:
            raise NoTextError(f"the question {question}")
        return text if answer else f"!{text}"

    def _compared(self, sign: str, a: Any, b: Any) -> str:
        x, y = self.computed(a), self.computed(b)
        if x.kind != y.kind:
            x, y = _as(x, "double"), _as(y, "double")
        return f"({x.text} {sign} {y.text})"


def expression(x: Any) -> str:
    """A number as one C++ expression."""
    return _expression(plain(x))


def _expression(x: Any) -> str:
    if not isinstance(x, HostExpr):
        return f"int64_t({x}LL)"
    if x.op == "text":
        return str(x.args[0])
    return operation(x.op, [_expression(arg) for arg in x.args])


def operation(op: str, args: Sequence[str]) -> str:
    """The C++ text of an operation."""
    name = _CALLED.get(op)
    return f"({f' {op} '.join(args)})" if name is None else f"detail::{name}({', '.join(args)})"


_CALLED = {"//": "quotient", "%": "rest", "min": "least", "max": "most",
           "bit_length": "bit_length"}
_SIGNS = {operator.lt: "<", operator.le: "<=", operator.eq: "==", operator.gt: ">",
          operator.ge: ">=", operator.ne: "!="}


def _float(x: Any, is_single: bool) -> str:
    """By its bits, so that none is lost."""
    if is_single:
        return f"detail::single(0x{int(np.float32(x).view(np.uint32)):x}u)"
    return f"detail::number(0x{int(np.float64(x).view(np.uint64)):x}ull)"


def _as(x: CppValue, kind: str) -> CppValue:
    return x if x.kind == kind else CppValue(f"{kind}({x.text})", kind)


def _as_integer(x: CppValue) -> CppValue:
    return _as(x, "int64_t")


def _common(args: list[CppValue]) -> tuple[list[CppValue], str]:
    """As NumPy takes them together: floats where one is, the wider of two."""
    kinds = {a.kind for a in args}
    kind = "double" if "double" in kinds else "float" if "float" in kinds else "int64_t"
    return [_as(a, kind) for a in args], kind


def _arithmetic(name: str) -> Callable[[list[CppValue]], CppValue]:
    """Rounded once: compilers may join a product and a sum of floats."""
    def made(args: list[CppValue]) -> CppValue:
        (a, b), kind = _common(args)
        return CppValue(f"detail::{name}({a.text}, {b.text})", kind)

    return made


def _quotient(args: list[CppValue]) -> CppValue:
    floats = [_as(a, "double") if a.kind == "int64_t" else a for a in args]
    (a, b), kind = _common(floats)
    return CppValue(f"detail::over({a.text}, {b.text})", kind)


def _negated(args: list[CppValue]) -> CppValue:
    return CppValue(f"(-{args[0].text})", args[0].kind)


def _root(args: list[CppValue]) -> CppValue:
    x = _as(args[0], "double") if args[0].kind == "int64_t" else args[0]
    return CppValue(f"std::sqrt({x.text})", x.kind)


def _cast(kind: str) -> Callable[[list[CppValue]], CppValue]:
    return lambda args: _as(args[0], kind)


def _shifted(args: list[CppValue]) -> CppValue:
    return CppValue(f"({args[0].text} << {args[1].text})", "int64_t")


_FUNCTIONS: dict[Any, Callable[[list[CppValue]], CppValue]] = {
    **dict.fromkeys((operator.add, np.add), _arithmetic("plus")),
    **dict.fromkeys((operator.sub, np.subtract), _arithmetic("minus")),
    **dict.fromkeys((operator.mul, np.multiply), _arithmetic("times")),
    **dict.fromkeys((operator.truediv, np.true_divide), _quotient),
    operator.neg: _negated, operator.pos: lambda args: args[0],
    **dict.fromkeys((np.sqrt, math.sqrt), _root),
    operator.lshift: _shifted, float: _cast("double"), np.float64: _cast("double"),
    np.float32: _cast("float"), np.int64: _cast("int64_t"), int: _cast("int64_t"),
}

__all__ = ["HostNumber", "SizeNumbers", "expression", "operation"]
