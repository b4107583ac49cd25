"""Python's operators on traced arrays and numbers, as NumPy's ufuncs."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from ..operands.operands import is_operand_beside
from ..values.array import TracedArray, from_value
from .powers import known_to_operator
from .ufunc_calls import call_ufunc


def _known_power(x: TracedArray, y: Any, in_place: bool) -> Any:
    return known_to_operator(x, y, in_place)


def _binary(ufunc: np.ufunc, name: str) -> None:
    def forward(self: TracedArray, other: Any, *modulus: Any) -> Any:
        self.check_alive()
        if modulus or not is_operand_beside(self, other):
            return NotImplemented
        power = _known_power(self, other, False) if ufunc is np.power else None
        if power is not None:
            return power
        return call_ufunc(self.trace, ufunc, "__call__", (self, other), {}, True)

    def backward(self: TracedArray, other: Any) -> Any:
        self.check_alive()
        if not is_operand_beside(self, other):
            return NotImplemented
        if ufunc is np.multiply and type(other) in (list, tuple) and self.origin.type.is_weak:
            return other * operator.index(self)  # Python repeats the sequence
        return call_ufunc(self.trace, ufunc, "__call__", (other, self), {}, True)

    def in_place(self: TracedArray, other: Any) -> Any:
        self.check_alive()
        power = _known_power(self, other, True) if ufunc is np.power else None
        if power is not None:
            return power
        out = {"out": (self,)} if self.is_array else {}
        return call_ufunc(self.trace, ufunc, "__call__", (self, other), out, True)

    for prefix, method in (("", forward), ("r", backward), ("i", in_place)):
        setattr(TracedArray, f"__{prefix}{name}__", method)


def _with_none(x: TracedArray, differs: bool) -> Any:
    """``x == None``, which NumPy answers for each element of an array."""
    if not x.is_array:
        return differs
    truth = x.trace.builder.const(np.bool_(differs))
    if not x.ndim:
        return from_value(x.trace, truth)
    return from_value(x.trace, x.trace.emit("BroadcastTo", truth, shape=x.shape))


def _comparison(ufunc: np.ufunc, name: str) -> None:
    def compare(self: TracedArray, other: Any) -> Any:
        self.check_alive()
        if not is_operand_beside(self, other):
            if (other is None or type(other) is str) and ufunc in (np.equal, np.not_equal):
                return _with_none(self, ufunc is np.not_equal)
            return NotImplemented
        return call_ufunc(self.trace, ufunc, "__call__", (self, other), {}, True)

    setattr(TracedArray, f"__{name}__", compare)


def _unary(ufunc: np.ufunc, name: str) -> None:
    def apply(self: TracedArray) -> Any:
        return call_ufunc(self.trace, ufunc, "__call__", (self,), {}, True)

    setattr(TracedArray, f"__{name}__", apply)


_BINARY: dict[str, np.ufunc] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "truediv": np.divide,
    "floordiv": np.floor_divide, "mod": np.remainder, "pow": np.power, "matmul": np.matmul,
    "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
    "lshift": np.left_shift, "rshift": np.right_shift,
}
_COMPARE: dict[str, np.ufunc] = {
    "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
    "eq": np.equal, "ne": np.not_equal,
}
_UNARY: dict[str, np.ufunc] = {
    "neg": np.negative, "pos": np.positive, "abs": np.absolute, "invert": np.invert,
}
for _name, _ufunc in _BINARY.items():
    _binary(_ufunc, _name)
for _name, _ufunc in _COMPARE.items():
    _comparison(_ufunc, _name)
for _name, _ufunc in _UNARY.items():
    _unary(_ufunc, _name)
