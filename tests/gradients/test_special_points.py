"""Where an elementwise function has no slope, or its formula none: the conventions, point by point.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gradients.differences import differences
from test_elementwise_rules import partials_at

import fusec

INF = np.inf

# row, operands, partial derivatives
POINTS: list[tuple[str, tuple[float, ...], tuple[float, ...]]] = [
    # powers: the exponent 0, the base 0, negative bases
    ("Pow", (0.0, 0.0), (0.0, 0.0)), ("Pow", (0.0, 1.0), (1.0, 0.0)),
    ("Pow", (0.0, 2.0), (0.0, 0.0)), ("Pow", (0.0, 0.5), (INF, 0.0)),
    ("Pow", (0.0, -1.0), (-INF, 0.0)),
    ("Pow", (-2.0, 3.0), (12.0, np.nan)), ("Pow", (-2.0, 0.0), (0.0, np.nan)),
    ("Pow", (-2.0, -1.0), (-0.25, np.nan)), ("Pow", (2.0, 0.0), (0.0, np.log(2))),
    # equal operands share
    ("Maximum", (2.0, 2.0), (0.5, 0.5)), ("Minimum", (2.0, 2.0), (0.5, 0.5)),
    ("Maximum", (0.0, -0.0), (0.5, 0.5)), ("Fmax", (np.nan, 2.0), (0.0, 1.0)),
    ("Fmin", (2.0, np.nan), (1.0, 0.0)), ("Maximum", (INF, 2.0), (1.0, 0.0)),
    # corners
    ("Fabs", (0.0,), (0.0,)), ("Hypot", (0.0, 0.0), (0.0, 0.0)), ("Hypot", (0.0, 3.0), (0.0, 1.0)),
    ("Hypot", (3e-310, 4e-310), (0.6, 0.8)), ("Copysign", (0.0, -1.0), (0.0, 0.0)),
    ("Copysign", (2.0, -0.0), (-1.0, 0.0)), ("Heaviside", (0.0, 0.5), (0.0, 1.0)),
    ("Heaviside", (1.0, 0.5), (0.0, 0.0)),
    # slopes that are infinite are
    ("Sqrt", (0.0,), (INF,)), ("Cbrt", (0.0,), (INF,)), ("Log", (0.0,), (INF,)),
    ("Arcsin", (1.0,), (INF,)), ("Arccos", (1.0,), (-INF,)), ("Arccosh", (1.0,), (INF,)),
    # formulas that would overflow
    ("Arctan", (1e200,), (0.0,)), ("Arcsinh", (1e200,), (1e-200,)),
    ("Arccosh", (1e200,), (1e-200,)), ("Arctan2", (1e-200, 1e-200), (5e199, -5e199)),
    ("Arctan2", (0.0, 0.0), (np.nan, np.nan)),
]


@pytest.mark.parametrize(("name", "operands", "right"), POINTS, ids=lambda x: str(x))
def test_partials_at_special_points(
    name: str, operands: tuple[float, ...], right: tuple[float, ...]
) -> None:
    found = partials_at(name, [[x] for x in operands], np.dtype(np.float64))
    for value, expected in zip(found, right, strict=True):
        np.testing.assert_allclose(value[0], expected, rtol=1e-15)


@pytest.mark.parametrize("norm", [
    lambda x: np.sqrt(np.sum(x**2)), lambda x: np.sqrt((x * x).mean()), lambda x: np.sqrt(x @ x),
    lambda x: np.sqrt(2.0 * x[0] ** 2 + x[1] ** 4 / 3), lambda x: np.sqrt(np.var(x)),
    lambda x: np.sqrt(np.sum((x[:, None] - x[None, :]) ** 2)),
])
def test_the_root_of_a_sum_of_squares_is_a_norm(norm: Any) -> None:
    """At 0, where the root has an infinite slope, it has the derivative of norms."""
    gradient = fusec.grad(norm)
    np.testing.assert_array_equal(gradient(np.zeros(3)), np.zeros(3))
    x = np.array([3.0, 4.0, 5.0])
    np.testing.assert_allclose(gradient(x), differences(norm, (x,)), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("root", [
    lambda x: np.sqrt(x).sum(), lambda x: np.sqrt(x * x[0] + x).sum(),
    lambda x: np.sqrt(1 / x**2 - 1 / x**2 + x).sum()])
def test_other_roots_have_their_slope(root: Any) -> None:
    assert not np.isfinite(fusec.grad(root)(np.zeros(2))).any()


PRODUCTS: dict[str, Any] = {
    "of a new first axis": lambda x: np.prod(x[None], 0).sum(),
    "of a new last axis": lambda x: np.prod(x.reshape(x.size, 1), 1).sum(),
    "of two axes": lambda x: np.prod(x[None, :, None], (0, 2)).sum(),
    "of columns": lambda x: np.prod(np.outer(x, x), 0).sum(),
    "of rows": lambda x: np.prod(np.outer(x, x), 1).sum(),
    "of all": lambda x: np.prod(np.outer(x, x)),
    "cumulated": lambda x: (np.cumprod(x[:, None], 1)[:, 0] * np.cumprod(x[None], 0)[0]).sum(),
}


@pytest.mark.parametrize("name", PRODUCTS)
@pytest.mark.parametrize("size", [0, 1, 2, 5])
def test_products_along_axes_of_any_length(name: str, size: int) -> None:
    """Of one element the others' product is a scan that was read outside of its loop."""
    f, x = PRODUCTS[name], np.linspace(0.5, 1.5, size)
    np.testing.assert_allclose(fusec.grad(f)(x), differences(f, (x,)), rtol=1e-8, atol=1e-9)


PARTS: dict[str, Any] = {
    "of a mask": lambda x: x[x > 0.6].prod(),
    "of a slice": lambda x: x[:int(np.abs(x).sum())].prod(),
    "of a call": lambda x: np.compress(x > 0.6, x).prod(),
    "of rows": lambda x: np.outer(x, x)[x > 0.6].prod(0).sum(),
    "of columns": lambda x: np.outer(x, x)[x > 0.6][:, x > 0.8].prod(1).sum(),
}


@pytest.mark.parametrize("name", PARTS)
@pytest.mark.parametrize("x", [[], [0.5], [0.7], [0.5, 0.3], [0.5, 0.9], [1.0, 0.9], [0.5] * 5,
                               [0.7, 0.2, 0.9, 1.1]], ids=str)
def test_products_of_parts_that_data_decide(name: str, x: list[float]) -> None:
    """Of an empty one: of the products before each element there was one too many."""
    f, given = PARTS[name], np.array(x)
    np.testing.assert_allclose(
        fusec.grad(f)(given), differences(f, (given,)), rtol=1e-8, atol=1e-9)
