"""`custom_vjp`, `custom_jvp`: rules that the program gives."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from gradients.differences import differences

import fusec

X = np.array([0.5, 1.5, -0.25])


@fusec.custom_vjp
def softplus(x: Any) -> Any:
    return np.log(1 + np.exp(x))


def softplus_forward(x: Any) -> Any:
    return softplus(x), x


def softplus_back(x: Any, ct: Any) -> Any:
    return (ct / (1 + np.exp(-x)),)


softplus.defvjp(softplus_forward, softplus_back)


@fusec.custom_jvp
def scaled_square(x: Any, y: Any = 2.0) -> Any:
    return x * x * y


@scaled_square.defjvp
def _(primals: Any, tangents: Any) -> Any:
    (x, y), (u, v) = primals, tangents
    return scaled_square(x, y), 2 * x * y * u + x * x * v


def in_a_loop(x: Any) -> Any:
    s = 1.0
    for i in range(len(x)):
        if x[i] > 0.0:
            s = s * softplus(x[i]) + scaled_square(x[i], s)
        x[i] = scaled_square(x[i])
    return (s * x).sum()


def test_the_rule_replaces_the_derivative() -> None:
    x = np.array([-800.0, 0.0, 800.0])
    with np.errstate(all="ignore"):
        assert np.isinf(softplus(x)[2])  # outside of compiled functions it is the function itself
    np.testing.assert_array_equal(fusec.grad(lambda x: softplus(x).sum())(x), [0, 0.5, 1])
    np.testing.assert_allclose(fusec.jit(softplus)(X), np.log(1 + np.exp(X)))


@pytest.mark.parametrize("f", [
    lambda x: (softplus(x) * x).sum(), lambda x: scaled_square(x, x[0]).sum(), in_a_loop])
def test_both_directions_and_second_derivatives(f: Any) -> None:
    v = np.array([0.25, -1.0, 2.0])
    gradient = fusec.grad(f)(X.copy())
    np.testing.assert_allclose(gradient, differences(f, (X,)), rtol=1e-8)
    assert fusec.jvp(f, (X.copy(),), (v,))[1] == pytest.approx(gradient @ v, rel=1e-13)
    expected = differences(lambda x: fusec.grad(f)(x) @ v, (X,))
    np.testing.assert_allclose(fusec.hvp(f, (X.copy(),), (v,))[0], expected, rtol=1e-7)
    np.testing.assert_allclose(
        fusec.grad(lambda x: (fusec.grad(f)(x) * v).sum())(X.copy()), expected, rtol=1e-7)


def test_derivatives_run_the_rule_and_nothing_else_does() -> None:
    f = fusec.custom_vjp(lambda x: np.cos(x).sum())
    f.defvjp(lambda x: (np.sin(x).sum(), x), lambda x, ct: (ct * 3 * x,))
    assert fusec.jit(f)(X) == pytest.approx(np.cos(X).sum())
    value, gradient = fusec.value_and_grad(f)(X)
    assert value == pytest.approx(np.sin(X).sum())
    np.testing.assert_array_equal(gradient, 3 * X)
    graph = fusec.value_and_grad(f).concrete(X).optimized_graph
    assert "GivenDerivative" not in graph.ops and "Cos" not in str(graph)


def test_trees_constants_and_zeros() -> None:
    @partial(fusec.custom_vjp, nondiff_argnums=(0, 3))
    def f(act: Any, p: Any, n: Any, k: int = 2) -> Any:
        return {"y": act(p["w"] * n) * k, "n": n}

    def forward(act: Any, p: Any, n: Any, k: int) -> Any:
        return f(act, p, n, k), (p["w"], n)

    def back(act: Any, k: int, kept: Any, ct: Any) -> Any:
        _, n = kept
        assert k == 2 and act is np.tanh and set(ct) == {"y", "n"}
        return {"w": ct["y"] * n * 10, "b": None}, None

    f.defvjp(forward, back)
    p, n = {"w": X, "b": 1.0}, np.array([1, 2, 3])
    gradient = fusec.grad(lambda p: f(np.tanh, p, n=n)["y"].sum())(p)
    np.testing.assert_array_equal(gradient["w"], 10.0 * n)
    assert gradient["b"] == 0.0


def test_straight_through_and_clipped() -> None:
    @fusec.custom_vjp
    def rounded(x: Any) -> Any:
        return np.round(x)

    rounded.defvjp(lambda x: (np.round(x), None), lambda _, ct: (np.clip(ct, -1, 1),))
    gradient = fusec.grad(lambda x: (rounded(x) * np.array([0.5, 7, -7])).sum())(X)
    np.testing.assert_array_equal(gradient, [0.5, 1, -1])


def test_a_fixed_point_by_the_implicit_function_theorem() -> None:
    def step(a: Any, x: Any) -> Any:
        return 0.5 * (x + a / x)

    @fusec.custom_vjp
    def root(a: Any) -> Any:
        x = a
        while np.abs(step(a, x) - x).max() > 1e-14:
            x = step(a, x)
        return x

    def forward(a: Any) -> Any:
        x = root(a)
        return x, (a, x)

    def back(kept: Any, ct: Any) -> Any:
        a, x = kept
        by_x = fusec.vjp(partial(step, a), x)[1]
        w = ct
        for _ in range(60):
            w = ct + by_x(w)[0]
        return fusec.vjp(lambda a: step(a, x), a)[1](w)

    root.defvjp(forward, back)
    a = np.array([2.0, 9.0, 5.0])
    np.testing.assert_allclose(fusec.grad(lambda a: root(a).sum())(a), 0.5 / np.sqrt(a))


def test_what_is_refused_otherwise_may_have_a_rule() -> None:
    @fusec.custom_vjp
    def magic(x: Any) -> Any:  # a first guess of 1 / sqrt(x) from the bits
        y = (0x5FE6EB50C7B537A9 - (x.view(np.int64) >> 1)).view(np.float64)
        return y * (1.5 - 0.5 * x * y * y)

    magic.defvjp(lambda x: (magic(x), x), lambda x, ct: (-0.5 * ct * x ** -1.5,))
    x = np.abs(X)
    np.testing.assert_allclose(fusec.grad(lambda x: magic(x).sum())(x), -0.5 * x ** -1.5)


def test_rules_by_argument_and_methods() -> None:
    @fusec.custom_jvp
    def product(x: Any, y: Any) -> Any:
        return x * y

    product.defjvps(lambda t, _, x, y: 5 * t * y, None)
    by_x, by_y = fusec.grad(lambda x, y: product(x, y).sum(), (0, 1))(X, 2 * X)
    np.testing.assert_array_equal(by_x, 10 * X)
    np.testing.assert_array_equal(by_y, 0 * X)

    class Scale:
        by = 3.0

        @fusec.custom_vjp
        def apply(self, x: Any) -> Any:
            return x * self.by

    Scale.apply.defvjp(lambda self, x: (self.apply(x), self.by), lambda by, ct: (None, ct * by))
    scale = Scale()
    np.testing.assert_array_equal(fusec.grad(lambda x: scale.apply(x).sum())(X), [3.0] * 3)


def test_a_result_that_is_the_argument_is_no_second_name_for_it() -> None:
    same = fusec.custom_vjp(lambda x: x)
    same.defvjp(lambda x: (x, None), lambda _, ct: (-ct,))
    np.testing.assert_array_equal(fusec.grad(lambda x: (same(x) * X).sum())(X), -X)

    def written(x: Any) -> Any:
        y = same(x)
        y += 1.0
        return (x * y).sum()

    with pytest.raises(fusec.UnsupportedError, match="writing to an array that is an argument"):
        fusec.grad(written)(X.copy())


def with_rule(forward: Any, back: Any, f: Any = None) -> Any:
    custom = fusec.custom_vjp(f or (lambda x: x * 2))
    custom.defvjp(forward, back)
    return fusec.grad(lambda x: custom(x).sum())


def keep(x: Any) -> Any:
    return x * 2, x


def written(x: Any) -> Any:
    x[0] = 1.0
    return x * 2, None


def reading_outside(x: Any) -> Any:
    inner = fusec.custom_vjp(lambda y: y * x)
    inner.defvjp(lambda y: (y * x, None), lambda _, ct: (ct,))
    return inner(X).sum()


@pytest.mark.parametrize(("call", "error", "text"), [
    (with_rule(keep, lambda x, ct: ct), TypeError, "no tuple of a cotangent for each"),
    (with_rule(keep, lambda x, ct: (ct, ct)), TypeError, "no tuple of a cotangent for each"),
    (with_rule(keep, lambda x, ct: (ct[:2],)), ValueError, "another shape"),
    (with_rule(keep, lambda x, ct: ([ct],)), ValueError, "another structure"),
    (with_rule(keep, lambda x, ct: (1j * ct,)), TypeError, "complex cotangents"),
    (with_rule(lambda x: x * 2, lambda x, ct: (ct,)), TypeError, "no pair"),
    (with_rule(written, lambda x, ct: (ct,)), fusec.UnsupportedError, "writes to what is older"),
    (fusec.grad(reading_outside), fusec.UnsupportedError, "(?s)from outside.*pass it as an arg"),
    (fusec.grad(lambda x: fusec.custom_vjp(lambda x: x.sum())(x)), TypeError, r"no rule.*\n?"),
    (fusec.grad(lambda x: fusec.custom_jvp(lambda x: x.sum())(x)), TypeError, "no rule"),
])
def test_misuse_says_what_is_wrong(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call(X.copy())


def test_misuse_without_a_call() -> None:
    with pytest.raises(TypeError, match="needs a function"):
        fusec.custom_vjp(3)
    with pytest.raises(TypeError, match="needs a function"):
        fusec.custom_vjp(lambda x: x).defvjp(None, None)
