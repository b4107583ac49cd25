"""``match`` over values, which data may decide, and over patterns, which Python takes apart."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any, SupportsIndex

import numpy as np
import pytest
from harness import assert_outcomes, run

import fusec


class Pair:
    def __init__(self, a: Any) -> None:
        self.a = a


def returned(x: Any) -> Any:
    match int(x[0]):
        case 0:
            return x.sum()
        case 1 | 2:
            y = x * 2
        case -3:
            y = x
        case _:
            y = x - 1
    return y.sum()


def in_a_loop(x: Any) -> Any:
    s = 0.0
    for v in x:
        match int(v) % 3:
            case 0:
                s += v
            case 1 if v > 0:
                s -= v
            case 2:
                continue
        s *= 0.5
    return s


def leaves_a_loop(x: Any) -> Any:
    found = x[1]
    for v in x:
        match int(v):
            case 3:
                return v
            case 9:
                break
            case _:
                found = found + v
    return found


def known(x: Any, kind: Any = "b") -> Any:
    match kind:
        case "a":
            return x
        case "b":
            match None:
                case None:
                    return x * 2
    return x * 3


def shapes(x: Any) -> Any:
    match x.shape:
        case (n,):
            return x * n
        case (n, m):
            return x * m


def booleans(x: Any) -> Any:
    match bool(x[0] > 0):
        case True:
            return x[0] + 1
        case False:
            return x[1] + 2


def classes(x: Any) -> Any:
    """Python found that what stands for a number has the methods of an array."""
    s = 0.0
    for item in (x, x[0], float(x[0]), int(x[1]), len(x)):
        match item:
            case Iterable():
                s = s + 1.0
            case SupportsIndex():
                s = s + 10.0
            case float() | complex():
                s = s + 100.0
            case _:
                s = s + 1000.0
    return s + 0 * x[0]


def objects(x: Any) -> Any:
    match Pair(x[0]):
        case Pair(a=q):
            return q


def classes_inside(x: Any) -> Any:
    s = 0.0
    for item in (x, x[0], float(x[0]), int(x[1]), (x[0], 2), {"k": x[0], "j": 1}, Pair(x[1])):
        match item:
            case Iterable() as y, *rest if len(rest) == 1:
                s = s + 1.0
            case {"k": Iterable() | None, **rest}:
                s = s + 10.0
            case {"k": Hashable() as y, **rest}:
                s = s + 100.0 + y + len(rest)
            case Pair(a=Iterable()):
                s = s + 1000.0
            case Pair(a=y):
                s = s + 10_000.0 + y
            case Iterable() as y:
                s = s + 100_000.0 + y.sum() if isinstance(y, np.ndarray) else s - 1.0
            case _:
                s = s + 1_000_000.0
    return s


def names_bound(x: Any) -> Any:
    """A name is bound where all of its pattern matches."""
    y = rest = 7
    match (x[0], 1, 2):
        case [Iterable() as y, *rest]:
            y = 0
        case [Hashable() | None, 2, *rest]:
            y = 1
        case (Iterable(), 1, 2) | (None, Iterable(), 2):
            y = 2
    return x * y + rest


def alternatives_guarded(x: Any) -> Any:
    """The first alternative that matches is the case's, whatever its guard says."""
    asked: list[Any] = []

    def asks(value: Any) -> bool:
        asked.append(value)
        return len(asked) > 3

    for item in ((Pair(1), Pair(2)), (1, Pair(2)), (None, 3), (Pair(1), Pair(2))):
        match item:
            case (Pair(), y) | (y, Pair()) | (None, y) if asks(y):
                x = x * 10.0
            case (Pair(a=1) as y, Pair() as z) | (z, Pair() as y) if z == 1:
                x = x + y.a
            case (_, y):
                x = x * 3.0
    return x + len(asked)


def alternatives_that_bind_taken(x: Any) -> Any:
    """The first unpacks the pair, and its class is another one."""
    match (x[0], Pair(2.0)):
        case (Iterable(), taken) | (taken, Pair()) if taken is not None:
            return taken * 10
        case _:
            return x * 2


@pytest.mark.parametrize("program", [
    alternatives_guarded, alternatives_that_bind_taken, classes_inside, names_bound, returned,
    in_a_loop, leaves_a_loop, known,
    shapes, booleans, classes, objects])
def test_as_python_matches(program: Any) -> None:
    jitted = fusec.jit(program)
    long = np.random.default_rng(0).integers(-9, 9, 100).astype(float)
    for x in (*(np.array([v, 4, 2, -3.0]) for v in (0.0, 1.0, 2.0, -3.0, 9.0)), long):
        assert_outcomes(run(jitted, [x]), run(program, [x]), what=f"{program.__name__}({x[:1]})")
