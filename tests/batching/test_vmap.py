"""`fusec.vmap`: axes, nesting, other transformations, and what it refuses."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fusec
from fusec.errors import UnsupportedError

RNG = np.random.default_rng(5)
X = RNG.normal(size=(4, 3))
V = RNG.normal(size=3)


def newton(m: Any) -> Any:
    e = m
    while abs(e - 0.3 * np.sin(e) - m) > 1e-10:
        e = e - (e - 0.3 * np.sin(e) - m) / (1 - 0.3 * np.cos(e))
    return e


# ------------------------------------------------------------------------------------------- axes


def test_axes_of_arguments_and_results() -> None:
    t = RNG.normal(size=(2, 4, 3))
    got = fusec.vmap(lambda a, b: a * b[0], in_axes=(1, -2), out_axes=-1)(t, X[:, :2])
    want = np.stack([t[:, k] * X[k, 0] for k in range(4)], axis=-1)
    np.testing.assert_array_equal(got, want)


def test_pytrees_of_arguments_axes_and_results() -> None:
    def f(p: Any, s: Any) -> Any:
        return {"y": p["w"] @ p["b"] + s, "both": (p["b"], [p["b"] + s])}

    tree = {"w": V, "b": X}
    got = fusec.vmap(f, in_axes=({"w": None, "b": 0}, 0), out_axes={"y": 0, "both": 1})(
        tree, np.arange(4.0))
    np.testing.assert_allclose(got["y"], X @ V + np.arange(4))
    np.testing.assert_array_equal(got["both"][0], X.T)
    np.testing.assert_array_equal(got["both"][1][0], X.T + np.arange(4))


def test_results_that_lanes_share() -> None:
    got = fusec.vmap(lambda x, v: (x.sum(), v.sum()), (0, None), (0, None))(X, V)
    np.testing.assert_allclose(got[0], X.sum(1))
    assert got[1] == V.sum()
    same = fusec.vmap(lambda v: v * 2, None, axis_size=3)(V)
    np.testing.assert_array_equal(same, np.stack([V * 2] * 3))


def test_defaults_and_keywords() -> None:
    def f(x: Any, k: float = 2.0, *, shift: Any = None) -> Any:
        return x * k if shift is None else x * k + shift

    np.testing.assert_array_equal(fusec.vmap(f)(X), X * 2)
    np.testing.assert_array_equal(fusec.vmap(f)(X, shift=X[:, 0]), X * 2 + X[:, :1])
    np.testing.assert_allclose(fusec.vmap(np.sum)(X), X.sum(1))


def test_the_axis_of_what_is_passed_by_keyword() -> None:
    """It is 0, or what a tuple gives its parameter; an int for all was taken for it, too."""
    def minus(a: Any, b: Any) -> Any:
        return a - b

    def scaled(a: Any, b: Any, k: float = 1.0) -> Any:
        return (a - b) * k

    square = np.arange(9.0).reshape(3, 3)
    np.testing.assert_array_equal(fusec.vmap(minus)(square, b=square + 1), np.full((3, 3), -1))
    np.testing.assert_array_equal(fusec.vmap(minus, (1, 0))(square, b=square), square.T - square)
    np.testing.assert_array_equal(fusec.vmap(scaled, 1)(square, b=square), square.T - square)
    np.testing.assert_array_equal(
        fusec.vmap(scaled, (0, 1, None))(square, k=2.0, b=square), 2 * (square - square.T))
    np.testing.assert_array_equal(fusec.vmap(scaled, (1,))(square, b=square), square.T - square)
    with pytest.raises(ValueError, match="in_axes has another length"):
        fusec.vmap(scaled, (0, 1, 0))(square, k=2.0)
    for lanes in (fusec.vmap(minus, 1), fusec.jit(fusec.vmap(minus, 1), fp="strict"),
                  fusec.jit(lambda a, b: fusec.vmap(minus, 1)(a, b=b))):
        for _ in range(2):
            with pytest.raises(ValueError, match="b is passed by keyword, and in_axes is no tuple"):
                lanes(square, b=square)
    lanes = fusec.vmap(lambda a, b: a[0] - b, 1)
    lanes([square], square)  # which made a plan for the calls after it
    with pytest.raises(ValueError, match="b is passed by keyword, and in_axes is no tuple"):
        lanes([square], b=square)


def test_what_has_no_axis_for_lanes_and_the_cure() -> None:
    def shifted(x: Any, *, k: Any) -> Any:
        return x + k

    with pytest.raises(TypeError, match=r"k has no axis 0(.|\n)*functools.partial\(f, k=...\)"):
        fusec.vmap(shifted)(X, k=2.0)
    with pytest.raises(TypeError, match=r"x\[0\] has no axis 0(.|\n)*np.array\(x\), not of a list"):
        fusec.vmap(lambda x: x * 2)([1.0, 2.0])
    with pytest.raises(ValueError, match=r"x: +f64\[3\](.|\n)*a tuple with an axis or None"):
        fusec.vmap(lambda x, k: x * k, {"x": 0, "k": None})(V, 2.0)


def test_no_lanes_at_all() -> None:
    assert fusec.vmap(lambda x: x.sum())(X[:0]).shape == (0,)
    assert fusec.vmap(newton)(np.zeros(0)).shape == (0,)


# ------------------------------------------------------------------------------- transformations


def test_nested() -> None:
    dots = fusec.vmap(fusec.vmap(np.dot, (None, 0)), (0, None))
    np.testing.assert_allclose(dots(X, X), X @ X.T)
    grid = RNG.uniform(0, 6, (3, 4))
    got = fusec.vmap(fusec.vmap(newton))(grid)
    np.testing.assert_allclose(got, [[newton(m) for m in row] for row in grid])


def test_jit_either_way_round() -> None:
    want = np.sin(X).sum(1) + 1
    inside = fusec.vmap(fusec.jit(lambda x: np.sin(x).sum() + 1))
    outside = fusec.jit(lambda x: fusec.vmap(lambda a: np.sin(a).sum())(x) + 1)
    np.testing.assert_allclose(inside(X), want)
    np.testing.assert_allclose(outside(X), want)


def rounded(x: Any, n: Any) -> Any:
    return np.round(x, n)


def test_jit_of_it_with_options() -> None:
    """A derivative, or lanes, had no parameters to name; pickled, they have their options."""
    lanes = fusec.jit(fusec.vmap(rounded, (0, None)), static=("n",))
    for n in (1, 2):
        np.testing.assert_array_equal(lanes(X, n), np.round(X, n))
    assert len(lanes.traces) == 2
    again = pickle.loads(pickle.dumps(lanes))
    assert again.options == lanes.options and type(again) is type(lanes)
    np.testing.assert_array_equal(again(X, 1), np.round(X, 1))
    slopes = fusec.jit(fusec.grad(lambda x, n: (x**n).sum()), static=("n",))
    np.testing.assert_allclose(slopes(V, 3), 3 * V**2)
    with pytest.raises(IndexError) as caught:
        fusec.jit(fusec.vmap(lambda i: V[i]), fp="strict")(np.array([0, 5]))
    assert "in lane 1" in caught.value.__notes__
    with pytest.raises(ValueError, match="static='k' names no parameter"):
        fusec.jit(fusec.vmap(rounded), static=("k",))


def loss(w: Any, x: Any, t: Any) -> Any:
    return ((np.tanh(w @ x) - t) ** 2).sum()


def test_gradients_of_each_lane_and_of_all() -> None:
    w, t = RNG.normal(size=(2, 3)), RNG.normal(size=(4, 2))
    each = fusec.vmap(fusec.grad(loss), (None, 0, 0))(w, X, t)
    want = np.stack([fusec.grad(loss)(w, x, y) for x, y in zip(X, t, strict=True)])
    np.testing.assert_allclose(each, want, rtol=1e-12)
    whole = fusec.grad(lambda w: fusec.vmap(loss, (None, 0, 0))(w, X, t).sum())(w)
    np.testing.assert_allclose(whole, want.sum(0), rtol=1e-12)


def test_gradients_through_loops_of_lanes() -> None:
    m = np.linspace(0.1, 6, 7)
    want = np.array([fusec.grad(newton)(x) for x in m])
    np.testing.assert_allclose(fusec.vmap(fusec.grad(newton))(m), want, rtol=1e-12)
    whole = fusec.grad(lambda m: fusec.vmap(newton)(m).sum())
    np.testing.assert_allclose(whole(m), want, rtol=1e-12)


def test_a_derivative_that_the_program_gave() -> None:
    @fusec.custom_vjp
    def f(x: Any, a: Any) -> Any:
        return np.sin(x) * a

    f.defvjp(lambda x, a: (np.sin(x) * a, (x, a)), lambda r, ct: (ct * 100.0 + r[1], ct * 7.0))
    a = np.array(2.0)
    got = fusec.grad(lambda x, a: fusec.vmap(f, (0, None))(x, a).sum(), (0, 1))(X[:, 0].copy(), a)
    np.testing.assert_allclose(got[0], np.full(4, 102.0))
    np.testing.assert_allclose(got[1], 28.0)
    each = fusec.vmap(fusec.grad(f), (0, None))(X[:, 0].copy(), a)
    np.testing.assert_allclose(each, np.full(4, 102.0))


def test_random_numbers_with_a_key_a_lane() -> None:
    keys = fusec.random.split(fusec.random.key(3), 4)
    for draw, tolerance in ((fusec.random.bits, 0), (fusec.random.normal, 1e-14)):
        got = fusec.vmap(lambda k, draw=draw: draw(k, (3,)))(keys)
        want = np.stack([draw(k, (3,)) for k in keys])
        np.testing.assert_allclose(got, want, rtol=tolerance)


# --------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize("call, texts", [
    (lambda: fusec.vmap(np.dot, (0, 0))(X, V), ["number of lanes", "axis 0: 4", "axis 0: 3"]),
    (lambda: fusec.vmap(lambda p: p["a"] * p["b"], ({"a": 0, "b": 0},))({"a": X, "b": V}),
     ["p['a'], axis 0: 4", "p['b'], axis 0: 3"]),
    (lambda: fusec.vmap(np.sin, None)(X), ["axis_size"]),
    (lambda: fusec.vmap(np.sin, axis_size=5)(X), ["axis_size: ", "axis 0: 4"]),
    (lambda: fusec.vmap(np.sin, 3)(X), ["no axis 3", "f64[4,3]"]),
    (lambda: fusec.vmap(lambda x: x.sum(), out_axes=1)(X), ["no axis 1 for lanes"]),
    (lambda: fusec.vmap(lambda x: x.sum(), out_axes=None)(X), ["differs from lane to lane"]),
    (lambda: fusec.vmap(lambda x, y: x, (0,))(X, V), ["another length"]),
    (lambda: fusec.vmap(lambda x: x, ((0, 0),))(X), ["another structure than x"]),
], ids=range(9))
def test_axes_that_do_not_fit(call: Any, texts: list[str]) -> None:
    with pytest.raises(ValueError) as caught:
        call()
    assert isinstance(caught.value, fusec.FusecError)
    assert all(text in str(caught.value) for text in texts), str(caught.value)


@pytest.mark.parametrize("call, text", [
    (lambda: fusec.vmap(lambda x, y: x * y)(X, 3.0), "y has no axis 0"),
    (lambda: fusec.vmap(np.sin, "0"), "in_axes is a str"),
    (lambda: fusec.vmap(np.sin, axis_size=2.0), "no number of lanes"),
    (lambda: fusec.vmap(3), "needs a function"),
    (lambda: fusec.vmap(lambda x: "text")(X), "returns a text"),
], ids=range(5))
def test_arguments_that_are_none(call: Any, text: str) -> None:
    with pytest.raises(TypeError, match=text):
        call()


COUNTED = [0]
VARIABLE = fusec.Variable(np.zeros(3))


def writes_shared(x: Any, v: Any) -> Any:
    v[0] = x[0]
    return x


def counts(x: Any) -> Any:
    global COUNTED
    COUNTED = x
    return x


def assigns(x: Any) -> Any:
    VARIABLE.assign(x)
    return x


@pytest.mark.parametrize("f, args, axes, texts", [
    (writes_shared, (X, V), (0, None), ["v, which is the same in each lane", "v[0] = x[0]",
                                              "v:     f64[3]", "lanes: "]),
    (counts, (X,), 0, ["global COUNTED,", "COUNTED = x"]),
    (assigns, (X,), 0, ["older than its call"]),
    (lambda x: x + np.random.rand(), (X,), 0, ["rand", "fusec.random"]),
    (lambda x: np.nonzero(x > 0)[0], (X,), 0, ["np.nonzero", "decide the size"]),
], ids=range(5))
def test_what_lanes_cannot_do(f: Any, args: Any, axes: Any, texts: list[str]) -> None:
    with pytest.raises(UnsupportedError) as caught:
        fusec.vmap(f, axes)(*(np.array(a) for a in args))
    assert all(text in str(caught.value) for text in texts), str(caught.value)
    assert __file__ in str(caught.value)


def test_an_array_that_is_written_and_read_by_another_name() -> None:
    def f(x: Any, y: Any) -> Any:
        x[0] = 1
        return y.sum()

    a = X.copy()
    with pytest.raises(UnsupportedError, match="another name"):
        fusec.vmap(f)(a, a)


def test_errors_of_lanes() -> None:
    def f(x: Any) -> Any:
        if x[0] > 5:
            raise ValueError("too far")
        return x

    x = X.copy()
    np.testing.assert_array_equal(fusec.vmap(f)(x), x)
    x[2, 0] = 9
    with pytest.raises(ValueError, match="too far"):
        fusec.vmap(f)(x)
    with pytest.raises(IndexError, match="index 5 is out of bounds"):
        fusec.vmap(lambda x, i: x[i])(X, np.array([0, 1, 5, 2]))
    with pytest.raises(IndexError):  # though nobody reads the element
        fusec.vmap(lambda x, i: (x[i], x.sum())[1])(X, np.array([0, 1, 5, 2]))


TAKES = [lambda r, k: r[k], lambda r, k: np.take(r, k), lambda r, k: r[:2][k - 1],
         lambda r, k: r[np.array([0, 1]) + k], lambda r, k: (r[k], 1)[1],
         fusec.grad(lambda r, k: r[k])]


@pytest.mark.parametrize("f", TAKES)
def test_an_index_out_of_range_names_its_lane(f: Callable[..., Any]) -> None:
    indices = np.array([0, 1, 4, -9])
    with pytest.raises(IndexError, match="is out of bounds for axis 0") as caught:
        fusec.vmap(f)(np.ones((4, 3)), indices)
    assert "in lane 2" in caught.value.__notes__
    with pytest.raises(IndexError) as caught:
        fusec.vmap(fusec.vmap(f), (None, 0))(np.ones((4, 3)), np.stack([0 * indices, indices]))
    assert [n for n in caught.value.__notes__ if "lane" in n] == ["in lane 2", "in lane 1"]


def none_or_double(x: Any) -> Any:
    return x * 2 if x > 0 else None


def first_above(x: Any) -> Any:
    found, k = None, 0
    while k < 3:
        if x[k] > 0.5:
            found = k
        k += 1
    return {"found": found, "sum": x.sum()}


@pytest.mark.parametrize("f", [
    none_or_double, first_above, lambda x: [x.sum(), (None if x.sum() > 0 else x,)]])
def test_a_result_that_is_none_in_some_lanes_is_refused(f: Callable[..., Any]) -> None:
    """What came back was an object of the tracer's."""
    x = X[:, 0] if f is none_or_double else X
    for mapped, given in (fusec.vmap(f), x), (fusec.vmap(fusec.vmap(f)), x[None]), (
            fusec.jit(lambda x: fusec.vmap(f)(x)), x):
        with pytest.raises(UnsupportedError, match="returns None in some lanes"):
            mapped(given)
    shared = fusec.vmap(lambda x, k: (x, None if k > 0 else x), (0, None))
    with pytest.raises(UnsupportedError, match="returns None in some lanes"):
        shared(X, np.float64(1.0))


