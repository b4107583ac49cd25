"""Objects of the user's that a branch or loop replaces: their attributes are chosen one by one, and
what tells them apart is refused."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import fusec

X = np.array([1.0, 2.0, 3.0])
Program = Callable[[Any], Any]


class Vector:
    def __init__(self, x: Any, y: Any = 0.0) -> None:
        self.x, self.y = x, y

    def __add__(self, other: Vector) -> Vector:
        return Vector(self.x + other.x, self.y + other.y)

    def scaled(self, k: Any) -> Vector:
        return Vector(self.x * k, self.y * k)

    def move(self, by: Any) -> None:
        self.x = self.x + by


class Slotted:
    __slots__ = ("_x", "items")

    def __init__(self, x: Any, items: Any) -> None:
        self._x, self.items = x, items

    @property
    def x(self) -> Any:
        return self._x

    @x.setter
    def x(self, value: Any) -> None:
        self._x = value * 2


class Pair(NamedTuple):
    x: Any
    y: Any


@dataclasses.dataclass(frozen=True)
class Hit:
    t: Any
    point: Any = None


@dataclasses.dataclass
class Particle:
    at: Pair
    speed: Vector
    path: Any
    mass: float = 1.0


SPHERES = [Vector(0.5, np.array([1.0, 2.0])), Vector(2.5, np.array([3.0, 4.0]))]


def replaced(x: Any) -> Any:
    v = Vector(x[0], x[1])
    if x[0] > 0:
        v = Vector(x[1], x[2])
    else:
        v = v.scaled(2)
        if x[2] < -2.5:
            v.y = 5.0
    v.move(1.0)
    both = w = Vector(x[0]) if x[1] > 0 else Vector(x[1])
    w.x = 7.0
    return v.x, v.y, both.x, both is w


def with_properties(x: Any) -> Any:
    own = [x[0], x[1]]
    s = Slotted(x[0], own) if x[0] > 0 else Slotted(x[1], own)
    s.x = s.x + 1
    s.items[0] = 9.0
    lone = Slotted(x, [x[0]]) if x[0] > 0 else Slotted(x[::-1], [x[1]])
    lone.items.append(x[2])
    lone.x[0] = 4.0  # a view of the argument
    return s.x, own, lone.items


def nested(x: Any) -> Any:
    p = Particle(Pair(x[0], 1.0), Vector(1.0, 0.5), [x[1], x[2]])
    while abs(p.at.x) < 1.6 and p.at.y < 2:
        at = Pair(p.at.x + 0.01 * p.speed.x, p.at.y + 0.01 * p.speed.y)
        if at.x > 1.4:
            p = Particle(at, Vector(-p.speed.x, p.speed.y), p.path)
        else:
            p = dataclasses.replace(p, at=at)
    return p


def early(x: Any) -> Hit:
    for i in range(len(x)):
        if x[i] > 1.5:
            return Hit(x[i], Vector(x[i], i * 1.0))
    return Hit(np.inf)


def found(x: Any) -> Any:
    hit = early(x)
    return 0.0 if hit.point is None else hit.t + hit.point.x


def of_globals(x: Any) -> Any:
    best, least = None, np.inf
    for sphere in SPHERES:
        if abs(x[0] - sphere.x) < least:
            best, least = sphere, abs(x[0] - sphere.x)
    return np.zeros(2) if best is None else best.y * least


def a_loop(x: Any) -> Any:
    z, n = Vector(x[0], x), 0
    best = z
    while abs(z.x) < 40 and n < 50:
        z = z.scaled(-1.5) + Vector(0.1, n)
        if z.x > best.x:
            best = z
        n += 1
    for _ in range(len(x)):
        z = Vector(z.x * 0.5, z.y)
        last = Vector(z.x, n)
    z.move(1.0)
    return z.x, z.y, best.x, last.x


def an_attribute(x: Any) -> Any:
    sim = Vector(Vector(x[0], x[1]))
    while sim.x.x > 0.01 or sim.y < 3:
        sim.x = sim.x.scaled(0.5) if sim.x.x < 2 else Vector(0.0)
        sim.y += 1
    return sim.x.x, sim.x.y, sim.y


def a_size(x: Any) -> Any:
    v = Vector(x, x.sum())
    for i in range(len(x)):
        v = Vector(v.x * 0.5, x[i]) if v.y > 0 else Vector(v.x + 1, -x[i])
    return v.x, v.y


PROGRAMS: list[Program] = [replaced, with_properties, nested, early, found, of_globals, a_loop,
                           an_attribute]


def assert_same(ours: Any, theirs: Any) -> None:
    if isinstance(theirs, list):
        assert len(ours) == len(theirs)
        for a, b in zip(ours, theirs, strict=True):
            assert_same(a, b)
    elif isinstance(theirs, str):
        assert ours == theirs
    else:
        np.testing.assert_allclose(ours, theirs, rtol=1e-12)


def shown(x: Any) -> Any:
    if isinstance(x, (list, tuple)):
        return [shown(item) for item in x]
    return [type(x).__name__, shown(list(vars(x).values()))] if hasattr(x, "__dict__") else (
        0.5 if x is None else x)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_its_attributes_are_chosen(program: Program) -> None:
    compiled = fusec.jit(program)
    for x in (X, -X, X * 0.4):
        ours, theirs = x.copy(), x.copy()
        assert_same(shown(compiled(ours)), shown(program(theirs)))
        assert_same(ours, theirs)


def test_one_trace_serves_all_sizes() -> None:
    compiled = fusec.jit(a_size)
    for n in (3, 5, 9):
        x = np.linspace(-1.0, 2.0, n)
        assert_same(shown(compiled(x)), shown(a_size(x)))


def test_gradients_go_through_it() -> None:
    def loss(x: Any) -> Any:
        v = Vector(x[0], x[1])
        for i in range(4):
            v = v.scaled(0.9) + Vector(x[2], x[i % 3])
        w = v.scaled(2) if v.x > 0.5 else v.scaled(x[0])
        return w.x * w.y

    for x in (X, -X):
        steps = np.eye(3) * 1e-6
        wanted = [(loss(x + d) - loss(x - d)) / 2e-6 for d in steps]
        np.testing.assert_allclose(fusec.grad(loss)(x), wanted, rtol=1e-6)


class Node:
    def __init__(self, x: Any) -> None:
        self.x, self.whole = x, self


class Final(Vector):
    def __del__(self) -> None:
        pass


class Other:
    def __init__(self, x: Any) -> None:
        self.x = x


@pytest.mark.parametrize(("make", "why"), [
    (lambda x, c: Vector(x[0], x) if c else Vector(x[1], x[:2]),
     r"the attribute 'y' of a Vector\n.*f64\[3\]\n.*f64\[2\]"),
    (lambda x, c: Vector(x[0], Vector(1.0, "a")) if c else Vector(x[0], Vector(2.0, "")),
     r"the attribute 'y\.y' of a Vector\n.*'a'\n.*''"),
    (lambda x, c: Vector(x[0]) if c else Other(x[0]), r"Vector\n.*Other\n.*one class"),
    (lambda x, c: Node(x[0]) if c else Node(x[1]), "a Node that holds itself"),
    (lambda x, c: Final(x[0]) if c else Final(x[1]), "choose the attributes in the branch"),
], ids=["shape", "text", "class", "ring", "finalizer"])
def test_what_does_not_fit_is_named(make: Callable[..., Any], why: str) -> None:
    with pytest.raises((fusec.UnsupportedError, TypeError), match=f"(?s){why}"):
        fusec.jit(lambda x: make(x, x[0] > 0).x)(X)


def test_an_attribute_of_one_side_is_named() -> None:
    def program(x: Any) -> Any:
        v = Vector(x[0])
        if x[0] > 0:
            v = Vector(x[1])
            v.z = 1.0  # type: ignore[attr-defined]
        return v.x

    with pytest.raises(TypeError, match=r"(?s)in 'v': the attribute 'z' of a Vector.*not there"):
        fusec.jit(program)(X)


def written(p: Any, q: Any) -> Any:
    p.x = 5.0
    return q.x


def written_by_another_name(p: Any, q: Any) -> Any:
    q.move(1.0)
    return p.x


IDENTITY: dict[str, Callable[[Any, Any], Any]] = {
    "write": written, "write of the other": written_by_another_name,
    "vars": lambda p, q: vars(p).update(x=3.0), "is": lambda p, q: p is q,
    "==": lambda p, q: p == q, "in": lambda p, q: p in [q], "key": lambda p, q: {q: 1}.get(p, 0),
    "index": lambda p, q: [q, p].index(p), "id": lambda p, q: id(p) == id(q),
    "set": lambda p, q: len({p, q}), "returned twice": lambda p, q: (p, q),
}


@pytest.mark.parametrize("use", IDENTITY.values(), ids=IDENTITY)
def test_what_could_be_seen_under_another_name_is_refused(use: Callable[[Any, Any], Any]) -> None:
    def program(x: Any) -> Any:
        q, p = Vector(x[0]), Vector(x[1])
        if x[0] > 0:
            p = q
        return use(p, q)

    with pytest.raises(fusec.UnsupportedError, match=r"(?s)chooses.*cure|vars\(\)"):
        fusec.jit(program)(X)


def made_in_one_side(x: Any) -> Any:
    if x[0] > 0:
        p = q = Vector(x[0])
    else:
        p, q = Vector(x[1]), Vector(x[2])
    p.x = 5.0
    return q.x


def half_bound(x: Any) -> Any:
    if x[0] > 0:
        p = q = Vector(x[0])
    else:
        q = Vector(x[2])
    q.x = 5.0
    return p.x if x[0] > 0 else 0.0


def in_attributes(x: Any) -> Any:
    p = Vector(Vector(x[0]))
    if x[0] > 0:
        q = p.x = Vector(x[1])
    else:
        q, p.x = Vector(x[2]), Vector(x[1])
    q.x = 4.0
    return p.x.x


def a_list_in_it(x: Any) -> Any:
    own = [x[0], x[1]]
    p = Vector(own) if x[0] > 0 else Vector([x[1], x[2]])
    p.x[0] = 9.0
    return own[0]


def in_a_loop(x: Any) -> Any:
    p = q = Vector(x[0])
    n = 0
    while abs(p.x) < 10 and n < 20:
        p.move(1.0)
        p = p.scaled(0.5)
        n += 1
    return q.x


def from_outside(x: Any) -> Any:
    return SPHERES[0] if x[0] > 0 else SPHERES[1]


def its_namespace(x: Any) -> Any:
    p = Vector(x[0])
    names = vars(p)
    if x[0] > 0:
        p = Vector(x[1])
    names["x"] = 3.0
    return p.x


@pytest.mark.parametrize("program", [
    made_in_one_side, half_bound, in_attributes, a_list_in_it, in_a_loop, from_outside,
    its_namespace], ids=lambda f: f.__name__)
def test_other_names_that_a_side_gives_it_too(program: Program) -> None:
    with pytest.raises((fusec.UnsupportedError, TypeError), match="choose"):
        fusec.jit(program)(X)


def test_the_cures_cure() -> None:
    def copied(x: Any) -> Any:
        q, p = Vector(x[0]), Vector(x[1])
        if x[0] > 0:
            p = q
        p = copy.copy(p)
        p.x += 1
        return p, q, p is q

    for x in (X, -X):
        assert_same(shown(fusec.jit(copied)(x)), shown(copied(x)))


def one_list_in_both(x: Any) -> Any:
    p = Vector([1.0])
    p.y = p.x
    if x[0] > 0:
        p = Vector([x[1]])
        p.y = p.x
    else:
        p = Vector([x[0]])
        p.y = p.x
    return p.x is p.y, p.x, p.y


def one_list_in_both_of_one_side(x: Any) -> Any:
    if x[0] > 0:
        p = Vector([x[1]])
        p.y = p.x
    else:
        p = Vector([x[1]])
        p.y = [x[0]]
    return p.x is p.y


def test_one_list_in_two_attributes() -> None:
    f = fusec.jit(one_list_in_both)
    for x in (X, -X):
        assert_same(shown(f(x)), shown(one_list_in_both(x)))
    with pytest.raises(fusec.UnsupportedError, match="of a list that data chooses"):
        fusec.jit(one_list_in_both_of_one_side)(X)
