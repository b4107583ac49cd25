"""State that a program reads and changes outside: compared before each call, never frozen."""

from __future__ import annotations

import collections
import dataclasses
import enum
import functools
import itertools
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import fusec
from fusec.errors import UnsupportedError

PLACE: Any = None
KEPT: dict[str, Any] = {}
X = np.arange(4.0)


class Mode(enum.Enum):
    A = 1
    B = 2


class Model:
    def __init__(self, v: float) -> None:
        self.v = v
        self.w = np.full(4, v)
        self.sub = self

    def scaled(self, x: Any) -> Any:
        return x * self.v


Pair = collections.namedtuple("Pair", "a b")
OTHERS: dict[str, tuple[Any, Any, Callable[[Any], Any]]] = {
    "object": (Model(1.0), Model(2.0), lambda x: x * PLACE.v),
    "method": (Model(1.0), Model(2.0), lambda x: PLACE.scaled(x)),
    "array attribute": (Model(1.0), Model(2.0), lambda x: x * PLACE.w),
    "enum": (Mode.A, Mode.B, lambda x: x if PLACE is Mode.A else -x),
    "dtype": (np.float32, np.float64, lambda x: x.astype(PLACE)),
    "ufunc": (np.sin, np.cos, lambda x: PLACE(x)),
    "named tuple": (Pair(1.0, 2.0), Pair(5.0, 2.0), lambda x: x * PLACE.a),
    "slice": (slice(0, 2), slice(1, 4), lambda x: x[PLACE]),
    "range": (range(3), range(5), lambda x: x * len(PLACE)),
    "partial": (functools.partial(np.multiply, 2.0), functools.partial(np.multiply, 3.0),
                lambda x: PLACE(x)),
    "set": ({"a"}, {"a", "b"}, lambda x: x * ("b" in PLACE)),
    "deque": (collections.deque([1.0]), collections.deque([4.0]), lambda x: x * PLACE[0]),
    "getattr": (Model(1.0), Model(2.0), lambda x: x * getattr(PLACE, "v", 7.0)),
    "hasattr": (SimpleNamespace(), SimpleNamespace(bias=1), lambda x: (
        x if hasattr(PLACE, "bias") else -x)),
}


@pytest.mark.parametrize("kind", OTHERS)
def test_a_global_of_any_kind_is_replaced(kind: str) -> None:
    global PLACE
    first, second, program = OTHERS[kind]
    compiled = fusec.jit(program)
    for value in (first, second, first, second):
        PLACE = value
        np.testing.assert_array_equal(compiled(X), program(X))


def test_attributes_that_appear() -> None:
    global PLACE
    compiled = fusec.jit(lambda x: x + getattr(PLACE, "bias", 0.0))
    PLACE = Model(1.0)
    assert compiled(X)[0] == 0
    PLACE.bias = 5.0
    assert compiled(X)[0] == 5


def counts_in_a_dict(x: Any) -> Any:
    PLACE["n"] += 1
    return x * PLACE["n"]


def appends(x: Any) -> Any:
    PLACE.append(1)
    return x * len(PLACE)


def halves_a_rate(x: Any) -> Any:
    PLACE.options["rate"] *= 0.5
    return x * PLACE.options["rate"]


def fills_once(x: Any) -> Any:
    if not hasattr(PLACE, "total"):
        PLACE.total = x.sum()
    return PLACE.total


def tries_first(x: Any) -> Any:
    try:
        return PLACE.best
    except AttributeError:
        PLACE.best = x * 2
    return x


@pytest.mark.parametrize(("program", "make"), [
    (counts_in_a_dict, lambda: {"n": 0}),
    (counts_in_a_dict, lambda: collections.Counter(n=3)),
    (appends, list), (appends, collections.deque),
    (halves_a_rate, lambda: SimpleNamespace(options={"rate": 1.0})),
    (fills_once, SimpleNamespace), (tries_first, SimpleNamespace),
])
def test_a_program_that_changes_what_it_reads(
    program: Callable[..., Any], make: Callable[[], Any]
) -> None:
    global PLACE
    compiled, results = fusec.jit(program), []
    for function in (program, compiled):
        PLACE = make()
        results.append([np.array(function(X + k)) for k in range(3)])
    np.testing.assert_array_equal(results[0], results[1])


def keeps(x: Any) -> Any:
    KEPT["m"] = x.sum()
    return x


