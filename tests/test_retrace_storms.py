"""A function that is traced again and again says so once, with the cause and the cure."""

from __future__ import annotations

import gc
import warnings
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import fusec
from fusec.compiled import trace_cache
from fusec.errors import RetraceWarning
from fusec.signature.storms import CHANGES, MANY, SPENT

X = np.arange(100.0)
FACTOR: Any = 1.0
LIST = [1.0]
SIZES = {k: k + 3 for k in range(90)}


def told(call: Callable[[int], Any], count: int) -> list[str]:
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        for k in range(count):
            call(k)
    return [str(w.message) for w in seen if issubclass(w.category, RetraceWarning)]


def test_a_trace_for_each_int() -> None:
    jitted = fusec.jit(lambda x, i: x[:SIZES[i]] * 2)
    found = told(lambda k: jitted(X, k), MANY + 5)
    assert len(found) == 1
    assert f"was traced {MANY} times: each value of i has its own trace" in found[0]
    assert "np.asarray(i)" in found[0]


def test_a_slice_for_each_int_is_one_trace() -> None:
    jitted = fusec.jit(lambda x, i: x[i:i + 10] * 2)
    assert told(lambda k: jitted(X, k), MANY + 5) == []
    assert jitted.trace_count <= 3  # 0 and 1 are literal


def test_a_device_function_for_each_call() -> None:
    jitted = fusec.jit(lambda x: x * 2)

    def call(k: int) -> None:
        with fusec.device(lambda node: "CPU:0"):
            jitted(X)

    found = told(call, MANY + 5)
    assert len(found) == 1 and f"was traced {MANY} times: each device scope has its" in found[0]
    assert "give the same one at each call" in found[0]


def test_its_cure() -> None:
    jitted = fusec.jit(lambda x, i: x[i:i + 10] * 2)
    for k in range(5):
        np.testing.assert_array_equal(jitted(X, np.asarray(k)), X[k:k + 10] * 2)
    assert jitted.trace_count == 1


def test_a_global_that_changes() -> None:
    global FACTOR
    jitted = fusec.jit(lambda x: x * FACTOR)

    def call(k: int) -> None:
        global FACTOR
        FACTOR = float(k)
        jitted(X)

    found = told(call, MANY + 5)
    assert len(found) == 1 and "global FACTOR changes between calls" in found[0]
    assert "Pass what changes as an argument" in found[0]


def test_an_item_that_changes() -> None:
    jitted = fusec.jit(lambda x: x * LIST[0])

    def call(k: int) -> None:
        LIST[0] = float(k)
        jitted(X)

    found = told(call, MANY + 5)
    assert len(found) == 1 and "global LIST changes between calls" in found[0]


def test_many_shapes(monkeypatch: Any) -> None:
    monkeypatch.setattr(trace_cache, "MAX_TRACES", 4)
    jitted = fusec.jit(lambda x, y: x * 2 + y[0], reduce_retracing=False)
    found = told(lambda k: jitted(X[:k + 1], X), 8)
    assert len(found) == 1 and "has more than 4 traces" in found[0] and "x, y" in found[0]
    found = told(lambda k: jitted(X[:k + 1], X), MANY)
    assert len(found) == 1 and "shapes of the arguments differ" in found[0]


@pytest.mark.parametrize("count", [1, MANY - 1])
def test_few_traces_are_no_storm(count: int) -> None:
    jitted = fusec.jit(lambda x: x * 2)
    assert told(lambda k: jitted(X[:k + 1]), count) == []


SEEN: set[int] = set()


def test_a_call_that_changes_what_it_was_traced_for() -> None:
    @fusec.jit
    def remembers(x: Any) -> Any:
        SEEN.add(len(SEEN))
        return x * 2

    found = told(lambda k: remembers(X), SPENT + 2)
    assert len(found) == 1 and "is traced at each call: a set that outlives the call" in found[0]
    assert "fusec.Variable" in found[0]


