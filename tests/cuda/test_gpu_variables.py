"""Variables of calls with arrays of a GPU: their values stay there until somebody wants them."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from fake_cupy import FakeCupy, as_gpu
from forks import does_well

import fusec
from fusec.codegen.cuda.emulated_backend import DRIVER
from fusec.core.occupancy import AWAY
from fusec.runtime.launching.outcomes import MISS

X = np.random.default_rng(0).normal(size=(20, 30))
RATE = 0.125


@pytest.fixture
def cupy(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeCupy]:
    with as_gpu(monkeypatch) as fake:
        yield fake


def copied(fake: FakeCupy) -> list[int]:
    """The bytes of each copy since it was asked last, of those that are an array's."""
    sent, fake.sent[:] = fake.sent[:], []
    return [nbytes for nbytes in sent if nbytes >= 100]


def variable(value: Any, device: str = "GPU:0") -> fusec.Variable:
    with fusec.device(device):
        return fusec.Variable(value)


class Model:
    def __init__(self, device: str) -> None:
        self.w, self.b = variable(np.linspace(0, 1, 30), device), variable(np.zeros(30), device)

    def values(self) -> list[np.ndarray]:
        return [self.w.numpy(), self.b.numpy()]


def trained(model: Model, x: Any) -> Any:
    error = x * model.w + model.b
    model.w.assign_sub(RATE * (error * x).sum(axis=0))
    model.b.assign_sub(RATE * error.sum(axis=0))
    return error


def test_values_stay_on_the_gpu(cupy: FakeCupy) -> None:
    """Steps copy nothing; who reads a value copies it once; then the GPU still has it."""
    model, same = Model("GPU:0"), Model("CPU:0")
    step, host = fusec.jit(lambda x: trained(model, x)), fusec.jit(lambda x: trained(same, x))
    x = cupy.asarray(X)
    step(x), host(X)
    copied(cupy)
    for _ in range(4):
        got, want = step(x), host(X)
        assert copied(cupy) == []
        np.testing.assert_allclose(got.get(), want, rtol=1e-9)
    for _ in range(2):
        for one, other in zip(model.values(), same.values(), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-9)
    assert copied(cupy) == [240, 240]
    assert step.traces[0].gpu_call.function is not None  # one call of launches, values kept
    step(x), host(X)
    assert copied(cupy) == []
    np.testing.assert_allclose(model.w.numpy(), same.w.numpy(), rtol=1e-9)


def test_functions_of_the_cpu_have_the_new_value(cupy: FakeCupy) -> None:
    """The native launcher reads a Variable's own memory, and leaves that to Python when it is old.
    Assignments on the host are new for the GPU."""
    v = variable(np.arange(30.0))

    @fusec.jit
    def doubled(x: Any) -> Any:
        v.assign(v * 2)
        return x + v

    plus = fusec.jit(lambda x: x + v)
    x, want = cupy.asarray(X), np.arange(30.0)
    for number in range(4):
        want = want * 2
        np.testing.assert_array_equal(doubled(x).get(), X + want)
        assert v.occupancy.facts[AWAY]
        np.testing.assert_array_equal(plus(X), X + want)
        assert not v.occupancy.facts[AWAY]
        np.testing.assert_array_equal(plus(x).get(), X + want)
        want = want * 2
        np.testing.assert_array_equal(doubled(X), X + want)
        np.testing.assert_array_equal(plus(x).get(), X + want)
        v.assign(want + number)
        want = want + number
        np.testing.assert_array_equal(plus(x).get(), X + want)
        v[3] = want[3] = 7.0
        np.testing.assert_array_equal(plus(x).get(), X + want)


def test_a_value_is_copied_once_for_all_who_read_it(cupy: FakeCupy) -> None:
    v, x = variable(np.arange(30.0)), cupy.asarray(X)
    f, g = fusec.jit(lambda x: x + v), fusec.jit(lambda x: x * v)
    copied(cupy)
    for _ in range(3):
        f(x), g(x)
    assert copied(cupy) == [240]