def adds_to_what_is_kept(x: Any) -> Any:
    KEPT["w"] += x
    return KEPT["w"].sum()


def test_values_of_the_graph_are_not_left_in_containers() -> None:
    KEPT.clear()
    fusec.jit(keeps)(X)
    assert {"m": X.sum()} == KEPT
    KEPT["w"] = np.zeros(4)
    compiled = fusec.jit(adds_to_what_is_kept)
    assert [compiled(X) for _ in range(3)] == [6.0, 12.0, 18.0]
    assert type(KEPT["w"]) is np.ndarray


@pytest.mark.parametrize("program", [
    lambda x, items: items.append(x), lambda x, items: items.__setitem__(0, x),
])
def test_containers_that_are_arguments(program: Callable[..., Any]) -> None:
    with pytest.raises(UnsupportedError, match="changing a list that is an argument"):
        fusec.jit(program)(X, [1.0, 2.0])


def test_an_iterator_that_outlives_the_call() -> None:
    global PLACE
    PLACE = itertools.count()
    with pytest.raises(UnsupportedError, match="an iterator that outlives the call"):
        fusec.jit(lambda x: x * next(PLACE))(X)


def test_objects_with_values_of_the_graph_are_not_returned() -> None:
    for program in (lambda x: Model(x[0]), lambda x: {"a": x}.values(), lambda x: lambda: x):
        with pytest.raises(UnsupportedError, match=r"returning a \w+ that holds (values|itself)"):
            fusec.jit(program)(X)


def test_an_int_that_decides_what_is_returned() -> None:
    compiled = fusec.jit(lambda x, n: (x, "big") if n > 5 else (x[:n], "small"))
    for n in (7, 3, 9, 2):
        got = compiled(X, n)
        assert got[1] == ("big" if n > 5 else "small")
        assert got[0].shape == X[: n if n <= 5 else 4].shape
    compiled = fusec.jit(lambda n: (n > 0) is True)
    assert [compiled(n) for n in (7, -3, 2)] == [True, False, True]


class Source:
    """Iterators, and a property that counts how often it is read."""

    def __init__(self) -> None:
        self.items, self.numbers = iter([1.0, 2.0, 3.0]), itertools.count()
        self.kept, self.reads = 1.0, 0

    @property
    def value(self) -> Any:
        self.reads += 1
        return self.kept

    @value.setter
    def value(self, c: Any) -> None:
        self.kept = c * 2


@pytest.mark.parametrize("taken", [
    lambda s: next(s.items), lambda s: next(s.numbers), lambda s: sum(s.items),
    lambda s: max(itertools.islice(s.items, 1)),
    lambda s: [c * 1 for c in s.items][-1], lambda s: max(zip(s.items, (1, 2), strict=False))[0],
])
def test_iterators_that_outlive_the_call_are_refused(taken: Any) -> None:
    source = Source()
    with pytest.raises(UnsupportedError, match="an iterator that outlives the call"):
        fusec.jit(lambda x: x * taken(source))(np.ones(2))
    assert next(source.items) == 1.0
    assert next(source.numbers) == 0


def test_a_property_is_read_as_often_as_the_program_does() -> None:
    def program(source: Source, x: np.ndarray) -> Any:
        source.value = source.value + x[0]
        for _ in range(12):
            source.value = source.value * 0.25
        return source.value

    found = []
    for run in (program, fusec.jit(program)):
        source = Source()
        results = [float(run(source, np.array([k, 1.0]))) for k in range(3)]
        found.append((results, float(source.kept), source.reads))
    assert found[0] == found[1]


@dataclasses.dataclass
class Fluid:
    """Equal by content, so that Python gives it no hash."""

    u: np.ndarray
    t: float = 0.0


def test_arguments_that_are_dataclasses() -> None:
    def step(fluid: Fluid, dt: float) -> Any:
        fluid.u = fluid.u + dt
        fluid.t += dt
        return fluid.u.sum()

    compiled, found = fusec.jit(step), []
    for run in (step, compiled):
        fluids = [Fluid(np.zeros(3)), Fluid(np.zeros(3))]
        results = [float(run(fluids[k % 2], 0.5 * k)) for k in range(6)]
        found.append((results, [(f.u.tolist(), f.t) for f in fluids]))
    assert found[0] == found[1]
    assert compiled.trace_count == 1
