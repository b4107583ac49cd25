"""Loops that data end, and a counter at the latest: nothing is counted before the way there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fusec
from fusec.codegen import backends


def moved_then_compared(x: Any, enough: Any) -> Any:
    k = 0
    while x.sum() < enough:
        x = x * 1.1 + 0.01 * x * x
        k += 1
        if k >= 7:
            break
    return x


def compared_then_moved(x: Any, enough: Any) -> Any:
    k = 0
    while x.sum() < enough:
        x = x * 1.1 + 0.01 * x * x
        before = k
        k += 1
        if before > 5:
            break
    return x


def equal(x: Any, enough: Any) -> Any:
    k = 2
    while x.sum() < enough:
        x = x * 1.1 + 0.01 * x * x
        k += 1
        if k == 9:
            break
    return x


def downwards(x: Any, enough: Any) -> Any:
    k = 11
    while x.sum() < enough:
        x = x * 1.1 + 0.01 * x * x
        k -= 2
        if k <= 0:
            break
    return x


def begins_beyond(x: Any, enough: Any) -> Any:
    k = 9
    while x.sum() < enough:
        x = x * 1.1 + 0.01 * x * x
        k += 1
        if k >= 4:
            break
    return x


def two_ends(x: Any, enough: Any) -> Any:
    k = 0
    while True:
        x = x * 1.1 + 0.01 * x * x
        k += 1
        if x.sum() > enough or k > 6:
            break
    return x


BOUNDED = [moved_then_compared, compared_then_moved, equal, downwards, begins_beyond]


def skipped(x: Any, enough: Any) -> Any:
    """The counter is not looked at in every iteration, so it is no limit."""
    k = 0
    while x.sum() < enough:
        x = x * 1.1 + 0.01 * x * x
        k += 1
        if x[0] < 2:
            continue
        if k >= 5:
            break
    return x


def passed_by(x: Any, enough: Any) -> Any:
    """The counter is beyond its end already, which it never equals."""
    k = 5
    while x.sum() < enough:
        x = x * 1.1 + 0.01 * x * x
        k += 1
        if k == 5:
            break
    return x


def loss(program: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x, enough: (program(x, enough) ** 3).sum()


def loops(gradient: Any, *args: Any) -> int:
    return sum(node.op == "Loop" for node in gradient.concrete(*args).optimized_graph.nodes)


X = np.array([0.5, 1.0, 0.25])


@pytest.mark.parametrize("using", ["cpu", "reference"])
@pytest.mark.parametrize("program", [*BOUNDED, two_ends, skipped, passed_by],
                         ids=lambda f: f.__name__)
def test_gradients(program: Any, using: str) -> None:
    """Of loops that break off at the last iteration that has room, earlier, and at once."""
    with backends.using(using):
        gradient = fusec.grad(loss(program))
        for enough in (50.0, 2.5, 0.0):
            for k, found in enumerate(gradient(X, enough)):
                step = np.eye(3)[k] * 1e-6
                ends = [loss(program)(X + s, enough) for s in (step, -step)]
                assert found == pytest.approx((ends[0] - ends[1]) / 2e-6, rel=1e-6)


@pytest.mark.parametrize("program", BOUNDED, ids=lambda f: f.__name__)
def test_no_loop_counts(program: Any) -> None:
    assert loops(fusec.grad(loss(program)), X, 50.0) == 2


@pytest.mark.parametrize("program", [skipped, passed_by], ids=lambda f: f.__name__)
def test_a_loop_without_a_limit_is_counted(program: Any) -> None:
    assert loops(fusec.grad(loss(program)), X, 50.0) == 3


def test_a_limit_that_would_take_much_memory_is_counted() -> None:
    def program(x: Any, enough: Any) -> Any:
        k = 0
        while x.sum() < enough:
            x = x * 1.1 + 0.01 * x * x
            k += 1
            if k >= 20_000:
                break
        return (x ** 3).sum()

    assert loops(fusec.grad(program), np.ones(1000), 5000.0) == 3
    assert loops(fusec.grad(program), np.ones(3), 50.0) == 2


def test_a_limit_that_is_an_argument() -> None:
    def program(x: Any, most: Any) -> Any:
        k = 0
        while x.sum() < 50.0:
            x = x * 1.1 + 0.01 * x * x
            k += 1
            if k >= most:
                break
        return (x ** 3).sum()

    gradient = fusec.grad(program)
    for most in (3, 1, 0, 9):
        ends = [program(X + s * 1e-6 * np.eye(3)[1], most) for s in (1, -1)]
        assert gradient(X, most)[1] == pytest.approx((ends[0] - ends[1]) / 2e-6, rel=1e-6)


def narrow_steps(x: Any, limit: Any) -> Any:
    """Twelve iterations of a distance that int8 has no number for."""
    k = np.int8(0)
    while k < 120 and x.sum() < 50.0:
        x = x * 1.1 + 0.01 * x * x
        k = k + np.int8(10)
    return x


def wraps_around(x: Any, limit: Any) -> Any:
    """The counter passes its end only after it has wrapped around."""
    k = np.int8(0)
    while x.sum() < 50.0:
        x = x * 1.02 + 0.001 * x * x
        k = k + np.int8(50)
        if k >= 120:
            break
    return x


def narrow_start(x: Any, limit: Any) -> Any:
    """It begins at 44, not at 300."""
    k = np.maximum(limit, 300).astype(np.int8)
    while x.sum() < 50.0:
        x = x * 1.1 + 0.01 * x * x
        k = k + np.int8(1)
        if k >= 60:
            break
    return x


def unsigned_end(x: Any, limit: Any) -> Any:
    """It ends at 253, not at -3."""
    end, k = np.minimum(limit, 3).astype(np.uint8).astype(np.int64), np.int64(0)
    while x.sum() < 50.0:
        x = x * 1.02 + 0.001 * x * x
        k = k + np.int64(1)
        if k >= end:
            break
    return x


@pytest.mark.parametrize("program", [narrow_steps, wraps_around, narrow_start, unsigned_end],
                         ids=lambda f: f.__name__)
def test_numbers_that_wrap_around_are_no_limits(program: Any) -> None:
    gradient, limit = fusec.grad(loss(program)), np.int64(-3)
    with np.errstate(over="ignore"):
        ends = [loss(program)(X + s * 1e-6 * np.eye(3)[1], limit) for s in (1, -1)]
    assert gradient(X, limit)[1] == pytest.approx((ends[0] - ends[1]) / 2e-6, rel=1e-6)
