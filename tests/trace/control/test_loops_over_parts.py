"""Loops over tuples, slices, views of dicts, and zips of long lists of run-time values: loops
of the graph, as those over the lists are."""
# ruff: noqa: B905, C416, RUF007 (these are the subject)

from __future__ import annotations

import math
import sys
import time
from typing import Any

import numpy as np
import pytest

import fusec

IS_CORRECTED = sys.version_info >= (3, 12)  # Python's sum of floats; see docs/limits.md


def assert_same(got: Any, expected: Any) -> None:
    assert type(got) is type(expected)
    if isinstance(got, dict):
        got, expected = list(got.items()), list(expected.items())
    if isinstance(got, (list, tuple)):
        assert len(got) == len(expected)
        for a, b in zip(got, expected, strict=True):
            assert_same(a, b)
    elif type(got) is type(expected) is float and IS_CORRECTED:
        assert math.isclose(got, expected, rel_tol=1e-14, abs_tol=1e-15)
    else:
        assert repr(got) == repr(expected)


def numbers(n: int) -> list[float]:
    return np.random.default_rng(n).normal(size=n).round(1).tolist()


def taken(xs):
    t, d = tuple(xs), dict(enumerate(xs))
    pairs = [(v, k) for k, v in enumerate(xs)]
    doubled = [v * 2 for v in xs]
    found, s, u = [], 0.0, 0.0
    for v in t:
        s += v
    for k, v in d.items():
        u = u * 0.5 + v * k
    for v in d.values():
        s = s * 0.5 + v
    for v, w in zip(t, t[1:]):
        s += v * w
    for i, v in enumerate(xs[1:-1]):
        s -= v * i
    for v in reversed(t):
        u += s * v
    for v in xs[::2] + doubled:
        u = u * 0.9 + v
    for v, k in pairs:
        found.append(v * k)
    for (v, k), w in zip(pairs, t[::-1]):
        s += v * k - w
    return (
        s, u, found, [v * 2 for v in t], [k + v for k, v in d.items()], sum(t), sum(d.values()),
        sum(xs[3:]), sum(t, 0.5), max(t, default=0.0), any(v > 1.5 for v in t), all(d.values()),
        list(map(abs, t)), list(zip(t, xs)), sum(v * k for v, k in pairs), tuple(reversed(t)),
        dict(zip(range(len(xs)), xs)),
    )


@pytest.mark.parametrize("kind", [list, np.array])
@pytest.mark.parametrize("n", [2, 17, 100])
def test_as_python_does(n: int, kind: Any) -> None:
    xs = kind(numbers(n))
    if kind is np.array:
        xs = list(xs)  # slices are added
    assert_same(fusec.jit(taken, fp="strict")(xs), taken(xs))


def of_array(x):
    t, out = tuple(x), 0.0
    x[0] = 100.0  # t has what was there
    for v in t:
        out += v
    return out, list(x), x.tolist(), (x.astype(np.int8) > 0).tolist(), sum(x.tolist())


@pytest.mark.parametrize("shape", [(5,), (200,), (40, 5)])
def test_lists_of_arrays(shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(1).normal(size=shape)
    if len(shape) == 2:
        assert_same(fusec.jit(lambda x: (x * 2).tolist())(x), (x * 2).tolist())
        return
    assert_same(fusec.jit(of_array, fp="strict")(x.copy()), of_array(x.copy()))


def changing(xs):
    d, s = {k: v for k, v in enumerate(xs)}, 0.0
    for k, v in d.items():
        d[k] = v + s
        s += v
    out = list(xs)
    for v in out:
        if len(out) < 120:
            out.append(v)
        s += v
    return s, d, out


def test_what_changes_meanwhile() -> None:
    xs = numbers(100)
    assert_same(fusec.jit(changing, fp="strict")(xs), changing(xs))


def size_changes(xs):
    d = dict(enumerate(xs))
    for k, v in d.items():
        d[-k - 1] = v


def test_a_dict_that_grows() -> None:
    for run in (size_changes, fusec.jit(size_changes)):
        with pytest.raises(RuntimeError, match="changed size"):
            run(numbers(70))


def test_a_first_call_does_not_grow() -> None:
    xs = np.random.default_rng(2).normal(size=10_000).tolist()
    begun = time.process_time()
    fusec.jit(taken)(xs)
    assert time.process_time() - begun < 4.0  # a second for each thousand in each of these loops


def test_gradient() -> None:
    def program(x):
        s, t = 0.0, tuple(x)
        for v, w in zip(t, t[1:]):
            s += v * w
        return s + sum(t) + sum(x.tolist()[1:])

    x = np.random.default_rng(3).normal(size=50)
    padded = np.pad(x, 1)
    np.testing.assert_allclose(
        fusec.grad(program)(x), padded[2:] + padded[:-2] + 2.0 - (np.arange(50) == 0))
