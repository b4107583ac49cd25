"""Library functions in loops that data decides: the loop is native and calls Python for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fusec

RNG = np.random.default_rng(5)


def solve(a: Any, b: Any) -> Any:
    for i in range(40):
        b = np.linalg.solve(a + i * np.eye(4), b) + 1
    return b


def large_products(a: Any, b: Any) -> Any:
    wide = np.ones((4, 90))
    for _ in range(30):
        wide = np.tanh(a @ (wide @ (wide.T @ wide)) / 1e4) + b[:, None]
    return wide


def in_branches(a: Any, b: Any) -> Any:
    for i in range(50):
        if b.sum() > i / 10:
            b = np.sort(b)[::-1] * 0.9
            a[0] += 0.125
        else:
            b = np.linalg.inv(a + np.eye(4)) @ b + i
    return b


def until(a: Any, b: Any) -> Any:
    steps = 0
    while np.linalg.norm(b) > 1e-3:
        b = np.linalg.solve(a * 4, b)
        steps += 1
    return b, steps


def selected(a: Any, b: Any) -> Any:
    total = 0.0
    for i in range(60):
        over = a[a > i / 30 - 1]
        if over.size > 2:
            total += over.max() - over[1] + len(over)
            a[0, 0] = over.min() * 0.5
    return total, a


def places(a: Any, b: Any) -> Any:
    found = np.zeros(60)
    for i in range(60):
        rows, columns = np.nonzero(a * i > 3)
        found[i] = (rows * columns).sum() + a[rows, columns].sum()
    return found


def sets(a: Any, b: Any) -> Any:
    whole = np.round(a * 3).astype(int)
    most = 0
    for i in range(30):
        kinds = np.unique(whole * i % 7)
        most += (kinds * kinds).sum() + kinds.size
    return most


def masked_update(a: Any, b: Any) -> Any:
    for i in range(40):
        m = a > i / 40
        a[m] = np.sort(a[m])
    return a


PROGRAMS: list[Callable[..., Any]] = [
    solve, large_products, in_branches, until, selected, places, sets, masked_update,
]


def inputs() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    return rng.normal(size=(4, 4)) + 3 * np.eye(4), rng.normal(size=4)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_values_and_native_loops(program: Callable[..., Any]) -> None:
    jitted = fusec.jit(program)
    want = program(*inputs())
    for _ in range(2):
        got = jitted(*inputs())
        for a, b in zip(*(x if type(x) is tuple else (x,) for x in (got, want)), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-9)
            assert type(a) is type(b)
    assert [c.is_native for c in jitted.traces[0].control] == [True]


def test_explain_names_what_a_loop_calls() -> None:
    text = str(fusec.explain(solve, *inputs()))
    assert "which calls Python: np.linalg.solve" in text


def test_errors_of_the_library_are_raised_at_their_line() -> None:
    def program(a: Any) -> Any:
        total = 0.0
        for i in range(40):
            total += np.linalg.inv(a - i * np.eye(3))[0, 0]
        return total

    a = np.diag([0.5, 7.0, 11.5])
    for function in (program, fusec.jit(program)):
        with pytest.raises(np.linalg.LinAlgError, match="Singular matrix"):
            function(a)


def test_a_result_of_any_size_beside_draws_runs_step_by_step_and_says_so() -> None:
    rng = np.random.default_rng(0)

    def program(x: Any) -> Any:
        total = 0.0
        for i in range(30):
            total += np.repeat(x, x + i).sum() + 0.0 * rng.random()
        return total

    x = RNG.integers(0, 9, 50)
    jitted = fusec.jit(program)
    assert jitted(x) == program(x)
    reasons = [c.run.reason for c in jitted.traces[0].control]
    assert reasons == ["np.repeat is a library call whose result has any size"]


def descent(x, y, n):
    w = np.zeros(x.shape[1], x.dtype)
    for _ in range(n):
        w = w - x.dtype.type(0.5) * (x.T @ (x @ w - y)) / len(y)
    return w


def test_products_of_tall_matrices_with_few_columns():
    """Few columns are written out; more are summed several rows at once."""
    f = fusec.jit(descent)
    rng = np.random.default_rng(0)
    for dtype in (np.float64, np.float32):
        for shape in ((7, 10), (203, 16), (50, 17), (401, 30), (6, 259), (5, 515)):
            x, y = rng.normal(size=shape).astype(dtype), rng.normal(size=shape[0]).astype(dtype)
            x /= dtype(np.abs(x).sum(1).max())
            tolerance = 1000 * np.finfo(dtype).eps
            np.testing.assert_allclose(
                f(x, y, 20), descent(x, y, 20), rtol=tolerance, atol=tolerance)
