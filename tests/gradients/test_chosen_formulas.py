"""Functions whose results formulas choose: derivatives where a point has a side of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import special

import fusec

LN2 = np.log(2.0)
X = np.array([0.5, 1.3, 2.0])
EXPONENTS = [-1.0, 0.0, 0.5, 1.0, 2.0, 3.0, 1.7]


@pytest.mark.parametrize("p", EXPONENTS)
def test_powers_by_an_exponent_that_the_run_decides(p: float) -> None:
    """NumPy takes a root, a square, … for some exponents: no constant power is meant."""
    by_p, by_x = np.sum(X ** p * np.log(X)), p * X ** (p - 1)
    gradient = fusec.grad(lambda x, p: np.sum(x ** p), (0, 1))
    for given in (p, np.float64(p), np.array(p)):
        found = gradient(X, given)
        np.testing.assert_allclose(found[0], by_x, rtol=1e-14)
        np.testing.assert_allclose(found[1], by_p, rtol=1e-14)
    np.testing.assert_allclose(fusec.jvp(lambda p: X ** p, (p,), (1.0,))[1], X ** p * np.log(X))
    np.testing.assert_allclose(
        fusec.hessian(lambda p: np.sum(X ** p))(p), np.sum(X ** p * np.log(X) ** 2), rtol=1e-14)


def test_the_fit_of_a_power_law() -> None:
    x = np.linspace(0.5, 2, 50)
    y = 3 * x ** 1.7
    p = np.array([3.0, 2.0])
    found = fusec.grad(lambda p: np.sum((p[0] * x ** p[1] - y) ** 2))(p)
    rest = 3 * x ** 2 - y
    np.testing.assert_allclose(
        found, [np.sum(2 * rest * x ** 2), np.sum(6 * rest * x ** 2 * np.log(x))], rtol=1e-13)


def test_an_exponent_in_a_loop_and_in_a_variable() -> None:
    def total(x: Any, q: Any) -> Any:
        value = 0.0
        for i in range(x.shape[0]):
            value += np.power(x[i], q[i])
        return value

    x, q = np.linspace(0.5, 2, 40), np.resize(EXPONENTS, 40)
    np.testing.assert_allclose(fusec.grad(total, 1)(x, q), x ** q * np.log(x), rtol=1e-13)
    w = fusec.Variable(2.0)
    np.testing.assert_allclose(
        fusec.grad(lambda: np.sum(X ** w), wrt=w)(), np.sum(X ** 2 * np.log(X)), rtol=1e-14)


FIRST: dict[str, tuple[Callable[..., Any], list[float], list[float]]] = {
    "logaddexp": (lambda x: np.logaddexp(x, 0.0), [0, 1], [0.5, 1 / (1 + np.exp(-1))]),
    "logaddexp2": (lambda x: np.logaddexp2(0.0, x), [0, 2], [0.5, 0.8]),
    "logaddexp of nothing": (
        lambda x: np.logaddexp(x, np.logaddexp(x * 0 - np.inf, -np.inf)), [1], [1]),
    "xlogy": (lambda x: special.xlogy(x, 2.0), [0, 1], [LN2, LN2]),
    "xlogy by the other": (lambda y: special.xlogy(np.array([0.0, 1.0]), y), [0, 2], [0, 0.5]),
    "xlog1py": (lambda x: special.xlog1py(x, 1.0), [0, 1], [LN2, LN2]),
    "entr": (special.entr, [0, 0.5, -1], [np.inf, LN2 - 1, 0]),
    "rel_entr": (lambda x: special.rel_entr(x, 2.0), [0, 0.5, -1], [-np.inf, 1 - 2 * LN2, 0]),
    "kl_div": (lambda x: special.kl_div(x, 2.0), [0, 0.5, -1], [-np.inf, -2 * LN2, 0]),
    "inv_boxcox": (lambda x: special.inv_boxcox(x, 0.0), [0.5, 1], [np.exp(0.5), np.e]),
    "ldexp": (lambda x: np.ldexp(x, 3), [0, 1], [8, 8]),
    "logsumexp by weights": (
        lambda b: special.logsumexp(np.zeros(2), b=b), [1, 0], [1, 1]),
    "exprel": (special.exprel, [0, 1e-9, 2.0], [0.5, 0.5 + 1e-9 / 3, (np.e ** 2 + 1) / 4]),
}
SECOND: dict[str, tuple[Callable[..., Any], float, float]] = {
    "logaddexp": (lambda x: np.logaddexp(0.0, x), 0, 0.25),
    "pseudo_huber": (lambda x: special.pseudo_huber(1.0, x), 0, 1),
    "spence": (special.spence, 1, 0.5), "exprel": (special.exprel, 0, 1 / 3),
    "exprel beside": (special.exprel, 1e-9, 1 / 3),
    "exprel far": (special.exprel, 2, 1.59726402473266),  # (exp(x) (x**2 - 2 x + 2) - 2) / x**3
    "inv_boxcox": (lambda x: special.inv_boxcox(x, 0.0), 1, np.e),
}


@pytest.mark.parametrize("case", FIRST)
def test_first_derivatives(case: str) -> None:
    f, at, want = FIRST[case]
    found = fusec.grad(lambda x: np.sum(f(x)))(np.array(at, float))
    np.testing.assert_allclose(found, want, rtol=1e-13)


@pytest.mark.parametrize("case", SECOND)
def test_second_derivatives(case: str) -> None:
    f, at, want = SECOND[case]
    found = fusec.hessian(lambda x: np.sum(f(x)))(np.array([at], float))
    np.testing.assert_allclose(found, [[want]], rtol=1e-8)


NORMS = {
    "dot": lambda x: (x @ x) ** 0.5, "sum": lambda x: (x ** 2).sum() ** 0.5,
    "elements": lambda x: np.sqrt(x[0] * x[0] + x[1] * x[1]),
    "more": lambda x: np.sqrt(np.sum(x ** 2) + 0.0),
}


@pytest.mark.parametrize("norm", NORMS)
def test_norms_at_the_origin(norm: str) -> None:
    np.testing.assert_array_equal(fusec.grad(NORMS[norm])(np.zeros(3)), np.zeros(3))


@pytest.mark.parametrize("total", [
    lambda m: np.logaddexp.reduce(m, axis=0), lambda m: special.logsumexp(m, axis=0)],
    ids=["reduce", "logsumexp"])
def test_paths_that_a_markov_chain_does_not_have(total: Callable[..., Any]) -> None:
    """Probabilities of 0 have logarithms of -inf: sums of nothing else among them."""
    steps = np.array([[0.6, 0.4, 0], [0, 0.7, 0.3], [0, 0, 1]])
    with np.errstate(divide="ignore"):
        logs, first = np.log(steps), np.log([1.0, 0, 0])
    seen = np.log(np.random.default_rng(4).random((6, 3)))

    def likelihood(seen: Any) -> Any:
        state = first + seen[0]
        for k in range(1, 6):
            state = total(state[:, None] + logs) + seen[k]
        return total(state)

    def of_probabilities(seen: Any) -> Any:
        state = np.array([1.0, 0, 0]) * np.exp(seen[0])
        for k in range(1, 6):
            state = (state @ steps) * np.exp(seen[k])
        return np.log(state.sum())

    np.testing.assert_allclose(fusec.grad(likelihood)(seen), fusec.grad(of_probabilities)(seen),
                               rtol=1e-12, atol=1e-15)
