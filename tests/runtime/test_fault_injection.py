"""The n-th operation of a kind fails, for n = 1, 2, ... until a call gets by without it.

Each call is right or ends with a clean error, and the next call is right.
"""

from __future__ import annotations

import builtins
import errno
import gc
import importlib.util
import itertools
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fusec
from fusec import config
from fusec.codegen.cpu.compile import clear_cache
from fusec.codegen.cpu.loops import program as loops
from fusec.codegen.machine_code import disk_cache
from fusec.runtime import memory
from fusec.runtime.launching import threads

MOST = 400  # a kind that happens more often than that is not what is meant


class Fault:
    """Fails the n-th of the calls that go through `wrapped`."""

    def __init__(self, number: int, error: Callable[[], BaseException]) -> None:
        self.left, self.error = number, error

    def wrapped(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            self.left -= 1
            if self.left == 0:
                raise self.error()
            return function(*args, **kwargs)
        return call

    @property
    def happened(self) -> bool:
        return self.left <= 0


def faults(error: Callable[[], BaseException]) -> Iterator[Fault]:
    """One fault after the other, until one does not happen any more."""
    for number in itertools.count(1):
        assert number < MOST
        fault = Fault(number, error)
        yield fault
        if not fault.happened:
            assert number > 1, "there was nothing to fail"
            return


def full_disk() -> OSError:
    return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


X = np.linspace(0.0, 1.0, 3000)


def program(x: np.ndarray) -> np.ndarray:
    return np.sqrt(x + 2.0) * x - 0.25


FILE_OPERATIONS = [
    (os, "open"), (os, "close"), (os, "fdopen"), (os, "stat"), (os, "lstat"), (os, "fstat"),
    (os, "mkdir"), (os, "chmod"), (os, "fchmod"), (os, "replace"), (os, "utime"), (os, "unlink"),
    (os, "scandir"), (builtins, "open"), (Path, "mkdir"), (Path, "unlink"), (Path, "exists"),
]


@pytest.mark.parametrize("state", ["no entry", "an entry", "a bad entry"])
def test_file_operations_of_the_disk_cache(
    state: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:
    expected = program(X)
    for number, fault in enumerate(faults(full_disk)):
        folder = tmp_path / str(number)
        with config.override(cache_dir=str(folder), log_level=0):
            if state != "no entry":
                clear_cache()
                fusec.jit(program)(X)
            if state == "a bad entry":
                for path in folder.glob("??/*"):
                    path.write_bytes(b"nonsense")
            clear_cache()
            with monkeypatch.context() as patch:
                for owner, name in FILE_OPERATIONS:
                    patch.setattr(owner, name, fault.wrapped(getattr(owner, name)))
                result = fusec.jit(program)(X)
            np.testing.assert_allclose(result, expected)
            clear_cache()
            np.testing.assert_allclose(fusec.jit(program)(X), expected)
            assert not list(folder.rglob("*.fusec-partial")) or fault.happened
    assert disk_cache.directory() is not None


def test_writes_to_stderr(monkeypatch: pytest.MonkeyPatch) -> None:
    class Stream:
        def __init__(self, fault: Fault) -> None:
            self.write = fault.wrapped(lambda text: len(text))

        def flush(self) -> None:
            pass

    expected = program(X)
    with config.override(log_level=5, history=True):
        for fault in faults(full_disk):
            with monkeypatch.context() as patch:
                patch.setattr(sys, "stderr", Stream(fault))
                f = fusec.jit(program)
                np.testing.assert_allclose(f(X), expected)
                np.testing.assert_allclose(f(X), expected)


def test_starts_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.linspace(0.0, 1.0, 500_000)
    expected = program(x)
    f = fusec.jit(program)
    have = len(threads._workers.threads)
    for number, fault in enumerate(faults(lambda: RuntimeError("can't start new thread"))):
        with config.override(num_threads=have + 3 + number, parallel_threshold=0, log_level=0):
            with monkeypatch.context() as patch:
                patch.setattr(threading.Thread, "start", fault.wrapped(threading.Thread.start))
                f.clear()
                np.testing.assert_allclose(f(x), expected)
            np.testing.assert_allclose(f(x), expected)
        if number > 3:
            break


def stepwise(x: np.ndarray, n: int) -> np.ndarray:
    v = np.sort(x * 2.0)
    for i in range(n):
        v = v[::-1] * 0.5 + np.cumsum(v) * 0.001 + i  # which needs memory
    return np.linalg.norm(v) + v


def test_memory_of_steps_and_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.linspace(1.0, 0.0, 20_000)
    expected = stepwise(x, 5)
    f = fusec.jit(stepwise)
    f(x, 3), f(x, 4)
    np.testing.assert_allclose(f(x, 5), expected)
    for fault in faults(MemoryError):
        with monkeypatch.context() as patch:
            patch.setattr(memory, "empty", fault.wrapped(memory.empty))
            try:
                np.testing.assert_allclose(f(x, 5), expected)
            except MemoryError:
                assert fault.happened
        np.testing.assert_allclose(f(x, 5), expected)


def test_compiles_that_fail_leave_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    """Out of memory at each module that a call compiles."""
    from fusec.codegen.machine_code import llvm

    x = np.linspace(1.0, 0.0, 2000)
    expected = stepwise(x, 5)
    for fault in faults(MemoryError):
        clear_cache(), loops.clear_cache()
        f = fusec.jit(stepwise)
        with monkeypatch.context() as patch, config.override(cache_dir="off"):
            patch.setattr(llvm, "_check_memory", fault.wrapped(llvm._check_memory))
            try:
                f(x, 3), f(x, 4)
                np.testing.assert_allclose(f(x, 5), expected)
            except MemoryError:
                assert fault.happened
        np.testing.assert_allclose(f(x, 5), expected)


# --- allocations of native code ------------------------------------------------------------------

NATIVE = """
import ctypes, gc, itertools, sys
import numpy as np
from fusec.runtime import native
import fusec.runtime.native.allocator as allocator

real = ctypes.CDLL(None).posix_memalign
real.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t]
left, failed = [1 << 40], [0]

@ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t)
def posix_memalign(place, alignment, size):
    left[0] -= 1
    if left[0] in (0, -1):  # the allocator tries once more after giving back what it kept
        failed[0] += 1
        return 12
    return real(place, alignment, size)

find = native.libc_addresses
def libc_addresses(*names):
    found = find(*names)
    if "posix_memalign" in found:
        found["posix_memalign"] = ctypes.cast(posix_memalign, ctypes.c_void_p).value
    return found
allocator.libc_addresses = libc_addresses

import fusec
from fusec.runtime import memory

@fusec.jit
def f(x):
    y = np.cumsum(x) * 2.0
    z = np.exp(-y).sum() + y
    return y, z, z.mean(), (z * y)[::2]

@fusec.jit
def update(x):
    total = (x * x).sum()
    x += 1.0
    return total, x * 2.0

x = np.linspace(0.0, 1.0, 100_000)
expected = [np.asarray(r).copy() for r in f(x)]
errors = 0
for n in itertools.count(1):
    memory.release_memory()
    before = memory.memory_stats().live_bytes
    failed[0], left[0] = 0, n
    try:
        results = f(x)
        assert all(np.allclose(a, b) for a, b in zip(results, expected))
    except MemoryError:
        errors += 1
        assert failed[0] == 2
    left[0] = 1 << 40
    results = None
    gc.collect()
    assert memory.memory_stats().live_bytes == before, "a block was lost"
    assert all(np.allclose(a, b) for a, b in zip(f(x), expected))
    y = x.copy()
    update(y)
    memory.release_memory()
    failed[0], left[0], y[:] = 0, n, x
    try:
        total, doubled = update(y)
        assert np.allclose(doubled, (x + 1.0) * 2.0) and np.array_equal(y, x + 1.0)
    except MemoryError:
        assert np.array_equal(y, x) or np.array_equal(y, x + 1.0)
    left[0], y[:] = 1 << 40, x
    assert np.allclose(update(y)[1], (x + 1.0) * 2.0)
    if n > 12:
        break
print(errors)
"""


@pytest.mark.skipif(os.name != "posix", reason="the native allocator needs posix_memalign")
def test_allocations_of_the_native_allocator(tmp_path: Path) -> None:
    file = tmp_path / "program.py"
    file.write_text(NATIVE)
    done = subprocess.run([sys.executable, str(file)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) >= 3


@pytest.mark.skipif(importlib.util.find_spec("_testcapi") is None,
                    reason="this Python comes without what fails its allocations")
def test_allocations_of_python_in_a_cached_call(tmp_path: Path) -> None:
    """Every object that the launcher makes: arrays, tuples, numbers.  (optree, which puts results
    into containers, says TypeError where it cannot.)"""
    file = tmp_path / "program.py"
    file.write_text("""
import _testcapi, gc, itertools
import numpy as np
import fusec

@fusec.jit
def f(x, a):
    y = x * a
    return y, y + 1.0, y.sum(), x.shape[0] * 1000, y.max(), y.min() * 1j

@fusec.jit
def g(x):
    return x.sum(), x * 2.0

x = np.linspace(0.0, 1.0, 50)
big = np.linspace(0.0, 1.0, 30_000)
good = {}
for name, call in (("f", lambda: f(x, 2.5)), ("g", lambda: g(x)), ("big", lambda: g(big))):
    expected = repr(call())
    failures = 0
    gc.collect()
    gc.disable()
    for n in itertools.count(1):
        _testcapi.set_nomemory(n, n + 1)
        try:
            result = call()
        except MemoryError:
            result = None
        finally:
            _testcapi.remove_mem_hooks()
        if result is None:
            failures += 1
        else:
            assert repr(result) == expected
        assert repr(call()) == expected
        if n > 60:
            break
    gc.enable()
    good[name] = failures
print(good["f"] > 0, good["g"] > 0, good["big"] > 0)
""")
    done = subprocess.run([sys.executable, str(file)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "True True True\n"


def test_gc_in_the_middle_of_calls() -> None:
    """A collection at every allocation, with destructors that call compiled functions."""
    f = fusec.jit(program)
    expected = f(X)
    inner: list[bool] = []

    class Calls:
        def __init__(self) -> None:
            self.itself = self

        def __del__(self) -> None:
            inner.append(np.array_equal(f(X), expected))

    before = gc.get_threshold()
    gc.set_threshold(1)
    try:
        for _ in range(100):
            Calls()
            assert np.array_equal(f(X), expected)
    finally:
        gc.set_threshold(*before)
    gc.collect()
    assert len(inner) == 100 and all(inner)