def test_what_is_made_once_is_no_storm() -> None:
    class Lazy:
        def __init__(self) -> None:
            self.table: Any = None

        @fusec.jit
        def run(self, x: Any) -> Any:
            if self.table is None:
                self.table = np.zeros(3)
            return self.table + x

    lazy = [Lazy() for _ in range(SPENT + 1)]
    assert told(lambda k: lazy[k // 2].run(X[:3]), 2 * SPENT) == []


@dataclass
class Body:
    mass: float
    place: Any


def test_an_object_made_for_each_call() -> None:
    jitted = fusec.jit(lambda x, f: f(x))
    found = told(lambda k: jitted(X, lambda v: v * k), CHANGES + 2)
    assert len(found) == 1 and "each value of f has its own trace" in found[0]
    assert "give the same one at each call" in found[0]
    by_mass = fusec.jit(lambda body: body.mass * body.place)
    found = told(lambda k: by_mass(Body(k, X)), CHANGES + 2)  # ints are constants
    assert len(found) == 1 and f"was traced {CHANGES} times: each value of body" in found[0]
    assert "optree.register_pytree_node" in found[0]


def test_more_objects_than_are_kept(monkeypatch: Any) -> None:
    monkeypatch.setattr(trace_cache, "MAX_TRACES", 4)
    by_mass = fusec.jit(lambda body: body.mass * body.place)
    found = told(lambda k: by_mass(Body(k * 1.0, X)), 9)
    assert len(found) == 1 and "was given more than 4 objects" in found[0]
    assert "optree.register_pytree_node" in found[0] and by_mass.trace_count <= 2


def smoothed(x: Any) -> Any:
    return np.sqrt(x * x + 1) - x.mean()


def test_plans_of_sizes_are_bounded_by_bytes_not_by_their_number(monkeypatch: Any) -> None:
    monkeypatch.setattr(trace_cache, "MAX_TRACES", 2)
    jitted = fusec.jit(smoothed)
    first = [jitted.concrete(X[:k]) for k in range(10, 30)]
    assert [jitted.concrete(X[:k]) for k in range(10, 30)] == first
    assert jitted.trace_count == 1


def test_plans_that_are_dropped_and_made_anew_again_and_again_are_told_of(monkeypatch: Any) -> None:
    monkeypatch.setattr(fusec.config, "plan_cache_bytes", 5 * 18 << 10)
    jitted = fusec.jit(smoothed)
    found = told(lambda k: jitted(X[:10 + k % 12]), 5 * 12)
    assert len(found) == 1 and f"made plans of {MANY} sizes anew" in found[0]
    assert "fusec.config.plan_cache_bytes" in found[0] and "pad x to fewer sizes" in found[0]
    assert len(jitted._dispatching().compiler.traces._traces) <= 6


def test_many_sizes_of_which_none_returns_are_no_storm(monkeypatch: Any) -> None:
    monkeypatch.setattr(fusec.config, "plan_cache_bytes", 5 * 18 << 10)
    jitted = fusec.jit(smoothed)
    assert told(lambda k: jitted(X[:10 + k]), 2 * MANY) == []


def test_arrays_that_plans_make_for_their_sizes_count(monkeypatch: Any) -> None:
    monkeypatch.setattr(fusec.config, "plan_cache_bytes", 10 << 20)
    jitted = fusec.jit(lambda x: np.sort(x) + np.arange(len(x)))
    for n in range(500_000, 500_006):
        jitted(np.zeros(n))
    assert len(jitted._dispatching().compiler.traces._traces) <= 3


def test_plans_keep_no_arguments() -> None:
    jitted = fusec.jit(lambda x, y: (np.sort(x) @ y, x * 2))
    for n in (10, 11, 12, 13):
        x, y = np.arange(n) * 1.0, np.ones(n)
        jitted(x, y)
        references = [weakref.ref(x), weakref.ref(y)]
        del x, y
        gc.collect()
        assert [reference() for reference in references] == [None, None]
