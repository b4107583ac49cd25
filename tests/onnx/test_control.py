"""Branches, loops, checks, writes and open sizes in ONNX models."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import fusec

from .running import check, compare, run

ort = pytest.importorskip("onnxruntime")
pytest.importorskip("onnx")


def test_a_loop_with_a_branch() -> None:
    def f(x: Any, n: Any) -> Any:
        total, rest = 0.0, x.copy()
        for k in range(n):
            if x[k, 0] > 0.5:
                total += x[k, 0]
            else:
                rest[k] = -x[k]
        while total > 1.0:
            total = total / 2.0
        return total, rest

    x = np.random.default_rng(0).random((9, 3))
    for n in (0, 5, 9):
        check(f, x, np.int64(n))


def test_loops_within_loops_see_what_is_around_them() -> None:
    def f(a: Any) -> Any:
        d = a.copy()
        for k in range(len(a)):
            for i in range(len(a)):
                for j in range(len(a)):
                    d[i, j] = min(d[i, j], d[i, k] + d[k, j])
        return d

    check(f, np.random.default_rng(1).random((20, 20)))


def test_what_raises_there_ends_the_run() -> None:
    def f(x: Any, i: Any) -> Any:
        for value in x:
            if value < 0.0:
                raise ValueError("a negative number")
        return x[i] * 2.0

    x = np.arange(40.0)
    model = fusec.to_onnx(f, [x, np.int64(1)])
    for i in (0, 39, -40):
        compare(run(model, x, np.int64(i)), [np.asarray(f(x, i))])
    for i in (40, -41):
        with pytest.raises(Exception, match=r"index of axis 0 is out of bounds at .*test_control"):
            run(model, x, np.int64(i))
    x[7] = -1.0
    with pytest.raises(Exception, match=r"ValueError: a negative number at .*test_control"):
        run(model, x, np.int64(0))


def test_written_arguments_are_outputs() -> None:
    def f(x: Any, y: Any) -> Any:
        x[1:] += y
        return x[:2], y.sum()

    model = fusec.to_onnx(f, [np.ones(3), np.ones(2)])
    assert [o.name for o in model.graph.output] == ["result_0", "result_1", "written_x"]
    x, y = np.arange(3.0), np.array([1.0, 5.0])
    got = run(model, x, y)
    want = [np.asarray(v) for v in f(x, y)]
    compare(got, [*want, x])


def test_open_sizes_are_any_from_2_on() -> None:
    def f(x: Any) -> Any:
        n = len(x)
        flat = x.reshape(-1)
        return (x - x.mean(axis=0), x[::-1], x[1:-1], np.concatenate([x, x]), flat[n // 2],
                np.sort(x, axis=0), x.argmax(axis=0), x[:, 0] @ x)

    spec = [fusec.TensorSpec((None, None))]
    model = fusec.to_onnx(f, spec)
    assert [d.dim_param for d in model.graph.input[0].type.tensor_type.shape.dim] == ["s0", "s1"]
    for shape in ((3, 3), (7, 2), (5, 11)):
        x = np.random.default_rng(2).random(shape)
        compare(run(model, x), [np.asarray(v) for v in f(x)], ulps=4)
    with pytest.raises(Exception, match="axis 1 of x must have a size of 2 or more"):
        run(model, np.ones((4, 1)))


def test_numbers_that_follow_from_open_sizes() -> None:
    """As results they were left out, and `x[i]`, which compares with one, was refused."""
    def f(x: Any, i: Any) -> Any:
        n = len(x)
        return (n, x[i], x / n, n / 3 + 1, ((x - x.mean()) ** 2).sum() / (n - 1),
                x * (1.0 / n + 0.5 * n) / math.sqrt(n), x.astype(np.float32) / n, 3)

    model = fusec.to_onnx(f, [fusec.TensorSpec((None,)), fusec.TensorSpec((None,), np.int64)])
    for n, i in ((5, [1, -1]), (40, [39, 0, 7])):
        x = np.random.default_rng(2).random(n)
        compare(run(model, x, np.array(i)), [np.asarray(v) for v in f(x, np.array(i))], ulps=4)


def test_sizes_that_need_not_be_one_stay_apart() -> None:
    """Where some are one (`X @ w - y`), all were taken for one."""
    def f(x: Any, w: Any, y: Any, other: Any) -> Any:
        return x.T @ (x @ w - y), other * 2.0

    spec = fusec.TensorSpec
    model = fusec.to_onnx(f, [spec((None, None)), *[spec((None,))] * 3])
    sizes = [[d.dim_param for d in i.type.tensor_type.shape.dim] for i in model.graph.input]
    assert sizes == [["s0", "s1"], ["s1"], ["s0"], ["s2"]]
    x, w, y, other = (np.random.default_rng(2).random(n) for n in ((9, 4), 4, 9, 6))
    compare(run(model, x, w, y, other), [*f(x, w, y, other)], ulps=64)


def test_arrays_that_python_makes_of_open_sizes_are_refused() -> None:
    with pytest.raises(fusec.UnsupportedError, match="where a size is open"):
        fusec.to_onnx(lambda x: x * np.arange(len(x)), [fusec.TensorSpec((None,))])


def test_questions_about_open_sizes_are_asked_again() -> None:
    def f(x: Any) -> Any:
        return x * 2.0 if len(x) > 10 else x + 1.0

    model = fusec.to_onnx(f, [fusec.TensorSpec((None,))])
    compare(run(model, np.ones(11)), [2.0 * np.ones(11)])
    with pytest.raises(Exception, match="the sizes must be such that s0 > 10"):
        run(model, np.ones(10))


def test_sizes_that_the_data_decides() -> None:
    def f(x: Any, n: Any) -> Any:
        y = x[1:n]
        z = np.zeros_like(x)
        z[n:] = 1.0
        return x[x > 0.5], y.sum(), y[::-1] * 2.0, np.nonzero(x > 0.9)[0], z, np.bincount(
            (x * 9).astype(np.int64))

    x = np.random.default_rng(3).random(30)
    for n in (1, 9, 30, 40, -2):
        check(f, x, np.int64(n), ulps=2)


def test_results_of_several_kinds_are_refused() -> None:
    def f(x: Any) -> Any:
        return None if x.sum() > 1.0 else x

    with pytest.raises(fusec.UnsupportedError, match="one of several kinds"):
        fusec.to_onnx(f, [np.ones(3)])


def test_functions_that_are_called_are_inlined() -> None:
    @fusec.jit
    def scaled(x: Any, by: Any) -> Any:
        return x * by if by > 0.0 else x + by

    check(lambda x: (scaled(x, x[0]), scaled(x, x[1])), np.array([2.0, -3.0, 4.0]))
