"""Builtins with arguments that are met less often: as Python's, or refused by name with a cure."""

from __future__ import annotations

import collections
import itertools
import weakref
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import fusec


def outcome(f: Callable[..., Any], *args: Any) -> Any:
    try:
        return f(*args)
    except ValueError as error:
        return str(error)


def test_powers_with_a_modulus() -> None:
    def power(base: int, exponent: float, modulus: int) -> Any:
        return pow(base, int(exponent), modulus)

    f = fusec.jit(power)
    for args in itertools.product((3, -7, 0, 10**9), (0.0, 7.0, -3.0), (5, -12, 1, 10**9 + 7, 0)):
        assert outcome(f, *args) == outcome(power, *args)
    assert fusec.jit(lambda v: pow(v, 2))(3.0) == 9.0


def test_a_bool_is_an_index_of_a_list() -> None:
    f = fusec.jit(lambda x: [10, 20][bool(x > 1)])
    assert [f(1.0), f(2.0), f(np.float64(2.0))] == [10, 20, 20]


def ends(x: float) -> float:
    if x > 0:
        next(iter([]))
    return x


LONG = [float(i) for i in range(80)]


@pytest.mark.parametrize(("program", "args", "words"), [
    (lambda x: int("11", base=2 + int(x)), (1.0,), "int.. of a text with a base(.|\n)*static"),
    (lambda x: int("11", 2 + int(x)), (1.0,), "int.. of a text with a base"),
    (ends, (-1.0,), r"StopIteration where data decides(.|\n)*next\(items, None\)"),
    (lambda a: max(a[1:], a[:1]), (LONG,), "max of sequences of 1 and of 79 items"),
])
def test_what_is_refused_by_name(program: Any, args: tuple[Any, ...], words: str) -> None:
    with pytest.raises(fusec.UnsupportedError, match=words):
        fusec.jit(program)(*args)
    assert fusec.jit(lambda x: int("11", base=3) + x)(1.0) == 5.0


def test_weak_references_to_what_the_function_made_are_refused() -> None:
    class Node:
        pass

    def program(x: float) -> bool:
        node = Node()
        seen = weakref.ref(node)
        if x > 0:
            node = Node()
        return seen() is None

    with pytest.raises(fusec.UnsupportedError, match=r"weak reference to a Node(.|\n)*keep"):
        fusec.jit(program)(1.0)
    outside = Node()
    assert fusec.jit(lambda x: weakref.ref(outside)() is outside)(1.0)


def test_texts_of_dicts_name_their_class() -> None:
    f = fusec.jit(lambda p: (repr(p.d), str(p.d), f"{p.d}"))
    for d in (collections.OrderedDict(a=1.0), collections.defaultdict(list, a=2.0), {"a": 1.0}):
        assert f(SimpleNamespace(d=d)) == (repr(d), str(d), f"{d}")


@pytest.mark.parametrize("program", [
    lambda n, x: np.zeros(n), lambda n, x: np.ones((n, 2)), lambda n, x: np.full(n, 1.0),
    lambda n, x: x.reshape(n, -1), lambda n, x: np.broadcast_to(x, (n, 2)),
    lambda n, x: np.eye(n) if n else n])
def test_bools_as_sizes(program: Any) -> None:
    for held in (True, False, 1):
        p = SimpleNamespace(n=held)
        results = []
        for f in (program, fusec.jit(program)):
            try:
                results.append(repr(f(p.n, np.ones(2))))
            except TypeError as error:
                results.append(str(error).partition("\n")[0])
        assert results[0] == results[1]


def test_the_cure_for_names_in_vars() -> None:
    def by_vars(p: Any) -> None:
        p.__dict__["x"] = 3.0

    def assigned(p: Any) -> float:
        p.x = 3.0
        return p.x

    with pytest.raises(fusec.UnsupportedError, match=r"assign the attribute, obj.name = value"):
        fusec.jit(by_vars)(SimpleNamespace(x=1.0))
    assert fusec.jit(assigned)(SimpleNamespace(x=1.0)) == 3.0
