"""The native launcher: guards, stores, outputs, temporaries, threads, references."""

from __future__ import annotations

import ctypes
import functools
import gc
import os
import struct
import sys
import threading
import time
import timeit

import numpy as np
import pytest
from forks import does_well

from fusec.codegen.machine_code.llvm import NativeCode, compile_ir
from fusec.runtime import memory
from fusec.runtime.launching import launch, threads
from fusec.runtime.launching import launch_spec as spec
from fusec.runtime.native import NativeUnavailableError, launcher, numpy_api

F8 = np.dtype(np.float64)

KERNELS = """
; out[i] = x[i] + y[i]; words: x, y, out
define void @add(ptr %words, i64 %begin, i64 %end) {
entry:
  %x = load ptr, ptr %words
  %yword = getelementptr i64, ptr %words, i64 1
  %y = load ptr, ptr %yword
  %oword = getelementptr i64, ptr %words, i64 2
  %o = load ptr, ptr %oword
  br label %loop
loop:
  %i = phi i64 [ %begin, %entry ], [ %next, %loop ]
  %xp = getelementptr double, ptr %x, i64 %i
  %yp = getelementptr double, ptr %y, i64 %i
  %op = getelementptr double, ptr %o, i64 %i
  %a = load double, ptr %xp
  %b = load double, ptr %yp
  %sum = fadd double %a, %b
  store double %sum, ptr %op
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %end
  br i1 %more, label %loop, label %done
done:
  ret void
}

; out[i] = words[1 + i]; words[0] is the address of out
define void @spill(ptr %words, i64 %begin, i64 %end) {
entry:
  %o = load ptr, ptr %words
  br label %loop
loop:
  %i = phi i64 [ %begin, %entry ], [ %next, %loop ]
  %next = add i64 %i, 1
  %wp = getelementptr i64, ptr %words, i64 %next
  %w = load i64, ptr %wp
  %op = getelementptr i64, ptr %o, i64 %i
  store i64 %w, ptr %op
  %more = icmp slt i64 %next, %end
  br i1 %more, label %loop, label %done
done:
  ret void
}

; announces itself in words[0], then waits until words[1] is not zero
define void @wait(ptr %words, i64 %begin, i64 %end) {
entry:
  store atomic i64 1, ptr %words seq_cst, align 8
  %flag = getelementptr i64, ptr %words, i64 1
  br label %loop
loop:
  %v = load atomic i64, ptr %flag seq_cst, align 8
  %zero = icmp eq i64 %v, 0
  br i1 %zero, label %loop, label %done
done:
  ret void
}
"""


@functools.cache
def kernels() -> NativeCode:
    return compile_ir(KERNELS)


@functools.cache
def kernel(name: str) -> int:
    return kernels().address(name)


class Words:
    """Argument words of a kernel."""

    def __init__(self, count: int):
        self.table = (ctypes.c_int64 * count)()
        self.address = ctypes.addressof(self.table)

    def store(self, index: int, **options: int) -> tuple[spec.WordStore, ...]:
        return (spec.WordStore(self.address + 8 * index, **options),)

    def step(self, name: str, ntasks: int, **options: object) -> tuple[spec.NativeStep, ...]:
        return (spec.NativeStep(kernel(name), self.address, ntasks, **options),)  # type: ignore[arg-type]


def vector(words: Words, index: int, n: int, **options: object) -> spec.ArrayArg:
    return spec.ArrayArg(F8, (n,), (8,), words.store(index), **options)  # type: ignore[arg-type]


def add_plan(n: int = 10, **options: object) -> launch.NativePlan:
    words = Words(3)
    out = spec.ArrayOut(F8, (n,), (8,), words.store(2))
    steps = words.step("add", n, grain=1000, parallel=bool(options.pop("parallel", False)))
    return launch.NativePlan(spec.PlanSpec(  # type: ignore[arg-type]
        (vector(words, 0, n), vector(words, 1, n)), (out,), steps, keep=(words,), **options))


