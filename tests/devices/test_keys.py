"""Device scopes in the keys of traces: other threads, tasks and processes; settings that change."""

from __future__ import annotations

import asyncio
import copy
import pickle
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import fusec

X = np.linspace(0.5, 2.0, 3)
ONE, ZERO = "/device:CPU:1", "/device:CPU:0"


@pytest.fixture(autouse=True)
def _two() -> Iterator[None]:
    with fusec.config.override(logical_cpu_devices=2):
        yield


def program(x):
    return np.exp(x) + 1.0


def nowhere(node) -> None:
    """A device function that has nothing to say."""


def device_of(function) -> str:
    """The constraint in the trace that answers a call which is made now."""
    return function.concrete(X).graph["Exp"].device


# --------------------------------------------------------------------------------------- the key


def test_each_scope_has_a_trace() -> None:
    f = fusec.jit(program)
    for _ in range(3):
        f(X)
        with fusec.device(ONE):
            f(X)
            with fusec.device("/job:localhost"):
                f(X)
        with fusec.device("cpu:1"), fusec.device(""):  # the same as above
            f(X)
    assert [t.graph["Exp"].device for t in f.traces] == ["", ONE, f"/job:localhost{ONE}"]
    assert f.traces[1].reason == f"device scope: none before, {ONE} now"
    assert f.traces[2].reason.endswith(f"before, /job:localhost{ONE} now")


def test_recent_plans_are_those_of_the_scope() -> None:
    """Calls that no key is made of, before and after the first scope of the process."""
    f = fusec.jit(program)
    for _ in range(3):
        f(X)
    with fusec.device(ONE):
        f(X), f(X)
        assert f._fast.positional[0][1].graph["Exp"].device == ONE
        plain = f.traces[0]
        hits = plain.hits
        f(X)
        assert plain.hits == hits and plain.unchanged is not None and not plain.unchanged()
    assert plain.unchanged() and device_of(f) == ""


def test_calls_are_answered_by_the_trace_of_their_scope(monkeypatch) -> None:
    """In scopes of all kinds, in any order, each call many times."""
    f = fusec.jit(program)
    specs = [None, ONE, ZERO, "/job:localhost", "/device:CPU:*", lambda n: ONE]
    answered: list[int] = []
    for spec in specs:
        with fusec.device(spec):
            f(X)
    for trace in f.traces:
        assert trace.executable.fast is not None
        _count(trace, answered, monkeypatch)
    for spec in [*specs, *reversed(specs)] * 2:
        with fusec.device(spec):
            for _ in range(3):
                answered.clear()
                f(X)
                expected = f.concrete(X)
                assert answered == [id(expected)]
    assert f.trace_count == len(specs)


def _count(trace, answered: list[int], monkeypatch) -> None:
    fast = trace.executable.fast
    shaped, run_leaves = trace.shaped, trace.run_leaves

    def noted(*leaves):
        answered.append(id(trace))
        return fast(*leaves)

    def run(leaves, *rest):
        answered.append(id(trace))
        return run_leaves(leaves, *rest)

    monkeypatch.setattr(trace, "shaped", lambda _: shaped(noted))
    monkeypatch.setattr(trace, "run_leaves", run)


def test_device_functions_are_keys_by_identity() -> None:
    f = fusec.jit(program)

    def place(node):
        return ONE if node.op == "Exp" else None

    for _ in range(3):
        with fusec.device(place):
            f(X)
    assert f.trace_count == 1 and f.traces[0].graph["Exp"].device == ONE
    with fusec.device(lambda node: ONE):
        f(X)
    assert f.trace_count == 2 and "function" in f.traces[1].reason


def test_symbolic_traces_are_of_a_scope() -> None:
    f = fusec.jit(program)
    for n in (3, 4, 5):
        f(np.ones(n))
    with fusec.device(ONE):
        for n in (6, 7, 8):
            f(np.ones(n))
    f(np.ones(9))
    assert f.trace_count == 2
    assert {t.graph["Exp"].device for t in f.traces} == {"", ONE}
    assert all(t.build.traced.symbolic is not None for t in f.traces)


