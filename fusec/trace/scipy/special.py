"""``scipy.special`` ufuncs on traced values: fused rows, short formulas, else library calls.

SciPy is never imported here: who calls one of its functions has imported it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fusec.ops import Op, get
from fusec.ops.rows.special import SPECIAL

from ..operands.dtypes import resolve
from ..operands.operands import as_traced
from ..ufuncs import formulas
from ..ufuncs.methods import call_ufunc_method
from ..ufuncs.ufunc_calls import call_row
from ..values.operations import operation
from ..values.trace import Trace

_NUMPYS = {"exp2": "Exp2", "expm1": "Expm1", "log1p": "Log1p", "cbrt": "Cbrt"}
ROWS: dict[str, Op] = SPECIAL | {name: get(op) for name, op in _NUMPYS.items()}


def _xlogy(x: Any, y: Any) -> Any:
    return np.where((x == 0) & ~np.isnan(y), x.dtype.type(0), x * np.log(y))[()]


def _xlog1py(x: Any, y: Any) -> Any:
    return np.where((x == 0) & ~np.isnan(y), x.dtype.type(0), x * np.log1p(y))[()]


def _outside(value: float, *operands: Any) -> Any:
    """A constant where the formula does not hold; NaN where an operand is."""
    kind, unknown = operands[0].dtype.type, np.isnan(operands[0])
    for x in operands[1:]:
        unknown = unknown | np.isnan(x)
    return np.where(unknown, kind(np.nan), kind(value))


def _entr(x: Any) -> Any:
    rest = np.where(x == 0, x.dtype.type(0), _outside(-np.inf, x))
    return np.where(x > 0, -x * np.log(x), rest)[()]


def _log_ratio(x: Any, y: Any) -> Any:
    """``log(x/y)``: by the difference where the two are close, of each where x/y is no number."""
    kind, ratio = x.dtype.type, x / y
    far = (ratio <= kind(np.finfo(x.dtype).tiny)) | (ratio == kind(np.inf))
    logs = np.where(far, np.log(x) - np.log(y), np.log(ratio))
    near = (ratio > kind(0.5)) & (ratio < kind(2))
    return np.where(near, np.log1p((x - y) / y), logs)


def _rel_entr(x: Any, y: Any) -> Any:
    rest = np.where((x == 0) & (y >= 0), x.dtype.type(0), _outside(np.inf, x, y))
    return np.where((x > 0) & (y > 0), x * _log_ratio(x, y), rest)[()]


def _kl_div(x: Any, y: Any) -> Any:
    rest = np.where((x == 0) & (y >= 0), y, _outside(np.inf, x, y))
    return np.where((x > 0) & (y > 0), x * np.log(x / y) - x + y, rest)[()]


def _huber(delta: Any, r: Any) -> Any:
    half, size = delta.dtype.type(0.5), np.abs(r)
    inside = np.where(size <= delta, half * r * r, delta * (size - half * delta))
    return np.where(delta < 0, delta.dtype.type(np.inf), inside)[()]


def _pseudo_huber(delta: Any, r: Any) -> Any:
    kind = delta.dtype.type
    v = r / delta
    curve = delta * delta * np.expm1(kind(0.5) * np.log1p(v * v))
    curve = np.where((delta == 0) | (r == 0), kind(0), curve)
    return np.where(delta < 0, kind(np.inf), curve)[()]


FORMULAS: dict[str, Callable[..., Any]] = {
    "xlogy": _xlogy, "xlog1py": _xlog1py, "entr": _entr, "rel_entr": _rel_entr,
    "kl_div": _kl_div, "huber": _huber, "pseudo_huber": _pseudo_huber,
}


def _in_float64(formula: Callable[..., Any]) -> Callable[..., Any]:
    """SciPy works these in float64 for float32 too."""
    def compute(*operands: Any) -> Any:
        dtype = operands[0].dtype
        return formula(*[x.astype(np.float64) for x in operands]).astype(dtype)

    return compute


@operation
def call_special(
    trace: Trace, ufunc: np.ufunc, method: str, inputs: Sequence[Any], kwargs: dict[str, Any]
) -> Any:
    """A ufunc of ``scipy.special``: fused in float32 and float64, else SciPy's own."""
    name = ufunc.__name__
    if method == "__call__" and _is_compiled(trace, ufunc, inputs):
        if name in ROWS:
            return call_row(trace, ROWS[name], ufunc, inputs, kwargs)
        return formulas.call(trace, ufunc, inputs, dict(kwargs), _in_float64(FORMULAS[name]))
    return call_ufunc_method(trace, ufunc, method, inputs, kwargs)


def _is_compiled(trace: Trace, ufunc: np.ufunc, inputs: Sequence[Any]) -> bool:
    if ufunc.__name__ not in ROWS and ufunc.__name__ not in FORMULAS:
        return False
    dtypes = resolve(trace, ufunc, [as_traced(trace, x).value for x in inputs])
    return all(d.kind == "f" and d.itemsize in (4, 8) for d in dtypes)
