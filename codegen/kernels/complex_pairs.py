"""Complex values in the loop IR: pairs (real part, imaginary part) of real expressions.

A complex buffer is a real one with a last axis of length 2, so no back end knows complex types.
The formulas are NumPy's own, operation for operation, so that values have NumPy's bits: products
of arrays as its vector loops round them on this machine, products and quotients of numbers as
NumPy's scalars and Python's complex numbers do.  Division is Smith's (Algorithm 116, CACM 5 (8),
1962).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fusec.ir import Node
from fusec.ops.complex_parts import component, is_complex

from .loop_ir import Expr, expr
from .scalar_rules import BOOL, Constants, operation

Pair = tuple[Expr, Expr]


def buffer_layout(dtype: np.dtype, shape: tuple[int, ...]) -> tuple[np.dtype, tuple[int, ...]]:
    """Dtype and shape in which a kernel sees an array."""
    return (component(dtype), (*shape, 2)) if dtype.kind == "c" else (dtype, shape)


def buffer_strides(dtype: np.dtype, strides: Sequence[int]) -> tuple[int, ...]:
    """The strides to go with `buffer_layout`."""
    return (*strides, dtype.itemsize // 2) if dtype.kind == "c" else tuple(strides)


def as_pairs(array: np.ndarray) -> np.ndarray:
    """The array as a kernel sees it: the same memory with `buffer_layout` and its strides."""
    if array.dtype.kind != "c":
        return array
    dtype, shape = buffer_layout(array.dtype, array.shape)
    strides = buffer_strides(array.dtype, array.strides)
    return np.lib.stride_tricks.as_strided(array.real, shape, strides).view(dtype)


def complex_constant(constants: Constants, dtype: np.dtype, value: Any) -> Pair:
    """A constant's parts."""
    number, part = dtype.type(value), component(dtype)
    return constants.of(part, number.real), constants.of(part, number.imag)


def concerns(node: Node) -> bool:
    """Whether the node reads or makes complex values."""
    return is_complex(node.types[0]) or any(is_complex(v.type) for v in node.inputs)


class _Real:
    """Short names for real operations of one dtype."""

    def __init__(self, constants: Constants, dtype: np.dtype) -> None:
        self.constants, self.dtype = constants, dtype

    def __getattr__(self, op: str) -> Callable[..., Expr]:
        return lambda *args: operation(self.constants, op, self.dtype, list(args))

    def test(self, op: str, *args: Expr) -> Expr:
        return operation(self.constants, op, BOOL, list(args))

    def number(self, value: float) -> Expr:
        return self.constants.of(self.dtype, self.dtype.type(value))


@functools.cache
def rounds_once() -> bool:
    """Whether NumPy's vector loops compute a product and an addition as one FMA on this machine.

    They do where the CPU has FMA.  The test: with an FMA, x*x - round(x*x) is not zero.
    """
    x = np.full(4, (1 + 2**-30) * (1 + 1j))
    return bool(np.any((x * x).real))


def _mul(r: _Real, a: Pair, b: Pair) -> Pair:
    return (r.sub(r.mul(a[0], b[0]), r.mul(a[1], b[1])),
            r.add(r.mul(a[0], b[1]), r.mul(a[1], b[0])))


def _vector_mul(r: _Real, a: Pair, b: Pair) -> Pair:
    """As NumPy's vector loops: in each part the first product is fused, so it is not rounded."""
    if not rounds_once():
        return _mul(r, a, b)
    return (r.fma(a[0], b[0], r.neg(r.mul(a[1], b[1]))),
            r.fma(a[0], b[1], r.mul(a[1], b[0])))


def _div(r: _Real, a: Pair, b: Pair) -> Pair:
    """Smith's method: both branches are computed, a select takes one; x/0 is a case of its own."""
    left, right, up, down, scale = _smith(r, a, b)
    inverse = r.div(r.number(1), scale)
    real, imag = r.mul(r.add(left, right), inverse), r.mul(r.sub(up, down), inverse)
    size, other = r.abs(b[0]), r.abs(b[1])
    zero = r.test("and", r.test("eq", size, r.number(0)), r.test("eq", other, r.number(0)))
    return (r.select(zero, r.div(a[0], size), real), r.select(zero, r.div(a[1], size), imag))