def test_calls_that_read_are_prepared(cupy: FakeCupy) -> None:
    """They miss where a value is not on the GPU, is older than the host's, or was made on
    another stream."""
    cupy.pool.keeps = True
    v, w, x = variable(np.arange(30.0)), fusec.Variable(X[1]), cupy.asarray(X)

    @fusec.jit
    def f(x: Any, w: Any) -> Any:
        return x * v + w, (x + w).max()

    @fusec.jit
    def g(x: Any) -> Any:
        v.assign(x[0])

    def check() -> list[int]:
        copied(cupy)
        (y, top), sent = f(x, w), copied(cupy)
        want = fusec.jit(lambda x, a, b: (x * a + b, (x + b).max()))(X, v.numpy(), w.numpy())
        np.testing.assert_array_equal(y.get(), want[0])
        assert top == want[1]
        return sent

    check(), check()
    assert f.traces[0].gpu_call.function is not None
    call = f.traces[0].gpu_call.function
    assert check() == [] and type(call(x, w)) is tuple
    v.assign(X[2])
    assert call(x, w) is MISS and check() == [240] and type(call(x, w)) is tuple
    w[3] = 8.0
    assert call(x, w) is MISS and check() == [240] and check() == []
    g(x)
    assert type(call(x, w)) is tuple and check() == []
    with cupy.cuda.Stream(non_blocking=True):
        assert call(x, w) is MISS
        check()
        assert type(call(x, w)) is tuple
    assert call(x, fusec.Variable(X[1])) is MISS and f.trace_count == 1


def test_a_step_is_a_launch(cupy: FakeCupy) -> None:
    """Values are where kernels have made them: their addresses come again, and nothing is copied.
    """
    cupy.pool.keeps = True
    model, same = Model("GPU:0"), Model("CPU:0")
    step, host = fusec.jit(lambda x: trained(model, x)), fusec.jit(lambda x: trained(same, x))
    x = cupy.asarray(X)
    for _ in range(16):
        cupy.calls.clear()
        got, want = step(x), host(X)
        asked = [*cupy.calls]
        np.testing.assert_allclose(got.get(), want, rtol=1e-9)
    assert [a.startswith("nest") for a in asked] == [True]
    for one, other in zip(model.values(), same.values(), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9)


def test_numbers(cupy: FakeCupy) -> None:
    steps, x = variable(0), cupy.asarray(X)

    @fusec.jit
    def f(x: Any) -> Any:
        steps.assign_add(1)
        return x * steps

    for number in range(1, 5):
        np.testing.assert_array_equal(f(x).get(), X * number)
        assert steps.numpy() == number


def test_results_are_not_the_value(cupy: FakeCupy) -> None:
    """Neither the array returned beside the assignment nor the one returned as the value."""
    v, w, x = variable(X), variable(X + 1), cupy.asarray(X)

    @fusec.jit
    def f(x: Any) -> Any:
        y = x * 2
        v.assign(y)
        return y, v.read_value(), w.read_value()

    for _ in range(3):
        for result in f(x):
            result[...] = -1.0
        np.testing.assert_array_equal(v.numpy(), X * 2)
        np.testing.assert_array_equal(w.numpy(), X + 1)


def test_variables_change_places(cupy: FakeCupy) -> None:
    x = np.round(8 * X)
    v, w = variable(x), variable(x + 1)

    @fusec.jit
    def f(x: Any) -> Any:
        first, second = v.read_value(), w.read_value()
        v.assign(second), w.assign(first)
        return x + first

    for number in range(4):
        np.testing.assert_array_equal(f(cupy.asarray(x)).get(), x + x + number % 2)
    np.testing.assert_array_equal(v.numpy() + 1, w.numpy())