def spill_plan(*args: spec.Arg, words: Words, count: int) -> launch.NativePlan:
    """A plan that returns `count` argument words as a uint64 array."""
    out = spec.ArrayOut(np.dtype(np.uint64), (count,), (8,), words.store(0))
    return launch.NativePlan(spec.PlanSpec(args, (out,), words.step("spill", count), keep=(words,)))


def test_the_launcher_is_in_use_here() -> None:
    status = launch.launcher_status()
    assert status.available, status.reason


def test_two_arrays() -> None:
    plan = add_plan()
    x, y = np.arange(10.0), np.full(10, 0.5)
    result = plan.call(x, y)
    assert type(result) is np.ndarray and result.flags.owndata and result.base is None
    assert result.tolist() == (x + y).tolist() and plan.status == 0


@pytest.mark.parametrize("n", [100_000, 1_000_000])
@pytest.mark.parametrize("parallel", [False, True])
@pytest.mark.parametrize("release_gil", [False, True])
def test_big_outputs_use_recycled_memory(n: int, parallel: bool, release_gil: bool) -> None:
    plan = add_plan(n, parallel=parallel, release_gil=release_gil)
    x, y = np.random.default_rng(0).random((2, n))
    result = plan.call(x, y)
    assert numpy_api.handler_name(result) == memory.HANDLER_NAME
    assert (result == x + y).all()
    address = result.ctypes.data
    del result
    assert plan.call(x, y).ctypes.data == address


class Sub(np.ndarray):
    pass


def _frozen() -> np.ndarray:
    array = np.ones(10)
    array.flags.writeable = False
    return array


def _misaligned() -> np.ndarray:
    return np.zeros(81, np.uint8)[1:].view(F8)


@pytest.mark.parametrize("bad", [
    1.0, None, [1.0] * 10, np.ones(9), np.ones((10, 1)), np.ones((2, 5)), np.ones(20)[::2],
    np.ones(10)[::-1], np.ones(10, np.float32), np.ones(10, ">f8"), np.ones(10).view(Sub),
    np.float64(1), _misaligned(), np.ones(()),
])
def test_unfit_arrays_miss(bad: object) -> None:
    plan, good = add_plan(), np.ones(10)
    assert plan.call(bad, good) is launch.MISS
    assert plan.call(good, bad) is launch.MISS
    assert plan.call(good, good).tolist() == [2.0] * 10


@pytest.mark.parametrize("count", [0, 1, 3])
def test_wrong_number_of_arguments_misses(count: int) -> None:
    assert add_plan().call(*[np.ones(10)] * count) is launch.MISS


def test_keywords_are_refused() -> None:
    with pytest.raises(TypeError, match="no keyword arguments"):
        add_plan().call(np.ones(10), y=np.ones(10))


def test_writeable_arguments() -> None:
    words = Words(2)
    wanted = spec.PlanSpec((vector(words, 1, 10, writeable=True),), (spec.ArgOut(0),), ())
    plan = launch.NativePlan(wanted)
    assert plan.call(_frozen()) is launch.MISS
    array = np.ones(10)
    assert plan.call(array) is array


def test_any_stride_and_offset() -> None:
    words = Words(2)
    arg = spec.ArrayArg(F8, (1, 4), (None, 8), words.store(1, offset=24))
    plan = spill_plan(arg, words=words, count=1)
    array = np.ones((3, 4))
    for view in (array[::2][:1], array[:1], array[1:2]):
        assert plan.call(view).tolist() == [view.ctypes.data + 24]
    assert plan.call(array.T[:, :1].T[:, ::-1]) is launch.MISS


SCALARS = [1.5, -0.0, float("nan"), np.float64(2.25), np.float32(-3.5), np.float16(0.5),
           np.int8(-3), np.uint8(200), np.int16(-300), np.int32(-7), np.int64(-(1 << 60)),
           np.uint64((1 << 64) - 1), np.bool_(True), np.complex64(1 - 2j)]


@pytest.mark.parametrize("value", SCALARS, ids=lambda v: f"{type(v).__name__}_{v}")
def test_raw_scalars(value: object) -> None:
    words = Words(2)
    plan = spill_plan(spec.ScalarArg(type(value), words.store(1)), words=words, count=1)
    wanted = np.asarray(value).tobytes().ljust(8, b"\0")
    assert plan.call(value).tobytes() == wanted
    assert plan.call("text") is launch.MISS
    assert plan.call(np.asarray(value)) is launch.MISS


