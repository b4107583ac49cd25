"""Terms: values of a graph that formulas compute with, each operation a new node.

A derivative is written as it stands in a table of formulas (``-2 * x / (1 + square(x))``) and gives
the nodes of an ordinary graph.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fusec.core.records import dataclass
from fusec.ir import Value
from fusec.ir.sizes.dims import Dim, Size
from fusec.ir.sizes.symbolic_numbers import applied

from ..build import Builder
from ..rows.sizes import size_value

Number = int | float | complex


@dataclass(frozen=True, slots=True)
class Term:
    """A value, and the builder to which operations on it go.

    Numbers beside it become constants of its dtype.  Both operands of an operator have one dtype
    and broadcast as NumPy's do.  ``mask``: of a cotangent, where it counts (a boolean of its
    shape); elsewhere it stands for zero, whatever the value is there, so that the derivative of a
    branch that `np.where` did not take may be infinite.  `settled` makes the zeros.
    """

    builder: Builder
    value: Value
    mask: Value | None = None

    @property
    def dtype(self) -> np.dtype:
        return self.value.dtype

    @property
    def shape(self) -> tuple[Size, ...]:
        return self.value.shape

    @property
    def rank(self) -> int:
        return len(self.shape)

    def settled(self) -> Term:
        """The same without a mask, 0 where that is false."""
        if self.mask is None:
            return self
        return where(Term(self.builder, self.mask), Term(self.builder, self.value), 0)

    def emit(self, op: str, *others: Term | Number, **attrs: Any) -> Term:
        """The first result of a node ``op`` of this term and others."""
        values = [(x if isinstance(x, Term) else self.number(x)).value for x in others]
        return Term(self.builder, self.builder.emit(op, self.value, *values, **attrs))

    def number(self, number: Number) -> Term:
        """A constant of this dtype."""
        return Term(self.builder, self.builder.const(applied(self.dtype.type, number)))

    def filled(self, number: Number) -> Term:
        """An array of this shape and dtype that holds the number everywhere."""
        return full(self.builder, self.dtype.type(number), self.value)

    def cast(self, dtype: np.dtype) -> Term:
        """The term in another dtype; itself where it is of that dtype."""
        return self if self.dtype == dtype else self.emit("Cast", dtype=dtype)

    def __add__(self, other: Term | Number) -> Term:
        return self.emit("Add", other)

    def __sub__(self, other: Term | Number) -> Term:
        return self.emit("Sub", other)

    def __mul__(self, other: Term | Number) -> Term:
        return self.emit("Mul", other)

    def __truediv__(self, other: Term | Number) -> Term:
        return self.emit("Div", other)

    def __pow__(self, other: Term | Number) -> Term:
        return self.emit("Pow", other)

    def __radd__(self, other: Number) -> Term:
        return self.number(other) + self

    def __rsub__(self, other: Number) -> Term:
        return self.number(other) - self

    def __rmul__(self, other: Number) -> Term:
        return self.number(other) * self

    def __rtruediv__(self, other: Number) -> Term:
        return self.number(other) / self

    def __neg__(self) -> Term:
        return self.emit("Neg")

    def __lt__(self, other: Term | Number) -> Term:
        return self.emit("Less", other)

    def __le__(self, other: Term | Number) -> Term:
        return self.emit("LessEqual", other)

    def __gt__(self, other: Term | Number) -> Term:
        return self.emit("Greater", other)

    def __ge__(self, other: Term | Number) -> Term:
        return self.emit("GreaterEqual", other)

    def equals(self, other: Term | Number) -> Term:
        """Where they are equal (``==`` of terms compares the objects)."""
        return self.emit("Equal", other)


def where(condition: Term, a: Term | Number, b: Term | Number) -> Term:
    """``a`` where the condition holds, else ``b``; one of them is a term."""
    like = a if isinstance(a, Term) else b
    if not isinstance(like, Term):
        raise TypeError("where: neither side is a term, so nothing says their dtype")
    sides = [x if isinstance(x, Term) else like.number(x) for x in (a, b)]
    return condition.emit("Where", *sides)


def full(builder: Builder, number: np.generic, like: Value) -> Term:
    """An array of the shape of a value that holds the number everywhere; of rank 0 the number."""
    constant, shape = builder.const(number), like.shape
    if not shape:
        return Term(builder, constant)
    if not any(isinstance(size, Dim) and size.symbols for size in shape):
        return Term(builder, builder.emit("BroadcastTo", constant, shape=shape))
    sizes = [size_value(builder, n, [like]) if isinstance(n, Dim) else builder.const(int(n))
             for n in shape]
    return Term(builder, builder.emit("Fill", constant, *sizes, shape=shape))


def _function(op: str) -> Any:
    def function(x: Term, *others: Term | Number) -> Term:
        return x.emit(op, *others)

    function.__name__ = op.lower()
    return function


square, sqrt, reciprocal = _function("Square"), _function("Sqrt"), _function("Reciprocal")
exp, log, absolute, sign = (
    _function("Exp"), _function("Log"), _function("Abs"), _function("Sign"))
sin, cos, tan, tanh = _function("Sin"), _function("Cos"), _function("Tan"), _function("Tanh")
sinh, cosh = _function("Sinh"), _function("Cosh")
conj, real, imag = _function("Conj"), _function("Real"), _function("Imag")

__all__ = [
    "Number", "Term", "absolute", "conj", "cos", "cosh", "exp", "full", "imag", "log", "real",
    "reciprocal", "sign", "sin", "sinh", "sqrt", "square", "tan", "tanh", "where",
]