def test_an_error_leaves_what_the_program_had_assigned(cupy: FakeCupy) -> None:
    v, x = variable(np.zeros(30)), cupy.asarray(X)

    @fusec.jit
    def f(x: Any, i: Any) -> Any:
        v.assign_add(x[0])
        y = x[i]
        v.assign_add(x[1])
        return y

    good, bad, want = cupy.asarray(np.array([1])), cupy.asarray(np.array([40])), np.zeros(30)
    for index in (good, bad, good, bad, bad, good):
        if index is good:
            f(x, index)
        else:
            with pytest.raises(IndexError):
                f(x, index)
        want = want + X[0] + (X[1] if index is good else 0)
        np.testing.assert_allclose(v.numpy(), want, rtol=1e-12)


def test_other_streams_have_the_value(cupy: FakeCupy) -> None:
    """By way of the host: memory that one stream lets go may not be read by another one."""
    v, x = variable(np.zeros(30)), cupy.asarray(X)

    @fusec.jit
    def f(x: Any) -> Any:
        v.assign_add(x[0])
        return x + v

    want = np.zeros(30)
    cupy.driver.synchronize()  # x is there for all streams
    streams = [cupy.cuda.Stream(non_blocking=True) for _ in range(2)]
    for number in range(6):
        want = want + X[0]
        with streams[number % 2]:
            np.testing.assert_allclose(f(x).get(), X + want, rtol=1e-12)


def test_threads(cupy: FakeCupy) -> None:
    """Some assign on the GPU, some read and assign on the host: each addition is made once, and
    nobody sees half of one."""
    v, x = variable(np.zeros(1000)), cupy.asarray(np.ones(1000))
    seen: list[Any] = []

    @fusec.jit
    def f(x: Any) -> None:
        v.assign_add(x)

    def on_gpu() -> None:
        for _ in range(40):
            f(x)

    def on_host() -> None:
        for _ in range(40):
            v.assign_add(np.ones(1000))
            value = v.numpy()
            seen.append(value.min() == value.max())

    f(x)
    threads = [threading.Thread(target=t) for t in (on_gpu, on_host, on_gpu, on_host)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(seen) == 80 and all(seen) and (v.numpy() == 161).all()


def test_a_forked_child_has_the_value(cupy: FakeCupy) -> None:
    v = variable(np.zeros(30))

    @fusec.jit
    def f(x: Any) -> None:
        v.assign_add(x[0])

    f(cupy.asarray(X))
    assert v.occupancy.facts[AWAY]
    assert does_well(lambda: np.array_equal(v.buffer, X[0]))


def test_memory_goes_with_the_variable(cupy: FakeCupy) -> None:
    x = cupy.asarray(np.ones(5000))

    def used() -> int:
        gc.collect()
        variable(0).numpy()  # the last hold of a thread is kept until the next
        cupy.driver.synchronize()
        return int(cupy.driver.arena.used)

    def run(v: fusec.Variable) -> None:
        @fusec.jit
        def f(x: Any) -> None:
            v.assign_add(x)

        f(x), f(x)
        assert used() == before + 40000

    before = used()
    run(variable(np.zeros(5000)))
    assert used() == before


def test_reading_on_the_emulated_device_copies_once(monkeypatch: pytest.MonkeyPatch) -> None:
    v, sent = variable(np.arange(3000.0), "CUDAHOST:0"), []
    copy_in = type(DRIVER).copy_in
    monkeypatch.setattr(type(DRIVER), "copy_in", lambda driver, address, array, stream=0: (
        sent.append(array.nbytes), copy_in(driver, address, array, stream)))

    @fusec.jit(device="/device:CUDAHOST:0")
    def f(x: Any, add: bool) -> Any:
        if add:
            v.assign_add(x)
        return x * v

    f.concrete(np.ones(3000), False), f.concrete(np.ones(3000), True)
    want = np.arange(3000.0)
    for add, copies in ((False, 2), (False, 1), (False, 1), (True, 1), (True, 2), (False, 2),
                        (False, 1)):
        sent.clear()
        want = want + add
        np.testing.assert_array_equal(f(np.ones(3000), add), want)
        np.testing.assert_array_equal(v.numpy(), want)
        assert sum(n >= 24000 for n in sent) == copies, (add, sent)
