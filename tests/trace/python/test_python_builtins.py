"""Comprehensions, and Python's builtins over arrays and generators."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from harness import check, run

import fusec
from fusec.errors import FusecError, UnsupportedError


def squares(x: np.ndarray) -> Any:
    return np.array([v * v + 1 for v in x])


def chosen(x: np.ndarray) -> Any:
    return np.array([v * v if v > 0.5 else -v for v in x])


def pairs(x: np.ndarray) -> Any:
    return [(i * v, x[:3] * v) for i, v in enumerate(x)]


def means(x: np.ndarray) -> Any:
    return np.array([x[i : i + 5].max() for i in range(len(x) - 4)])


def nested(x: np.ndarray) -> Any:
    return np.array([[x[i] * x[j] for j in range(20)] for i in range(20)])


def sums(x: np.ndarray) -> Any:
    return sum(x), sum(v * v for v in x), sum([v - 1 for v in x], x[0]), sum(x[:3])


def extremes(x: np.ndarray) -> Any:
    return max(x), min(x), max(v - 1 for v in x), min([v * 2 for v in x]), max(x[0], x[1], x[2])


def quantifiers(x: np.ndarray) -> Any:
    return (any(x > 0.5), all(x > 0.5), any(v > 0.5 for v in x[:5]), all(v < 2 for v in x),
            any([v > 2 for v in x]), any(k > 3 for k in itertools.count()), all([]))  # noqa: C419


@pytest.mark.parametrize(("program", "loops"), [
    (squares, 1), (chosen, 1), (pairs, 1), (means, 1), (nested, 1), (sums, 5), (extremes, 6),
    (quantifiers, 5),
])
def test_long_ones_are_loops_of_the_graph(program: Callable[..., Any], loops: int) -> None:
    for seed in range(3):
        x = np.random.default_rng(seed).random(40)
        compiled = check(program, x, fp="strict")
        found = [n for n in compiled.traces[0].graph.nodes if n.op == "Loop"]
        assert 1 <= len(found) <= loops


def numbers_that_python_knows(x: np.ndarray) -> Any:
    places = [(i * 7) % 5000 for i in range(5000)]
    names = [f"n{k}" for k in range(100)]
    return x[: places[1]], len(names), {n: x[k % 3] for k, n in enumerate(names[:3])}


def errors_of_targets(x: np.ndarray) -> Any:
    return [a + b for a, b in zip(x, x, x, strict=True)]


def with_an_effect(x: np.ndarray) -> Any:
    seen: list[Any] = []

    def note(v: Any) -> Any:
        seen.append(v)
        return v * 2

    return np.array([note(v) for v in x]), len(seen)


def appended_by_a_function(x: np.ndarray) -> Any:
    seen: list[Any] = []
    last: dict[str, Any] = {}

    def note(v: Any) -> None:
        seen.append(v)
        last["v"] = v

    for v in x:
        note(v)
    return np.array(seen), last["v"]


@pytest.mark.parametrize("program", [
    numbers_that_python_knows, errors_of_targets, with_an_effect, appended_by_a_function,
])
def test_what_python_does_itself(program: Callable[..., Any]) -> None:
    check(program, np.random.default_rng(0).random(40))


def test_nan_and_signs_are_pythons() -> None:
    x = np.random.default_rng(0).random(40)
    x[7] = np.nan
    check(lambda x: (max(x), min(x), sum(x[:7])), x)
    check(lambda x: (max(x), min(x)), x[::-1])
    check(lambda x: (max(x), min(x), sum(x)), np.arange(40) % 7)


def test_the_first_item_that_settles_it_ends_a_search() -> None:
    compiled = fusec.jit(lambda x: any(k > 3 for k in itertools.count()))
    assert compiled(np.ones(2)) is True


SCALE = 2.0


def triangle(n: int) -> Any:
    for i in range(n):
        for j in range(i):
            yield i, j


class Walker:
    def __init__(self, v: float) -> None:
        self.v = v

    def __iter__(self) -> Any:
        for k in range(3):
            yield self.v + k


def generators(x: np.ndarray, w: Walker) -> Any:
    def windows(v: Any, k: int) -> Any:
        for i in range(0, len(v) - k, 7):
            yield v[i : i + k] * SCALE

    def joined(*parts: Any) -> Any:
        for part in parts:
            yield from part

    s = x[0]
    for i, j in triangle(5):
        s = s * 0.5 + x[i] * x[j]
    for k in w:
        s = s + k
    steps = triangle(4)
    next(steps)
    return s, [v.max() for v in windows(x, 3)], sum(joined(x[:2], x[5:7])), next(steps)


def test_generator_functions_run_in_python() -> None:
    global SCALE
    x, w = np.random.default_rng(0).random(40), Walker(1.5)
    compiled = fusec.jit(generators, fp="strict")
    for _ in range(3):
        SCALE, w.v = SCALE + 1, w.v + 0.25
        got, want = compiled(x, w), generators(x, w)
        assert got[0] == want[0] and got[2:] == want[2:]
        assert [float(v) for v in got[1]] == [float(v) for v in want[1]]


FACTORS = [10, 20, 50]
STEPS = [(1, 0.5), (2, 0.25)]


def looked_up(x: np.ndarray) -> Any:
    s, t = 0, 0.0
    for v in x:
        s += FACTORS[v % 3]
        q, r = STEPS[v % 2]
        t += q * r + (0.5, 1.5, 2.5)[v % 3]
    return s, t, FACTORS[x.argmax() % 3], [1, 2][x.argmin()], STEPS[x[1] - 3]


def test_lists_of_numbers_at_places_of_the_run() -> None:
    check(looked_up, np.arange(1, 31), fp="strict")
    with pytest.raises(IndexError):
        fusec.jit(lambda x: FACTORS[x[0]])(np.array([7]))


def test_a_function_that_outlives_its_trace_runs_in_python() -> None:
    class Box:
        total = 0.0

    def program(x: np.ndarray) -> Any:
        def later(box: Any) -> float:
            for w in [0.5, 0.25] * 20:
                box.total += w
            box.last = [box.total + k for k in range(30)][-1]
            del box.last
            return box.total

        return x * 2, later

    _, later = fusec.jit(program)(np.ones(2))
    box = Box()
    assert [later(box), later(box)] == [15.0, 30.0]
    assert not hasattr(box, "last")


@pytest.mark.parametrize("program", [
    lambda x: tuple(sorted((x[0], x[1]))), lambda x: sorted([x[0], x[1], x[2]])[1],
    lambda x: sorted(x[:3], reverse=True), lambda x: sorted([float(x[0]), 0.5 * float(x[2])]),
    lambda x: (sorted([3, 1, 2], key=lambda v: -v), sorted(x.astype(int))[0])])
def test_sorted_numbers_of_data(program: Any) -> None:
    jitted = fusec.jit(program)
    for values in ([1.0, 4, 2], [-1.0, -4, 3], [0.0, -0.0, 0], [3.0, 2, 1]):
        assert repr(jitted(np.array(values))) == repr(program(np.array(values)))


def test_sorted_numbers_with_nan_are_refused() -> None:
    jitted = fusec.jit(lambda x: sorted([x[0], x[1]]))
    with pytest.raises(UnsupportedError, match="with NaN in them"):
        jitted(np.array([1.0, np.nan]))


def test_unit_matrices_of_a_size_of_data() -> None:
    def program(k: Any) -> Any:
        return np.eye(k[0]) * 2, np.identity(k[0]), np.eye(k[0], 3, 1), np.eye(k[0], k[1])

    jitted = fusec.jit(program)
    for sizes in ([3, 2], [1, 1], [0, 4]):
        assert repr(jitted(np.array(sizes))) == repr(program(np.array(sizes)))
    with pytest.raises(ValueError, match="negative dimensions"):
        jitted(np.array([-1, 1]))


@pytest.mark.parametrize("program", [
    lambda x, t: sum(v for v in x if v > t) + 0.0,
    lambda x, t: sum(1 for v in x if v > t) + sum(1 for i in range(len(x)) if i % 2 == 0),
    lambda x, t: max(v * 2 for v in x if v < t),
    lambda x, t: min(abs(v) for i, v in enumerate(x) if i > 0 if v != t),
    lambda x, t: sum(a * b for a, b in zip(x, x[::-1], strict=True) if a > b) + 0.0,
    lambda x, t: sum(v for v in (1, 2, 3, 4) if v % 2) + t * max(v for v in [1, 5] if v < 3)])
def test_reductions_of_items_that_data_chooses(program: Any) -> None:
    jitted = fusec.jit(program)
    for x in (np.array([1.0, 4, 2, -3]), np.random.default_rng(0).standard_normal(200)):
        for t in (0.5, -9.0, 9.0):
            got, want = run(jitted, [x, t]), run(program, [x, t])
            assert type(got.error) is type(want.error) or isinstance(got.error, ValueError)
            assert got.error is not None or float(got.result) == pytest.approx(float(want.result))


@pytest.mark.parametrize("program", [
    lambda x, y: x >> x, lambda x, y: y << x, lambda x, y: 2 >> x, lambda x, y: x >> y])
def test_shifts_by_floats(program: Any) -> None:
    """Seed 148097817: nothing of a float is checked to be a count."""
    for x, y in ((1.0, 2), (-1.0, 2.0)):
        with pytest.raises(TypeError, match="not supported for the input types"):
            fusec.jit(program)(x, y)


def test_another_function_named_sum() -> None:
    def program(x: Any) -> Any:
        sum = lambda items: len(list(items))  # noqa: E731
        return sum(v for v in (1, 2, 3) if v > 1) * x

    check(program, np.ones(2))


def test_json_text_needs_the_values() -> None:
    with pytest.raises(FusecError, match="needs JSON text"):
        fusec.jit(lambda x: json.dumps({"a": [x * 2, 1.0]}))(2.0)
    assert fusec.jit(lambda x: json.dumps([1.0, {"n": 2}]))(2.0) == '[1.0, {"n": 2}]'
