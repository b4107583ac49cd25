"""One trace for all instances of a class that are alike; others have theirs."""

from __future__ import annotations

import copy
import gc
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fusec

X = np.arange(1.0, 13.0).reshape(3, 4)
FACTOR: Any = 2.0
SHARED: Any = fusec.Variable(np.ones(4), name="w")


class Layer:
    def __init__(self, n: int, value: float = 0.1, dtype: Any = float) -> None:
        self.w = fusec.Variable(np.full((n, n), value, dtype), name="w")
        self.b = fusec.Variable(np.zeros(n, dtype), name="b")

    def __call__(self, x: Any) -> Any:
        return np.tanh(x @ self.w + self.b)


class Model:
    def __init__(self, layers: int = 2, rate: float = 0.1, n: int = 4, dtype: Any = float) -> None:
        self.layers = [Layer(n, 0.1 + k, dtype) for k in range(layers)]
        self.steps, self.rate = fusec.Variable(0), rate
        self.calls, self.mean = 0, np.zeros(n)

    def loss(self, x: Any) -> Any:
        for layer in self.layers:
            x = layer(x)
        return (x ** 2).mean()

    def train(self, x: Any) -> Any:
        self.steps.assign_add(1)
        self.calls += 1
        self.mean = self.mean * 0.9 + x.mean(0)
        held = [v for layer in self.layers for v in (layer.w, layer.b)]
        loss, gradients = fusec.value_and_grad(self.loss, wrt=held)(x)
        for variable, gradient in zip(held, gradients, strict=True):
            variable.assign_sub(self.rate * gradient)
        return loss

    step = fusec.jit(train)


def state_of(model: Model) -> list[Any]:
    return [*(v.numpy() for layer in model.layers for v in (layer.w, layer.b)),
            model.steps.numpy(), model.calls, model.mean]


def check(model: Model, x: Any = X) -> None:
    """Two steps are those of a model with a trace of its own."""
    other = copy.deepcopy(model)
    alone = fusec.jit(lambda x: other.train(x))
    for _ in range(2):
        np.testing.assert_allclose(model.step(x), alone(x), rtol=1e-12)
    for mine, its in zip(state_of(model), state_of(other), strict=True):
        np.testing.assert_allclose(mine, its, rtol=1e-12, atol=1e-15)


def test_one_trace_for_all_that_are_alike() -> None:
    Model.step.clear()
    models = [Model() for _ in range(3)]
    for model in models:
        check(model)
    assert Model.step.trace_count == 1 and len(Model.step.traces) == 1
    assert [m.step.trace_count for m in models] == [1, 1, 1]
    assert models[1].step.traces[0].reason == "another instance, of a trace that serves it"
    assert set(models[1].step.traces[0].variables) == {
        models[1].steps, *(v for q in models[1].layers for v in (q.w, q.b))}
    with fusec.no_retrace():
        check(models[0])
        Model().step(X)
    assert "fuses" in str(fusec.explain(Model.step, models[2], X))
    check(Model(3))
    check(Model(rate=0.2))
    check(Model(dtype=np.float32))
    assert Model.step.trace_count == 4
    # Traces stay for later instances; the instances do not, nor do their Variables.
    gone = [weakref.ref(models[0]), weakref.ref(models[1].layers[0].w)]
    del model
    models.clear()
    gc.collect()
    assert [r() for r in gone] == [None, None] and Model.step.trace_count == 4
    check(Model())
    assert Model.step.trace_count == 4


def test_other_sizes_of_other_instances() -> None:
    Model.step.clear()
    for n in (2, 5, 7):
        check(one := Model(), np.ones((n, 4)) * n)
    one = Model()
    for n in (2, 5, 7, 9):
        one.step(np.ones((n, 4)))
    made = Model.step.trace_count
    two = Model()
    for n in (6, 2, 11):
        two.step(np.ones((n, 4)) * n)
    check(two, np.ones((8, 4)))
    assert Model.step.trace_count == made


class Pair:
    """Two Variables, which may be one, and a read of an object between."""

    def __init__(self, one: Any, two: Any, **options: Any) -> None:
        self.one, self.two = one, two
        self.options = options

    @fusec.jit
    def step(self, x: Any) -> Any:
        self.one.assign_add(x)
        self.two.assign(self.two * 2.0 + self.one)
        return self.one.sum() - self.two.sum() + self.options.get("more", 0.0)


