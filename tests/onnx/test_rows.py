"""Rows as nodes of ONNX, each compared with NumPy at the values where runtimes differ."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fusec

from .running import check, run

pytest.importorskip("onnxruntime")
pytest.importorskip("onnx")

SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1e-9, -1e-9, 2.5, -2.5, 3.0, 30.0, -30.0, 0.99, -0.99,
           1e9, np.inf, -np.inf, np.nan]
FLOATS = [np.float64, np.float32]
INTEGERS = [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64]


def values(dtype: Any) -> Any:
    if np.dtype(dtype).kind == "f":
        return np.array(SPECIAL, dtype)
    info = np.iinfo(dtype)
    return np.array([0, 1, 2, 3, 7, 8, 100, info.max, info.min, info.max // 2], dtype)


# Units in the last place of each value, each seen and doubled.
ELEMENTARY = {
    np.tan: 6, np.arcsin: 8, np.arccos: 8, np.arctan: 4, np.sinh: 8, np.cosh: 6, np.tanh: 6,
    np.arcsinh: 8, np.arccosh: 8, np.arctanh: 8, np.log1p: 6, np.expm1: 8, np.exp2: 4, np.log2: 4,
    np.log10: 4, np.cbrt: 4, np.exp: 4, np.sqrt: 1, np.sin: 4, np.cos: 4, np.log: 4,
}


@pytest.mark.parametrize("dtype", FLOATS)
def test_elementary_functions(dtype: Any) -> None:
    """In units of each value, but of 1 for sin and cos, whose kernels of float64 have errors of
    that size, and of tan's derivative for tan."""
    x = np.concatenate([values(dtype), np.linspace(-20.0, 20.0, 401).astype(dtype)])
    x = x[~(np.isfinite(x) & (np.abs(x) > 1e3))]
    got = run(fusec.to_onnx(lambda x: tuple(f(x) for f in ELEMENTARY), (x,)), x)
    for (function, ulps), result in zip(ELEMENTARY.items(), got, strict=True):
        with np.errstate(all="ignore"):
            want = function(x)
        finite = np.isfinite(want)
        np.testing.assert_array_equal(result[~finite], want[~finite], function.__name__)
        error = np.abs(result.astype(float) - want)[finite]
        scale = np.abs(want[finite])
        if function in (np.sin, np.cos, np.tan):
            scale = np.ones_like(scale) if function is not np.tan else 1 + scale**2
        unit = np.spacing(scale)
        assert (error <= ulps * unit).all(), (function, x[finite][error > ulps * unit])


