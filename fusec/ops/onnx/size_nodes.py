"""Sizes, and numbers that follow from them, as nodes."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from fusec.ir.sizes.dims import Dim
from fusec.ir.sizes.polynomials import Call, Monomial, Size
from fusec.ir.sizes.size_questions import Computed, Question, Succeeds

from .integers import Division
from .protocol import I64, NotExportedError, OnnxNodes

_COMPARED: dict[Callable[..., Any], str] = {
    operator.lt: "Less", operator.le: "LessOrEqual", operator.eq: "Equal",
    operator.gt: "Greater", operator.ge: "GreaterOrEqual",
}
F64 = np.dtype(np.float64)
_REAL: dict[Callable[..., Any], str] = {  # with a float among the operands, or as the result
    operator.add: "Add", operator.sub: "Sub", operator.mul: "Mul", operator.neg: "Neg",
    operator.truediv: "Div", np.true_divide: "Div", operator.pow: "Pow", math.pow: "Pow",
    np.sqrt: "Sqrt", math.sqrt: "Sqrt",
}
_CASTS = (float, np.float64)
_ALWAYS_REAL = (*_CASTS, math.pow, np.sqrt, math.sqrt, operator.truediv, np.true_divide)


def size_name(nodes: OnnxNodes, size: Size, symbol: Callable[[str], str]) -> str:
    """A size as an int64 of rank 0; ``symbol`` gives the name of a symbol's."""
    def of(size: Size) -> str:
        if not isinstance(size, Dim):
            return nodes.constant(np.int64(int(size)))
        total = ""
        for monomial, factor in size.terms:
            part = product(monomial, factor)
            total = nodes.node("Add", total, part) if total else part
        return total

    def product(monomial: Monomial, factor: int) -> str:
        result = "" if factor == 1 and monomial else nodes.constant(np.int64(factor))
        for atom in monomial:
            name = symbol(atom) if isinstance(atom, str) else called(atom)
            result = nodes.node("Mul", result, name) if result else name
        return result

    def called(call: Call) -> str:
        left, right = of(call.left), of(call.right)
        if call.function in ("min", "max"):
            return nodes.node(call.function.capitalize(), left, right)
        return Division(nodes, I64, left, right).result(
            "FloorDiv" if call.function == "//" else "Mod")

    return of(size)


def number_of_sizes(nodes: OnnxNodes, value: Any) -> str | None:
    """The int64 or float64 that a number of open sizes is; None where it is none of sizes.

    Raises `NotExportedError` where it is more than sums, products, quotients, extrema and roots.
    """
    value = getattr(value, "expression", value) if hasattr(value, "hint") else value
    if type(value) is Computed and value.fn in (np.int64, np.float32):
        value = value.args[0]  # the constant's dtype says so
    if type(value) is Dim:
        return nodes.size(value)
    return _computed(nodes, value) if type(value) is Computed else None


def dtype_of_number(value: Any) -> np.dtype:
    """The dtype that NumPy has for a number of open sizes."""
    value = getattr(value, "expression", value) if hasattr(value, "hint") else value
    if type(value) is Computed:
        return np.dtype(value.fn) if value.fn in (np.int64, np.float32) else F64
    return I64


def _computed(nodes: OnnxNodes, value: Any) -> str:
    def real(x: Any) -> str:
        if type(x) is Computed:
            return _computed(nodes, x)
        return nodes.cast(nodes.size(x), F64) if type(x) is Dim else nodes.constant(np.float64(x))

    if not _is_real(value) or not all(type(x) in (int, float, Dim) or _is_real(x)
                                      for x in value.args):
        raise NotExportedError(f"with {value}, where a size is open")
    if value.fn in _CASTS:
        return real(value.args[0])
    return nodes.node(_REAL[value.fn], *map(real, value.args))


def _is_real(x: Any) -> bool:
    """Whether it is a float64."""
    if type(x) is not Computed:
        return type(x) is float
    if x.fn is operator.pow and type(x.args[1]) is int:
        return bool(x.args[1] < 0)  # as Python has it
    return x.fn in _ALWAYS_REAL or (x.fn in _REAL and any(map(_is_real, x.args)))


def require_answer(nodes: OnnxNodes, question: Question) -> None:
    """A run ends with an error where a question about open sizes has another answer than the trace
    was given.  Raises `NotExportedError` where no operators ask it.  That NumPy gives a library
    call's results the same types need not be asked: operators have any size."""
    asked, answer = question.expression, question.answer
    if not isinstance(asked, (Dim, Computed, Succeeds)):
        return
    if type(asked) is Computed and asked.fn in _COMPARED and type(answer) is bool and all(
            type(x) in (int, Dim) for x in asked.args):
        holds = nodes.node(_COMPARED[asked.fn], *map(nodes.size, asked.args))
        nodes.require(holds if answer else nodes.node("Not", holds),
                      f"the sizes must be such that {question}")
    elif type(asked) is Dim and type(answer) is int:
        nodes.require(nodes.node("Equal", nodes.size(asked), nodes.size(answer)),
                      f"the sizes must be such that {question}")
    else:
        raise NotExportedError(f"asks whether {question}: give every size")
