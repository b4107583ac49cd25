"""`jacobian`, `hessian`, `hvp`, `stop_gradient` and `check_grads`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fusec
from fusec.gradients import jacobians

X = np.array([1.0, 2.0, 3.0])
A = np.arange(12.0).reshape(4, 3) * 0.1


def cubes(x: Any) -> Any:
    return (x * x * x).sum() + x[0] * x[1]


def test_jacobians_both_ways() -> None:
    wide = fusec.jacobian(lambda x: np.tanh(A @ x))(X)
    np.testing.assert_allclose(wide, (1 - np.tanh(A @ X) ** 2)[:, None] * A, atol=1e-16)
    tall = fusec.jacobian(lambda x: np.stack([x.sum(), (x * x).sum()]))(X)
    np.testing.assert_array_equal(tall, [np.ones(3), 2 * X])
    table = fusec.jacobian(lambda a, x: {"p": a @ x, "s": a.sum()}, (0, 1))(A, X)
    np.testing.assert_allclose(table["p"][0], np.einsum("ij,k->ijk", np.eye(4), X))
    np.testing.assert_array_equal(table["p"][1], A)
    np.testing.assert_array_equal(table["s"][0], np.ones((4, 3)))


def test_jacobians_by_pythons_numbers() -> None:
    by_x, by_factor = fusec.jacobian(lambda x, k: k * x, (0, 1))(X, 2.0)
    np.testing.assert_array_equal(by_x, 2 * np.eye(3))
    np.testing.assert_array_equal(by_factor, X)
    assert fusec.jacobian(lambda x: x ** 2)(3.0) == 6.0
    second = fusec.hessian(lambda p: p["a"] ** 2 * p["b"].sum())({"a": 3.0, "b": X})
    np.testing.assert_array_equal(second["a"]["b"], np.full(3, 6.0))
    assert second["a"]["a"] == 2 * X.sum()


@pytest.mark.parametrize("is_loop", [False, True])
def test_directions_are_lanes_unless_they_take_much_memory(
    is_loop: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if is_loop:
        monkeypatch.setattr(jacobians, "MOST_IN_LANES", 3599)
    x = np.linspace(0, 1, 60)
    jacobian = fusec.jacobian(lambda x: np.cumsum(np.sin(x)))
    np.testing.assert_allclose(jacobian(x), np.tri(60) * np.cos(x), atol=1e-15)
    assert ("Loop" in jacobian.concrete(x).graph.ops) == is_loop


def test_a_jacobian_through_a_loop_of_data() -> None:
    def f(x: Any) -> Any:
        while (x * x).sum() > 1:
            x = x * 0.5 + 0.01 * np.sin(x[::-1])
        return x[:2]

    x = np.array([1.0, -2.0, 0.5])
    step = 1e-6
    want = np.stack([(f(x + step * e) - f(x - step * e)) / (2 * step) for e in np.eye(3)], axis=1)
    np.testing.assert_allclose(fusec.jacobian(f)(x), want, atol=1e-8)


def test_second_derivatives() -> None:
    expected = np.diag(6 * X)
    expected[0, 1] = expected[1, 0] = 1
    np.testing.assert_array_equal(fusec.hessian(cubes)(X), expected)
    (product,) = fusec.hvp(cubes, (X,), (Y := np.array([1.0, -1.0, 0.5]),))
    np.testing.assert_allclose(product, expected @ Y)


def test_what_is_stopped_is_constant() -> None:
    np.testing.assert_array_equal(
        fusec.grad(lambda x: (fusec.stop_gradient(x) * x).sum())(X), X)
    np.testing.assert_array_equal(fusec.jit(lambda x: fusec.stop_gradient({"x": x})["x"])(X), X)
    assert fusec.stop_gradient(2.0) == 2.0
    _, tangent = fusec.jvp(lambda x: fusec.stop_gradient(x) * 2, (X,), (X,))
    np.testing.assert_array_equal(tangent, 0 * X)


def test_checks_of_gradients() -> None:
    fusec.check_grads(lambda x, y: np.exp(x * y).sum(axis=0), (A, 0.3), order=2)
    fusec.check_grads(lambda x: x * np.exp(1j * x), (X,))
    fusec.check_grads(np.sin, (X.astype(np.float32),))
    with pytest.raises(AssertionError, match="the tangent and differences differ"):
        fusec.check_grads(lambda x: fusec.stop_gradient(x) * x, (X,))
    with pytest.raises(TypeError, match="real floats"):
        fusec.jacobian(lambda x: x * 1j)(X)


@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_both_modes_give_one_jacobian(mode: Any) -> None:
    def f(x: Any, m: Any) -> Any:
        return np.tanh(m @ (np.sin(x) + x / 3 - 2 * x)) * (x @ m.T) + np.dot(m, -x)

    step, m = 1e-6, A + 0.3
    want = np.stack([(f(X + step * e, m) - f(X - step * e, m)) / (2 * step) for e in np.eye(3)],
                    axis=1)
    jacobian = fusec.jacobian(f, mode=mode)
    np.testing.assert_allclose(jacobian(X, m), want, atol=1e-8)
    directions = {"forward": 3, "reverse": 4}[mode]
    assert f"jacobian: {mode}, {directions} directions, as mode says" in str(
        fusec.explain(jacobian, X, m))
    assert jacobian is fusec.jacobian(f, mode=mode)
    assert jacobian is not fusec.jacobian(f)


def _products(f: Any, x: Any) -> int:
    return str(f.concrete(x).graph).count("= MatMul(")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_no_product_is_done_with_the_identity(dtype: Any) -> None:
    a, b, x = A.astype(dtype), A[:2].astype(dtype), X.astype(dtype)
    forward = fusec.jacobian(lambda x: np.cos(a @ (x * x)))
    np.testing.assert_allclose(
        forward(x), -np.sin(a @ (x * x))[:, None] * a * (2 * x), rtol=1e-5)
    assert _products(forward, x) == 1  # that of the values
    reverse = fusec.jacobian(lambda x: np.cos(b @ x))
    np.testing.assert_allclose(reverse(x), -np.sin(b @ x)[:, None] * b, rtol=1e-5)
    assert _products(reverse, x) == 1
    assert reverse(x).dtype == dtype


def test_what_is_infinite_in_a_matrix_stays_in_its_column() -> None:
    wide = A.copy()
    wide[1, 2] = np.inf
    np.testing.assert_array_equal(fusec.jacobian(lambda x: wide @ x)(X), wide)


def test_products_of_unit_vectors_with_each_other_and_with_numbers() -> None:
    def f(x: Any) -> Any:
        return np.concatenate([(x @ x)[None] * x, np.outer(x, x * 2).ravel(), x[:1] * x])

    step = 1e-6
    want = np.stack([(f(X + step * e) - f(X - step * e)) / (2 * step) for e in np.eye(3)], axis=1)
    np.testing.assert_allclose(fusec.jacobian(f)(X), want, atol=1e-7)


def test_another_mode_is_refused() -> None:
    with pytest.raises(ValueError, match="mode is none of its modes"):
        fusec.jacobian(np.sin, mode="fwd")  # type: ignore[arg-type]


def curved(x: Any, w: Any) -> Any:
    return np.sin(x) * x ** 2 + np.where(x > 0, w * x, 0.5), x - np.cos(w)


def shifted(x: Any, w: Any) -> Any:
    return np.sin(x) + x[::-1], x * w


def scaled(x: Any, w: Any) -> Any:
    return x * x.sum(), w * x[0]


def in_a_matrix(x: Any, w: Any) -> Any:
    return np.exp(x)[:, None] * w, x + w


@pytest.mark.parametrize(("f", "scatters"), [
    (curved, True), (shifted, False), (scaled, False), (in_a_matrix, False)])
@pytest.mark.parametrize("n", [64, 100])
def test_elementwise_functions_have_diagonals(f: Any, scatters: bool, n: int) -> None:
    rng = np.random.default_rng(3)
    x, w, h = rng.normal(size=n), rng.normal(size=n), 1e-6
    jacobian = fusec.jit(fusec.jacobian(f, 0, "forward"))
    wanted = [np.moveaxis([(a - b) / (2 * h) for a, b in zip(
        column_of(f, x, w, h, k), column_of(f, x, w, -h, k), strict=True)], 0, -1)
        for k in range(2)]
    for one, other in zip(jacobian(x, w), wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-7)
    assert ("Scatter" in jacobian.concrete(x, w).graph.ops) == scatters


def column_of(f: Any, x: Any, w: Any, h: float, result: int) -> list[Any]:
    """A result where each element in turn is ``h`` further."""
    return [f(x + h * unit, w)[result] for unit in np.eye(len(x))]


def test_of_a_diagonal_again() -> None:
    x = np.linspace(-1, 1, 80)
    hessian = fusec.jit(fusec.hessian(lambda x: (x ** 4).sum()))
    np.testing.assert_allclose(hessian(x), np.diag(12 * x ** 2), rtol=1e-12)
    lanes = fusec.jit(fusec.vmap(fusec.jacobian(np.sin)))
    many = np.stack([x, 2 * x])
    np.testing.assert_allclose(lanes(many), [np.diag(np.cos(row)) for row in many], rtol=1e-12)