def variable(value: float = 1.0, shape: int = 4, name: str = "w") -> fusec.Variable:
    return fusec.Variable(np.full(shape, value), name=name)


def apart() -> Pair:
    return Pair(variable(1.0), variable(2.0))


def as_one() -> Pair:
    return Pair(same := variable(3.0), same)


def with_a_global() -> Pair:
    return Pair(SHARED, variable(4.0))


def wider() -> Pair:
    return Pair(variable(1.0, 1), variable(1.0, 4))


def with_more() -> Pair:
    return Pair(variable(), variable(), more=5.0)


def with_other_more() -> Pair:
    return Pair(variable(), variable(), more=6.0)


def by_python(pair: Pair, x: Any) -> Any:
    return Pair.step.python_function(pair, x)


KINDS: list[Callable[[], Pair]] = [
    apart, as_one, apart, with_a_global, with_more, with_other_more, with_more, as_one]


def test_variables_that_are_one_or_not() -> None:
    Pair.step.clear()
    x = np.arange(4.0)
    for make in KINDS:
        SHARED.assign(np.ones(4))
        pair = make()
        mine = [pair.step(x), pair.step(x), pair.one.numpy(), pair.two.numpy()]
        SHARED.assign(np.ones(4))
        other = make()
        its = [by_python(other, x), by_python(other, x), other.one.numpy(), other.two.numpy()]
        for a, b in zip(mine, its, strict=True):
            np.testing.assert_allclose(a, b)
    assert Pair.step.trace_count <= 5
    first, second = variable(), variable()  # of two instances at once
    for pair in (Pair(first, second), Pair(second, first), Pair(second, first)):
        before = first.numpy(), second.numpy()
        got = pair.step(x)
        after = first.numpy(), second.numpy()
        first.assign(before[0])
        second.assign(before[1])
        np.testing.assert_allclose(got, by_python(pair, x))
        np.testing.assert_allclose(after, (first.numpy(), second.numpy()))


def named_by_the_function() -> Any:
    class Tied:
        def __init__(self, w: Any) -> None:
            self.w = w

        @fusec.jit
        def step(self, x: Any) -> Any:
            SHARED.assign_add(x)
            return self.w.assign_add(x).sum() + SHARED.sum()

    return Tied


@pytest.mark.parametrize("is_tied_first", [False, True])
def test_a_variable_that_a_name_leads_to_as_well(is_tied_first: bool) -> None:
    kind = named_by_the_function()
    for is_tied in (is_tied_first, not is_tied_first, is_tied_first):
        SHARED.assign(np.ones(4))
        tied = kind(SHARED if is_tied else variable())
        # both are 1: where they are one, x is added twice
        assert tied.step(np.ones(4)) == (4 * 3.0 + 4 * 3.0 if is_tied else 4 * 2.0 + 4 * 2.0)


class Base:
    def __init__(self, w: Any) -> None:
        self.w = w

    def scaled(self, x: Any) -> Any:
        return self.w * x

    @fusec.jit
    def run(self, x: Any) -> Any:
        return self.scaled(x).sum() * FACTOR


class Sub(Base):
    def scaled(self, x: Any) -> Any:
        return self.w * x + 1.0


def test_subclasses_names_and_what_changes_later() -> None:
    global FACTOR
    x, made = np.arange(4.0), [Base(variable()), Sub(variable()), Base(variable(2.0))]
    assert [m.run(x) for m in made] == [12.0, 20.0, 24.0]
    assert Base.run.trace_count == 2
    FACTOR = 3.0
    assert [m.run(x) for m in made] == [18.0, 30.0, 36.0]
    FACTOR = 2.0
    made[2].w = variable(3.0)  # another Variable of an instance that a trace is bound to
    assert [m.run(x) for m in made] == [12.0, 20.0, 36.0]
    made[2].scaled = lambda x: x  # type: ignore[method-assign]
    assert [m.run(x) for m in made] == [12.0, 20.0, 12.0]
    assert Base(variable(5.0)).run(x) == 60.0


