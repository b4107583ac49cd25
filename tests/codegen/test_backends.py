"""Back ends behind one class: the same plans through each, by the registry's name alone."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fusec
from fusec.codegen import backends
from fusec.codegen.backend import Backend

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "differential"))
from harness import assert_outcomes, run
from tolerance import NEAR

X = np.linspace(-2.0, 3.0, 12).reshape(3, 4)


def rows(x: np.ndarray) -> Any:
    y = np.exp(x) + 1
    return y / y.sum(axis=1, keepdims=True), y.max(), x.argmin(axis=0)


def updated(x: np.ndarray) -> Any:
    x[1:] += x[:-1].sum()
    return x.T.copy()


def in_turn(x: np.ndarray, k: int) -> Any:
    total = x[0]
    for i in range(k):
        total = total * 0.5 + x[i % 3]
        x[i % 3] = total
    return total, x.sum()


def branching(x: np.ndarray) -> Any:
    if x[0, 0] > 0:
        return np.sort(x, axis=None) + 1
    return x.ravel() * 2


def of_the_data(x: np.ndarray) -> Any:
    kept = x[x > 0]
    return kept.sum(), np.cumsum(kept) * 2


def complex_and_views(x: np.ndarray) -> Any:
    z = x[:, ::-1] + 1j * x
    return z * z.conj(), z.real.T, (z @ z.T).imag


def out_of_range(x: np.ndarray) -> Any:
    return x[:, 0][np.abs(x).astype(int) + 3]


def of_nothing(x: np.ndarray) -> Any:
    return x[x > 9].max()


def asserted(x: np.ndarray) -> Any:
    assert x.sum() > 100, "too little"
    return x


def halved(a: float) -> float:
    return a / 2 if a > 0 else 1 / a


def element_by_element(x: np.ndarray) -> Any:
    return fusec.vectorize(halved)(x)


PROGRAMS: list[tuple[Callable[..., Any], tuple[Any, ...]]] = [
    (rows, (X,)), (updated, (X,)), (in_turn, (X, 5)), (branching, (X,)), (branching, (-X,)),
    (of_the_data, (X,)), (complex_and_views, (X,)), (out_of_range, (X,)), (of_nothing, (X,)),
    (asserted, (X,)), (element_by_element, (X + 0.1,)), (element_by_element, (X * 0,)),
]


@pytest.mark.parametrize(("f", "args"), PROGRAMS)
def test_the_reference_runs_whole_programs(f: Callable[..., Any], args: tuple[Any, ...]) -> None:
    """Plans, memory, checks and library calls stay as they are; only the kernels go elsewhere."""
    fusec.vectorize(halved).compiled((X.dtype,))  # Numba makes garbage: not while tracing
    with backends.using("reference"):
        jitted = fusec.jit(f)
        for _ in range(2):
            assert_outcomes(run(jitted, args), run(f, args), NEAR, what=f.__name__)
    assert {t.build.call_plan.backend.name for t in jitted.traces} == {"reference"}
    for kernel in jitted.traces[-1].kernels:
        with pytest.raises(AttributeError, match="no machine code"):
            _ = kernel.asm


def test_null_compiles_nothing() -> None:
    with backends.using("null"):
        jitted = fusec.jit(rows)
        shares, most, _ = jitted(X)
    assert not shares.any() and shares.shape == X.shape and most == 0
    assert jitted.traces[-1].build.stats.llvm_ms == 0


def test_a_back_end_that_nobody_knows() -> None:
    with pytest.raises(ValueError, match=r"'tpu'.*cpu, reference, null"):
        backends.backend("tpu")


def test_what_was_compiled_for_another_stays() -> None:
    jitted = fusec.jit(rows)
    before = jitted(X)
    with backends.using("null"):
        np.testing.assert_array_equal(jitted(X)[0], before[0])
    assert backends.current().name == "cpu"


@pytest.mark.parametrize("name", ["cpu", "reference", "null"])
def test_every_back_end_is_one(name: str) -> None:
    found = backends.backend(name)
    assert isinstance(found, Backend) and found.name == name
    assert found.supports("add", np.dtype(np.float64))


@pytest.mark.parametrize("name", ["cpu", "reference"])
def test_what_is_not_supported(name: str) -> None:
    assert not backends.backend(name).supports("frobnicate", np.dtype(np.float64))
