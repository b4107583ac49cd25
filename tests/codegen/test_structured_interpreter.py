"""The interpreter of structured programs gives the native loop's results, and checks memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fusec
from fusec.codegen import backends
from fusec.codegen.structured import interpreter, statements
from fusec.codegen.structured.memory import Constant, Memory, View
from fusec.core.records import replace
from fusec.errors import InternalError

RNG = np.random.default_rng(11)
F64 = np.dtype("f8")


def insertion_sort(x: Any, n: Any) -> Any:
    for i in range(1, n):
        k = i
        while k > 0 and x[k - 1] > x[k]:
            x[k - 1], x[k] = x[k], x[k - 1]
            k -= 1
    return x


def rotated(x: Any, n: Any) -> Any:
    """Three arrays that change places, and one that is written in a branch."""
    y, z = x * 2, x[::-1] + 1
    for k in range(n):
        x, y, z = y, z, x
        if x[0] > y[0]:
            z[k % 4] = z[k % 4] + x.sum()
    return x, y, z


def cut(x: Any, n: Any) -> Any:
    """Lengths that only the run knows."""
    total = 0.0
    for k in range(n):
        part = x[k:n - k // 2]
        total = total + part.sum()
        x[:k] = x[n - k:n]
        x[x.shape[0] - 1] = x[x > 0.4].sum()
    return total, x


def turned(z: Any, n: Any) -> Any:
    """Complex numbers."""
    w = z[0]
    for k in range(n):
        w = w * z[k] + 1j
        z[k] = w.conjugate() / 2
    return w, z


def narrow(x: Any, n: Any) -> Any:
    """Integers that wrap, halves, booleans."""
    count, flags = np.uint8(250), np.zeros(5, np.bool_)
    for k in range(n):
        count = np.uint8(count + x[k])
        flags[k] = flags[k - 1] != (count > 3)
    return count, flags, np.float16(count) / np.float16(3)


Z = RNG.uniform(-1, 1, 6) + 1j * RNG.uniform(-1, 1, 6)
PROGRAMS: list[tuple[Callable, tuple[Any, ...]]] = [
    (insertion_sort, (RNG.integers(0, 30, 12), np.int64(12))),
    (rotated, (RNG.uniform(-1, 1, 4), np.int64(7))), (cut, (RNG.uniform(0, 1, 9), np.int64(6))),
    (turned, (Z, np.int64(5))), (narrow, (np.arange(5, dtype=np.uint8), np.int64(5))),
]


def results(using: str, f: Callable, args: tuple[Any, ...]) -> tuple[list[Any], list[Any]]:
    """Results and branches and loops, of a run that changes copies of the arguments."""
    with backends.using(using), fusec.config.override(verify=True):
        jitted = fusec.jit(f)
        made = jitted(*(a.copy() for a in args))
        control = jitted.concrete(*args).control
    return list(made) if isinstance(made, tuple) else [made], control


@pytest.mark.parametrize(("f", "args"), PROGRAMS, ids=[f.__name__ for f, _ in PROGRAMS])
def test_what_native_loops_give(f: Callable, args: tuple[Any, ...]) -> None:
    got, control = results("reference", f, args)
    want, native = results("cpu", f, args)
    assert control and all(c.is_native for c in [*control, *native])
    assert [c.structured for c in control] == [c.structured for c in native]
    for one, other in zip(got, want, strict=True):
        assert np.asarray(one).dtype == np.asarray(other).dtype
        np.testing.assert_allclose(one, other, rtol=1e-14)  # sums have another order


def test_an_error_leaves_what_was_computed() -> None:
    def run(using: str) -> tuple[str, np.ndarray]:
        x = np.arange(4.0)
        with backends.using(using), pytest.raises(IndexError) as found:
            fusec.jit(counted)(x, np.int64(6))
        return str(found.value), x

    def counted(x: np.ndarray, n: int) -> None:
        for k in range(n):
            x[k] = x[k - 1] + 1

    (message, x), (wanted, y) = run("reference"), run("cpu")
    assert message == wanted and "index 4" in message
    np.testing.assert_array_equal(x, y)


def test_calls_of_python_run_step_by_step() -> None:
    def solved(x: Any, n: Any) -> Any:
        for _ in range(n):
            x = np.sort(x) - 1
        return x

    got, (control,) = results("reference", solved, (np.array([3.0, 1.0]), np.int64(2)))
    np.testing.assert_array_equal(got[0], [-1.0, 1.0])
    assert "CallPython" in control.reason


def test_an_access_beyond_memory_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    build = interpreter.build_program
    temp = Memory(9_999, 16, F64, "temp")
    beyond = View(temp, (), (), F64, Constant(16, np.dtype(np.int64)))

    def broken(*args: Any) -> Any:
        program = build(*args)
        return replace(program, body=(statements.Declare(temp), statements.Store(
            beyond, Constant(1.0, F64)), *program.body))

    monkeypatch.setattr(interpreter, "build_program", broken)
    with backends.using("reference"), pytest.raises(InternalError, match="beyond its memory"):
        fusec.jit(lambda x, n: insertion_sort(x, n))(np.arange(3), np.int64(3))
