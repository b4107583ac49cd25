"""Functions of float64 by arithmetic: ONNX Runtime 1.32 has kernels of Tan, Asin, Acos, Atan, Sinh,
Cosh, Asinh, Acosh and Atanh for float32 alone.  Errors are a few units in the last place.

The arctangent's rational approximation is that of the Cephes library (S. L. Moshier, *Methods and
Programs for Mathematical Functions*, 1989, atan.c); logarithms of 1+x and exponentials less 1 are
W. Kahan's (see N. J. Higham, *Accuracy and Stability of Numerical Algorithms*, 2002, 1.14.1).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .protocol import OnnxNodes

F64 = np.dtype(np.float64)


class Arithmetic:
    """Operators on names and numbers of one dtype, so that formulas can be read."""

    def __init__(self, nodes: OnnxNodes, dtype: Any = F64) -> None:
        self.nodes, self.dtype = nodes, dtype

    def __getattr__(self, op: str) -> Callable[..., str]:
        return lambda *operands: self.nodes.node(op, *map(self.name, operands))

    def name(self, operand: Any) -> str:
        """The name of an operand, which may be a number."""
        return operand if isinstance(operand, str) else self.nodes.constant(
            self.dtype.type(operand))

    def polynomial(self, x: str, coefficients: Sequence[float]) -> str:
        """By Horner's rule, from the highest power on."""
        total = self.name(coefficients[0])
        for coefficient in coefficients[1:]:
            total = self.Add(self.Mul(total, x), coefficient)
        return total


def is_negative(nodes: OnnxNodes, dtype: Any, x: str) -> str:
    """Whether a float has a sign, as -0.0 has; False for NaN."""
    a = Arithmetic(nodes, dtype)
    return a.Or(a.Less(x, 0), a.And(a.Equal(x, 0), a.Less(a.Div(1, x), 0)))


def with_sign(nodes: OnnxNodes, dtype: Any, size: str, sign: str) -> str:
    """A number that is not negative with the sign of another one.  By a product: ONNX Runtime's
    Where gives 0.0 for -0.0."""
    a = Arithmetic(nodes, dtype)
    return a.Mul(size, a.Where(is_negative(nodes, dtype, sign), -1, 1))


def log1p(nodes: OnnxNodes, dtype: Any, x: str) -> str:
    """The logarithm of 1 + x."""
    a = Arithmetic(nodes, dtype)
    u = a.Add(1, x)
    mended = a.Div(a.Mul(a.Log(u), x), a.Sub(u, 1))
    return a.Where(a.Equal(u, 1), x, a.Where(a.Or(a.IsInf(u), a.Equal(u, 0)), a.Log(u), mended))


def expm1(nodes: OnnxNodes, dtype: Any, x: str) -> str:
    """The exponential less 1."""
    a = Arithmetic(nodes, dtype)
    u = a.Exp(x)
    less = a.Sub(u, 1)
    mended = a.Div(a.Mul(less, x), a.Log(u))
    is_plain = a.Or(a.IsInf(u), a.Equal(less, -1))
    return a.Where(a.Equal(u, 1), x, a.Where(is_plain, less, mended))


_P = (-8.750608600031904122785e-1, -1.615753718733365076637e1, -7.500855792314704667340e1,
      -1.228866684490136173410e2, -6.485021904942025371773e1)
_Q = (1.0, 2.485846490142306297962e1, 1.650270098316988542046e2, 4.328810604912902668951e2,
      4.853903996359136964868e2, 1.945506571482613964425e2)
_REST = 6.123233995736765886130e-17  # of pi/2, behind its float64
_LARGE, _MIDDLE = 2.41421356237309504880, 0.66


def atan(nodes: OnnxNodes, x: str) -> str:
    """The arctangent."""
    a = Arithmetic(nodes)
    size = a.Abs(x)
    is_large, is_middle = a.Greater(size, _LARGE), a.Greater(size, _MIDDLE)
    by_ranges = [(a.Div(-1, size), math.pi / 2, _REST),
                 (a.Div(a.Sub(size, 1), a.Add(size, 1)), math.pi / 4, _REST / 2), (size, 0, 0)]
    t, start, rest = (a.Where(is_large, large, a.Where(is_middle, middle, small))
                      for large, middle, small in zip(*by_ranges, strict=True))
    z = a.Mul(t, t)
    z = a.Div(a.Mul(z, a.polynomial(z, _P)), a.polynomial(z, _Q))
    result = a.Add(start, a.Add(a.Add(a.Mul(t, z), t), rest))
    return with_sign(nodes, F64, result, x)


def _tan(nodes: OnnxNodes, x: str) -> str:
    return nodes.node("Div", nodes.node("Sin", x), nodes.node("Cos", x))


def _asin(nodes: OnnxNodes, x: str) -> str:
    a = Arithmetic(nodes)
    return atan(nodes, a.Div(x, a.Sqrt(a.Mul(a.Sub(1, x), a.Add(1, x)))))


def _acos(nodes: OnnxNodes, x: str) -> str:
    a = Arithmetic(nodes)
    return a.Mul(2, atan(nodes, a.Sqrt(a.Div(a.Sub(1, x), a.Add(1, x)))))


def _sinh(nodes: OnnxNodes, x: str) -> str:
    a = Arithmetic(nodes)
    size = a.Abs(x)
    less, half = expm1(nodes, F64, size), a.Exp(a.Mul(0.5, size))
    small = a.Mul(0.5, a.Add(less, a.Div(less, a.Add(less, 1))))
    large = a.Mul(a.Mul(0.5, half), half)
    return with_sign(nodes, F64, a.Where(a.Greater(size, 22.0), large, small), x)


def _cosh(nodes: OnnxNodes, x: str) -> str:
    a = Arithmetic(nodes)
    size = a.Abs(x)
    e, half = a.Exp(size), a.Exp(a.Mul(0.5, size))
    return a.Where(a.Greater(size, 22.0), a.Mul(a.Mul(0.5, half), half),
                   a.Mul(0.5, a.Add(e, a.Div(1, e))))


def _asinh(nodes: OnnxNodes, x: str) -> str:
    a = Arithmetic(nodes)
    size = a.Abs(x)
    square = a.Mul(size, size)
    small = log1p(nodes, F64, a.Add(size, a.Div(square, a.Add(1, a.Sqrt(a.Add(1, square))))))
    large = a.Add(a.Log(size), math.log(2.0))
    return with_sign(nodes, F64, a.Where(a.Greater(size, 1e8), large, small), x)


def _acosh(nodes: OnnxNodes, x: str) -> str:
    a = Arithmetic(nodes)
    t = a.Sub(x, 1)
    small = log1p(nodes, F64, a.Add(t, a.Sqrt(a.Add(a.Mul(2, t), a.Mul(t, t)))))
    return a.Where(a.Greater(x, 1e8), a.Add(a.Log(x), math.log(2.0)), small)


def _atanh(nodes: OnnxNodes, x: str) -> str:
    a = Arithmetic(nodes)
    size = a.Abs(x)
    half = log1p(nodes, F64, a.Div(a.Mul(2, size), a.Sub(1, size)))
    return with_sign(nodes, F64, a.Mul(0.5, half), x)


DOUBLE: dict[str, Callable[[OnnxNodes, str], str]] = {
    "Tan": _tan, "Atan": atan, "Asin": _asin, "Acos": _acos, "Sinh": _sinh, "Cosh": _cosh,
    "Asinh": _asinh, "Acosh": _acosh, "Atanh": _atanh,
}