class Odd:
    """Values of instances' own: generators, functions, objects that are keys."""

    def __init__(self, seed: int, k: float) -> None:
        self.rng, self.w = np.random.default_rng(seed), variable()
        self.act = lambda x: x * k
        self.rates = {self.w: k}

    @fusec.jit
    def draw(self, x: Any) -> Any:
        return self.w * self.rng.normal(size=4) + x

    @fusec.jit
    def apply(self, x: Any) -> Any:
        return self.act(x) + self.w

    @fusec.jit
    def keyed(self, x: Any) -> Any:
        return sum(v * rate for v, rate in self.rates.items()) + x

    @fusec.jit
    def numbered(self, x: Any) -> Any:
        return x + id(self) % 1000 + self.w

    @fusec.jit
    def itself(self, x: Any) -> Any:
        self.w.assign_add(x)
        return self

    @fusec.jit
    def part(self, x: Any, w: Any) -> Any:
        w.assign_add(x)
        return self.w + w


def test_what_instances_have_for_themselves() -> None:
    x = np.ones(4)
    for seed in range(3):
        odd = Odd(seed, seed + 2.0)
        rng = np.random.default_rng(seed)
        np.testing.assert_allclose(odd.draw(x), rng.normal(size=4) + x)
        np.testing.assert_allclose(odd.apply(x), x * (seed + 2.0) + 1.0)
        np.testing.assert_allclose(odd.keyed(x), x * (seed + 2.0) + 1.0)
        np.testing.assert_allclose(odd.numbered(x), x + id(odd) % 1000 + 1.0)
        assert odd.itself(x) is odd and odd.w[0] == 2.0
        assert odd.part(x, odd.w)[0] == 6.0 and odd.part(x, other := variable())[0] == 5.0
        assert other[0] == 2.0 and odd.w[0] == 3.0


class Checked:
    def __init__(self) -> None:
        self.w, self.seen = variable(), 0

    @fusec.jit
    def at(self, x: Any, i: Any) -> Any:
        self.seen += 1
        return (self.w * x)[i]


def test_what_was_assigned_before_a_call_raises() -> None:
    made = [Checked(), Checked()]
    for checked in made:
        assert checked.at(np.arange(4.0), np.int64(2)) == 2.0
        with pytest.raises(IndexError):
            checked.at(np.arange(4.0), np.int64(9))
    assert [c.seen for c in made] == [2, 2] and Checked.at.trace_count == 1


class Lazy:
    def __init__(self) -> None:
        self.v: Any = None

    @fusec.jit
    def add(self, x: Any) -> Any:
        if self.v is None:
            self.v = fusec.Variable(np.zeros_like(x), name="v")
        return self.v.assign_add(x)


def test_variables_that_the_first_call_creates() -> None:
    x = np.ones(3)
    for _ in range(3):
        lazy = Lazy()
        assert [lazy.add(x)[0], lazy.add(x)[0], lazy.add(x)[0]] == [1.0, 2.0, 3.0]
    assert Lazy.add.trace_count == 1


def test_restored_ones(tmp_path: Any) -> None:
    pytest.importorskip("safetensors")
    Model.step.clear()
    one = Model()
    one.step(X)
    path = fusec.Checkpoint(model=one).save(str(tmp_path / "run"))
    two = Model()
    fusec.Checkpoint(model=two).restore(path)
    np.testing.assert_allclose(two.loss(X), one.loss(X))
    assert two.step(X) == one.step(X) and Model.step.trace_count == 1


class Classifier:
    def __init__(self) -> None:
        self.w = np.linspace(-1, 1, 12).reshape(4, 3)

    def loss(self, x: Any, y: Any) -> Any:
        z = x @ self.w + np.array([0.5, 0.25, 0.125])
        p = np.exp(z) / np.exp(z).sum(1, keepdims=True)
        p[np.arange(len(y)), y] -= 1
        self.w -= [[0.1]] * (x.T @ p)
        return -np.log(np.abs(p[np.arange(len(y)), y])).mean() + z[:, [0, 2]].sum()


def test_arrays_that_the_method_makes_are_of_no_instance() -> None:
    jitted = fusec.jit(lambda model, x, y: model.loss(x, y))
    for n in (3, 3, 3, 5, 5, 5):
        x, y = np.arange(4.0 * n).reshape(n, 4), np.arange(n) % 3
        model, plain = Classifier(), Classifier()
        np.testing.assert_allclose(jitted(model, x, y), plain.loss(x, y), rtol=1e-12)
        np.testing.assert_allclose(model.w, plain.w, rtol=1e-12)
    assert jitted.trace_count == 2  # of one size, and of any