def test_none_in_every_lane_stays() -> None:
    assert fusec.vmap(lambda x: None)(X[:, 0]) is None
    got = fusec.vmap(lambda x: (x * 2, None))(X)
    np.testing.assert_array_equal(got[0], X * 2)
    assert got[1] is None


# --------------------------------------------------------------------------------- other sizes


def halved(x: Any, k: Any) -> Any:
    n = 0
    while x.sum() > 0.01:
        x = x / 2
        n += 1
    return x[k], n


@pytest.mark.parametrize("f", [halved, lambda r, k: r[k], lambda r, k: (r * k).sum(),
                               lambda r, k: np.sort(r)[k]])
def test_other_numbers_of_lanes_need_no_other_trace(f: Callable[..., Any]) -> None:
    lanes = fusec.vmap(f)
    for count in (4, 9, 40, 300):
        x, k = RNG.random((count, 3)), RNG.integers(0, 3, count)
        got, want = lanes(x, k), [f(a, b) for a, b in zip(x, k, strict=True)]
        for one, other in zip(got if isinstance(got, tuple) else (got,),
                              zip(*want, strict=True) if isinstance(got, tuple) else (want,),
                              strict=True):
            np.testing.assert_allclose(one, np.array(other))
    assert len(lanes.traces) == 1


def test_lanes_of_other_numbers_run_as_the_first_ones() -> None:
    def grown(x: Any) -> Any:
        y = x
        while y < 20:
            y = y * 1.5 + np.sin(x) + 1
        return y

    lanes = fusec.vmap(grown)
    texts = [str(fusec.explain(lanes, RNG.random(n))) for n in (50, 60, 70)]
    said = ["its lanes on several threads, 16 lanes at a time in vectors" in t for t in texts]
    assert said == [True, True, True] and len(lanes.traces) == 1
