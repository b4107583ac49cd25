"""Arrays and numbers of objects that vary from call to call: one trace, plans for their sizes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fusec

SIZES = (40, 48, 57, 66, 40, 83)


class Adam:
    def __init__(self, n: int) -> None:
        self.m = np.zeros(n)
        self.rate = 1 / n
        self.steps = 0

    def step(self, x: Any, gradient: Any) -> Any:
        self.m = 0.9 * self.m + 0.1 * gradient
        self.steps += 1
        return x - self.rate * self.m


def renew(x: Any, n: int) -> None:
    vars(x).update(vars(type(x)(n)))


def with_argument(adam: Adam, n: int) -> tuple[Any, ...]:
    return adam, np.linspace(0.0, 1.0, n), np.ones(n)


def by_argument(adam: Any, x: Any, gradient: Any) -> Any:
    return adam.step(x, gradient)


def alone(adam: Any) -> Any:
    adam.m[1:] += adam.m[:-1] + 1.0
    return adam.m * adam.rate, len(adam.m)


def both(function: Any, arguments: Any) -> fusec.jit:
    """Calls of all sizes, compared with NumPy's."""
    jitted, adam, plain = fusec.jit(function), Adam(3), Adam(3)
    for n in SIZES:
        renew(adam, n)
        renew(plain, n)
        for _ in range(2):
            got, want = jitted(*arguments(adam, n)), function(*arguments(plain, n))
            for a, b in zip(*(x if type(x) is tuple else (x,) for x in (got, want)), strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-14)
            np.testing.assert_allclose(adam.m, plain.m, rtol=1e-14)
            assert adam.steps == plain.steps
    return jitted


@pytest.mark.parametrize(("function", "arguments"), [
    (by_argument, with_argument), (alone, lambda adam, n: (adam,))])
def test_one_trace_serves_objects_of_all_sizes(function, arguments) -> None:
    assert both(function, arguments).trace_count == 1


def test_sizes_that_went_with_an_argument_and_do_not_are_seen() -> None:
    jitted, adam = fusec.jit(by_argument), Adam(40)
    for n in SIZES:
        renew(adam, n)
        jitted(*with_argument(adam, n))
    renew(adam, 1)
    got = jitted(adam, np.ones(50), np.ones(1))
    np.testing.assert_allclose(got, 0.9)
    renew(adam, 30)
    with pytest.raises(ValueError, match="could not be broadcast"):
        jitted(adam, np.ones(50), np.ones(50))
    renew(adam, 50)
    np.testing.assert_allclose(jitted(adam, np.ones(50), np.ones(50)), 1 - 0.1 / 50)


def test_a_size_that_never_changed_is_no_symbol() -> None:
    """Weights that are by chance as long as the second batch."""
    class Layer:
        def __init__(self) -> None:
            self.w = np.ones((48, 4))

    layer, jitted = Layer(), fusec.jit(lambda layer, x: x @ layer.w)
    for n in SIZES:
        np.testing.assert_allclose(jitted(layer, np.ones((n, 48))), 48.0)
    assert {v.type.shape for t in jitted.traces for v in t.graph.inputs
            if v.node.attrs["path"].endswith("w")} == {(48, 4)}


def test_a_global_goes_with_an_argument_too() -> None:
    jitted = fusec.jit(lambda x: SCALE["w"] * x if "w" in SCALE else WEIGHTS * x)
    for n in SIZES:
        globals()["WEIGHTS"] = np.full(n, 2.0)
        np.testing.assert_array_equal(jitted(np.ones(n)), np.full(n, 2.0))
    assert jitted.trace_count == 1


SCALE: dict[str, Any] = {}
WEIGHTS = np.ones(1)


def test_arrays_in_lists_have_a_trace_for_each_size() -> None:
    """Items of a list are compared as a whole."""
    class Layers:
        def __init__(self, n: int) -> None:
            self.ws = [np.ones((n, 3)), np.ones(3)]

    def f(layers, x):
        for w in layers.ws:
            x = x * w
        layers.ws[0] += x
        return x

    jitted, layers = fusec.jit(f), Layers(3)
    for n in SIZES[:4]:
        renew(layers, n)
        np.testing.assert_array_equal(jitted(layers, np.ones((n, 3))), np.ones((n, 3)))
        assert layers.ws[0][0, 0] == 2.0
    assert jitted.trace_count == 4


def test_a_float_that_varies_is_read_at_each_call() -> None:
    """It was a constant of the first plan, and decides here."""
    def f(adam):
        return adam.m * 2 if adam.rate > 0.02 else adam.m - 1

    jitted, adam = fusec.jit(f), Adam(3)
    for n in SIZES:
        renew(adam, n)
        np.testing.assert_array_equal(jitted(adam), f(adam))
    assert jitted.trace_count == 1


class Optimiser:
    def __init__(self) -> None:
        self.m, self.rate, self.limit = np.zeros(3), 0.1, 1.0

    def step(self, x: Any) -> Any:
        if self.rate > self.limit:
            raise ValueError("too fast")
        self.m = 0.9 * self.m + x
        return x - self.rate * self.m


def test_a_rate_that_falls_has_two_traces() -> None:
    """The first has it as a constant, the second reads it, one for all sizes comes later."""
    jitted, one, plain = fusec.jit(lambda o, x: o.step(x)), Optimiser(), Optimiser()
    for epoch in range(12):
        n = 3 if epoch < 6 else epoch
        for o in (one, plain):
            o.rate = 0.1 * 0.9 ** epoch
            o.m = np.resize(o.m, n)
        np.testing.assert_allclose(jitted(one, np.ones(n)), plain.step(np.ones(n)), rtol=1e-14)
        assert jitted.trace_count == (1 if epoch < 1 or epoch > 5 else 2)  # which serves the others


def test_an_error_of_the_program_does_not_end_following() -> None:
    jitted, one = fusec.jit(lambda o, x: o.step(x)), Optimiser()
    for rate in (0.1, 0.2, 2.0, 3.0, 0.3, 0.4):
        one.rate = rate
        if rate > one.limit:
            with pytest.raises(ValueError, match="too fast"):
                jitted(one, np.ones(3))
        else:
            jitted(one, np.ones(3))
    assert jitted.trace_count == 2


def test_a_float_that_tracing_needs_is_a_constant() -> None:
    class Grid:
        h = 0.0

    def f(grid: Any) -> Any:
        return np.full(int(1 / grid.h), grid.h), {0.5: "half"}.get(grid.h, "other")

    jitted, grid = fusec.jit(f), Grid()
    for h in (0.5, 0.25, 0.125, 0.5):
        grid.h = h
        got, want = jitted(grid), f(grid)
        np.testing.assert_array_equal(got[0], want[0])
        assert got[1] == want[1]
    assert jitted.trace_count == 3
