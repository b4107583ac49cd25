"""A program for each row of the registry that has to contain the row, and its arguments.

A sample is ``(program, operand)``: ``operand`` names a maker in `OPERANDS`.  Programs of ufunc rows
are made from the ufunc; of library rows without a line here, from the function's first sample call.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import linalg, special

import fusec
from fusec.ops import Op

Program = Callable[..., Any]
Sample = tuple[Program, str]

# Whole numbers, so that sums are exact in every order and every float dtype.
OPERANDS: dict[str, np.ndarray] = {
    "grid": np.array([[3, 1, 0, 2, 5], [1, 4, 2, 0, 1], [2, 2, 7, 1, 0], [0, 5, 1, 1, 3]]),
    "square": np.array([[9, 1, 2, 0], [1, 8, 0, 2], [2, 0, 7, 1], [0, 2, 1, 6]]),
    "line": np.array([3, 1, 0, 2, 5, 4, 1, 1, 2, 7, 0, 6]),
    "indices": np.array([1, 0, 3, 2, 2, 1]),
}


@fusec.custom_vjp
def _doubled(x: Any) -> Any:
    return x + x


_doubled.defvjp(lambda x: (x + x, None), lambda _, ct: (ct + ct,))


def _with_derivative(x: Any) -> Any:
    y, pull = fusec.vjp(_doubled, x)
    return y + pull(x)[0]


@fusec.vectorize
def _halved(x: float) -> float:
    return x * 0.5 if x > 1 else x


def _in_place(change: Callable[[Any], Any]) -> Program:
    def program(x: Any) -> Any:
        y = np.array(x, ndmin=1)
        change(y)
        return y

    return program


def _loop(x: Any) -> Any:
    total = x[0, 0]
    for i in range(x.shape[1] * 50):
        total = total + x[0, i % x.shape[1]]
    return total


@fusec.jit
def _added(x: Any, n: Any) -> Any:
    return x if n <= 0 else x + _added(x, n - 1)


@fusec.jit
def _added_if_few(x: Any, n: Any) -> Any:
    if n > 50:
        raise ValueError("too many")
    return x if n <= 0 else x + _added_if_few(x, n - 1)


def _branch(x: Any) -> Any:
    y = x + x
    if x[0, 0] > 1:
        y = y * y
    return y


def _picked(x: Any, i: Any) -> Any:
    total = x[0, 0]
    for k in range(i):
        total = total + x[k % 3, k % 2]
    return total


def _pick_updated(x: Any, i: Any) -> Any:
    x[i] = x[i - 1]


def _unused(x: Any) -> Any:
    x[0][x[0, :1]]
    return x + x


def _unread(x: Any) -> Any:
    np.bincount(x[0])
    return x + x


def _checked(x: Any) -> Any:
    if x[0, 0] > 100:
        raise ValueError("too large")
    return x + x


def _with_parts(x: Any) -> Any:
    y = x.copy()
    y.real = x.imag
    y.imag = 2
    return y


def _filled(x: Any) -> Any:
    return np.full(x[x > 1].shape, 2.5)


def _scattered(x: Any) -> Any:
    y = x.copy()
    y[np.array([0, 0])] = x[1]
    return y


def _growing(x: Any) -> Any:
    for _ in range(20):
        x = np.concatenate([x, x[:1]])
    return x


def _windows(x: Any, n: Any) -> Any:
    y = np.array(x)
    total = x[0, 0]
    for i in range(n):
        k = i % 3
        y[0, :k] = x[1, :k] + x[0, 0]
        total = total + x[0, :k].sum()
    return y, total


def _copied(x: Any) -> Any:
    y = np.array(x, ndmin=1)
    np.copyto(y, y[y >= 0])
    return y


def _slices(x: Any) -> Any:
    y = x.copy()
    y[::2] = x[0]
    return y


OWN: dict[str, Sample] = {
    "Input": (lambda x: x, "grid"), "Const": (lambda x: x * 3, "grid"),
    "Iota": (lambda x: np.take_along_axis(x, np.array([[1], [0]]), 0), "grid"),
    "Slice": (lambda x: x[1::2] * x[0], "grid"), "Transpose": (lambda x: x.T * x.T, "grid"),
    "BroadcastTo": (lambda x: np.broadcast_to(x, (2, *x.shape)) * x, "grid"),
    "Reshape": (lambda x: x.reshape(-1), "grid"), "ExpandDims": (lambda x: x[None] * x, "grid"),
    "Squeeze": (lambda x: x[:, :1].squeeze(1) * x[0, :1], "grid"),
    "Diagonal": (lambda x: np.diagonal(x) * np.diagonal(x), "grid"),
    "Concat": (lambda x: np.concatenate((x, x[:1])), "grid"), "SliceUpdate": (_slices, "grid"),
    "Gather": (lambda x: x[np.array([1, 0, 1])], "grid"), "Scatter": (_scattered, "grid"),
    "Scan": (lambda x: np.add.accumulate(x, 0), "grid"),
    "Sum": (lambda x: x.sum(axis=0), "grid"), "Prod": (lambda x: x.prod(axis=0), "grid"),
    "Fold": (lambda x: x.sum(axis=-1), "grid"),
    "Max": (lambda x: x.max(axis=0), "grid"), "Min": (lambda x: x.min(axis=0), "grid"),
    "Any": (lambda x: x.any(axis=0), "grid"), "All": (lambda x: x.all(axis=0), "grid"),
    "ArgMax": (lambda x: x.argmax(axis=0), "grid"),
    "ArgMin": (lambda x: x.argmin(axis=-1), "grid"),
    "Mean": (lambda x: x.mean(axis=0), "grid"), "Var": (lambda x: x.var(axis=-1), "grid"),
    "Std": (lambda x: x.std(axis=0), "grid"),
    "Where": (lambda x: np.where(x > x.T[:1, :1], x, x * x), "grid"),
    "Cast": (lambda x: x.astype(np.int8 if x.dtype != np.int8 else np.float32), "grid"),
    "Reinterpret": (lambda x: x.view(f"u{x.itemsize}") + 1, "grid"),
    "Fma": (lambda x: x * 3 + x, "grid"), "Copy": (lambda x: np.array(x), "grid"),
    "StopGradient": (lambda x: np.array(fusec.stop_gradient(x)), "grid"),
    "GivenDerivative": (_with_derivative, "grid"),
    "PopulationCount": (lambda x: np.bitwise_count(x), "grid"),
    "MulHigh": (lambda x: fusec.random.bits(x[0, :2], 5), "grid"),
    "Real": (lambda x: x.real + 0, "grid"), "Imag": (lambda x: x.imag + 0, "grid"),
    "Conj": (lambda x: np.conj(x), "grid"), "WithReal": (_with_parts, "grid"),
    "WithImag": (_with_parts, "grid"), "CheckIndex": (lambda x: np.arange(9.0)[x], "grid"),
    "BoundsCheck": (_unused, "grid"), "Ran": (_unread, "grid"),
    "ScalarCall": (lambda x: _halved(x), "grid"),
    "Erf": (lambda x: special.erf(x), "grid"), "Erfc": (lambda x: special.erfc(x), "grid"),
    "Gammaln": (lambda x: special.gammaln(x), "grid"),
    "Expit": (lambda x: special.expit(x), "grid"), "Logit": (lambda x: special.logit(x), "grid"),
    "Ndtr": (lambda x: special.ndtr(x), "grid"),
    # SciPy's own values for positive numbers are far off
    "LogNdtr": (lambda x: special.log_ndtr(-x), "grid"),
    "Exp10": (lambda x: special.exp10(x), "grid"),
    "ChosenPow": (lambda x, p: x ** p, "grid"),
    "LogAddExp": (lambda x: np.logaddexp(x, 2), "grid"),
    "LogAddExp2": (lambda x: np.logaddexp2(x, 2), "grid"),
    "XLogY": (lambda x: special.xlogy(x, x + 1), "grid"),
    "XLog1PY": (lambda x: special.xlog1py(x, x), "grid"),
    "Entr": (lambda x: special.entr(x), "grid"),
    "RelEntr": (lambda x: special.rel_entr(x, x + 1), "grid"),
    "KlDiv": (lambda x: special.kl_div(x, x + 1), "grid"),
    "PseudoHuber": (lambda x: special.pseudo_huber(x + 1, x), "grid"),
    "Cond": (_branch, "grid"), "Loop": (_loop, "grid"),
    **dict.fromkeys(("Call", "Recursion"), (
        lambda x: _added(x[0, 0], np.count_nonzero(x)), "grid")),
    "CheckedRecursion": (lambda x: _added_if_few(x[0, 0], np.count_nonzero(x)), "grid"),
    "Fused": (lambda x: x + x, "grid"),
    "Check": (_checked, "grid"), "Verify": (_checked, "grid"), "Fill": (_filled, "grid"),
    "Size": (lambda x: x[x > 1].size, "grid"), "NumPy": (lambda x: np.exp(x), "grid"),
    "MatMul": (lambda x: x @ x, "square"),
    "Pick": (_picked, "grid"), "PickUpdate": (_pick_updated, "grid"),
    "HostCall": (lambda x: np.random.default_rng(7).standard_normal(3) + x[0, 0], "grid"),
    # library rows whose function takes more than arrays
    "SortInPlace": (_in_place(lambda y: y.sort()), "grid"),
    "PartitionInPlace": (_in_place(lambda y: y.partition(1)), "grid"),
    "PutAlongAxis": (_in_place(
        lambda y: np.put_along_axis(y, np.array([0]), 1, None)), "grid"),
    "Put": (_in_place(lambda y: np.put(y, [0, 2], y[0, 0])), "grid"),
    "Place": (_in_place(lambda y: np.place(y, y > 1, np.array([1, 0]))), "grid"),
    "SetItem": (_in_place(lambda y: y.__setitem__(y > 1, y[y > 1][::-1])), "line"),
    "UfuncAt": (_in_place(lambda y: np.hypot.at(y, [0, 0], y[1])), "line"),
    "Ufunc": (lambda x: np.nextafter(x, x[0]), "line"),
    "Numpy": (lambda x: np.roll(x[x > 0], 1), "grid"),
    "GetItem": (lambda x: np.ravel(x)[:, None][np.ravel(x) > 1, 0], "line"),
    "Scipy": (lambda x: linalg.expm(x + 0.5), "square"),
    "LinalgLstsq": (lambda x: np.linalg.lstsq(x, x[0], rcond=None), "square"),
    "Cofactors": (lambda x: fusec.vjp(np.linalg.det, x)[1](x.dtype.type(1)), "square"),
    "LinalgSolve": (lambda x: np.linalg.solve(x, x), "square"),
    "LinalgTensorsolve": (lambda x: np.linalg.tensorsolve(x, x[:, 0]), "square"),
    "LinalgTensorinv": (lambda x: np.linalg.tensorinv(x, 1), "square"),
    "Einsum": (lambda x: np.einsum("ij,jk->ik", x, x), "square"),
    "Dot": (lambda x: np.dot(x[None], x[None]), "square"),
    "Lexsort": (lambda x: np.lexsort((x, x)), "line"),
    "Partition": (lambda x: np.partition(x, 2), "line"),
    "Argpartition": (lambda x: np.argpartition(x, 2), "line"),
    "Searchsorted": (lambda x: np.searchsorted(np.sort(x), x), "line"),
    "CumulativeSum": (lambda x: np.cumulative_sum(x), "line"),
    "CumulativeProd": (lambda x: np.cumulative_prod(x), "line"),
    **{name: (lambda x, f=f: f(x, 30), "line") for name, f in (
        ("Percentile", np.percentile), ("Nanpercentile", np.nanpercentile))},
    **{name: (lambda x, f=f: f(x, 0.3), "line") for name, f in (
        ("Quantile", np.quantile), ("Nanquantile", np.nanquantile))},
    "Histogram2d": (lambda x: np.histogram2d(x, x, 3), "line"),
    "Histogramdd": (lambda x: np.histogramdd(x, 3), "grid"),
    "Digitize": (lambda x: np.digitize(x, np.sort(x)), "line"),
    "Interp": (lambda x: np.interp(x, np.sort(x), x), "line"),
    "Convolve": (lambda x: np.convolve(x, x[:3]), "line"),
    "Correlate": (lambda x: np.correlate(x, x[:3]), "line"),
    "Polyfit": (lambda x: np.polyfit(np.arange(x.shape[0]) * 1.0, x, 2), "line"),
    "Polymul": (lambda x: np.polymul(x, x), "line"),
    "Window": (_windows, "grid"), "WindowUpdate": (_windows, "grid"),
    "Extent": (_windows, "grid"), "Reserve": (_growing, "grid"),
    "Take": (lambda x: np.take(x, [0, 0], axis=np.int64(0)), "line"),
    "CallInto": (lambda x: np.take(x, [0, 0], out=np.empty(2, x.dtype)), "line"),
    "Method": (lambda x: x[x[:, 0] > 0].repeat(2, axis=1).flatten("F"), "grid"),
    "Copyto": (_copied, "line"),
    **{name: (lambda x, f=f: f(x, dtype=np.complex128 if x.dtype.kind == "c" else np.float64),
              "grid") for name, f in (
        ("Cumsum", np.cumsum), ("Cumprod", np.cumprod), ("Nancumsum", np.nancumsum),
        ("Nancumprod", np.nancumprod))},
    "LinalgNorm": (lambda x: np.linalg.norm(x, 2), "square"),
    "Choose": (lambda x: np.choose(x, [x, x, x, x]), "indices"),
    "UnravelIndex": (lambda x: np.unravel_index(x, (3, 4)), "indices"),
    "RavelMultiIndex": (lambda x: np.ravel_multi_index((x, x), (6, 6)), "indices"),
    "Isin": (lambda x: np.isin(x, [1, 2]), "line"),
    "Argwhere": (lambda x: np.argwhere(x), "grid"),
    "Geomspace": (lambda x: np.geomspace(x[0], 9, 5), "line"),
    "Extract": (lambda x: np.extract(x > 1, x), "line"),
    "Compress": (lambda x: np.compress(x > 1, x), "line"),
    **{name: (lambda x, f=f: f(x, x[:4]), "line") for name, f in (
        ("Union1d", np.union1d), ("Intersect1d", np.intersect1d), ("Setdiff1d", np.setdiff1d),
        ("Setxor1d", np.setxor1d))},
    **{name: (lambda x, f=f: f(x), "line") for name, f in (
        ("Vander", np.vander), ("Poly", np.poly),
        ("Bincount", np.bincount),
        ("HistogramBinEdges", np.histogram_bin_edges))},
    "Histogram": (lambda x: np.histogram(x, np.sort(x)), "line"),
    "Counters": (lambda x: np.bincount((x + x).reshape(-1)), "indices"),
}
SECOND: dict[str, tuple[Any, ...]] = {
    **dict.fromkeys(("Window", "WindowUpdate", "Extent"), (np.int64(90),)),
    "Pick": (np.int64(90),), "PickUpdate": (np.int64(2),), "ChosenPow": (np.float16(2),)}


def _of_function(row: Op) -> Sample:
    """A library row's function on one square matrix."""
    (function,) = row.numpy
    return lambda x: function(x), "square"


def sample_of(row: Op) -> Sample | None:
    """The row's sample; None for a row that has none and whose function cannot make one."""
    if row.name in OWN:
        return OWN[row.name]
    if row.ufunc is not None:
        ufunc = row.ufunc
        return (lambda x: ufunc(x)) if row.arity == 1 else (lambda x: ufunc(x, x)), "grid"
    return _of_function(row) if row.lowering == "library" and len(row.numpy) == 1 else None
