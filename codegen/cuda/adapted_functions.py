"""Functions of NumPy's made of several of CuPy's, where CuPy's own does something else.

Raises ``ValueError`` for arguments that they do not take: then NumPy computes the call.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

Function = Callable[..., Any]


def adapted(op: str, function: Function, cupy: Any) -> Function:
    """The function for an op, by CuPy's of that name."""
    adapt = _ADAPTED.get(op)
    return function if adapt is None else adapt(function, cupy)


def _with_nan(before_axis: int, function: Function, cupy: Any) -> Function:
    """The function, whose results are NaN where one is among the elements: CuPy sorts NaN behind
    the others.  ``before_axis``: arguments between the array and ``axis``."""

    def call(a: Any, *args: Any, **named: Any) -> Any:
        if len(args) > before_axis + 1:
            raise ValueError("arguments behind axis are taken by name")
        result = function(a, *args, **named)
        if a.dtype.kind != "f":
            return result
        axis = args[before_axis] if len(args) > before_axis else named.get("axis")
        has_nan = cupy.any(cupy.isnan(a), axis=axis, keepdims=named.get("keepdims", False))
        return cupy.where(has_nan, np.nan, result)

    return call


def _lexsort(function: Function, cupy: Any) -> Function:
    """Of keys of several dtypes, which CuPy's has as rows of one array: stable sorts, the last key
    being the first in rank."""

    def call(keys: Sequence[Any], *args: Any, **named: Any) -> Any:
        if args or named or not isinstance(keys, (tuple, list)) or any(
                len(k.shape) != 1 for k in keys):
            raise ValueError("keys are arrays of one axis")
        order = cupy.argsort(keys[0], kind="stable")
        for key in keys[1:]:
            among = cupy.argsort(cupy.take(key, order), kind="stable")
            order = cupy.take(order, among)
        return order

    return call


def _searchsorted(function: Function, cupy: Any) -> Function:
    """Of one dtype, as NumPy compares; CuPy's compares each pair as C++ does (-1 is no less than 0
    of uint64 then, and an int32 is rounded to float32)."""

    def call(a: Any, v: Any, *args: Any, **named: Any) -> Any:
        return function(*_of_one_dtype(cupy, a, v), *args, **named)

    return call


def _of_one_dtype(cupy: Any, *arrays: Any) -> Sequence[Any]:
    dtype = np.result_type(*map(_dtype, arrays))
    return [a if _dtype(a) == dtype else cupy.ascontiguousarray(
        a if hasattr(a, "shape") else cupy.asarray(np.asarray(a)), dtype=dtype) for a in arrays]


def _dtype(x: Any) -> np.dtype:
    """Of an array, or of a number of the host's."""
    return x.dtype if hasattr(x, "dtype") else np.asarray(x).dtype


def _isin(function: Function, cupy: Any) -> Function:
    return _of_one_kind(_searchsorted(function, cupy), cupy)


def _of_one_kind(function: Function, cupy: Any) -> Function:
    """Of integers that have a common integer type: of others CuPy's compares as C++ does."""

    def call(a: Any, b: Any, *args: Any, **named: Any) -> Any:
        kinds = (_dtype(a).kind, _dtype(b).kind)
        if np.result_type(_dtype(a), _dtype(b)).kind not in kinds:
            raise ValueError("integers of a common type")
        return function(a, b, *args, **named)

    return call


def _digitize(function: Function, cupy: Any) -> Function:
    """Of bins that fall, too; of others than monotonic ones NumPy raises."""

    def call(x: Any, bins: Any, right: bool = False) -> Any:
        if len(bins.shape) != 1:
            raise ValueError("bins of one axis")
        x, bins = _of_one_dtype(cupy, x, bins)
        side, upward = "left" if right else "right", (bins[:-1], bins[1:])
        if _all(cupy, cupy.less_equal(*upward)):
            return cupy.searchsorted(bins, x, side=side)
        if not _all(cupy, cupy.greater_equal(*upward)):
            raise ValueError("bins must be monotonically increasing or decreasing")
        return cupy.subtract(bins.shape[0], cupy.searchsorted(cupy.flip(bins), x, side=side))

    return call


def _bin_edges(function: Function, cupy: Any) -> Function:
    """Of the extremes of the data, two numbers that the host looks at: NumPy's own function."""

    def call(ends: Any, count: int) -> Any:
        if ends.shape != (2,):
            raise ValueError("the least and the largest element")
        return cupy.asarray(np.histogram_bin_edges(ends.get(), count))

    return call


# ------------------------------------------------------------------- matrices by singular values


def _pinv(function: Function, cupy: Any) -> Function:
    """With NumPy's least singular value, which is a number."""

    def call(a: Any, rcond: Any = None) -> Any:
        _refuse_infinite(cupy, a)
        return function(a, rcond=_number(1e-15 if rcond is None else rcond))

    return call


def _matrix_rank(function: Function, cupy: Any) -> Function:
    def call(a: Any, tol: Any = None) -> Any:
        if len(a.shape) < 2:
            raise ValueError("a matrix")
        _refuse_infinite(cupy, a)
        return function(a) if tol is None else function(a, tol=_number(tol))

    return call


def _lstsq(function: Function, cupy: Any) -> Function:
    """Of matrices of full rank where that decides whether there are residuals: of others NumPy
    tells."""

    def call(a: Any, b: Any, rcond: Any = None) -> Any:
        if a.dtype != b.dtype or not (rcond is None or 0 < _number(rcond) < 1):
            raise ValueError("arrays of one dtype, and a rcond between 0 and 1")
        _refuse_infinite(cupy, a)
        found = function(a, b, rcond=rcond)
        rows, columns = a.shape
        if rows > columns and int(found[2].get()) != columns:
            raise ValueError("a matrix of less than full rank has no residuals")
        return found

    return call


def _number(x: Any) -> float:
    if not isinstance(x, (int, float)):
        raise ValueError("a number that is known when the call is compiled")
    return x


def _refuse_infinite(cupy: Any, a: Any) -> None:
    """cuSOLVER has numbers of its own for NaN and infinity, for which NumPy raises; a look of the
    host's, who waits for its rank or its singular values anyway."""
    if not _all(cupy, cupy.isfinite(a)):
        raise ValueError("a matrix with NaN or infinity")


def _all(cupy: Any, array: Any) -> bool:
    """A look of the host's."""
    return bool(cupy.all(array).get())


_ADAPTED: Mapping[str, Callable[[Function, Any], Function]] = {
    "Median": partial(_with_nan, 0), "Percentile": partial(_with_nan, 1),
    "Quantile": partial(_with_nan, 1), "Lexsort": _lexsort, "Digitize": _digitize,
    "Searchsorted": _searchsorted, "Isin": _isin, "Setdiff1d": _of_one_kind,
    "HistogramBinEdges": _bin_edges,
    "LinalgPinv": _pinv, "LinalgMatrixRank": _matrix_rank, "LinalgLstsq": _lstsq,
}
