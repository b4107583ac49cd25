"""Copies of objects, and code without source that reads them, against Python."""

from __future__ import annotations

import copy
import dataclasses
import operator
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fusec
from fusec.errors import UnsupportedError


class Owner:
    def __init__(self) -> None:
        self.v, self.a = 1.5, np.zeros(2)
        self.items, self.table = [0], {}

    def step(self, x: Any) -> None:
        self.a += x
        self.v += 1


@dataclasses.dataclass(order=True)
class Point:
    v: float = 1.0
    a: Any = None


def deep_array(o: Any) -> Any:
    return copy.deepcopy(o).a + 1


def shallow_number(o: Any) -> Any:
    return copy.copy(o).v


def shallow_number_assigned(o: Any) -> Any:
    c = copy.copy(o)
    c.v = c.v * 2
    return c.v, o.v


def deep_array_written(o: Any) -> Any:
    c = copy.deepcopy(o)
    c.a += 1
    c.step(2.0)
    return c.a, c.v


def shallow_array_written(o: Any) -> Any:
    c = copy.copy(o)
    c.a += 1
    return c.a


def shallow_array_rebound(o: Any) -> Any:
    c = copy.copy(o)
    c.a = c.a + 1
    return c.a, o.a


def deep_containers(o: Any) -> Any:
    c = copy.deepcopy(o)
    c.items.append(1)
    c.table["k"] = c.a
    return c.items, c.table, o.items


def getters(o: Any) -> Any:
    return operator.attrgetter("v", "a")(o), operator.itemgetter(1)(o.a)


@pytest.mark.parametrize("program", [
    deep_array, shallow_number, shallow_number_assigned, deep_array_written,
    shallow_array_written, shallow_array_rebound, deep_containers, getters])
def test_copies_follow_the_object(program: Callable[[Any], Any]) -> None:
    compiled, mine, other = fusec.jit(program), Owner(), Owner()
    for _ in range(3):
        assert repr(compiled(mine)) == repr(program(other))
        assert repr(vars(mine)) == repr(vars(other))
        for o in (mine, other):
            o.v += 1
            o.a = o.a + 2
            o.a[0] -= 1


@pytest.mark.parametrize("program", [
    lambda o: dataclasses.replace(o, a=None).v, lambda o: dataclasses.asdict(o)["v"],
    lambda o: repr(o), lambda o: 1 if o == Point(2.0) else 2, lambda o: o < Point(2.5),
    lambda o: o in (Point(1.0), Point(3.0)), lambda o: sum(map(operator.attrgetter("v"), [o, o]))])
def test_what_reads_objects_unseen_follows_them(program: Callable[[Any], Any]) -> None:
    compiled, o = fusec.jit(program), Point()
    for _ in range(3):
        assert compiled(o) == program(o)
        o.v += 1


def test_arrays_that_are_read_unseen_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="attribute 'a' is an array to asdict"):
        fusec.jit(lambda o: dataclasses.asdict(o)["v"])(Point(1.0, np.ones(2)))


def test_copies_that_are_refused() -> None:
    class Copying:
        def __copy__(self) -> Any:
            return 1

    with pytest.raises(UnsupportedError, match="copying a Copying, which has __copy__"):
        fusec.jit(lambda: copy.copy(Copying()).v)()

    class Drawing:
        def __init__(self) -> None:
            self.generator = np.random.default_rng(1)

    with pytest.raises(UnsupportedError, match="copying a random generator"):
        fusec.jit(lambda o: copy.deepcopy(o).generator.random())(Drawing())


def test_copies_of_arrays_lie_as_they_do() -> None:
    x = np.arange(6.0).reshape(2, 3).T

    def program(o: Any, x: Any) -> Any:
        return copy.copy(x), copy.deepcopy(x), copy.deepcopy([x])[0], copy.deepcopy(o).a

    o = Owner()
    o.a = x
    for got, want in zip(fusec.jit(program)(o, x), program(o, x), strict=True):
        assert got.strides == want.strides == x.strides


COMMAND = """
import collections, dataclasses
import fusec
@dataclasses.dataclass(order=True)
class Point:
    v: float
Pair = collections.namedtuple("Pair", "a b")
class Own:
    def __init__(self, v):
        self.v = v
    def __lt__(self, other):
        return self.v < other
f = fusec.jit(lambda o: (o < Point(2.5), o == Point(2.0), Pair(o.v, 1.0).a, Own(o.v) < 2.5))
o = Point(1.0)
for _ in range(3):
    print(*f(o))
    o.v += 1
"""


def test_methods_that_dataclasses_make_in_a_command_are_not_its_text() -> None:
    """Python 3.13 says of both that they are from ``<string>``, and keeps the command's lines."""
    run = subprocess.run([sys.executable, "-c", COMMAND], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    rows = [line.split() for line in run.stdout.splitlines()]
    assert rows == [["True", "False", "1.0", "True"], ["True", "True", "2.0", "True"],
                    ["False", "False", "3.0", "False"]]