def _python_div(r: _Real, a: Pair, b: Pair) -> Pair:
    """Python's quotient divides by the scale, where NumPy multiplies by its inverse."""
    left, right, up, down, scale = _smith(r, a, b)
    return r.div(r.add(left, right), scale), r.div(r.sub(up, down), scale)


def _smith(r: _Real, a: Pair, b: Pair) -> tuple[Expr, ...]:
    """Terms of (left + right, up - down) / scale."""
    wide = r.test("ge", r.abs(b[0]), r.abs(b[1]))
    large, small = r.select(wide, b[0], b[1]), r.select(wide, b[1], b[0])
    ratio = r.div(small, large)
    first, second = r.select(wide, a[0], a[1]), r.select(wide, a[1], a[0])
    # wide: ai - ar*ratio; else ai*ratio - ar
    up = r.select(wide, a[1], r.mul(a[1], ratio))
    down = r.select(wide, r.mul(a[0], ratio), a[0])
    return first, r.mul(second, ratio), up, down, r.add(large, r.mul(small, ratio))


def _each(op: str) -> Callable[..., Pair]:
    return lambda r, *args: tuple(getattr(r, op)(*parts) for parts in zip(*args, strict=True))


def _joined(op: str, join: str) -> Callable[..., Expr]:
    """A predicate of both parts."""
    return lambda r, *args: r.test(join, *(r.test(op, *p) for p in zip(*args, strict=True)))


_RULES: dict[str, Callable[..., Any]] = {
    "Add": _each("add"), "Sub": _each("sub"), "Neg": _each("neg"), "Pos": lambda r, a: a,
    "Copy": lambda r, a: a, "Mul": _vector_mul, "Div": _div,
    "Square": lambda r, a: _vector_mul(r, a, a),
    "Conj": lambda r, a: (a[0], r.neg(a[1])), "Abs": lambda r, a: r.hypot(*a),
    "Real": lambda r, a: a[0], "Imag": lambda r, a: a[1],
    "WithReal": lambda r, a, part: (part, a[1]), "WithImag": lambda r, a, part: (a[0], part),
    "Equal": _joined("eq", "and"), "NotEqual": _joined("ne", "or"),
    "IsNan": _joined("isnan", "or"), "IsInf": _joined("isinf", "or"),
    "IsFinite": _joined("isfinite", "and"),
    "Where": lambda r, c, a, b: (r.select(c, a[0], b[0]), r.select(c, a[1], b[1])),
}


_OF_NUMBERS: dict[str, Callable[..., Any]] = {"Mul": _mul}  # Python's and NumPy's scalars
_OF_PYTHON: dict[str, Callable[..., Any]] = {"Div": _python_div}


def _rule(node: Node) -> Callable[..., Any]:
    """The node's formula: NumPy's arrays, its scalars and Python's numbers round differently."""
    if any(v.type.kind == "array" for v in node.inputs):
        return _RULES[node.op]
    weak = all(v.type.is_weak for v in node.inputs)
    formula = _OF_PYTHON.get(node.op) if weak else None
    return formula or _OF_NUMBERS.get(node.op) or _RULES[node.op]


def complex_operation(constants: Constants, node: Node, args: Sequence[Any]) -> Any:
    """The result of an elementwise op on complex values: a pair, or one real expression."""
    if node.op == "Cast":
        return _cast(constants, args[0], node.types[0].dtype)
    whole = node.types[0].dtype if is_complex(node.types[0]) else node.inputs[0].dtype
    return _rule(node)(_Real(constants, component(whole)), *args)


def _cast(constants: Constants, value: Any, dtype: np.dtype) -> Any:
    if dtype.kind == "c":
        part = component(dtype)
        real, imag = value if type(value) is tuple else (value, None)
        return (operation(constants, "cast", part, [real]),
                constants.of(part, 0.0) if imag is None
                else operation(constants, "cast", part, [imag]))
    real, imag = value
    if dtype != BOOL:  # NumPy discards the imaginary part
        return operation(constants, "cast", dtype, [real])
    return expr("or", BOOL, *(expr("cast", BOOL, part) for part in (real, imag)))