@pytest.mark.parametrize("value", [1.5 - 2j, np.complex128(-0.5 + 3j)])
def test_complex_scalars(value: complex) -> None:
    words = Words(3)
    arg = spec.ScalarArg(type(value), words.store(1) + words.store(2, offset=8))
    plan = spill_plan(arg, words=words, count=2)
    assert plan.call(value).view(np.complex128).tolist() == [value]


def test_python_numbers_are_told_apart() -> None:
    words = Words(2)
    floats = spill_plan(spec.ScalarArg(float, words.store(1)), words=words, count=1)
    ints = spill_plan(spec.IntArg(words.store(1)), words=words, count=1)
    bools = spill_plan(spec.BoolArg(words.store(1)), words=words, count=1)
    assert floats.call(np.float64(1)) is floats.call(1) is floats.call(True) is launch.MISS
    assert ints.call(1.0) is ints.call(True) is ints.call(np.int64(1)) is launch.MISS
    assert bools.call(1) is bools.call(np.True_) is launch.MISS
    assert bools.call(True).tolist() == [1] and bools.call(False).tolist() == [0]


def _bits(code: str, value: float) -> int:
    return int.from_bytes(struct.pack("<" + code, value), "little")


def test_conversions() -> None:
    words = Words(2)
    as_f32 = spill_plan(spec.ScalarArg(float, words.store(1, mode=spec.F64_AS_F32)),
                        words=words, count=1)
    assert as_f32.call(0.1).tolist() == [_bits("f", 0.1)]
    int_f64 = spill_plan(spec.IntArg(words.store(1, mode=spec.INT_AS_F64)),
                         words=words, count=1)
    assert int_f64.call(-3).tolist() == [_bits("d", -3.0)]
    assert int_f64.call((1 << 62) + 1).tolist() == [_bits("d", float((1 << 62) + 1))]
    int_f32 = spill_plan(spec.IntArg(words.store(1, mode=spec.INT_AS_F32)),
                         words=words, count=1)
    assert int_f32.call(7).tolist() == [_bits("f", 7.0)]


@pytest.mark.parametrize("value", [0, 1, -1, 255, (1 << 63) - 1, -(1 << 63)])
def test_integers(value: int) -> None:
    words = Words(2)
    plan = spill_plan(spec.IntArg(words.store(1)), words=words, count=1)
    assert plan.call(value).view(np.int64).tolist() == [value]
    assert plan.call(1 << 63) is plan.call(-(1 << 63) - 1) is plan.call(1 << 200) is launch.MISS


def test_integer_bounds() -> None:
    words = Words(2)
    plan = spill_plan(spec.IntArg(words.store(1), low=-2, high=3), words=words, count=1)
    fits = [plan.call(value) is not launch.MISS for value in (-3, -2, 0, 3, 4)]
    assert fits == [False, True, True, True, False]


def test_object_arguments_and_outputs() -> None:
    mark = object()
    outs = (spec.ArgOut(0), spec.ObjectOut(mark), spec.ObjectOut(None))
    plan = launch.NativePlan(spec.PlanSpec((spec.ObjectArg("axis"),), outs, (), as_tuple=True))
    assert plan.call("axis") == ("axis", mark, None)
    assert plan.call(mark) is launch.MISS
    empty = launch.NativePlan(spec.PlanSpec((), (), (), as_tuple=True))
    assert empty.call() == ()


@pytest.mark.parametrize(("kind", "value"), [
    (float, -1.5), (int, -(1 << 62)), (bool, True), (bool, False), (complex, 1 - 2j),
    (np.dtype(np.float64), np.float64(2.5)), (np.dtype(np.float32), np.float32(0.1)),
    (np.dtype(np.int8), np.int8(-1)), (np.dtype(bool), np.True_),
    (np.dtype(np.complex64), np.complex64(3j)),
])
def test_scalar_outputs(kind: object, value: object) -> None:
    storage = np.frombuffer(bytearray(np.asarray(value).tobytes().ljust(16, b"\0")), np.uint8)
    out = spec.ScalarOut(kind, storage.ctypes.data)  # type: ignore[arg-type]
    plan = launch.NativePlan(spec.PlanSpec((), (out,), (), keep=(storage,)))
    result = plan.call()
    assert type(result) is type(value) and result == value


