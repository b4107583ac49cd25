"""Items read in containers are watched however deep they lie, however many there are."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import fusec
from fusec.errors import FusecError
from fusec.trace.guards.contents import Content

X = np.ones(3)
DEPTHS = (1, 4, 5, 6, 20, 100)
ITEMS = [1.0] * 1001
HOLDER = SimpleNamespace(tree=[])


def nested(depth: int, inner: Any) -> Any:
    """``inner`` in lists and dicts in turn."""
    for level in range(depth):
        inner = {"k": inner} if level % 2 else [inner]
    return inner


def found_in(tree: Any) -> Any:
    while True:
        tree = tree["k"] if isinstance(tree, dict) else tree[0]
        if isinstance(tree, list) and len(tree) == 2:
            return tree


@pytest.mark.parametrize("depth", DEPTHS)
def test_a_number_that_lies_deep(depth: int) -> None:
    inner = [2.0, "end"]
    tree = nested(depth, inner)

    def program(x: Any) -> Any:
        return x * found_in(tree)[0]

    jitted = fusec.jit(program)
    for value in (2.0, 3.0, 3.0, -0.0):
        inner[0] = value
        np.testing.assert_array_equal(jitted(X), program(X))
    assert jitted.trace_count == 3


@pytest.mark.parametrize("depth", DEPTHS)
def test_an_attribute_s_tree(depth: int) -> None:
    inner = [2.0, "end"]
    HOLDER.tree = nested(depth, inner)
    jitted = fusec.jit(lambda x: x * found_in(HOLDER.tree)[0])
    for value in (2.0, 5.0):
        inner[0] = value
        np.testing.assert_array_equal(jitted(X), X * value)


@pytest.mark.parametrize("count", [1000, 1001, 20_000])
def test_long_lists(count: int) -> None:
    ITEMS[:] = [1.0] * count
    jitted = fusec.jit(lambda x: x * sum(ITEMS))
    for value in (1.0, 2.0):
        ITEMS[count // 2] = value
        np.testing.assert_array_equal(jitted(X), X * sum(ITEMS))


@pytest.mark.parametrize("depth", (1, 4, 5, 6, 20))
def test_appending_to_what_lies_deep(depth: int) -> None:
    """A tracer was left there."""
    inner = [2.0, "end"]
    tree = nested(depth, inner)

    def program(x: Any) -> Any:
        found_in(tree).append(x * 2)
        return x

    try:
        fusec.jit(program)(X)
    except FusecError:
        assert inner == [2.0, "end"]
    else:
        assert len(inner) == 3 and type(inner[2]) is np.ndarray


def test_a_list_in_itself() -> None:
    ring: list[Any] = [1.0]
    ring.append(ring)
    jitted = fusec.jit(lambda x: x * ring[1][1][0])
    for value in (1.0, 4.0):
        ring[0] = value
        np.testing.assert_array_equal(jitted(X), X * value)


@pytest.mark.parametrize("change", [
    lambda t: t["b"].append(1), lambda t: t.update(c=0), lambda t: t.pop("a"),
    lambda t: t["b"].__setitem__(0, True), lambda t: t["b"].__setitem__(1, -0.0),
    lambda t: t["b"][2].add(3), lambda t: t.__setitem__("a", "a" + "c"),
    lambda t: t["b"][3].__setitem__(0, b"y"[0]), lambda t: t.__setitem__("b", tuple(t["b"])),
])
def test_each_change_is_seen(change: Any) -> None:
    tree = {"a": "ab", "b": [1, 0.0, {1, 2}, bytearray(b"x")]}
    content = Content(tree)
    assert content.matches(tree)
    assert content.matches({"a": "ab"[:1] + "b", "b": [1, 0.0, {2, 1}, bytearray(b"x")]})
    change(tree)
    assert not content.matches(tree)
