"""``np.vectorize`` in compiled functions, against NumPy's own."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fusec

X = np.linspace(0.2, 3.0, 40)


def steps(a: Any, b: Any) -> Any:
    n = 0
    while a > b:
        a = a * 0.5
        n = n + 1
    return n


def pick(a: Any, b: Any) -> Any:
    return a - b if a > b else a + b


OUTSIDE = np.vectorize(pick)
WITH_TYPES = np.vectorize(pick, otypes=[np.float32])
CORES = np.vectorize(lambda v, w: (v * w).sum(), signature="(n),(n)->()")
ROWS = np.vectorize(np.convolve, signature="(n),(m)->(k)")
TWO = np.vectorize(lambda a: (a + 1.0, math.sin(a)))
POWERS = np.vectorize(lambda x, p: sum(c * x**i for i, c in enumerate(p)), excluded={1, "p"})


def defined_inside(x: Any, y: Any) -> Any:
    @np.vectorize
    def local(a: Any, b: Any) -> Any:
        return math.sqrt(a) if a > b else b

    return local(x, y)


PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "outside": (lambda x, y: OUTSIDE(x, y) * 2, (X, 1.0)),
    "inside": (defined_inside, (X, X[::-1])),
    "while": (lambda x, y: np.vectorize(steps)(x, y), (X * 40, 0.3)),
    "broadcast": (lambda x, y: OUTSIDE(x[:, None], y), (X, X[:7])),
    "few": (lambda x: OUTSIDE(x, 1.0), (X[:3],)),
    "rank 0": (lambda x: OUTSIDE(x, 1.0), (np.array(2.0),)),
    "numbers": (lambda x: OUTSIDE(x, 1.0), (2.5,)),
    "otypes": (lambda x: WITH_TYPES(x, 1.0), (X,)),
    "otypes of none": (lambda x: WITH_TYPES(x[:0], 1.0) + x.sum(), (X,)),
    "float32": (lambda x: OUTSIDE(x, 1), (X.astype("f4"),)),
    "ints": (lambda x: np.vectorize(lambda a: a * 2 if a > 3 else -a)(x), (np.arange(40),)),
    "keyword": (lambda x: OUTSIDE(x, b=x[::-1]), (X,)),
    "excluded": (lambda x: POWERS(x, [1.0, 2.0, 0.5]), (X,)),
    "excluded by name": (lambda x: POWERS(x, p=(1.0, 2.0)), (X,)),
    "several": (lambda x: TWO(x), (X,)),
    "cores": (lambda x, y: CORES(x, y), (X.reshape(20, 2), np.array([1.0, 2.0]))),
    "new core": (lambda x, y: ROWS(x, y), (X.reshape(20, 2), np.array([1.0, 2.0, 3.0]))),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_like_numpy(name: str) -> None:
    function, args = PROGRAMS[name]
    jitted, expected = fusec.jit(function), function(*args)
    for _ in range(2):
        found = jitted(*args)
        for got, want in zip(*(x if isinstance(x, tuple) else (x,) for x in (found, expected)),
                             strict=True):
            assert type(got) is type(want) and got.dtype == want.dtype and got.shape == want.shape
            np.testing.assert_allclose(got, want, rtol=1e-6 if want.dtype == "f4" else 1e-13)


def test_a_loop_of_the_graph() -> None:
    jitted = fusec.jit(lambda x: OUTSIDE(x, 1.0))
    large = np.linspace(0.0, 2.0, 100_000)
    np.testing.assert_array_equal(jitted(large), np.where(large > 1.0, large - 1.0, large + 1.0))
    assert len(jitted.traces[0].graph.nodes) < 100


def test_what_numpy_refuses() -> None:
    with pytest.raises(ValueError, match="size 0 inputs unless `otypes` is set"):
        fusec.jit(lambda x: OUTSIDE(x, 1.0))(X[:0])
    with pytest.raises(ValueError, match="inconsistent size for core dimension 'n': 3 vs 2"):
        fusec.jit(lambda x, y: CORES(x, y))(X[:2], X[:3])
    with pytest.raises(TypeError, match="wrong number of positional arguments: expected 2, got 1"):
        fusec.jit(lambda x: CORES(x))(X)


BYTES = np.arange(40, dtype=np.int8)


@pytest.mark.parametrize("f, x", [
    (np.vectorize(lambda a: np.array([a, 2 * a])), X), (np.vectorize(lambda a: [a]), X[:3]),
    (np.vectorize(lambda a: (a, a), otypes="d"), X), (np.vectorize(lambda a: (a,)), X),
    (np.vectorize(lambda v: v, signature="(n)->()"), X.reshape(20, 2)),
    (np.vectorize(lambda a: a * 30), BYTES), (np.vectorize(lambda a: -a, otypes="B"), X),
    (np.vectorize(lambda a: a * 30, otypes="b"), np.arange(40)),
    (np.vectorize(lambda a: a / 2, otypes="l"), np.append(X, np.nan)),
])
def test_what_numpy_raises(f: Any, x: np.ndarray) -> None:
    with pytest.raises((ValueError, OverflowError)) as expected:
        f(x)
    with pytest.raises(expected.type):
        fusec.jit(lambda x: f(x))(x)


def test_counts_of_otypes() -> None:
    with pytest.raises(ValueError, match="a result of 1 for otypes of 2"):
        fusec.jit(lambda x: np.vectorize(lambda a: a, otypes="dd")(x))(X)


def int_or_float(a: Any) -> Any:
    if a < 1:
        return 1
    total = a
    for _ in range(int(a)):
        total = total * 0.5
    return total


def int_of_no_turns(a: Any) -> Any:
    n = 0
    while a > 1:
        a, n = a * 0.5, n + 0.5
    return n


@pytest.mark.parametrize("f", [
    int_or_float, int_of_no_turns, lambda a: 0 if a < 1 else a, lambda a: max(a, 1)])
def test_a_dtype_that_data_decides(f: Callable[..., Any]) -> None:
    with pytest.raises(fusec.errors.UnsupportedError, match="results have several dtypes"):
        fusec.jit(lambda x: np.vectorize(f)(x))(X)
    for dtype in (float, int):
        given = np.vectorize(f, otypes=[dtype])
        found, expected = fusec.jit(lambda x, g=given: g(x))(X), given(X)
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)


def test_one_dtype_by_conversion() -> None:
    f = np.vectorize(lambda a: float(int(a)) if a < 1 else a)
    np.testing.assert_array_equal(fusec.jit(lambda x: f(x))(X), f(X))


def test_what_is_refused() -> None:
    mixed = np.vectorize(lambda a: (a, a > 1.0))
    with pytest.raises(fusec.errors.UnsupportedError, match="differ in dtype or shape") as caught:
        fusec.jit(lambda x: mixed(x))(X)
    assert "fusec.vmap" in str(caught.value) and "mixed(x)" in str(caught.value)
