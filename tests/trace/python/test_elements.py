"""Element by element, as Python writes it: loops of the graph, of one size for all lengths."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fusec

LENGTHS = (0, 1, 3, 17, 1000)
FORMS: dict[str, Callable[[np.ndarray], Any]] = {
    "comprehension": lambda x: np.array([v * 2 for v in x]),
    "squares": lambda x: sum(v * v for v in x),
    "numbered": lambda x: sum(k * v for k, v in enumerate(x)),
    "with a start": lambda x: sum((v + 1 for v in x), 0.5),
    "pairs": lambda x: sum(a * b for a, b in zip(x, x[::-1], strict=True)),
    "floats": lambda x: np.array(list(map(float, x))),
    "sum of floats": lambda x: sum(map(float, x)),
    "map of two": lambda x: list(map(lambda a, b: a - b, x, x[::-1]))[-1:],
    "largest": lambda x: max(v for _, v in np.ndenumerate(x)),
    "least": lambda x: min(abs(v - 0.5) for v in x),
    "places": lambda x: np.array([i + 2 * j for i, j in np.ndindex(len(x), 2)]),
    "any": lambda x: any(v > 0.9 for v in x),
    "all": lambda x: all(v < 2 for v in x),
    "closure": lambda x: (lambda scale: sum(v * scale for v in x))(x.sum()),
    "tuple": lambda x: np.array(tuple(v + 1 for v in x)),
    "ints": lambda x: sum(int(v * 10) for v in x),
    "length": lambda x: len([v for v in x]) + len(list(map(float, x))),  # noqa: C416
}


def appended(x):
    out = []
    for v in x:
        out.append(v * 2)
    return np.array(out)


FORMS["appended"] = appended


def outcome(f: Callable[..., Any], x: np.ndarray) -> Any:
    try:
        return f(x)
    except ValueError as error:
        return str(error).splitlines()[0]


@pytest.mark.parametrize("name", FORMS)
def test_values_and_types(name: str) -> None:
    for dtype in (np.float64, np.int32):
        compiled, nodes = fusec.jit(FORMS[name]), []
        for n in LENGTHS:
            x = (np.random.default_rng(n).random(n) * 1.7).astype(dtype)
            got, want = outcome(compiled, x), outcome(FORMS[name], x)
            assert type(got) is type(want)
            if isinstance(want, str):
                assert got == want
                continue
            np.testing.assert_allclose(got, want, rtol=1e-12)
            assert np.asarray(got).dtype == np.asarray(want).dtype
            nodes.append(len(compiled.traces[-1].graph.nodes))
        assert nodes[-1] < 30



def test_a_quantifier_stops_where_python_does() -> None:
    x = np.zeros(40)
    x[3], x[5] = 1.0, 2.0

    def first(x: np.ndarray) -> Any:
        return any(v == 1 or x[int(v) * 100] > 5 for v in x)

    assert fusec.jit(first)(x) is first(x) is True
    x[3] = 0.0
    with pytest.raises(IndexError):
        fusec.jit(first)(x)


def test_an_iterator_that_was_gone_over_is_empty() -> None:
    def program(x: np.ndarray) -> Any:
        items = map(float, x)
        next(items)
        return sum(items), list(items)

    x = np.arange(40.0)
    assert fusec.jit(program)(x) == program(x)


X = np.random.default_rng(3).normal(size=(5, 6, 7))
ALONG: list[Callable[..., Any]] = [
    lambda x, axis: np.apply_along_axis(lambda r: r.sum() * r[0], axis, x),
    lambda x, axis: np.apply_along_axis(lambda r: r[:2] * 2, axis, x),
    lambda x, axis: np.apply_along_axis(lambda r: np.outer(r, r), axis, x),
    lambda x, axis: np.apply_along_axis(np.sort, axis, x),
    lambda x, axis: np.apply_along_axis(np.linalg.norm, axis, x, ord=1),
    lambda x, axis: np.apply_along_axis(lambda r: 3.0, axis, x[0]),
]


@pytest.mark.parametrize("program", ALONG)
def test_apply_along_axis(program: Callable[..., Any]) -> None:
    for axis in (0, 1):
        compiled = fusec.jit(program)
        got, want = compiled(X, axis), program(X, axis)
        np.testing.assert_allclose(got, want, rtol=1e-12)
        assert (got.dtype, got.strides) == (want.dtype, want.strides)
        assert len(compiled.traces[0].graph.nodes) < 30


def test_apply_along_axis_refuses_what_numpy_does() -> None:
    def program(x: np.ndarray) -> Any:
        return np.apply_along_axis(lambda r: r[0], 1, x)

    with pytest.raises(ValueError, match="any iteration dimensions are 0"):
        fusec.jit(program)(np.ones((0, 3)))
    with pytest.raises(ValueError, match="axis 1 is out of bounds"):
        fusec.jit(program)(np.ones(3))


def ways(r: Any) -> Any:
    """Only its own results are made arrays, not those of functions that it calls."""
    def parts(y: Any) -> Any:
        if y[0] > 0:
            return y[0], y[1]
        return y[1], y[0]

    if np.isnan(r).any():
        return np.full(3, np.nan)
    a, b = parts(r)
    both = (a, b, *parts(-r))
    return both[0] - both[1], len(both), r.sum()


def inner_disagreement(r: Any) -> Any:
    def parts(y: Any) -> Any:
        if y[0] > 0:
            return y[:2]
        return y[1], y[0]

    return parts(r) + parts(r)


def test_apply_along_axis_of_ways_that_return_arrays_and_tuples() -> None:
    x = X[0].copy()
    x[2, 3] = np.nan
    for axis in (0, 1):
        program = lambda x, axis=axis: np.apply_along_axis(ways, axis, x)  # noqa: E731
        got, want = fusec.jit(program)(x), program(x)
        assert got.dtype == want.dtype
        np.testing.assert_allclose(got, want, rtol=1e-12)
    with pytest.raises(TypeError, match="the sides of a branch return different things"):
        fusec.jit(lambda x: np.apply_along_axis(inner_disagreement, 0, x))(x)
