"""Derivatives in lanes by what a path names: an argument, or an array that all lanes share."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fusec
from fusec.errors import UnsupportedError

X = np.arange(6.0).reshape(2, 3) + 1
W = np.array([1.0, 2.0, 3.0])


class OneWeight:
    def __init__(self) -> None:
        self.w = W.copy()


def product(a: Any, b: Any) -> Any:
    return (a * b**2).sum()


def by_model(model: Any, x: Any) -> Any:
    return ((model.w * x) ** 2).sum()


def by_item(model: Any, x: Any) -> Any:
    return ((model["w"] * x) ** 2).sum()


def in_a_loop(a: Any, b: Any, k: Any) -> Any:
    total, done = np.zeros_like(a), 0
    while done < k:
        total += fusec.grad(product, wrt="b")(a, b)
        done += 1
    return total


def scaled(a: Any, b: Any) -> Any:
    b *= 2
    return product(a, b)


@pytest.mark.parametrize(("f", "wrt", "model"), [
    (by_model, "model.w", OneWeight()), (by_item, "model['w']", {"w": W.copy()})])
def test_by_what_all_lanes_share(f, wrt, model):
    found = fusec.vmap(fusec.grad(f, wrt=wrt), (None, 0))(model, X)
    np.testing.assert_allclose(found, 2 * W * X**2, rtol=1e-15)


def test_by_a_variable():
    w = fusec.Variable(W)
    found = fusec.vmap(fusec.grad(lambda x: ((w * x) ** 2).sum(), wrt=w))(X)
    np.testing.assert_allclose(found, 2 * W * X**2, rtol=1e-15)
    np.testing.assert_array_equal(np.asarray(w), W)


@pytest.mark.parametrize("wrt", ["b", ("a", "b")])
def test_one_array_is_two_arguments(wrt):
    found = fusec.vmap(fusec.grad(product, wrt=wrt))(X, X)
    np.testing.assert_allclose(found[-1] if wrt != "b" else found, 2 * X**2, rtol=1e-15)
    if wrt != "b":
        np.testing.assert_allclose(found[0], X**2, rtol=1e-15)


def test_by_an_array_that_is_read_only():
    x = X.copy()
    x.flags.writeable = False
    found = fusec.vmap(fusec.grad(product, wrt="b"))(X, x)
    np.testing.assert_allclose(found, 2 * X**2, rtol=1e-15)


def test_in_a_loop_of_a_lane():
    found = fusec.vmap(in_a_loop)(X, X, np.array([1, 3]))
    np.testing.assert_allclose(found, 2 * X**2 * [[1.0], [3.0]], rtol=1e-15)


def test_what_is_written_is_still_written():
    given = X.copy()
    found = fusec.vmap(fusec.grad(scaled, wrt="b"))(X, given)
    np.testing.assert_allclose(found, 8 * X**2, rtol=1e-15)
    np.testing.assert_array_equal(given, 2 * X)
    with pytest.raises(UnsupportedError, match=r"writes to b(.|\n)*\n.* in scaled"):
        fusec.vmap(fusec.grad(scaled, wrt="b"))(given, given)
    with pytest.raises(UnsupportedError, match=r"writes to b, which is the same in each lane"):
        fusec.vmap(fusec.grad(scaled, wrt="b"), (0, None))(X, W.copy())
