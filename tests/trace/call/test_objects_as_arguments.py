"""Objects among the arguments: one trace for all that are alike; writes reach each call's own."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fusec


class Body:
    def __init__(self, x: Any, k: float = 1.0, child: Any = None) -> None:
        self.x, self.k, self.child = x, k, child


class Slotted:
    __slots__ = ("__weakref__", "x")

    def __init__(self, x: Any) -> None:
        self.x = x


@dataclasses.dataclass
class Config:
    w: Any
    k: float = 2.0
    n: int = 2
    name: str = "a"


@dataclasses.dataclass(frozen=True)
class Frozen:
    w: Any
    k: float


class Layer:
    def __init__(self, w: Any) -> None:
        self.w = fusec.Variable(w)
        self.calls = 0


def reads(p: Body, q: Body) -> Any:
    return p.x - q.x * q.k + p.k


def writes(p: Body, x: Any) -> Any:
    p.k = p.k + 1.0
    p.x = p.x * 2 + x
    p.child.x[0] = x[1]
    return p.x.sum() * p.k


def returns(p: Body, x: Any) -> Any:
    p.k = x[0]
    return p, [p, x]


def of_a_list(ps: list[Body], x: Any) -> Any:
    for p in ps:
        p.x = p.x + x
    return [p.x.sum() * p.k for p in ps]


def of_a_dict(d: dict[str, Body], *, by: Slotted) -> Any:
    return d["a"].x * d["b"].k + by.x


def constants(c: Config, x: Any) -> Any:
    return c.w[:c.n] * c.k if c.name == "a" else c.w * x


def frozen(f: Frozen, x: Any) -> Any:
    return f.w * f.k + x


def variables(m: Layer, v: fusec.Variable, x: Any) -> Any:
    m.w.assign_add(x)
    m.calls += 1
    return (m.w * v).sum()


def chosen(p: Body, q: Body, x: Any) -> Any:
    r = p if x[0] > 0 else q
    return r.x * r.k


def arguments(number: int) -> dict[Callable[..., Any], tuple[tuple[Any, ...], dict[str, Any]]]:
    rng = np.random.default_rng(number)

    def array() -> Any:
        return rng.normal(size=4)

    def body(child: Any = None) -> Body:
        return Body(array(), float(number % 3), child)

    x = array()
    return {
        reads: ((body(), body()), {}), writes: ((body(body()), x), {}),
        returns: ((body(), x), {}), of_a_list: (([body(), body()], x), {}),
        of_a_dict: (({"a": body(), "b": body()},), {"by": Slotted(array())}),
        constants: ((Config(array(), number / 2, 1 + number % 2, "ab"[number % 4 // 3]), x), {}),
        frozen: ((Frozen(array(), number / 2), x), {}),
        variables: ((Layer(array()), fusec.Variable(array()), x), {}),
        chosen: ((body(), body(), x), {}),
    }


def shown(x: Any) -> Any:
    if isinstance(x, (list, tuple)):
        return [shown(item) for item in x]
    if isinstance(x, dict):
        return shown(list(x.values()))
    if isinstance(x, fusec.Variable):
        return shown(x.numpy())
    if isinstance(x, Slotted):
        return shown(x.x)
    return shown(vars(x)) if hasattr(x, "__dict__") else (
        x if x is None or isinstance(x, str) else np.asarray(x).round(9).tolist())


@pytest.mark.parametrize(("program", "traces"), [
    (reads, 2), (writes, 1), (returns, 1), (of_a_list, 2), (of_a_dict, 2), (constants, 6),
    (frozen, 2), (variables, 1), (chosen, 2)], ids=lambda x: getattr(x, "__name__", ""))
def test_one_trace_serves_all_that_are_alike(program: Callable[..., Any], traces: int) -> None:
    compiled = fusec.jit(program)
    for number in range(9):
        (args, named), (own, own_named) = (arguments(number)[program] for _ in range(2))
        for _ in range(2):
            result = compiled(*args, **named)
            expected = program(*own, **own_named)
            assert shown((result, args, named)) == shown((expected, own, own_named))
        if program is returns:
            assert result[0] is args[0] and result[1][0] is args[0]
    assert compiled.trace_count <= traces


def test_other_instances_come_with_other_sizes_of_arrays() -> None:
    def program(p: Body, x: Any) -> Any:
        p.k = p.k + 1.0
        return (p.x[0] * x + p.k).sum()

    compiled = fusec.jit(program)
    for n in (3, 5, 9, 17, 33):
        for k in range(2):
            p, q = (Body(np.arange(3.0) + n, k * 1.0) for _ in range(2))
            x = np.arange(n) * 0.5
            np.testing.assert_allclose(compiled(p, x), program(q, x))
            assert p.k == q.k
    assert compiled.trace_count <= 2


def test_which_objects_are_one_is_part_of_the_call() -> None:
    def same(p: Body, q: Body) -> Any:
        return p.x * 2 if p is q else p.x - q.x

    def shared(p: Body, q: Body) -> Any:
        p.x[0] = 5.0
        return q.x.sum()

    p, q = Body(np.arange(3.0)), Body(np.ones(3))
    alike = Body(p.x), Body(p.x)
    for program in (same, shared):
        compiled = fusec.jit(program)
        for args in ((p, q), (p, p), (q, p), (q, q), alike, (p, q)):
            p.x[:], q.x[:] = np.arange(3.0), 1.0
            result = compiled(*args)
            p.x[:], q.x[:] = np.arange(3.0), 1.0
            np.testing.assert_array_equal(result, program(*args))


def test_what_only_one_instance_has_is_traced_anew() -> None:
    def program(p: Body) -> Any:
        return getattr(p, "more", 3.0) * p.x + (0.0 if p.child is None else p.child.x)

    compiled = fusec.jit(program)
    bodies = [Body(np.ones(2)), Body(np.ones(2)), Body(np.ones(2), 1.0, Body(np.ones(2)))]
    bodies[1].more = 2.0  # type: ignore[attr-defined]
    for body in (*bodies, *reversed(bodies)):
        np.testing.assert_array_equal(compiled(body), program(body))
    bodies[0].child = bodies[1]
    np.testing.assert_array_equal(compiled(bodies[0]), program(bodies[0]))


def test_the_method_s_own_instance_may_be_an_argument_too() -> None:
    class Pair(Body):
        @fusec.jit
        def minus(self, other: Body) -> Any:
            return self.x * 2 - other.x * self.k

    pairs = [Pair(np.arange(3.0) + i, 2.0) for i in range(4)]
    for a in pairs:
        for b in pairs:
            np.testing.assert_array_equal(a.minus(b), a.x * 2 - b.x * a.k)
    assert Pair.minus.trace_count == 2


def test_a_call_with_new_objects_costs_each_the_same() -> None:
    class Point:
        def __init__(self, v: float) -> None:
            self.v, self.w = v, 2 * v

    def program(points: list[Point]) -> Any:
        return sum([p.v * p.w for p in points])

    def calls(count: int) -> int:
        compiled, made = fusec.jit(program), [0]

        def points(k: int) -> list[Point]:
            return [Point(float(i + k)) for i in range(count)]

        for k in range(3):
            compiled(points(k))
        new = points(3)
        sys.setprofile(lambda frame, event, value: made.__setitem__(0, made[0] + 1))
        try:
            result = compiled(new)
        finally:
            sys.setprofile(None)
        assert result == program(new) and compiled.trace_count <= 3
        return made[0]

    few, many = calls(20), calls(80)
    assert many < 5 * few and many < 800 * 80
