"""Plans are lowered once with symbols; at the sizes of a call they are the lowered
graph of these sizes."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fusec
from fusec.codegen import backends
from fusec.codegen.kernels.specialise import LoopForm, structure_key
from fusec.codegen.machine_code.native_nest import CompileStats
from fusec.codegen.plan.call_plan import CallPlan
from fusec.codegen.plan.call_plan_at_sizes import CallPlanAtSizes
from fusec.codegen.plan.control_runs import ControlRun
from fusec.codegen.plan.plan_building import compile_plan
from fusec.codegen.structured.calls.call_statements import NodeCall
from fusec.codegen.structured.memory import View
from fusec.compiled.concrete_function import ConcreteFunction
from fusec.compiled.sizes.symbolic_plans import OpenPlans
from fusec.ir import Graph
from tests.programs.corpus import programs
from tests.programs.measure import difference, outcome

Inputs = Callable[[int], tuple[np.ndarray, ...]]


def vectors(n: int) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(n)
    return rng.normal(size=n), rng.normal(size=n)


def matrices(n: int) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(n)
    return rng.normal(size=(n, 7)), rng.normal(size=(n, 7))


def blocks(n: int) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(n)
    return rng.normal(size=(n, n + 5, 3)), np.asfortranarray(rng.normal(size=(n, n + 5, 3)))


def smoothed(x: Any, y: Any) -> Any:
    for _ in range(2):
        x = np.sin(x) * y + 0.5
        y = np.where(x > y, x, y - 0.25)
    return x.sum(axis=0) + y.mean()


def standardised(x: Any, y: Any) -> Any:
    return (x - x.mean(axis=-1, keepdims=True)) / y.std(axis=-1, keepdims=True)


def interior(x: Any, y: Any) -> Any:
    out = np.zeros_like(x)
    out[1:-1] = x[2:] - 2 * y[1:-1] + x[:-2]
    return out, x[::-1] + y, x[len(x) // 2:] * y[: len(x) - len(x) // 2]


def in_place(x: Any, y: Any) -> Any:
    x *= 2
    x[0] = y[-1]
    return x.max(), y.argmin()


def several(x: Any, y: Any) -> Any:
    return x.T + y.T, (x * y).reshape(-1), x.astype(np.float32).sum(), len(x) * 0.5 + y


def ranks(x: Any, y: Any) -> Any:
    return x + np.cumsum(y, axis=0), (x > y).any(axis=0), np.minimum(x, y).prod()


FUNCTIONS = (smoothed, standardised, interior, in_place, several, ranks)
SIZES = (40, 57, 64, 9, 83, 3, 100, 500, 2, 1200)


def described(call_plan: CallPlan) -> list[Any]:
    """Everything that running it depends on."""
    steps = [
        ([_place(p) for p in step.places], step.not_empty, list(map(_form, step.forms)),
         list(map(id, step.code)), [(p.dtype, repr(p.value)) for p in step.params])
        for step in call_plan.kernels
    ]
    return [list(map(_place, call_plan.temps)), call_plan.cells,
            list(map(_place, call_plan.outputs)), steps, list(map(_call, call_plan.externs)),
            call_plan.traffic]


def _place(place: Any) -> Any:
    if not isinstance(place, View):
        return f"{type(place)}{getattr(place, 'shape', '')} {place!r}"
    return (*place.key, place.strides, place.shape, place.dtype,
            [(view.reference.__name__, repr(view.attrs)) for view in place.views])


def _call(step: NodeCall) -> Any:
    node = step.node
    attrs = sorted((name, repr(value)) for name, value in node.attrs.items()
                   if not isinstance(value, Graph))
    return (node.op, node.name, node.loc, attrs, node.types, [v.type for v in node.inputs],
            list(map(_place, step.operands)), list(map(_place, step.results)),
            None if step.run is None else _run(step.run))


def _run(run: ControlRun) -> Any:
    """The arguments of a native branch or loop.  In code for these sizes alone, numbers that are
    equal by chance are one word, and floats that follow from sizes none."""
    program = run.program
    words = {(word.kind, word.value) for word in program.words if word.kind == "number"}
    others = [(word.kind, word.value) for word in program.words
              if word.kind not in ("number", "bits", "rest")]
    nests = [(_form(nest.largest), id(nest.code), repr(nest.params), list(nest.block.words))
             for nest in program.nests]
    return (run.strides, set(run.reused), words, others, nests, program.copied, program.passed,
            [(exit_.axis, exit_.size, exit_.call) for exit_ in program.exits],
            [(site.name, site.node.op, [repr(v) for v in (*site.operands, *site.results)])
             for site in program.sites])


def _form(form: LoopForm) -> Any:
    return (form.mode, form.extents, form.outer, form.axis, form.operands, form.loop_of,
            list(map(repr, form.params)), form.tasks, form.points, structure_key(form))


def check(concrete: ConcreteFunction) -> bool:
    """Whether the plan was substituted, and then it is the one that lowering makes."""
    call_plan = concrete.build.call_plan
    if not isinstance(call_plan, CallPlanAtSizes):
        return False
    lowered = call_plan._lowered
    compile_plan(lowered, CompileStats())
    assert described(call_plan) == described(lowered)
    assert [k.boundaries for k in concrete.kernels] == [k.boundaries for k in lowered.kernels]
    return True


@pytest.mark.parametrize("inputs", [vectors, matrices, blocks])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_plans_at_sizes_are_those_of_lowering(function: Callable[..., Any], inputs: Inputs):
    compiled = fusec.jit(function)
    substituted = 0
    for n in SIZES:
        got, want = outcome(compiled, inputs(n)), outcome(function, inputs(n))
        assert not difference(got[0], want[0])
        assert not difference(got[1], want[1], "arguments")
        substituted += check(compiled.concrete(*inputs(n)))
    assert substituted >= 4


def sorted_rows(x: Any, y: Any) -> Any:
    return np.sort(x, axis=0) + y, np.argsort(y, axis=-1), np.sort(x[1:] * 2, axis=0)[:, 0]


def products(x: Any, y: Any) -> Any:
    weights = x.T @ (y + 1)
    return np.tanh(x @ weights), weights.sum(), (x * 2).reshape(-1) @ y.reshape(-1), len(x) / 2


def of_constants(x: Any, y: Any) -> Any:
    ones, steps = np.ones(x.shape), np.broadcast_to(0.5, x.shape)
    return (
        np.searchsorted(np.arange(5.0), x) + y, ones.T @ y, np.cross(y, y)[0] + len(y), x @ steps.T)


def written(x: Any, y: Any) -> Any:
    x[:] = np.sort(y, axis=1)
    y[1:, 0] = np.sort(x[1:, 1])
    return np.linalg.norm(x, axis=1), np.roll(np.sort(x, axis=0), 1)


def of_three(n: int) -> tuple[np.ndarray, ...]:
    return tuple(a[:, :3].copy() for a in matrices(n))


@pytest.mark.parametrize("function", [sorted_rows, products, of_constants, written])
def test_library_calls_at_sizes_are_those_of_lowering(function: Callable[..., Any]):
    compiled = fusec.jit(function)
    substituted = 0
    for n in SIZES:
        got, want = outcome(compiled, of_three(n)), outcome(function, of_three(n))
        assert not difference(got[0], want[0])
        assert not difference(got[1], want[1], "arguments")
        substituted += check(compiled.concrete(*of_three(n)))
    assert substituted >= 6


def recurrence(x: Any, y: Any) -> Any:
    out, state = np.zeros(len(x)), 0.25
    for i in range(len(x)):
        state = np.sin(state) * y[i, 0] + len(x) * 0.5
        out[i] = state + x[i, 1] / (i + 1)
    return out, state


def rows(x: Any, y: Any) -> Any:
    total = np.zeros(x.shape[1])
    for row, other in zip(x, y, strict=True):
        total = total * 0.5 + row * other
        if total[0] > 0:
            total[1] += (x[:, 0] * y[:, 0]).sum()
    return total


def swept(x: Any, y: Any) -> Any:
    for k in range(1, len(x) - 1):
        x[k] = 0.25 * (x[k - 1] + 2 * y[k] + x[k + 1])
    for j in range(x.shape[1]):
        x[:, j] -= x[:, j].mean()
    return np.linalg.norm(x), x.max()


def sorting(x: Any, y: Any) -> Any:
    found = 0
    for i in range(len(x)):
        k = np.argsort(x[:, i % 3])[len(x) // 2]
        if y[k, 0] > x[i, 1]:
            found += k
            x[i] = np.sort(y[k])
    return found


def branched(x: Any, y: Any) -> Any:
    if x.sum() > 0:
        z = np.cumsum(x, axis=0) * len(x)
        y = y * 2
    else:
        z = y[::-1] + x[0]
    return z / 2 + y


@pytest.mark.parametrize("function", [recurrence, rows, swept, sorting, branched])
def test_native_loops_at_sizes_are_those_of_lowering(function: Callable[..., Any]):
    compiled = fusec.jit(function)
    substituted = 0
    for n in (40, 57, 83, 64, 500, 41):
        got, want = outcome(compiled, of_three(n)), outcome(function, of_three(n))
        assert not difference(got[0], want[0])
        assert not difference(got[1], want[1], "arguments")
        concrete = compiled.concrete(*of_three(n))
        substituted += check(concrete)
        assert all(step.is_native and step.structured for step in concrete.control)
    assert substituted >= 4


def test_gradients_of_loops_at_sizes_are_those_of_lowering():
    def last(x, y):
        state = x[0, 0]
        for row, other in zip(x, y, strict=True):
            state = np.tanh(state * other[0]) + (row * other).sum()
        return state

    compiled = fusec.value_and_grad(last)
    for n in (40, 57, 83, 64, 500):
        alone = fusec.value_and_grad(lambda *a: last(*a))
        for got, want in zip(compiled(*of_three(n)), alone(*of_three(n)), strict=True):
            np.testing.assert_array_equal(got, want)
        assert n == 40 or check(compiled.concrete(*of_three(n)))


def test_loops_of_new_sizes_print_no_code(monkeypatch: pytest.MonkeyPatch):
    compiled = fusec.jit(recurrence)
    for n in (40, 41):
        compiled(*of_three(n))
    monkeypatch.setattr(fusec.codegen.cpu.loops.program, "build_program", None)
    monkeypatch.setattr(fusec.ir.sizes.instantiate.Instantiation, "graph", None)
    for n in (42, 50):
        assert not difference(compiled(*of_three(n)), recurrence(*of_three(n)))


def test_failed_checks_of_loops_at_other_sizes_say_what_numpy_does():
    @fusec.jit
    def last_of(x, i):
        total = 0.0
        for k in i:
            total += x[k] * total + 1
        return total

    for n in (25, 29, 32):
        last_of(np.arange(n) * 1.0, np.arange(20))
    with pytest.raises(IndexError, match="index 33 is out of bounds for axis 0 with size 33"):
        last_of(np.arange(33.0), np.arange(20) + 21)


def logistic(w: Any, x: Any, y: Any) -> Any:
    z = x @ w
    return np.mean(np.log1p(np.exp(-np.abs(z))) + np.maximum(z, 0.0) - y * z) + np.sum(w * w)


def network(w: Any, x: Any, y: Any) -> Any:
    error = np.tanh(x @ np.diag(w)) @ w - y
    return (error * error).sum() / len(y) + np.std(error)


@pytest.mark.parametrize("function", [logistic, network])
def test_gradients_at_sizes_are_those_of_lowering(function: Callable[..., Any]):
    compiled, w = fusec.value_and_grad(function), np.linspace(-1, 1, 4)
    for n in SIZES:
        x = np.random.default_rng(n).normal(size=(n, 4))
        arguments = w, x, x[:, 0] * 0.5
        alone = fusec.value_and_grad(lambda *a: function(*a))
        for got, want in zip(compiled(*arguments), alone(*arguments), strict=True):
            np.testing.assert_array_equal(got, want)
        assert n in SIZES[:1] or n < 10 or check(compiled.concrete(*arguments))
    assert compiled.trace_count <= 2


ELEMENTWISE = ("julian_day", "solar_position", "precess", "popcount", "morton", "density_eos80",
               "sound_speed", "bulk_fluxes")


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_programs_without_library_calls_are_lowered_once(name: str):
    (program,) = (p for p in programs() if p.name == name)
    compiled = fusec.jit(program.function)
    for n in (program.small, program.small + 20, 4 * program.small, 100):
        got, want = outcome(compiled, program.inputs(n)), outcome(
            program.function, program.inputs(n))
        assert not difference(got[0], want[0])
        if n != program.small:
            assert check(compiled.concrete(*program.inputs(n)))


def plans_of(function: fusec.Function) -> OpenPlans:
    (family,) = function._dispatching().compiler.symbolic._families.values()
    ((trace,),) = family.traces.values()
    (optimised,) = trace.optimised
    return optimised.plans


def test_a_new_size_makes_no_graph_and_lowers_nothing(monkeypatch: pytest.MonkeyPatch):
    compiled = fusec.jit(smoothed)
    for n in (40, 41):
        compiled(*matrices(n))
    lowered = fusec.codegen.kernels.lower_nest.NestLowering
    monkeypatch.setattr(lowered, "run", None)
    monkeypatch.setattr(fusec.ir.sizes.instantiate.Instantiation, "graph", None)
    for n in (42, 50):
        assert not difference(compiled(*matrices(n)), smoothed(*matrices(n)))
    monkeypatch.undo()
    assert "f64[50,7]" in str(compiled.concrete(*matrices(50)).graph)


def test_graphs_of_a_size_are_numbered_as_traced_whichever_is_looked_at_first():
    texts = []
    for first in ("graph", "optimized_graph"):
        compiled = fusec.jit(smoothed)
        for n in (40, 41, 50):
            compiled(*matrices(n))
        concrete = compiled.concrete(*matrices(50))
        getattr(concrete, first).nodes  # noqa: B018
        texts.append((str(concrete.graph), str(concrete.optimized_graph)))
        ids = [node.id for node in concrete.graph.nodes]
        assert ids == sorted(ids)
    assert texts[0] == texts[1]


def test_threads_that_look_at_a_graph_see_one():
    compiled = fusec.jit(smoothed)
    for n in (40, 41, 50):
        compiled(*matrices(n))
    concrete = compiled.concrete(*matrices(50))
    seen: list[Any] = []
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=lambda: seen.append(concrete.optimized_graph.nodes))
                   for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert len(seen) == 8 and all(nodes is seen[0] for nodes in seen)


def test_failed_checks_at_other_sizes_say_what_numpy_does():
    @fusec.jit
    def picked(x, i):
        return x[i] * 2

    for n in (5, 9, 12):
        assert picked(np.arange(n) * 1.0, np.array([0, n - 1])).tolist() == [0, 2 * (n - 1)]
    with pytest.raises(IndexError, match="index 13 is out of bounds for axis 0 with size 13"):
        picked(np.arange(13.0), np.array([0, 13]))


def test_the_loops_and_bytes_of_a_new_size_are_its_own():
    compiled = fusec.jit(smoothed)
    for n in (40, 41, 50):
        compiled(*matrices(n))
    alone = fusec.jit(smoothed, reduce_retracing=False).concrete(*matrices(50))
    concrete = compiled.concrete(*matrices(50))
    assert [k.loops for k in concrete.kernels] == [k.loops for k in alone.kernels]
    assert [k.bytes_loaded for k in concrete.kernels] == [k.bytes_loaded for k in alone.kernels]
    assert fusec.history().rows[-1].elements == 350


def test_explain_says_why_sizes_are_lowered_one_by_one():
    def uneven(x):
        found = x[x > 2]
        while len(found) > 2:
            found = np.unique(found[1:] * 0.5)
        return found

    compiled = fusec.jit(uneven)
    for n in (25, 29, 32):
        compiled(np.arange(n) * 1.0)
    assert "lowered for each size: it has branches or loops that run step by step" in str(
        fusec.explain(compiled, np.arange(32.0)))


def test_each_back_end_has_plans_of_its_own():
    compiled = fusec.jit(smoothed)
    for n in (40, 41, 50):
        compiled(*matrices(n))
    with backends.using("reference"):
        assert not difference(compiled(*matrices(60)), smoothed(*matrices(60)))
        assert not isinstance(
            compiled.concrete(*matrices(60)).build.call_plan, CallPlanAtSizes)
    compiled(*matrices(70))
    assert check(compiled.concrete(*matrices(70)))


def test_a_changed_order_of_loops_is_another_plan():
    compiled = fusec.jit(lambda x: x.sum(axis=0))
    for n in (40, 41, 50, 2000, 2001):
        x = np.random.default_rng(n).normal(size=(7, n))
        np.testing.assert_array_equal(
            compiled(x), fusec.jit(lambda x: x.sum(axis=0), reduce_retracing=False)(x))
        assert n == 40 or check(compiled.concrete(x))
    assert len(plans_of(compiled)._lowered) >= 1


