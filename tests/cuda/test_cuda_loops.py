"""Branches and loops of programs that are compiled for the emulated device as a whole."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from cuda_harness import assert_equal_bits, run_program

import fusec
from fusec.codegen import backends
from fusec.codegen.cuda.driver import nvrtc
from fusec.codegen.cuda.persistent import choice

RNG = np.random.default_rng(3)


def control_of(f: Callable, *args: Any) -> Any:
    """The only branch or loop, compiled for the emulated device."""
    with backends.using("cudahost"):
        (control,) = fusec.jit(f).concrete(*args).control
    return control


def running_sums(x: Any, limit: Any) -> Any:
    """Numbers alone, and elements."""
    total, i = 0.0, 0
    while total < limit and i < x.shape[0]:
        total = total + np.sin(x[i]) * x[-1 - i]
        x[i] = total
        i += 1
    return total, i, x


def relaxed(x: Any, steps: Any) -> Any:
    """Kernels, a reduction, a branch, an array that changes places."""
    for k in range(steps):
        y = x.copy()
        y[1:-1] = (x[:-2] + x[1:-1] + x[2:]) / 3
        if y.max() < 0.9:
            y[0] = y[0] + k
        x = y
    return x, x.sum()


def fibonacci(n: Any) -> Any:
    a, b = 0, 1
    for _ in range(n):
        a, b = b, (a + b) % 1_000_003
    return a


def shifted(x: Any, n: Any) -> Any:
    """Parts that overlap, lengths that the run knows, halves, booleans, small integers."""
    seen = np.zeros(x.shape[0], np.bool_)
    small = x.astype(np.float16)
    count = np.int8(100)
    for k in range(n):
        x[1 + k:] = x[k:-1]
        seen[k * 2 % x.shape[0]] = not seen[k]
        small[k] = small[k] * 3
        count = np.int8(count + np.int8(small[k] > 1))
    return x, seen, small, count


def chosen(x: Any, flag: Any) -> Any:
    """A branch without loops."""
    if flag:
        y = x * 2
        z = y.sum()
    else:
        y = x[::-1].copy()
        z = x[0, 0]
    return y, z


PROGRAMS: list[tuple[Callable, tuple[Any, ...]]] = [
    (running_sums, (RNG.uniform(0, 2, 40), 9.0)), (fibonacci, (np.int64(500),)),
    (relaxed, (RNG.uniform(0, 1, 300), np.int64(5))), (shifted, (RNG.uniform(-2, 2, 20), 9)),
    (chosen, (RNG.uniform(0, 1, (7, 9)), np.bool_(True))),
    (chosen, (RNG.uniform(0, 1, (7, 9)), np.bool_(False))),
]


@pytest.mark.parametrize(("f", "args"), PROGRAMS, ids=lambda x: getattr(x, "__name__", ""))
def test_results_have_the_bits_of_the_cpu(f: Callable, args: tuple[Any, ...]) -> None:
    with fusec.config.override(verify=True):
        assert control_of(f, *args).is_native
        got = run_program(f, *args)
    want = fusec.jit(f)(*(a.copy() if isinstance(a, np.ndarray) else a for a in args))
    for number, (one, other) in enumerate(zip(
            *(x if isinstance(x, tuple) else (x,) for x in (got, want)), strict=True)):
        if f in (relaxed, chosen) and number == 1:  # sums have an order of their own
            np.testing.assert_allclose(one, other, rtol=1e-14)
        else:
            assert_equal_bits(np.asarray(one), np.asarray(other), f.__name__)


def test_a_loop_shows_its_source(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "persistent(" in control_of(relaxed, RNG.uniform(0, 1, 300), np.int64(5)).asm["cu"]
    monkeypatch.setattr(choice, "forced", "launched")
    control = control_of(relaxed, RNG.uniform(0, 1, 300), np.int64(5))
    assert "__global__ void" in control.asm["cu"]
    assert "launch0(call, m0" in control.asm["py"]
    assert "loop:" in control.structured
    again = control_of(fibonacci, np.int64(50))
    assert "launch" not in again.asm["py"] and again.asm["py"] == control_of(
        fibonacci, np.int64(7)).asm["py"]  # numbers are no part of it


def test_an_error_leaves_what_was_computed() -> None:
    def swapped(x: np.ndarray, y: np.ndarray, n: int) -> None:
        a, b = x.copy(), y.copy()
        for k in range(n):
            x[k] = a[k] + 1
            a, b = b, a

    def run(using: str) -> tuple[str, np.ndarray]:
        x, y = np.zeros(5), np.arange(5.0)
        with backends.using(using), pytest.raises(IndexError) as found:
            fusec.jit(swapped)(x, y, np.int64(9))
        return str(found.value), x

    (message, x), (wanted, y) = run("cudahost"), run("cpu")
    assert message == wanted and "index 5" in message
    assert_equal_bits(x, y, "what was computed")


def test_an_error_of_the_program_itself() -> None:
    def root(x: Any, n: int) -> Any:
        for k in range(n):
            if x[k] < 0:
                raise ValueError("negative")
            x[k] = np.sqrt(x[k])
        return x

    assert control_of(root, np.ones(4), np.int64(3)).is_native
    with pytest.raises(ValueError, match="negative"):
        run_program(root, np.array([4.0, 9.0, -1.0]), np.int64(3))


def halved(x: Any, n: Any) -> Any:
    for _ in range(n):
        x = np.sort(x) * 0.5
    return x


def test_a_loop_that_calls_a_library_runs_step_by_step() -> None:
    x = RNG.uniform(0, 1, 20)
    assert "a call of Python" in control_of(halved, x, np.int64(2)).reason
    assert_equal_bits(run_program(halved, x.copy(), np.int64(2)),
                      fusec.jit(halved)(x.copy(), np.int64(2)), "halved")


@pytest.mark.skipif(not nvrtc.is_available(), reason="NVRTC: of the extra cuda")
@pytest.mark.parametrize("architecture", nvrtc.ARCHITECTURES)
def test_nvrtc_compiles_loops(architecture: str) -> None:
    for f, args in PROGRAMS[2:5]:
        for module in control_of(f, *args).asm.modules:
            usage = nvrtc.compile(module, architecture).usage
            assert all(0 < kernel.registers <= 255 for kernel in usage.values())
