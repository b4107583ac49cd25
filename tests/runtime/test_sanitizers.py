"""Launcher, pool, allocator, loops and kernels under ThreadSanitizer and AddressSanitizer."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from sanitized import checked, library, run

from fusec.runtime.native import allocator, interrupts, launcher, pool

KINDS = ("thread", "address")
pytestmark = [pytest.mark.one_python, pytest.mark.skipif(
    not all(map(library, KINDS)), reason="the sanitizers' libraries come with GCC on Linux")]

WORKLOAD = """
import gc, threading
import numpy as np
import fusec
from fusec import config
from fusec.runtime import memory

config.parallel_threshold = 1000
x = np.linspace(0.0, 1.0, 100_000)
table = np.arange(50.0)

@fusec.jit
def shared(x):
    y = np.exp(-x) * x + 1.0
    return y, y.sum(), np.sqrt(y)

@fusec.jit
def picked(table, index):
    return table[index] * 2.0

@fusec.jit
def loop(x, n):
    s = 0.0
    for i in range(n):
        s = s * 0.5 + x[i]
    return s

@fusec.jit
def updated(x):
    x += 1.0
    return x.sum()

expected = [np.asarray(r).copy() for r in shared(x)]
loop(x, 2), loop(x, 3)
total = loop(x, 5000)
good, bad = np.arange(40_000) % 50, np.full(40_000, 51)
picked(table, good)
wrong = []

def work(seed):
    rng = np.random.default_rng(seed)
    held = []
    for step in range(ROUNDS):
        kind = rng.integers(6)
        if kind <= 1:
            results = shared(x)
            if not all(np.array_equal(a, b) for a, b in zip(results, expected)):
                wrong.append(("shared", seed, step))
            held.append(results[0])
        elif kind == 2:
            try:
                picked(table, bad if step % 2 else good)
                assert not step % 2
            except IndexError:
                assert step % 2
        elif kind == 3:
            if loop(x, 5000) != total:
                wrong.append(("loop", seed, step))
        elif kind == 4:
            mine = np.zeros(70_000)
            if updated(mine) != 70_000.0 or mine[-1] != 1.0:
                wrong.append(("updated", seed, step))
        else:
            f = fusec.jit(lambda x: x * float(seed) + 1.0)  # a plan that is dropped
            f(x[: 9000 + step])
        if step % 5 == 4:
            held.clear()
        if step % 11 == 10:
            gc.collect()

workers = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
for worker in workers:
    worker.start()
for step in range(ROUNDS // 2):
    config.num_threads = 1 + step % 3
    config.memory_cap_bytes = (0, 1 << 20, 1 << 30)[step % 3]
    memory.release_memory()
    if step % 6 == 5:
        fusec.clear_caches()
    shared(x)
for worker in workers:
    worker.join()
assert not wrong, wrong[:3]
print("done", memory.memory_stats().hits > 0)
"""

RACE = """
import ctypes, threading
from fusec.codegen.machine_code import llvm

code = llvm.compile_ir('''
define void @add(ptr %p) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %n, %loop ]
  %v = load i64, ptr %p
  %w = add i64 %v, 1
  store i64 %w, ptr %p
  %n = add i64 %i, 1
  %more = icmp slt i64 %n, 3000000
  br i1 %more, label %loop, label %done
done:
  ret void
}''')
word = ctypes.c_int64()
add = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(code.address("add"))
barrier = threading.Barrier(2)

def work():
    barrier.wait()
    add(ctypes.addressof(word))

both = [threading.Thread(target=work) for _ in range(2)]
[t.start() for t in both], [t.join() for t in both]
"""
OVERRUN = """
import ctypes
from fusec.codegen.machine_code import llvm

code = llvm.compile_ir('''
define void @put(ptr %p, i64 %i) {
  %q = getelementptr i64, ptr %p, i64 %i
  store i64 1, ptr %q
  ret void
}''')
malloc = ctypes.CDLL(None).malloc
malloc.restype = ctypes.c_void_p
block = malloc(ctypes.c_size_t(80))
put = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)(code.address("put"))
put(block, 9)
print("inside")
put(block, 10)
"""


@pytest.mark.parametrize(("kind", "rounds"), [("thread", 40), ("address", 60)])
def test_the_runtime_under_a_sanitizer(kind: str, rounds: int, tmp_path: Path) -> None:
    done = run(kind, WORKLOAD.replace("ROUNDS", str(rounds)), tmp_path)
    assert done.returncode == 0, done.stderr[:4000]
    assert done.stdout == "done True\n"


@pytest.mark.parametrize(("kind", "program", "found"), [
    ("thread", RACE, "WARNING: ThreadSanitizer: data race"),
    ("address", OVERRUN, "ERROR: AddressSanitizer: heap-buffer-overflow"),
])
def test_the_sanitizers_see_generated_code(
    kind: str, program: str, found: str, tmp_path: Path,
) -> None:
    done = run(kind, program, tmp_path)
    assert done.returncode == 66 and found in done.stderr


ACCESS = re.compile(r"^\s*(%\S+ = )?(load|store|atomicrmw|cmpxchg) ")


@pytest.mark.parametrize("kind", KINDS)
def test_every_access_of_the_runtime_is_instrumented(kind: str) -> None:
    for module in (pool, allocator, launcher, interrupts):
        lines = [line for line in module.source().split("\n") if ACCESS.match(line)]
        atomic = [line for line in lines if "atomic" in line or "cmpxchg" in line]
        plain = [line for line in lines if line not in atomic]
        assert plain and all(len(checked(line, kind)) == 2 for line in plain)
        assert kind == "address" or all(checked(line, kind) != [line] for line in atomic)
