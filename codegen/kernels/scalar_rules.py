"""Smart constructors of scalar expressions: they fold and normalise locally."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from fusec.ir.sizes.symbolic_numbers import Symbolic
from fusec.ops import all_ops

from .loop_ir import LEAVES, Expr, Param, expr

INDEX = np.dtype(np.int64)
BOOL = np.dtype(np.bool_)


def scalar_constant(dtype: np.dtype, value: Any) -> Expr | None:
    """An immediate for the few constants worth one in machine code (0, ±1, booleans)."""
    if dtype == BOOL:
        return expr("const", dtype, attr=bool(value))
    if value not in (0, 1, -1) or (dtype.kind == "u" and value < 0):
        return None
    if dtype.kind == "f":
        number = float(value)
        return None if number == 0 and math.copysign(1, number) < 0 else _const(dtype, number)
    return _const(dtype, int(value))


def _const(dtype: np.dtype, value: int | float) -> Expr:
    return expr("const", dtype, attr=value)


class Constants:
    """The constants of one kernel.

    Those without an immediate are numbers that it gets at run time, one per distinct bit pattern.
    """

    def __init__(self) -> None:
        self.params: list[Param] = []
        self._numbers: dict[tuple, int] = {}

    def of(self, dtype: np.dtype, value: Any) -> Expr:
        """The expression of a constant."""
        return scalar_constant(dtype, value) or self._param(dtype, value)

    def _param(self, dtype: np.dtype, value: Any) -> Expr:
        is_open = type(value) is Symbolic
        key = (dtype, value if is_open else np.asarray(value, dtype).tobytes())
        number = self._numbers.setdefault(key, len(self.params))
        if number == len(self.params):
            self.params.append(Param(dtype, value))
        return expr("param", dtype, attr=number)


def _square(constants: Constants, dtype: np.dtype, args: list[Expr]) -> Expr:
    return expr("and" if dtype == BOOL else "mul", dtype, args[0], args[0])


def _reciprocal(constants: Constants, dtype: np.dtype, args: list[Expr]) -> Expr:
    if dtype.kind == "f":
        return expr("div", dtype, _const(dtype, 1.0), args[0])
    return expr("int_reciprocal", dtype, args[0])


def _scaled_by(above: float, below: float) -> Callable[..., Expr]:
    """Times a quotient that is rounded in the result's dtype, as NumPy's is."""
    def scale(constants: Constants, dtype: np.dtype, args: list[Expr]) -> Expr:
        if dtype.itemsize == 2:  # the constant itself is a float32
            wide = np.dtype(np.float32)
            return expr("cast", dtype, scale(constants, wide, [expr("cast", wide, args[0])]))
        factor = dtype.type(above) / dtype.type(below)
        return expr("mul", dtype, args[0], constants.of(dtype, factor))

    return scale


def _identity(constants: Constants, dtype: np.dtype, args: list[Expr]) -> Expr:
    return args[0]


def _unless_float(op: str) -> Callable[..., Expr]:
    """Rounding an integer or boolean gives itself."""
    def build(constants: Constants, dtype: np.dtype, args: list[Expr]) -> Expr:
        return expr(op, dtype, *args) if args[0].dtype.kind == "f" else args[0]

    return build


def _never_unless_float(op: str, otherwise: bool) -> Callable[..., Expr]:
    """``isnan`` and its kin are constant for integers."""
    def build(constants: Constants, dtype: np.dtype, args: list[Expr]) -> Expr:
        if args[0].dtype.kind == "f":
            return expr(op, dtype, *args)
        return expr("const", BOOL, attr=otherwise)

    return build


def boolean_op(op: str) -> str:
    """The logical op for an arithmetic one on booleans; other ops stay as they are."""
    return {"add": "or", "mul": "and", "maximum": "or", "minimum": "and", "fmax": "or",
            "fmin": "and", "abs": "pos"}.get(op, op)


def _boolean(op: str) -> Callable[..., Expr]:
    """Arithmetic on booleans is logic: + is or, * is and, max is or, min is and."""
    logic = boolean_op(op)

    def build(constants: Constants, dtype: np.dtype, args: list[Expr]) -> Expr:
        if dtype != BOOL:
            return expr(op, dtype, *args)
        return args[0] if logic == "pos" else expr(logic, dtype, *args)

    return build


def _cast(constants: Constants, dtype: np.dtype, args: list[Expr]) -> Expr:
    return args[0] if args[0].dtype == dtype else expr("cast", dtype, args[0])


def _bitcast(constants: Constants, dtype: np.dtype, args: list[Expr]) -> Expr:
    if "b" in (dtype.kind, args[0].dtype.kind):
        return _cast(constants, dtype, args)
    return args[0] if args[0].dtype == dtype else expr("bitcast", dtype, args[0])


_RULES: dict[str, Callable[..., Expr]] = {
    "square": _square,
    "reciprocal": _reciprocal,
    "deg2rad": _scaled_by(math.pi, 180),
    "rad2deg": _scaled_by(180, math.pi),
    "pos": _identity,
    "cast": _cast,
    "bitcast": _bitcast,
    **{op: _unless_float(op) for op in ("floor", "ceil", "trunc", "rint")},
    "isnan": _never_unless_float("isnan", False),
    "isinf": _never_unless_float("isinf", False),
    "isfinite": _never_unless_float("isfinite", True),
    **{op: _boolean(op) for op in ("add", "mul", "maximum", "minimum", "fmax", "fmin", "abs")},
}


def operation(constants: Constants, op: str, dtype: np.dtype, args: list[Expr]) -> Expr:
    """The expression of one scalar op, normalised."""
    rule = _RULES.get(op)
    return rule(constants, dtype, args) if rule is not None else expr(op, dtype, *args)


_costs: dict[str, float] = {}


def scalar_cost(op: str) -> float:
    """Cost of a scalar op in additions; leaves are free."""
    if not _costs:
        _costs.update({row.scalar: row.cost for row in all_ops() if row.scalar})
    return 0.0 if op in LEAVES else _costs.get(op, 1.0)