def test_overlapping_arguments_and_ints() -> None:
    @fusec.jit
    def f(x, y, n):
        x += n
        return np.exp(y) * n

    def run() -> None:
        memory = np.linspace(0.0, 1.0, 8)
        plain = memory.copy()
        for n in (1, 2, 3):
            expected = np.exp(_shifted(plain, n)[2:7]) * n
            np.testing.assert_allclose(f(memory[:5], memory[2:7], n), expected)

    run()
    with fusec.device(ONE):
        run()
        assert {t.graph["Exp"].device for t in f.traces} == {"", ONE}
    count = f.trace_count
    run()
    assert f.trace_count == count


def _shifted(memory, n):
    memory[:5] += n
    return memory


def test_structures_keywords_and_methods() -> None:
    class Model:
        def __init__(self) -> None:
            self.k = 2.0

        @fusec.jit
        def apply(self, tree, *, shift=1.0):
            return {"y": np.exp(tree["x"]) * self.k + shift}

    model = Model()
    for spec in (None, ONE) * 3:
        with fusec.device(spec):
            np.testing.assert_allclose(
                model.apply({"x": X}, shift=0.5)["y"], np.exp(X) * 2.0 + 0.5)
    assert [t.graph["Exp"].device for t in model.apply.traces] == ["", ONE]


def test_explain_says_the_scope() -> None:
    f = fusec.jit(program)
    assert "device scope" not in str(fusec.explain(f, X))
    with fusec.device("/job:localhost"), fusec.device(nowhere), fusec.device(ONE):
        text = str(fusec.explain(f, X))
    names = f"/job:localhost > function nowhere > {ONE}"
    assert f"in the device scope {names}" in text


def test_no_retrace_says_the_scope() -> None:
    f = fusec.jit(program)
    f(X)
    with fusec.no_retrace(), fusec.device(ONE), pytest.raises(
            RuntimeError, match="device scope: none before, /device:CPU:1 now"):
        f(X)


def test_scope_and_arguments_differ() -> None:
    f = fusec.jit(program)
    f(X)
    with fusec.device(ONE):
        f(X.astype(np.float32))
    assert f.traces[1].reason == ("device scope: none before, /device:CPU:1 now; "
                                  "x: f64[3] before, f32[3] now")


def test_concrete_functions_run_in_any_scope() -> None:
    f = fusec.jit(program)
    with fusec.device(ONE):
        concrete = f.concrete(X)
    np.testing.assert_allclose(concrete(X), program(X))
    with fusec.device(ZERO):
        np.testing.assert_allclose(concrete(X), program(X))
    assert f.trace_count == 1


def test_functions_with_a_device_have_one_trace_in_all_scopes() -> None:
    f = fusec.jit(program, device="/job:localhost/task:0/device:CPU:1")
    for spec in (None, ZERO, ONE, "/device:NULL"):
        with fusec.device(spec):
            f(X), f(X)
    assert f.trace_count == 1


def test_wrapped_functions_and_variables_made_inside() -> None:
    def f(x):
        v = fusec.Variable(np.ones(3), name="v")
        return np.exp(x) + v

    with fusec.device(ONE):
        wrapped = fusec.wrap_function(f, fusec.TensorSpec((3,)))
    assert wrapped.graph["Exp"].device == ONE
    assert wrapped.variables[0].device == f"/job:localhost/task:0{ONE}"
    np.testing.assert_allclose(wrapped(X), program(X))


# ------------------------------------------------------------------------ threads, tasks, processe


def test_threads_have_scopes_of_their_own() -> None:
    f = fusec.jit(program)
    f(X)
    found: dict[str, list[str]] = {}
    barrier = threading.Barrier(3)

    def work(spec) -> None:
        with fusec.device(spec):
            barrier.wait()
            found[str(spec)] = [device_of(f) for _ in range(20) if f(X) is not None]

    with fusec.device(ZERO):  # of this thread alone
        threads = [threading.Thread(target=work, args=(s,)) for s in (ONE, None, "/job:localhost")]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert device_of(f) == ZERO
    assert found == {ONE: [ONE] * 20, "None": [""] * 20, "/job:localhost": ["/job:localhost"] * 20}