def test_view_outputs() -> None:
    words = Words(1)
    arg = spec.ArrayArg(F8, (4, 5), (40, 8), writeable=True)
    out = spec.ViewOut(0, F8, (5, 2), (8, 80), offset=40)
    plan = launch.NativePlan(spec.PlanSpec((arg,), (out,), (), keep=(words,)))
    array = np.arange(20.0).reshape(4, 5).copy()
    view = plan.call(array)
    assert (view == array[1::2].T).all()
    assert view.base is array and not view.flags.owndata and view.flags.writeable
    view[0, 0] = -1
    assert array[1, 0] == -1
    references = sys.getrefcount(array)
    del view
    assert sys.getrefcount(array) == references - 1


@pytest.mark.parametrize(("shape", "strides"), [
    ((), ()), ((0, 3), (24, 8)), ((3, 4), (8, 24)), ((300, 400), (8, 2400)), ((1,), (8,))])
def test_output_layouts(shape: tuple[int, ...], strides: tuple[int, ...]) -> None:
    words = Words(1)
    out = spec.ArrayOut(F8, shape, strides, words.store(0))
    result = launch.NativePlan(spec.PlanSpec((), (out,), (), keep=(words,))).call()
    assert (result.shape, result.dtype) == (shape, F8) and result.flags.owndata
    # NumPy itself gives arrays without elements strides of zero.
    assert result.strides == (strides if result.size else np.empty(shape).strides)
    assert words.table[0] == result.ctypes.data
    result[...] = 2.0


def test_temporaries() -> None:
    first, second = Words(3), Words(3)
    n = 20_000
    temp = spec.Temp(8 * n, first.store(2) + second.store(0))
    args = (spec.ArrayArg(F8, (n,), (8,), first.store(0) + second.store(1)), vector(first, 1, n))
    out = spec.ArrayOut(F8, (n,), (8,), second.store(2))
    plan = launch.NativePlan(spec.PlanSpec(
        args, (out,), first.step("add", n) + second.step("add", n), (temp,), keep=(first, second)))
    x, y = np.arange(float(n)), np.ones(n)
    live = memory.memory_stats().live_bytes
    result = plan.call(x, y)
    assert (result == (x + y) + x).all()
    assert 0 < memory.memory_stats().live_bytes - live < 2 * 8 * n
    assert first.table[2] % 64 == 0


def test_relations() -> None:
    words = Words(2)
    args = (spec.ArrayArg(F8, (8,), (8,)), spec.ArrayArg(F8, (8,), (-8,)))
    apart = launch.NativePlan(spec.PlanSpec(args, (spec.ObjectOut(1),), (),
                                        relations=(spec.Disjoint(0, 1),), keep=(words,)))
    memory_ = np.zeros(24)
    assert apart.call(memory_[:8], memory_[8:16][::-1]) == 1
    assert apart.call(memory_[8:16], memory_[:8][::-1]) == 1
    assert apart.call(memory_[:8], memory_[7:15][::-1]) is launch.MISS
    assert apart.call(memory_[:8], memory_[:8][::-1]) is launch.MISS
    both = (spec.ArrayArg(F8, (8,), (8,)),) * 2
    same = launch.NativePlan(spec.PlanSpec(both, (spec.ObjectOut(1),), (),
                                       relations=(spec.SameMemory(0, 1),)))
    assert same.call(memory_[:8], memory_[:8]) == 1
    assert same.call(memory_[:8], memory_[1:9]) is launch.MISS


