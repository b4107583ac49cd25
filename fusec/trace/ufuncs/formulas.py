"""Ufuncs that are short expressions in others, and ``ufunc.outer``."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from fusec.errors import unsupported
from fusec.ops.formulas import FORMULAS as DIFFERENTIATED

from ..facts.layout import Strides, broadcast_strides, contiguous, k_order
from ..facts.refusals import is_compiled
from ..operands.dtypes import resolve
from ..operands.operands import as_traced, cast, spread_scalar, strong
from ..values.array import TracedArray, from_value
from ..values.trace import Trace
from . import complex_numbers

F64 = np.dtype(np.float64)
Formula = Callable[..., Any]


def _operands(trace: Trace, ufunc: np.ufunc, inputs: Any) -> list[TracedArray]:
    """The operands in the dtypes that NumPy computes in."""
    arrays = [as_traced(trace, x) for x in inputs]
    values = [a.value for a in arrays]
    dtypes = resolve(trace, ufunc, values)
    if not all(map(is_compiled, dtypes)):
        raise unsupported(f"np.{ufunc.__name__} in dtype {dtypes[0]}", loc=trace.loc,
                          cure="compute in float32 or float64")
    return [a if a.dtype == d and not a.type.is_weak else
            from_value(trace, cast(trace, v, d), _scaled(a, d) if a.is_array else None)
            for a, v, d in zip(arrays, values, dtypes, strict=False)]


def _scaled(x: TracedArray, dtype: np.dtype) -> Strides:
    """The strides in another dtype: NumPy orders results by those of the operands as given."""
    return tuple(s // x.itemsize * dtype.itemsize for s in x.strides)


def _log_of_sum(exp: np.ufunc, unit: float, equal: float) -> Formula:
    """The logarithm of a sum of powers of e, or 2, without overflow, as NumPy branches."""
    def formula(x: Any, y: Any) -> Any:
        kind = x.dtype.type
        far = np.maximum(x, y) + kind(unit) * np.log1p(exp(-np.abs(x - y)))
        return np.where(x == y, x + kind(equal), far)[()]

    return formula


def _modf(x: Any) -> Any:
    """Fraction and whole part, both with the sign of x."""
    whole = np.trunc(x)
    fraction = np.where(np.isinf(x), x.dtype.type(0), x - whole)[()]
    return np.copysign(fraction, x), whole


def _bitwise_count(x: Any) -> Any:
    """Ones in |x|."""
    word = np.dtype(f"u{x.dtype.itemsize}")
    if x.dtype.kind == "b":
        return x.astype(word)
    n = x if x.dtype == word else np.abs(x).astype(word)
    layout = contiguous(n.shape, n.itemsize, k_order(n.shape, [n.strides]))
    counted = n.trace.emit("PopulationCount", n.value)
    return from_value(n.trace, counted, layout if n.is_array else None).astype(np.uint8)


def _float_power(x: Any, y: Any) -> Any:
    """Without the shortcuts that ``np.power`` takes for an exponent of 0.5."""
    if x.dtype.kind == "c":
        return np.power(x, y)
    return from_value(x.trace, x.trace.emit("Pow", x.value, y.value))


def _vecdot(x: Any, y: Any) -> Any:
    left: Any = np.conjugate(x) if x.dtype.kind == "c" else x
    return np.matmul(left[..., None, :], y[..., :, None])[..., 0, 0][()]


def _matvec(x: Any, y: Any) -> Any:
    return np.matmul(x, y[..., :, None])[..., 0][()]


def _vecmat(x: Any, y: Any) -> Any:
    left: Any = np.conjugate(x) if x.dtype.kind == "c" else x
    return np.matmul(left[..., None, :], y)[..., 0, :][()]


FORMULAS: dict[np.ufunc, Formula] = {
    np.logaddexp: _log_of_sum(np.exp, 1.0, math.log(2.0)),
    np.logaddexp2: _log_of_sum(np.exp2, 1 / math.log(2.0), 1.0), np.modf: _modf,
    np.divmod: lambda x, y: (np.floor_divide(x, y), np.remainder(x, y)),
    np.float_power: _float_power, np.bitwise_count: _bitwise_count,
    np.conjugate: complex_numbers.conjugate,
    np.degrees: np.rad2deg, np.radians: np.deg2rad,  # the same ufuncs under other names
    np.vecdot: _vecdot, np.matvec: _matvec, np.vecmat: _vecmat,
}
_RANKS: dict[Any, tuple[int, int]] = {
    np.vecdot: (1, 1), np.matvec: (2, 1), np.vecmat: (1, 2),
}
_CORE = set(_RANKS)
_CORE_RESULT = {np.matvec: 1, np.vecmat: 1}  # axes of the result that are not looped over


def call(
    trace: Trace, ufunc: np.ufunc, inputs: Any, kwargs: dict[str, Any],
    formula: Formula | None = None,
) -> Any:
    """A ufunc by its ``formula`` (or that of `FORMULAS`), with ``out=`` and ``where=``."""
    out, where = kwargs.pop("out", None), kwargs.pop("where", True)
    if kwargs:
        raise unsupported(f"np.{ufunc.__name__}({next(iter(kwargs))}=...)", loc=trace.loc)
    if ufunc in _CORE:
        operands = [as_traced(trace, x) for x in inputs]
        if any(x.type.is_weak for x in operands):
            _operands(trace, ufunc, inputs)  # numbers that do not fit are NumPy's first complaint
        _check_core(trace, ufunc, inputs)
    else:
        operands = _operands(trace, ufunc, inputs)
    result = (formula or FORMULAS[ufunc])(*operands)
    op, _ = DIFFERENTIATED.get(ufunc.__name__, ("", 0))
    if op and result.dtype.kind == "f":
        result = from_value(trace, trace.emit(op, result.value, *(x.value for x in operands)))
    given = [as_traced(trace, x) for x in inputs]
    by_ufunc: Any = _RANKS  # keyed by ufuncs, each of a type of its own
    core: Any = _CORE_RESULT
    ranks = by_ufunc.get(ufunc, (0,) * len(given))
    loops = [(x.shape[: x.ndim - r], x.strides[: x.ndim - r])
             for x, r in zip(given, ranks, strict=True) if x.is_array]
    result = _laid_like(trace, result, loops, core.get(ufunc, 0))
    return delivered(ufunc, result, out, where)


def delivered(
    ufunc: np.ufunc, result: Any, out: Any, where: Any, casting: Any = "same_kind"
) -> Any:
    """The results of a ufunc in the arrays of ``out``, the elements that ``where`` names."""
    if out is None and where is True:
        return result
    outs = out if isinstance(out, tuple) else (out,) * ufunc.nout
    results = result if isinstance(result, tuple) else (result,)
    written = tuple(_delivered(r, o, where, casting) for r, o in zip(results, outs, strict=False))
    return written if ufunc.nout > 1 else written[0]


def _laid_like(
    trace: Trace, result: Any, operands: list[tuple[Strides, Strides]], core: int
) -> Any:
    """The results in the memory order that the ufunc gives them: ``core`` axes innermost.

    ``operands`` are the shapes and strides of the axes that it loops over.
    """
    if isinstance(result, tuple):
        return tuple(_laid_like(trace, r, operands, core) for r in result)
    if not result.is_array or result.ndim < 2:
        return result
    shape = result.shape[: result.ndim - core]
    strides = [broadcast_strides(*o, shape) for o in operands]
    order = [*k_order(shape, strides), *range(len(shape), result.ndim)]
    return from_value(trace, result.value, contiguous(result.shape, result.itemsize, order))


def _check_core(trace: Trace, ufunc: np.ufunc, inputs: Any) -> None:
    """NumPy's own message for operands with too few axes."""
    ranks = _RANKS[ufunc]
    for number, (x, rank) in enumerate(zip(inputs, ranks, strict=True)):
        if as_traced(trace, x).ndim < rank:
            raise trace.error(ValueError(
                f"{ufunc.__name__}: Input operand {number} does not have enough dimensions (has "
                f"{as_traced(trace, x).ndim}, gufunc core with signature {ufunc.signature} "
                f"requires {rank})"))


def _delivered(result: Any, out: Any, where: Any, casting: Any) -> Any:
    if out is None:
        return result if where is True else np.where(where, result, result.dtype.type(0))
    np.copyto(out, result, casting, where)
    return out


def outer(trace: Trace, ufunc: np.ufunc, inputs: Any, kwargs: dict[str, Any]) -> Any:
    """``ufunc.outer``: all pairs, by axes of length 1."""
    x, y = (strong(trace, v) for v in inputs)
    if y.ndim:
        x = spread_scalar(x)
        added = tuple(range(x.ndim, x.ndim + y.ndim))
        x = x.view_through("ExpandDims", (*x.strides, *[0] * y.ndim), axes=added)
    return ufunc(x, y, **kwargs)
