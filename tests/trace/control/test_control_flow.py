"""Branches and loops on data: the same results, kinds, mutations and exceptions as plain NumPy."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fusec
from fusec.codegen.plan.control_runs import ControlRun
from fusec.ops.graphs.evaluate import evaluate
from tests import control_samples
from tests.control_samples import SAMPLES

IDS = [f"{f.__name__}{i}" for i, (f, _) in enumerate(SAMPLES)]


def runs_of(jitted: Any) -> list[ControlRun]:
    """The branches and loops of the newest trace."""
    concrete = jitted.traces[-1]
    return [s.run for s in concrete.build.call_plan.externs if isinstance(s.run, ControlRun)]


def same(a: Any, b: Any) -> bool:
    """Equal in structure, kind, dtype and (up to rounding) value."""
    if isinstance(a, tuple):
        return type(b) is tuple and len(a) == len(b) and all(map(same, a, b))
    if type(a) is not type(b) or np.asarray(a).dtype != np.asarray(b).dtype:
        return False
    if np.shape(a) != np.shape(b):
        return False
    return bool(np.allclose(a, b, rtol=1e-10, atol=1e-12, equal_nan=True))


@pytest.mark.parametrize(("fn", "args"), SAMPLES, ids=IDS)
def test_programs(fn: Callable[..., Any], args: tuple[Any, ...]) -> None:
    mine, numpys = copy.deepcopy(args), copy.deepcopy(args)
    expected = fn(*numpys)
    assert same(expected, fusec.jit(fn)(*mine))
    assert all(map(same, numpys, mine))


@pytest.mark.parametrize(("fn", "args"), SAMPLES, ids=IDS)
def test_graphs_mean_the_same(fn: Callable[..., Any], args: tuple[Any, ...]) -> None:
    """The graph evaluator, which knows nothing of native loops, gives the same."""
    stage = fusec.jit(fn).trace(*copy.deepcopy(args))
    inputs = [a for a, p in zip(args, stage.traced.positions, strict=True) if p >= 0]
    if len(inputs) != len(stage.graph.inputs) or any(o.steps for o in stage.traced.outputs):
        return
    numpys = copy.deepcopy(args)
    expected = fn(*numpys)
    results = evaluate(stage.graph, inputs)
    leaves = expected if isinstance(expected, tuple) else (expected,)
    graph_leaves = [i for i, o in enumerate(stage.traced.outputs) if o.kind == "graph"]
    for result, number in zip(results, graph_leaves, strict=True):
        assert np.allclose(result, leaves[number], rtol=1e-10, atol=1e-12, equal_nan=True)


FUNCTIONS = list(dict.fromkeys(fn for fn, _ in SAMPLES))


@pytest.mark.parametrize("fn", FUNCTIONS, ids=lambda f: f.__name__)
def test_loops_are_native(fn: Callable[..., Any]) -> None:
    jitted = fusec.jit(fn)
    jitted(*copy.deepcopy(next(a for f, a in SAMPLES if f is fn)))
    assert [r.reason for r in runs_of(jitted) if not r.is_native] == []


def test_compile_time_does_not_depend_on_the_trip_count() -> None:
    fn = control_samples.recurrence
    jitted = fusec.jit(fn)
    jitted(np.ones(100))
    nodes = len(jitted.traces[-1].graph)
    jitted(np.ones(100_000))
    assert len(jitted.traces[-1].graph) == nodes
    assert jitted.traces[-1].times["llvm"] == 0.0  # a new length compiles nothing


@pytest.mark.parametrize("strict", [False, True])
def test_arguments_are_updated_in_place(strict: bool) -> None:
    jitted = fusec.jit(control_samples.recurrence, fp="strict" if strict else "contract")
    for x in (np.ones(50), np.ones((50, 2))[:, 0], np.ones(100)[::-2]):
        expected = control_samples.recurrence(x.copy())
        result = jitted(x)
        assert result is x
        np.testing.assert_allclose(x, expected, rtol=1e-13)


def test_zero_trips() -> None:
    jitted = fusec.jit(control_samples.total_of)
    assert jitted(np.zeros(0)) == 0
    x = np.arange(20.0)
    below = fusec.jit(control_samples.halve_until)
    result, count = below(x, 1e9)
    np.testing.assert_array_equal(result, x)
    assert count == 0 and type(count) is int


def test_endless_loops_can_be_interrupted() -> None:
    import signal

    class Rang(Exception):
        pass

    def ring(*_: Any) -> None:
        raise Rang

    def endless(x):
        n = 0
        while x.sum() > -1.0:
            n += 1
        return n

    def around(x):
        s = 0.0
        for i in range(1 << 40):
            for j in range(100):
                s += x[j % 5] * i
        return s

    before = signal.signal(signal.SIGALRM, ring)
    try:
        for fn in (endless, around):
            jitted = fusec.jit(fn)
            jitted.lower(np.ones(5)).compile()
            signal.setitimer(signal.ITIMER_REAL, 0.3)
            with pytest.raises(Rang):
                jitted(np.ones(5))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_a_variable_of_two_dtypes_is_refused() -> None:
    """It would have the dtype of the side that is taken; Python numbers become NumPy's."""
    def of_two(a: Any, b: Any) -> Any:
        m = a[0]
        if b[0] > 5:
            m = b[0]
        return m + a[0]

    def a_flag_or_a_number(x: Any) -> Any:
        m = x[0] > 0
        if x[1] > 0:
            m = 1
        return ~m

    with pytest.raises(TypeError, match="leave different things in 'm'") as raised:
        fusec.jit(of_two)(np.array([200], np.uint8), np.array([1]))
    assert "u8" in str(raised.value) and "i64" in str(raised.value)
    with pytest.raises(TypeError, match="leave different things in 'm'"):
        fusec.jit(a_flag_or_a_number)(np.array([1.0, -1.0]))
    assert fusec.jit(of_two)(np.array([200], np.uint8), np.array([1], np.uint8)) == np.uint8(144)
