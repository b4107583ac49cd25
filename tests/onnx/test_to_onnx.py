"""`fusec.to_onnx`: models that ONNX Runtime computes NumPy's values with."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fusec
from fusec.bench.programs import program

from .running import check, run

pytest.importorskip("onnxruntime")
pytest.importorskip("onnx")

# Units in the last place of a result's largest element, each seen and doubled.
ULPS = {"eos": 1, "black_scholes": 6, "unsharp": 1, "nbody": 10, "hdiff": 1, "softmax": 4,
        "layernorm_gelu": 4, "mandelbrot": 1, "kmeans": 1, "logreg": 2, "tone_map": 4}
SIZES = {"kmeans": 200, "logreg": 150, "eos": 501}


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", [*ULPS])
def test_programs_of_the_bench(name: str, dtype: str) -> None:
    bench = program(name)
    check(bench.function, *bench.make_args(SIZES.get(name, 300), np.dtype(dtype), 0),
          ulps=ULPS[name])


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64])
def test_extrema_where_there_is_nan(dtype: Any) -> None:
    x = np.array([[1, 5, 2], [7, 7, -3], [0, 0, 0]], dtype)
    if dtype is not np.int64:
        x[0, 1] = x[0, 2] = np.nan
    check(lambda x: (x.argmax(axis=1), x.argmin(axis=0), x.max(axis=1), x.min(axis=0)), x)
    check(lambda x: (np.maximum(x, x[::-1]), np.minimum(x, x.T)), x)


@pytest.mark.parametrize("dtype", [np.int64, np.int32])
def test_integer_division(dtype: Any) -> None:
    least = np.iinfo(dtype).min
    a = np.array([7, -7, 7, -7, 6, -6, 0, least, least, 5], dtype)
    b = np.array([2, 2, -2, -2, 3, 3, 5, -1, 1, 0], dtype)
    check(lambda a, b: (a // b, a % b), a, b)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_degrees_and_what_is_finite(dtype: Any) -> None:
    x = np.array([0.0, -90.0, 1e-30, 57.3, np.inf, np.nan, -np.inf], dtype)
    check(lambda x: (np.deg2rad(x), np.degrees(x), np.isfinite(x)), x)


def test_views_and_updates() -> None:
    def f(x: Any) -> Any:
        y = x * 2.0
        y[1:3, 1:] = 7.0
        return (x.T, x[::-1, 1], x.reshape(2, 6), y, np.concatenate([x, y], axis=1), x[None, :, 2],
                x.sum(axis=0), (x > 3.0).any(axis=1), x.astype(np.int32) & 6)

    check(f, np.arange(12.0).reshape(4, 3))


def test_state_and_arrays_from_outside_are_constants() -> None:
    weight, scale = fusec.Variable(np.arange(3.0)), np.array([2.0, 3.0, 4.0])
    model = fusec.to_onnx(lambda x: x @ weight + scale, [fusec.TensorSpec((3, 3))])
    weight.assign(np.zeros(3))
    np.testing.assert_array_equal(run(model, np.eye(3))[0], np.arange(3.0) + scale)


def test_all_that_cannot_be_mapped_is_in_one_error() -> None:
    def f(x: Any) -> Any:
        y = np.linalg.inv(x)
        return np.fft.fft(y[0]).real + np.linalg.det(x)

    with pytest.raises(fusec.UnsupportedError, match="4 of its parts have no operators") as caught:
        fusec.to_onnx(f, [np.eye(3)])
    text = str(caught.value)
    for name in ("LinalgInv", "FftFft", "Real", "LinalgDet"):
        assert name in text
    assert text.count("test_to_onnx.py") == 4


def test_writes_to_state_are_refused() -> None:
    total = fusec.Variable(np.zeros(3))

    def add(x: Any) -> Any:
        total.assign_add(x)
        return x * 2.0

    with pytest.raises(fusec.UnsupportedError, match="it writes to state outside of the call"):
        fusec.to_onnx(add, [np.ones(3)])


def test_bits_and_sums_of_integers() -> None:
    """Booleans have operators of their own there; its sums of integers are of doubles."""
    x, y = np.array([1, -2, 3, 0], np.int32), np.array([-1, 2, 3, 0], np.int32)
    check(lambda x, y: ((x > 0) & (y > 0), (x > 0) | ~(y > 0), (x > 0) ^ (y > 0), x & y, ~x), x, y)
    check(lambda x: x.sum(), np.array([2**53 + 1, 2**53 + 2]))


def test_a_ufunc_is_refused_with_the_cure() -> None:
    with pytest.raises(TypeError, match=r"lambda x: np\.sign\(x\)"):
        fusec.to_onnx(np.sign, (fusec.TensorSpec((3,)),))


@pytest.mark.parametrize("f", [
    lambda x: x.reshape(len(x) // 2, 2),
    lambda x: x * float(f"{len(x)}"),
    lambda x: x * len(str(len(x))),
    lambda x: x * [*range(1, 11)][-len(x)],
])
def test_no_open_size_becomes_two(f: Any) -> None:
    """A model for 2 elements where any number was asked for would be refused by its first user."""
    with pytest.raises(fusec.UnsupportedError, match=r"of open sizes: it has the value of x") as e:
        fusec.to_onnx(f, [fusec.TensorSpec((None,))])
    assert f":{f.__code__.co_firstlineno}\n" in str(e.value)
    assert "give the size in the spec" in str(e.value)
    check(f, np.arange(4.0))


def test_sizes_are_open_only_where_traces_have_symbols() -> None:
    f = fusec.jit(lambda x: x * 2, reduce_retracing=False)
    with pytest.raises(fusec.UnsupportedError, match="reduce_retracing=False"):
        fusec.to_onnx(f, [fusec.TensorSpec((None,))])


@pytest.mark.parametrize("value", [10**30, np.longdouble(1), np.datetime64("2020-01-01")])
def test_results_without_a_dtype_in_onnx_are_refused(value: Any) -> None:
    with pytest.raises(fusec.UnsupportedError, match="of no dtype there"):
        fusec.to_onnx(lambda x: (x, value), [np.ones(3)])
