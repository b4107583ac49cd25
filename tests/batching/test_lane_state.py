"""State that a lane changes: its own; the rest is refused, with its line."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fusec
from fusec.errors import UnsupportedError

X = np.arange(6.0).reshape(2, 3)
V = np.arange(3.0)


class Sum:
    def __init__(self) -> None:
        self.total = 0.0
        self.items: list[Any] = []


def in_a_while(v: Any) -> Any:
    s, k = Sum(), 0
    while k < v:
        s.total += 2.0
        k += 1
    return s.total


def in_a_branch(v: Any) -> Any:
    s = Sum()
    if v > 1:
        s.total = 5.0
    return s.total


def nonlocal_name(v: Any) -> Any:
    c, k = 0.0, 0

    def inc() -> None:
        nonlocal c
        c += v

    while k < v:
        inc()
        k += 1
    return c


def two_objects(v: Any) -> Any:
    a, b = Sum(), Sum()
    if v > 0:
        a.total, b.total = v, a.total - 1
    return a.total * 10 + b.total


def a_list(v: Any) -> Any:
    out = []
    for k in range(4):
        out.append(v * k)
    return np.array(out).sum()


@pytest.mark.parametrize("f", [in_a_while, in_a_branch, nonlocal_name, two_objects, a_list])
def test_what_a_lane_made_it_may_change(f: Any) -> None:
    np.testing.assert_array_equal(fusec.vmap(f)(V), [f(v) for v in V])


SHARED, COUNT, TABLE, ROW = Sum(), 0.0, {"a": 1.0}, np.zeros(3)


def attribute(x: Any) -> Any:
    if x[0] > 1:
        SHARED.total = x[0]
    return x


def global_name(x: Any) -> Any:
    global COUNT
    COUNT += 1
    return x


def closure_name() -> Any:
    total = 0.0

    def f(x: Any) -> Any:
        nonlocal total
        total += x[0]
        return x

    return f


def item(x: Any) -> Any:
    TABLE["a"] = x[0]
    return x


def array(x: Any) -> Any:
    ROW[:] = x
    return x


def list_of_an_object(x: Any) -> Any:
    SHARED.items.append(x[0])
    return x


@pytest.mark.parametrize("f, texts", [
    (attribute, ["changes Sum.total", "SHARED.total = x[0]"]),
    (global_name, ["changes global COUNT", "COUNT += 1"]),
    (closure_name(), ["changes closure variable total", "total += x[0]"]),
    (item, ["changes global TABLE['a']", 'TABLE["a"] = x[0]']),
    (array, ["writes to an array that is older", "ROW[:] = x"]),
    (list_of_an_object, ["SHARED.items.append(x[0])"]),
], ids=range(6))
def test_what_lanes_share_is_refused_with_its_line(f: Any, texts: list[str]) -> None:
    with pytest.raises(UnsupportedError) as caught:
        fusec.vmap(f)(X)
    assert all(text in str(caught.value) for text in [*texts, __file__]), str(caught.value)
    assert (COUNT, TABLE, ROW.any(), SHARED.items) == (0.0, {"a": 1.0}, False, [])


def appends(x: Any, items: Any) -> Any:
    items.append(x[0])
    return x


def assigns(x: Any, items: Any) -> Any:
    items["a"] = x[0]
    return x


@pytest.mark.parametrize("f, items, axis", [
    (appends, [1.0], None), (appends, [V[:2]], 0), (assigns, {"a": 1.0}, None)], ids=range(3))
@pytest.mark.parametrize("is_inside", [False, True])
def test_a_container_among_the_arguments(f: Any, items: Any, axis: Any, is_inside: bool) -> None:
    """Its changes were lost: the function has a copy."""
    mapped = fusec.vmap(f, (0, axis))
    with pytest.raises(UnsupportedError, match="that is an argument") as caught:
        (fusec.jit(lambda x, y: mapped(x, y)) if is_inside else mapped)(X, items)
    assert f"in {f.__name__}" in str(caught.value)


def test_a_list_that_the_caller_made() -> None:
    @fusec.jit
    def f(x: Any) -> Any:
        out: list[Any] = []

        def lane(r: Any) -> Any:
            out.append(r)
            return r

        return fusec.vmap(lane)(x)

    with pytest.raises(UnsupportedError, match=r"list.append in a function of vmap") as caught:
        f(X)
    assert "out.append(r)" in str(caught.value)


def test_memory_by_another_name_is_refused_at_the_write() -> None:
    def f(x: Any, y: Any) -> Any:
        x[0] = 1
        return y.sum()

    a = X.copy()
    with pytest.raises(UnsupportedError, match=r"(?s)another name.*x\[0\] = 1"):
        fusec.vmap(f)(a, a)


K = np.array([1, 2])


@pytest.mark.parametrize("f", [
    lambda x, n: x.reshape(n, -1), lambda x, n: x.sum(axis=n), lambda x, n: np.round(x, n),
    lambda x, n: np.tile(x, n), lambda x, n: np.repeat(x, n), lambda x, n: [x[0]] * n,
    lambda x, n: {1: x}[n]])
def test_what_must_be_the_same_in_each_lane(f: Any) -> None:
    """The cure was a static argument 'lane', which there is none of."""
    with pytest.raises(fusec.FusecError) as caught:
        fusec.vmap(f)(X, K)
    text = str(caught.value)
    assert "with None in in_axes n is the same in each lane" in text, text
    assert "static" not in text and "'lane'" not in text, text


def test_an_iterations_number_is_no_static_argument() -> None:
    @fusec.jit
    def f(n: Any, x: Any) -> Any:
        k = 0
        while k < n:
            k = k + 1
            if x[0] > 100:
                return np.zeros((3, 4)).reshape(k, -1).sum()
        return 0.0

    with pytest.raises(fusec.FusecError) as caught:
        f(3, V)
    assert "static=('k',)" not in str(caught.value)


def test_the_names_of_arguments_are_in_texts_and_of_sizes_the_expression() -> None:
    with pytest.raises(fusec.FusecError, match=r"value: i64, argument n of one lane"):
        fusec.vmap(lambda x, n: x.reshape(n, -1))(X, K)
    with pytest.raises(UnsupportedError, match=r"np\.eye\(n\) in a function"):
        fusec.vmap(lambda n: np.eye(n))(K)
    with pytest.raises(TypeError, match="returns a Sum"):
        fusec.vmap(lambda x: Sum())(X)
