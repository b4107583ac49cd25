"""A new size of a known trace makes the parts that sizes decide, and nothing else a second time."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

import fusec
from fusec.codegen import backends
from fusec.codegen.kernels.specialise import LoopForm
from fusec.codegen.machine_code.native_nest import NONE
from fusec.codegen.plan.call_plan_at_sizes import StepAtSizes
from fusec.core.records import replace
from fusec.ir.sizes.dims import Dim
from fusec.ir.sizes.symbolic_numbers import Symbolic, stored
from fusec.runtime.launching import launch, packing, whole_call
from fusec.runtime.plan import segments_at_sizes
from fusec.runtime.plan.plan_source import PlanSource
from fusec.runtime.plan.plan_templates import PlanTemplate
from fusec.runtime.plan.segments_at_sizes import SegmentPattern
from fusec.trace.guards import guard as guards

limit = 3.0
WEIGHTS = np.linspace(-1.0, 1.0, 16).reshape(4, 4)


def layers(x: np.ndarray) -> Any:
    """Kernels between products: elementwise, of rows, of all, of a part; a size as a constant."""
    z = np.tanh(x @ WEIGHTS) + 1 / len(x)
    shares = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    y = shares.T @ z
    return y * y.mean(), (z * z).sum(), z[3:] * 0.5 - z[:-3], z.max(axis=0)


def batch(n: int) -> np.ndarray:
    return np.random.default_rng(n).normal(size=(n, 4))


def same(got: Any, want: Any) -> None:
    for a, b in zip(got, want, strict=True):
        np.testing.assert_array_equal(a, b, strict=True)


SIZES = 9, 12, 31, 5, 3, 4, 70_000, 33, 2


@pytest.fixture(scope="module")
def compiled() -> Any:
    function = fusec.jit(layers)
    for n in SIZES[:2]:
        function(batch(n))
    return function


def test_plans_from_templates_compute_what_plans_made_alone_do(compiled: Any):
    alone = fusec.jit(layers, reduce_retracing=False)
    for n in SIZES:  # of 3 rows a kernel has nothing to do, of 70,000 threads share it
        for x in (batch(n), batch(n)[::1], np.asfortranarray(batch(n))):
            same(compiled(x), alone(x))


def test_blocks_are_filled_as_the_back_end_fills_them(compiled: Any):
    backend = backends.current()
    for n in (9, 40, 70_000):
        call_plan = compiled.concrete(batch(n)).build.call_plan
        for step in call_plan.kernels if n != 9 else ():
            assert isinstance(step, StepAtSizes)
            for form, open_ in zip(step.forms, step.pattern.forms, strict=True):
                got = backend.open_block(open_, step.pattern.params).at_sizes(step.at.to)
                want = backend.block(form, step.params)
                for field in dataclasses.fields(want):
                    np.testing.assert_array_equal(
                        getattr(got, field.name), getattr(want, field.name), field.name)
                assert (got.partials == NONE) == (form.mode != "flat")


def test_arrays_that_the_template_is_not_for_have_a_plan_of_their_own(
    compiled: Any, monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(SegmentPattern, "call", lambda *_: None)
    same(compiled(batch(50)), layers_alone(batch(50)))
    monkeypatch.setattr(launch, "launcher_status", lambda: launch.memory.Status(False, "none"))
    same(compiled(batch(51)), layers_alone(batch(51)))


def layers_alone(x: np.ndarray) -> Any:
    return fusec.jit(layers, reduce_retracing=False)(x)


def test_a_failed_check_in_a_plan_from_a_template_raises():
    def picked(x: np.ndarray, i: np.ndarray) -> Any:
        return (x @ x) * x[i]

    function = fusec.jit(picked)
    for n in (20, 25, 30, 35):
        np.testing.assert_allclose(
            function(batch(n)[:, 0].copy(), np.arange(4)), picked(batch(n)[:, 0], np.arange(4)))
        with pytest.raises(IndexError, match=f"index {n} is out of bounds for axis 0 with size"):
            function(batch(n)[:, 0].copy(), np.arange(4) + n - 3)


def test_templates_and_checks_are_made_once(monkeypatch: pytest.MonkeyPatch):
    scale = fusec.Variable(2.0)
    made: list[str] = []

    def counted(owner: Any, name: str) -> None:
        original = getattr(owner, name)
        monkeypatch.setattr(owner, name, lambda *args: (made.append(name), original(*args))[1])

    function = fusec.jit(lambda x: (np.sin(x @ WEIGHTS) * scale, limit * 2.0))
    for n in (5, 8):
        function(batch(n))
    counted(PlanTemplate, "__init__")
    counted(guards, "check_of")
    counted(segments_at_sizes, "OpenNest")
    counted(packing, "plan_record")
    counted(PlanSource, "__init__")  # the text of a plan
    for n in (11, 13, 17):
        got, twice = function(batch(n))
        np.testing.assert_allclose(got, np.sin(batch(n) @ WEIGHTS) * 2.0, rtol=1e-14, atol=1e-15)
        assert twice == 6.0
    assert made == []
    monkeypatch.setitem(globals(), "limit", 4.0)
    assert function(batch(19))[1] == function(batch(11))[1] == 8.0


def pieces(x: np.ndarray, y: np.ndarray, factor: float, k: int, name: str) -> Any:
    """Kernels alone: results of all kinds, numbers in and out, a temporary, an argument."""
    centred = x - x.mean()
    z = centred * factor + y[1:]
    return z, (z * z).sum(), (centred * centred).max(), k * 2, len(x), name, x, float(z[0]) + k


def in_place(x: np.ndarray, y: np.ndarray) -> Any:
    y[1:-1] += x[:-2] * 0.5
    return (x * x).sum() + y.sum()


def test_calls_of_kernels_alone_are_copies_of_a_template(monkeypatch: pytest.MonkeyPatch):
    function, written = fusec.jit(pieces), fusec.jit(in_place)

    def check(n: int) -> None:
        x, y = np.random.default_rng(n).random((2, n + 1))
        for k, (a, name) in enumerate(((x[:-1], "a"), (x[1:], "b"), (x[1:], "a"))):
            got, want = (f(a, y, 0.5 + k, k, name) for f in (function, pieces))
            assert got[3:7] == want[3:7] and got[6] is a
            assert [*map(type, got)] == [*map(type, want)]
            for one, other in zip(got[:3] + got[7:], want[:3] + want[7:], strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-14)
        copy, want = y.copy(), y.copy()
        np.testing.assert_allclose(written(x, copy), in_place(x, want), rtol=1e-13)
        np.testing.assert_array_equal(copy, want)

    for n in (9, 12, 31):
        check(n)
    x = np.ones(9)
    assert written.concrete(x, x).executable.uses_native
    assert function.concrete(x, np.ones(10), 0.5, 1, "a").executable.uses_native
    for kind in (whole_call.WholeCall, PlanTemplate, PlanSource):
        monkeypatch.setattr(kind, "__init__", None)  # nothing is made of these
    for n in (5, 33, 3):
        check(n)
    monkeypatch.undo()
    for n in (12, 5):  # arrays that share their last and first element are not for these plans
        both = np.arange(2.0 * n + 1)
        want = both[n:].copy()
        result = in_place(both[: n + 1].copy(), want)
        assert written(both[: n + 1], both[n:]) == pytest.approx(result, rel=1e-12)
        np.testing.assert_array_equal(both[n:], want)


def test_a_question_is_answered_once_for_all_nodes(monkeypatch: pytest.MonkeyPatch):
    """By questions a second size of a gradient of 600 lines took 1.4 times as long as the first."""
    asked: list[tuple[Any, ...]] = []
    answered = Symbolic._asked

    def noted(number: Symbolic, fn: Any, a: Any, b: Any) -> bool:
        if {type(stored(a)), type(stored(b))} <= {int, Dim}:
            asked.append((id(number.sizes.answers), fn, stored(a), stored(b)))
        kept.append(number.sizes.answers)  # or another dict may be where it was
        return answered(number, fn, a, b)

    kept: list[Any] = []
    monkeypatch.setattr(Symbolic, "_asked", noted)

    def many(x: np.ndarray, y: np.ndarray) -> Any:
        for _ in range(12):
            x = np.sin(x[1:] * y[:-1]) + x[:-1].mean()
            y = y[1:] * 0.5
        return x.sum()

    function = fusec.value_and_grad(many)
    for n in (30, 40):
        x = np.linspace(0.0, 1.0, n)
        np.testing.assert_allclose(function(x, x)[0], many(x, x), rtol=1e-12)
    assert len(asked) == len(set(asked)) > 20


class Model:
    """Instances are kin: a trace of one serves the others."""

    def __init__(self, power: int) -> None:
        self.power, self.scale = power, fusec.Variable(0.5)

    @fusec.jit
    def step(self, x: np.ndarray) -> Any:
        return (x @ WEIGHTS).sum() * self.scale * self.power


def test_each_instance_has_its_own_guards_at_all_sizes():
    one, other = Model(2), Model(2)

    def check(model: Model, n: int) -> None:
        want = (batch(n) @ WEIGHTS).sum() * 0.5 * model.power
        np.testing.assert_allclose(model.step(batch(n)), want, rtol=1e-12)

    for n in (5, 8, 11, 13):
        check(one, n)
    for n in (13, 11, 17):
        check(other, n)
    other.power = 3
    for n in (13, 17, 19):
        check(other, n)
        check(one, n)
    one.power = 4
    for n in (13, 19, 23):
        check(one, n)
        check(other, n)


def test_records_are_copied_without_the_facts_kept_beside_their_fields():
    form = LoopForm(None, "map", (6,), 1, 0, (), (0,), ())
    form.__dict__["fact"] = 1
    other = replace(form, extents=(7,))
    assert other == dataclasses.replace(form, extents=(7,)) and other.tasks == 1
    assert "fact" not in vars(other) and form.extents == (6,)
    with pytest.raises(TypeError, match="shape"):
        replace(form, shape=1)


def test_loops_without_room_for_a_result_run_again_at_all_sizes():
    def counted(x: np.ndarray) -> Any:
        total = 0.0
        for j in range(len(x)):
            total += len(np.bincount(x[j:])) + x[j]
        return total

    function = fusec.jit(counted)
    for n in (20, 24, 31, 40):
        for most in (9, 9_000):
            x = np.random.default_rng(n).integers(0, most, n)
            assert function(x) == counted(x)