def test_a_kernel_may_fail() -> None:
    words = Words(2)
    wanted = spec.PlanSpec(
        (spec.IntArg(words.store(1)),), (spec.ArrayOut(F8, (10_000,), (8,)),),
        words.step("spill", 1), status_slots=(words.address,), keep=(words,))
    plan = launch.NativePlan(wanted)
    live = memory.memory_stats().live_bytes
    assert plan.call(7) is launch.FAILED and plan.status == 7
    assert memory.memory_stats().live_bytes == live
    assert type(plan.call(0)) is np.ndarray and plan.status == 0


def test_memory_error_leaves_the_plan_usable() -> None:
    huge = 1 << 46
    plan = launch.NativePlan(spec.PlanSpec(
        (), (spec.ArrayOut(F8, (5,), (8,)), spec.ArrayOut(F8, (huge,), (8,))), (),
        as_tuple=True))
    temp = launch.NativePlan(spec.PlanSpec((), (spec.ObjectOut(1),), (), (spec.Temp(huge, ()),)))
    for _ in range(2):
        with pytest.raises(MemoryError):
            plan.call()
        with pytest.raises(MemoryError):
            temp.call()


def test_busy() -> None:
    words = Words(2)
    plan = launch.NativePlan(spec.PlanSpec((), (spec.ObjectOut("ok"),), words.step("wait", 1),
                                       release_gil=True, keep=(words,)))
    results: list[object] = []
    thread = threading.Thread(target=lambda: results.append(plan.call()))
    thread.start()
    deadline = time.monotonic() + 30
    while not words.table[0] and time.monotonic() < deadline:
        time.sleep(0.001)
    assert plan.call() is launch.BUSY
    words.table[1] = 1
    thread.join(30)
    assert results == ["ok"] and plan.call() == "ok"


def test_the_builtin_keeps_its_plan_alive() -> None:
    call = add_plan().call
    gc.collect()
    junk = [(ctypes.c_int64 * 12)(*[-1] * 12) for _ in range(1000)]
    assert call(np.ones(10), np.ones(10)).tolist() == [2.0] * 10
    del junk


def test_references_are_balanced() -> None:
    plan, x, y = add_plan(), np.ones(10), np.ones(10)
    mark = object()
    constants = launch.NativePlan(spec.PlanSpec((spec.ObjectArg(mark),), (spec.ArgOut(0),), ()))
    storage = np.zeros(2)
    scalars = launch.NativePlan(spec.PlanSpec((), (spec.ScalarOut(F8, storage.ctypes.data),), ()))
    watched = (x, y, F8, mark, launch.MISS, np.ndarray)
    before = [sys.getrefcount(item) for item in watched]
    for _ in range(1000):
        plan.call(x, y)
        plan.call(x, 1)
        constants.call(mark)
        scalars.call()
    assert [sys.getrefcount(item) for item in watched] == before


def test_nothing_leaks() -> None:
    x, y = np.ones(20_000), np.ones(20_000)

    def work(count: int) -> None:
        for _ in range(count):
            plan = add_plan(20_000)
            for _ in range(20):
                plan.call(x, y)

    def resident() -> int:
        with open("/proc/self/statm") as statm:
            return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    work(50)
    live, before = memory.memory_stats().live_bytes, resident()
    work(200)
    gc.collect()
    assert memory.memory_stats().live_bytes == live
    assert resident() - before < 8 << 20


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_launches_in_parallel() -> None:
    threads.set_num_threads(2)
    plan = add_plan(100_000, parallel=True, release_gil=True)
    x = np.ones(100_000)
    assert plan.call(x, x).sum() == 200_000
    assert does_well(lambda: plan.call(x, x).sum() == 200_000 and (
        len(threads._workers.threads) == 1))


@pytest.mark.alone
def test_a_call_takes_microseconds() -> None:
    call, x, y = add_plan().call, np.ones(10), np.ones(10)
    best = min(timeit.repeat(lambda: call(x, y), number=5000, repeat=5)) / 5000
    assert best < 5e-6


def test_unknown_layout_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> None:
        raise NativeUnavailableError("objects are elsewhere")

    monkeypatch.setattr(launcher, "code", refuse)
    made, status = launch._make()
    assert made is None and "objects are elsewhere" in status.reason