def test_threads_share_a_scope() -> None:
    f, scope = fusec.jit(program), fusec.device(ONE)

    def work(_) -> tuple[str, str]:
        with scope:
            inside = device_of(f)
        return inside, device_of(f)

    with ThreadPoolExecutor(4) as pool, scope:
        assert set(pool.map(work, range(40))) == {(ONE, "")}
    assert device_of(f) == ""


def test_tasks_have_scopes_of_their_own() -> None:
    f, shared = fusec.jit(program), fusec.device(ONE)

    async def task(scope, turns: int) -> list[str]:
        found = []
        with scope:
            for _ in range(turns):
                await asyncio.sleep(0)
                f(X)
                found.append(device_of(f))
        await asyncio.sleep(0)
        return [*found, device_of(f)]

    async def main() -> list[list[str]]:
        with fusec.device("/job:localhost"):
            return await asyncio.gather(
                task(shared, 3), task(fusec.device(ZERO), 5), task(shared, 2))

    around = "/job:localhost"
    one, zero = f"{around}{ONE}", f"{around}{ZERO}"
    assert asyncio.run(main()) == [
        [one] * 3 + [around], [zero] * 5 + [around], [one] * 2 + [around]]
    assert device_of(f) == ""


def test_a_generator_that_another_thread_closes_changes_nothing_there() -> None:
    def inside():
        with fusec.device(ONE):
            yield

    f, generator = fusec.jit(program), inside()
    found: list[str] = []

    def close() -> None:
        with fusec.device(ZERO):
            generator.close()
            found.append(device_of(f))

    with fusec.device(None):
        next(generator)
        assert device_of(f) == ONE  # until it goes on, as any setting of a context
        thread = threading.Thread(target=close)
        thread.start()
        thread.join()
        assert found == [ZERO]
    assert device_of(f) == ""


def test_scopes_that_are_left_in_another_order() -> None:
    f = fusec.jit(program)
    outer, inner = fusec.device(ONE), fusec.device(ZERO)
    outer.__enter__()
    inner.__enter__()
    outer.__exit__(None, None, None)
    assert device_of(f) == ""
    inner.__exit__(None, None, None)
    assert device_of(f) == ""


@fusec.jit(device="cpu:1")
def travels(x):
    return np.exp(x)


def test_pickled_functions_keep_their_device() -> None:
    assert pickle.loads(pickle.dumps(travels)) is travels
    local = fusec.jit(lambda x: np.exp(x), device=ONE)
    assert local.options["device"] == ONE
    arrived = pickle.loads(pickle.dumps(local))
    assert arrived.device == ONE and device_of(arrived) == ONE
    assert copy.deepcopy(travels).device == ONE


# ------------------------------------------------------------------------------ changed settings


def test_another_number_of_devices_is_another_trace() -> None:
    f = fusec.jit(program)
    for _ in range(3):
        f(X)
    with fusec.config.override(logical_cpu_devices=4):
        f(X), f(X)
        assert f.traces[-1].reason == "config.logical_cpu_devices: 2 before, 4 now"
        with fusec.device("cpu:3"):
            f(X)
            assert device_of(f) == "/device:CPU:3"
        assert f.trace_count == 3
    plans = f._fast.positional
    assert plans == [] and f(X) is not None and f.trace_count == 3


def test_a_device_that_has_gone_is_an_error_of_functions_with_it() -> None:
    f = fusec.jit(program, device=ONE)
    f(X), f(X)
    with fusec.config.override(logical_cpu_devices=1), pytest.raises(
            ValueError, match="there is no device /device:CPU:1"):
        f(X)
    np.testing.assert_allclose(f(X), program(X))
    assert f.trace_count == 1


def test_soft_placement_is_part_of_the_key() -> None:
    f = fusec.jit(program)
    f(X), f(X)
    with fusec.config.override(soft_placement=True):
        f(X)
    f(X)
    assert [t.reason for t in f.traces][1:] == ["config.soft_placement: False before, True now"]
