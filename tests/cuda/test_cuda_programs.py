"""Whole programs with every kernel on the emulated device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import optree
import pytest
from cuda_harness import run_program
from test_backends import PROGRAMS

import fusec
from fusec.bench.programs import program
from fusec.codegen import backends


@pytest.mark.parametrize(("f", "args"), PROGRAMS[:8], ids=lambda x: getattr(x, "__name__", ""))
def test_programs_give_what_numpy_gives(f: Callable[..., Any], args: tuple[Any, ...]) -> None:
    try:
        want: Any = f(*(a.copy() if isinstance(a, np.ndarray) else a for a in args))
    except IndexError as error:
        with pytest.raises(IndexError, match=str(error)):
            run_program(f, *args)
        return
    got = run_program(f, *args)
    parts = (zip(got, want, strict=True) if isinstance(want, tuple) else [(got, want)])
    for one, other in parts:
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)


BENCH = ["black_scholes", "nbody", "hdiff", "layernorm_gelu", "softmax"]


@pytest.mark.parametrize("name", BENCH)
def test_bench_programs(name: str) -> None:
    """All of them run in tests/cuda/every_program.py."""
    args = program(name).make_args(20 if name == "nbody" else 1000 if name == "hdiff" else 100,
                                   "float32", 0)
    got, want = (optree.tree_leaves(r) for r in (
        run_program(program(name).function, *args), fusec.jit(program(name).function)(*args)))
    for one, other in zip(got, want, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)
    if name in ("black_scholes", "hdiff"):  # without sums
        assert all(np.array_equal(a, b) for a, b in zip(got, want, strict=True))


def test_sizes_may_be_known_to_the_run_alone() -> None:
    with backends.using("cudahost"):
        f = fusec.jit(lambda x: np.exp(x[x > 0.5]).sum())
        for size in (10, 1000):
            x = np.linspace(0, 1, size)
            np.testing.assert_allclose(f(x), np.exp(x[x > 0.5]).sum(), rtol=1e-13)


def test_random_numbers_are_those_of_the_cpu() -> None:
    def draws(seed: int) -> Any:
        key = fusec.random.key(seed)
        return fusec.random.uniform(key, (50,)), fusec.random.normal(key, (50,))

    for got, want in zip(run_program(draws, 5), fusec.jit(draws)(5), strict=True):
        np.testing.assert_array_equal(got, want)


def test_a_stencil() -> None:
    def smoothed(x: np.ndarray) -> Any:
        y = x.copy()
        y[1:-1, 1:-1] = 0.25 * (x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:])
        return y

    x = np.random.default_rng(1).standard_normal((40, 33))
    np.testing.assert_array_equal(run_program(smoothed, x), fusec.jit(smoothed)(x))