@pytest.mark.parametrize("dtype", FLOATS)
def test_two_floats(dtype: Any) -> None:
    a, b = (x.ravel() for x in np.meshgrid(values(dtype), values(dtype)))
    check(lambda a, b: (np.maximum(a, b), np.minimum(a, b), np.fmax(a, b), np.fmin(a, b),
                        a % b, a // b, np.fmod(a, b), np.heaviside(a, b), a < b, a != b), a, b)
    known = ~np.isnan(b)
    check(lambda a, b: (np.copysign(a, b), np.arctan2(a, b), np.hypot(a, b)),
          a[known], b[known], ulps=2)


@pytest.mark.parametrize("dtype", FLOATS)
def test_zeros_keep_their_signs(dtype: Any) -> None:
    a = np.array([0.0, -0.0, 6.0, -6.0], dtype)
    b = np.array([3.0, 3.0, np.inf, 3.0], dtype)
    check(lambda a, b: (np.signbit(a), 1 / np.arctan2(a * 0, b), 1 / np.cbrt(a * 0),
                        1 / np.copysign(0 * b, a), 1 / -a), a[:2], b[:2])


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers(dtype: Any) -> None:
    a, b = (x.ravel() for x in np.meshgrid(values(dtype), values(dtype)))
    check(lambda a, b: (a + b, a - b, a * b, -a, abs(a), a // b, a % b, np.fmod(a, b), a << b,
                        a >> b, a & b, a ^ b, ~a, np.maximum(a, b), np.minimum(a, b),
                        np.where(a > b, a, b), a == b, np.sign(a), a**3, np.square(a)), a, b)


@pytest.mark.parametrize("dtype", [*FLOATS, np.int8, np.int32, np.int64, np.uint8, np.uint16,
                                   np.bool_])
def test_reductions_and_orders(dtype: Any) -> None:
    x = np.random.default_rng(0).integers(0, 5, (4, 6, 3)).astype(dtype)
    if np.dtype(dtype).kind == "f":
        x[1, 2, 0] = x[3, 0, 1] = np.nan
    check(lambda x: (x.max(axis=1), x.min(axis=(0, 2)), x.argmax(axis=1), x.argmin(), x.any(axis=0),
                     x.all(axis=(1, 2)), np.sort(x, axis=1), np.sort(x, axis=None),
                     np.argsort(x, axis=0, kind="stable")), x)
    check(lambda x: (x.sum(axis=1), x.prod(axis=2), np.cumsum(x, axis=1), np.cumprod(x, axis=0),
                     np.maximum.accumulate(x, axis=2), np.logical_or.accumulate(x > 0, axis=0),
                     np.median(x, axis=1)), x, ulps=2)
    if dtype is not np.bool_:
        check(lambda x: np.percentile(x, [10, 77.5], axis=0), x, ulps=2)


def test_no_elements() -> None:
    x = np.zeros((0, 3))
    check(lambda x: (x.any(axis=0), x.all(axis=0), x.sum(axis=0), x.prod(axis=0),
                     np.cumsum(x, axis=0), (x > 0).sum(axis=0), x[:, 1]), x)


def sized_by_the_run(x: Any, a: Any, b: Any) -> Any:
    y = x[a:b]
    table = y[:, None] + np.arange(3)
    return y.prod(), table.prod(axis=0), table.prod(axis=1), table.max(axis=1), y.max(initial=0)


def largest_of_the_run(x: Any, a: Any, b: Any) -> Any:
    return x[a:b].max()


@pytest.mark.parametrize("dtype", [np.float64, np.int64])
def test_no_elements_as_the_run_decides(dtype: Any) -> None:
    x = np.arange(1, 6).astype(dtype)
    check(sized_by_the_run, x, np.int64(3), np.int64(1))
    check(sized_by_the_run, x, np.int64(1), np.int64(4))
    bounds = np.int64(3), np.int64(1)
    model = fusec.to_onnx(largest_of_the_run, (x, *bounds))
    with pytest.raises(Exception, match="ValueError: zero-size array"):
        run(model, x, *bounds)
    check(largest_of_the_run, x, np.int64(1), np.int64(4))


@pytest.mark.parametrize("dtype", [np.float64, np.int32, np.bool_])
def test_gathers_and_scatters(dtype: Any) -> None:
    """Of equal indices the last counts, however many there are."""
    rng = np.random.default_rng(4)
    x = rng.integers(0, 9, (6, 5, 4)).astype(dtype)
    i, j = rng.integers(-6, 6, 40), rng.integers(-5, 5, 40)
    v = rng.integers(0, 9, (40, 4)).astype(dtype)

    def f(x: Any, i: Any, j: Any, v: Any) -> Any:
        y, z, w = x.copy(), x.copy(), x.copy()
        y[i, j] = v
        z[:, j] = v[0, 0]
        w[i] = v[:, None, :]
        return (x[i], x[i, j], x[:, j], x[:, :, i % 4], np.take_along_axis(
            x, (i % 4)[:36].reshape(6, 6, 1)[:, :5], axis=2), y, z, w)

    check(f, x, i, j, v)


def test_sums_at_indices() -> None:
    def f(x: Any, i: Any, v: Any) -> Any:
        y, z = x.copy(), x.copy()
        np.add.at(y, i, v)
        np.subtract.at(z, (i, 1), v[:, 0])
        return y, z

    rng = np.random.default_rng(5)
    check(f, rng.random((6, 3)), rng.integers(0, 6, 500), rng.random((500, 3)), ulps=4)


def test_slices_with_steps() -> None:
    def f(x: Any, n: Any) -> Any:
        y, z = x.copy(), x.copy()
        y[::2, 3:0:-1] = 7.0
        z[1:n:3, ::-2] = x[0, 0]
        return y, z, x[::-2], x[n::-1, 1:], np.diagonal(x, 1), np.trace(x)

    x = np.arange(72.0).reshape(9, 8)
    for n in (0, 4, 9):
        check(f, x, np.int64(n))


def test_casts() -> None:
    floats = np.array([0.0, -1.0, 300.7, -300.7, 2.5, 1e9])
    check(lambda x: tuple(x.astype(t) for t in (
        np.int16, np.int32, np.int64, np.float32, np.bool_)), floats)
    check(lambda x: tuple(x.astype(t) for t in (*INTEGERS, *FLOATS, np.bool_)),
          np.array([0, -1, 127, 128, 255, 256, -129, 2**31, 2**40 + 5, -(2**63)]))
    check(lambda x: (x.astype(np.int32), x.astype(np.int64)), np.array([np.nan, np.inf, 1e30]))


def test_parts_of_arrays_by_masks() -> None:
    def f(x: Any, m: Any) -> Any:
        y, z = x.copy(), x.copy()
        y[m] = -1.0
        z[..., m[:5]] = 9.0
        return y, z, x[m], x[x > 0.5], np.flatnonzero(x > 0.5), np.argwhere(m)

    rng = np.random.default_rng(6)
    check(f, rng.random((7, 5)), rng.random(7) > 0.4)
