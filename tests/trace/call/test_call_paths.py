"""Ways to call: defaults, keywords and pytrees take the short way that positional arrays take."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from typing import Any

import numpy as np
import optree
import pytest

import fusec

Pair = namedtuple("Pair", "first second")
X, Y = np.arange(6.0), np.ones(6)


def with_default(x: Any, factor: Any = 2.0) -> Any:
    return x * factor


def with_axis(x: Any, axis: Any = 0, *, keepdims: Any = False) -> Any:
    return x.sum(axis=axis, keepdims=keepdims)


def only_keywords(x: Any, *, b: Any = 1.0, a: Any = 3.0) -> Any:
    return x * a - b


def only_positions(x: Any, y: Any = 2.0, /) -> Any:
    return x - y


def a_method_by_name(x: Any, name: Any = "sum") -> Any:
    return getattr(x, name)()


def of_a_dict(params: Any, x: Any) -> Any:
    return {"y": x * params["w"] + params["b"], "x": x, "none": None}


def many(*arrays: Any, **named: Any) -> Any:
    return [sum(arrays), *(named[k] * 2 for k in sorted(named))]


def of_a_pair(pair: Any) -> Any:
    return Pair(pair.second + 1, [pair.first * 2])


CALLS: list[tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]] = [
    (with_default, (X,), {}),
    (with_default, (X,), {"factor": 5.0}),
    (with_default, (), {"factor": 5.0, "x": X}),
    (with_axis, (X,), {}),
    (with_axis, (X,), {"keepdims": True}),
    (with_axis, (X, 0), {"keepdims": True}),
    (only_keywords, (X,), {}),
    (only_keywords, (X,), {"a": 7.0}),
    (only_keywords, (X,), {"b": 7.0, "a": Y}),
    (only_positions, (X,), {}),
    (only_positions, (X, Y), {}),
    (a_method_by_name, (X,), {}),
    (a_method_by_name, (X, "max"), {}),
    (a_method_by_name, (X,), {"name": "min"}),
    (of_a_dict, ({"w": X, "b": Y}, Y), {}),
    (of_a_dict, (), {"x": Y, "params": {"w": 2.0, "b": Y}}),
    (many, (X, Y), {}),
    (many, (X,), {"p": Y, "q": X}),
    (of_a_pair, (Pair(X, Y),), {}),
]


def _assert_same(found: Any, wanted: Any) -> None:
    mine, theirs = (optree.tree_flatten(x, none_is_leaf=True) for x in (found, wanted))
    assert mine[1] == theirs[1]
    for a, b in zip(mine[0], theirs[0], strict=True):
        assert type(a) is type(b)
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(("function", "args", "kwargs"), CALLS)
def test_each_way_to_call_gives_what_the_function_gives(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    compiled = fusec.jit(function)
    for _ in range(3):
        _assert_same(compiled(*args, **kwargs), function(*args, **kwargs))
    assert compiled.trace_count == 1


@pytest.mark.parametrize(("function", "args", "kwargs"), CALLS)
def test_calls_after_the_first_are_answered_before_python_looks_at_them(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compiled = fusec.jit(function)
    wanted = compiled(*args, **kwargs)
    monkeypatch.setattr(fusec.Function, "_call", None)
    _assert_same(compiled(*args, **kwargs), wanted)


def test_calls_of_all_kinds_in_turn() -> None:
    """Plans for one structure do not answer for another one."""
    compiled = {function: fusec.jit(function) for function, _, _ in CALLS}
    for _ in range(3):
        for function, args, kwargs in CALLS:
            _assert_same(compiled[function](*args, **kwargs), function(*args, **kwargs))


@pytest.mark.parametrize(("function", "args", "kwargs"), [
    (with_default, (), {}),
    (with_default, (X, 1.0, 2.0), {}),
    (with_default, (X,), {"x": X}),
    (with_default, (X,), {"other": 1.0}),
    (only_keywords, (X, 1.0), {}),
    (only_positions, (X,), {"y": 1.0}),
    (of_a_dict, ({"w": X, "b": Y},), {}),
])
def test_calls_that_do_not_fit_raise_what_python_raises(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    compiled = fusec.jit(function)
    for good, good_args, good_kwargs in CALLS:
        if good is function:
            compiled(*good_args, **good_kwargs)
    with pytest.raises(TypeError) as wanted:
        function(*args, **kwargs)
    with pytest.raises(TypeError) as found:
        compiled(*args, **kwargs)
    assert str(wanted.value).partition(" ")[2] in str(found.value)


def test_writes_to_arrays_in_a_dict_reach_them_each_time() -> None:
    def step(state: Any, rate: Any = 0.5) -> None:
        state["x"] += rate

    compiled, state = fusec.jit(step), {"x": np.zeros(3)}
    for count in (1, 2, 3):
        compiled(state)
        np.testing.assert_array_equal(state["x"], np.full(3, 0.5 * count))


def test_overlapping_arrays_in_a_dict_are_merged_each_time() -> None:
    def shift(parts: Any) -> None:
        parts["to"][:] = parts["from"] + 1

    compiled = fusec.jit(shift)
    for _ in range(3):
        mine, numpys = np.arange(6.0), np.arange(6.0)
        compiled({"to": mine[1:], "from": mine[:-1]})
        shift({"to": numpys[1:], "from": numpys[:-1]})
        np.testing.assert_array_equal(mine, numpys)
    apart = {"to": np.zeros(5), "from": np.ones(5)}
    compiled(apart)
    np.testing.assert_array_equal(apart["to"], np.full(5, 2.0))


def test_a_structure_seen_inside_another_trace() -> None:
    inner = fusec.jit(of_a_dict)
    inner({"w": X, "b": Y}, Y)
    outer = fusec.jit(lambda x: inner({"w": x, "b": x}, Y)["y"] + 1)
    np.testing.assert_array_equal(outer(X), of_a_dict({"w": X, "b": X}, Y)["y"] + 1)


@fusec.jit
def of_any_kind(a, *more, scale=2.0, **named):
    total = a * scale
    for x in more:
        total = total - x
    for name in named:
        total = total * len(name) + named[name]
    return total


V = np.arange(3.0)
GIVEN = [((V,), {}), ((V, V + 1), {}), ((V, V + 1, V * 2), {}), ((V,), {"scale": 3.0}),
         ((V,), {"p": V, "qq": 2.0}), ((V,), {"qq": 2.0, "p": V}), ((V, 2.0), {"scale": 1}),
         ((V, 2), {"p": V, "scale": 5.0}), ((V, (V, V)[0]), {"ppp": V}), ((V,), {"p": True})]


def test_arguments_are_given_in_many_ways():
    program = of_any_kind.python_function
    for _ in range(4):
        for args, kwargs in GIVEN:
            np.testing.assert_array_equal(of_any_kind(*args, **kwargs), program(*args, **kwargs))
    known = of_any_kind.trace_count
    for args, kwargs in GIVEN:
        of_any_kind(*args, **kwargs)
    assert of_any_kind.trace_count == known
    with pytest.raises(TypeError):
        of_any_kind(scale=2.0)
    with pytest.raises(TypeError):
        of_any_kind(V, a=V)


def test_a_pytree_in_the_place_of_an_array():
    jitted = fusec.jit(lambda *x: x[0] * 2 if isinstance(x[0], np.ndarray) else x[0][0] * 3)
    for given in (V, (V, V), V, [V], (V, V)):
        expected = given * 2 if given is V else V * 3
        np.testing.assert_array_equal(jitted(given), expected)
