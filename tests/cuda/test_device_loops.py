"""Branches and loops on devices with arrays of their own, each kernel launched by itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fusec
from fusec.codegen.cuda.emulated_backend import DRIVER

DEVICE = "/device:CUDAHOST:0"
X = np.random.default_rng(4).uniform(0, 1, (12, 10))


def relaxed(x: Any, steps: Any) -> Any:
    for k in range(steps):
        y = x.copy()
        y[1:-1] = (x[:-2] + x[1:-1] + x[2:]) * 0.3
        if y.max() < 0.9:
            y[0] = y[0] + k
        x = y
    return x * 2


def until(x: Any, limit: Any) -> Any:
    n = 0
    while (x < limit).all():
        x, n = x * 1.5 + 0.01, n + 1
    return x, n


def exchanged(x: Any, steps: Any) -> Any:
    a, b = x.T.copy(), np.zeros(x.shape[::-1])
    for _ in range(steps):
        a, b = b + 1, a[::-1]
    return a, b


def in_place(x: Any, steps: Any) -> Any:
    for k in range(steps):
        x[k % 3] += x[-1]
        x[:, 0] = k
    return x


def chosen(x: Any, flag: Any) -> Any:
    if flag > 1:
        x[0] = 5
        y = np.sin(x)
    else:
        y = x[::-1] * 2
    return y + 1, x


def nested(x: Any, steps: Any) -> Any:
    for k in range(steps):
        for j in range(k):
            x = x + j if x.max() < 3 else x - j * 2
    return x


def elements(x: Any, steps: Any) -> Any:
    """Numbers that are elements of arrays go into loops and branches."""
    first = x[0, 0]
    y = x + 1
    for _ in range(steps):
        first = first + y[-1, 2]
        y = y * first if first < 3 else y + x[1, 1]
    return y, first


def turned(x: Any, steps: Any) -> Any:
    """Views from the end on, and with gaps, that only loops read."""
    y, z = x[::-1], x.T[::2, ::-1]
    for _ in range(steps):
        x = x + y
    while z.sum() < 20:
        z = z + 1
    return x, z


PROGRAMS: list[tuple[Callable[..., Any], Any]] = [
    (relaxed, 4), (until, 7.5), (exchanged, 3), (in_place, 5), (chosen, 2), (chosen, 0),
    (nested, 4), (elements, 3), (turned, 2)]
DIVIDED = (in_place,)  # elements at an index of the run are the CPU's


@pytest.mark.parametrize(("f", "number"), PROGRAMS, ids=lambda x: getattr(x, "__name__", ""))
def test_results_are_those_of_the_cpu(f: Callable[..., Any], number: Any) -> None:
    here, there = fusec.jit(f), fusec.jit(f, device=DEVICE)
    scalar = np.float64(number) if isinstance(number, float) else np.int64(number)
    for seed in (0, 3):
        with fusec.config.override(cuda_host_seed=seed):
            a, b = X.copy(), X.copy()
            want, launched = here(a, scalar), DRIVER.launched
            got = there(b, scalar)
            assert DRIVER.launched > launched + 1
            for one, other in zip(*((r if isinstance(r, tuple) else (r,)) for r in (got, want)),
                                  strict=True):
                np.testing.assert_array_equal(one, other)
            np.testing.assert_array_equal(a, b)
    if f not in DIVIDED:
        (control, *_) = there.concrete(X, scalar).control
        assert "launched by itself" in control.reason
        (part,) = [g for name, g in there.concrete(X, scalar).partitions.items() if "HOST" in name]
        assert {"Loop", "Cond"} & {n.op for n in part.nodes}


def test_a_check_inside_is_the_programs_error() -> None:
    def f(x: Any, i: Any, steps: Any) -> Any:
        for k in range(steps):
            x = x[i + k] * 2
        return x

    g = fusec.jit(f, device=DEVICE)
    i = np.arange(12)[::-1].copy()
    np.testing.assert_array_equal(g(X, i - 3, np.int64(3)), fusec.jit(f)(X, i - 3, np.int64(3)))
    with pytest.raises(IndexError, match="index 12 is out of bounds for axis 0 with size 12"):
        g(X, i, np.int64(3))
    np.testing.assert_array_equal(g(X, i, np.int64(1)), X[i] * 2)


def test_an_index_where_no_element_is_left() -> None:
    """A wrong index becomes 0, and there is no element 0: the kernel must read something else."""
    def f(x: Any, least: Any) -> Any:
        for _ in range(3):
            x = x[x > least]
            x[::2] = least
        return x[len(x) // 2]

    g = fusec.jit(f, device=DEVICE)
    assert g(np.arange(10.0), 3.0) == 3.0
    with pytest.raises(IndexError, match="index 0 is out of bounds for axis 0 with size 0"):
        g(np.arange(10.0), 20.0)


def test_an_element_spread_over_an_array_is_read_by_the_device() -> None:
    """Views of an element that only a branch reads, which the host must not read itself: it has no
    such memory, and the emulated device has not written it yet."""
    def f(y: Any, a: Any) -> None:
        q = a[1]
        y.fill(a[0])
        if q < q:
            return
        y[1] = 2.0

    def g(y: Any, a: Any) -> Any:
        w = np.concatenate([a, y])[:1]
        w[:] = y[2]
        return w.sum() * 2 if a[1] > 0 else a[3]

    for h in f, g:
        y, want, a = np.arange(4.0), np.arange(4.0), np.arange(5.0, 9.0)
        before = DRIVER.launched
        assert fusec.jit(h, device=DEVICE)(y, a) == h(want, a)
        assert DRIVER.launched > before
        np.testing.assert_array_equal(y, want)


def test_what_no_kernel_computes_stays_on_the_cpu() -> None:
    def f(x: Any, steps: Any) -> Any:
        for _ in range(steps):
            x = np.sort(x, axis=0) * 2
        return x

    g = fusec.jit(f, device=DEVICE)
    np.testing.assert_array_equal(g(X, np.int64(2)), np.sort(X, axis=0) * 4)
    assert "launched by itself" not in g.concrete(X, np.int64(2)).control[0].reason
