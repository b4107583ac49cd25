"""Slices whose bounds only the run knows, outside of loops and in native loops, against NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fusec
from fusec.codegen.machine_code import llvm

N = 23


def _arrays(n: int = N) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    random = np.random.default_rng(n)
    square = random.random((n, n))
    return square @ square.T + n * np.eye(n), random.random(n), random.random(n)


def cholesky(A: Any, b: Any, x: Any) -> Any:
    n = A.shape[0]
    L = np.zeros((n, n))
    for i in range(n):
        for j in range(i):
            L[i, j] = (A[i, j] - L[i, :j] @ L[j, :j]) / L[j, j]
        L[i, i] = np.sqrt(A[i, i] - L[i, :i] @ L[i, :i])
    return L


def back_substitution(A: Any, b: Any, x: Any) -> Any:
    n = len(b)
    for i in range(n - 1, -1, -1):
        x[i] = (b[i] - A[i, i + 1:] @ x[i + 1:]) / A[i, i]
    return x


def lu(A: Any, b: Any, x: Any) -> Any:
    for k in range(A.shape[0] - 1):
        A[k + 1:, k] /= A[k, k]
        A[k + 1:, k + 1:] -= np.outer(A[k + 1:, k], A[k, k + 1:])
    return A


def rows_of_a_triangle(A: Any, b: Any, x: Any) -> Any:
    for i in range(1, len(b)):
        for j in range(i):
            A[i, j:] -= A[j, j:] * A[i, j] * 0.01
    return A


def shrinking(A: Any, b: Any, x: Any) -> Any:
    n = len(b)
    for i in range(n):
        x[i] = b[i:n - i].sum() + b[-i:].max() + b[:i:2].sum() + b[i::-1][0]
    return x


def leading_blocks(A: Any, b: Any, x: Any) -> Any:
    for i in range(1, len(b)):
        x[i] = (A[:i, :i] @ b[:i]).sum() + (b[:i] @ A[:i, :i])[0] + (A[:i, :i] @ A[:i, :i])[0, 0]
    return x


def shift(A: Any, b: Any, x: Any) -> Any:
    for i in range(1, len(b)):
        x[i:] = x[i:] + 1.0
        x[:i] *= 0.5
        A[:i, i:] = 2.0
    return x


def sorted_by_insertion(A: Any, b: Any, x: Any) -> Any:
    for i in range(1, len(x)):
        k = 0
        while k < i and x[k] < x[i]:
            k += 1
        held = x[i]
        x[k + 1:i + 1] = x[k:i].copy()
        x[k] = held
    return x


LOOPS = [cholesky, back_substitution, lu, rows_of_a_triangle, shrinking, leading_blocks, shift]


def _compare(function: Callable[..., Any], compiled: Any, n: int) -> None:
    wanted_arrays, arrays = _arrays(n), _arrays(n)
    wanted, found = function(*wanted_arrays), compiled(*arrays)
    np.testing.assert_allclose(found, wanted, rtol=1e-11)
    for array, other in zip(arrays, wanted_arrays, strict=True):
        np.testing.assert_allclose(array, other, rtol=1e-11)


@pytest.mark.parametrize("function", LOOPS)
def test_loops_over_slices_are_native(function: Callable[..., Any]) -> None:
    compiled = fusec.jit(function)
    _compare(function, compiled, N)
    assert "one native function" in str(fusec.explain(compiled, *_arrays()))


@pytest.mark.parametrize("function", [cholesky, back_substitution, lu])
def test_a_new_length_compiles_nothing(
    function: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled = fusec.jit(function)
    _compare(function, compiled, N)
    made: list[str] = []
    compile_ = llvm._compile
    monkeypatch.setattr(llvm, "_compile", lambda text, *r: made.append(text) or compile_(text, *r))
    _compare(function, compiled, N + 31)
    assert made == [] and compiled.trace_count == 1


def test_an_extremum_of_nothing_raises_in_a_native_loop() -> None:
    def function(x: Any, y: Any) -> Any:
        for i in range(len(x)):
            y[i] = x[i + 1:].max()
        return y

    x = np.arange(30.0)
    with pytest.raises(ValueError, match="zero-size array to reduction operation maximum"):
        fusec.jit(function)(x, np.zeros(30))


@pytest.mark.parametrize("at", [0, 1, 5, N - 1])
@pytest.mark.parametrize("cut", [
    lambda x, k: x[:k], lambda x, k: x[k:], lambda x, k: x[-k:], lambda x, k: x[k::-1],
    lambda x, k: x[k:3], lambda x, k: x[2:k:3], lambda x, k: x[:k - 40], lambda x, k: x[k:k + 4],
    lambda x, k: x[k + 100:], lambda x, k: x[:k:-2],
])
def test_computed_bounds(cut: Callable[[Any, Any], Any], at: int) -> None:
    def function(x: Any) -> Any:
        k = int(np.argmax(x))
        part = cut(x, k)
        return part * 2.0, part.sum(), len(part)

    x = np.zeros(N)
    x[at] = 1.0
    x += np.linspace(0, 0.1, N)
    wanted, found = function(x), fusec.jit(function)(x)
    np.testing.assert_array_equal(found[0], wanted[0])
    assert np.isclose(found[1], wanted[1]) and found[2] == wanted[2]


def test_a_window_is_a_view() -> None:
    def function(x: Any) -> Any:
        k = int(np.argmax(x))
        head = x[:k]
        head[0] = 50.0
        x[k:] = 0.0
        x[1] = 9.0
        return head

    random = np.random.default_rng(4).permutation(20.0 * np.arange(20))
    mine, theirs = random.copy(), random.copy()
    found, wanted = fusec.jit(function)(mine), function(theirs)
    np.testing.assert_array_equal(found, wanted)
    np.testing.assert_array_equal(mine, theirs)
    assert np.shares_memory(found, mine)
