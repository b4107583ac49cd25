"""Containers in results that data may make None: the one that the program has, in each place."""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest

import fusec

OUTSIDE_LIST, OUTSIDE_DICT = [1.0, 2.0], {"a": 1.0}


class Point:
    def __init__(self, x: Any) -> None:
        self.x = x


def made(x: Any, flag: Any) -> Any:
    items, best = [x + 1], None
    if flag > 0:
        best = items
    return items, best


def twice_in_one(x: Any, flag: Any) -> Any:
    items, best = [x + 1], None
    if flag > 0:
        best = (items, items)
    return best


def first_there(x: Any, flag: Any) -> Any:
    items, best = [x], None
    if flag > 0:
        best = (items, x)
    return best, items


def outside(x: Any, flag: Any) -> Any:
    best = None
    if flag > 0:
        best = OUTSIDE_LIST
    return x, best


def outside_in_a_tuple(x: Any, flag: Any) -> Any:
    best = None
    if flag > 0:
        best = (OUTSIDE_LIST, OUTSIDE_DICT, x)
    return best


def returned_by_a_branch(x: Any, flag: Any) -> Any:
    return OUTSIDE_DICT if flag > 0 else None


def early(x: Any, flag: Any) -> Any:
    items = [x]
    if flag > 0:
        return items, items
    return items, None


def of_an_object(x: Any, flag: Any) -> Any:
    point, best = Point([x]), None
    if flag > 0:
        best = point
    return point, best


def left_by_a_loop(x: Any, flag: Any) -> Any:
    items, best = [x], None
    for k in range(12):
        if x[0] + flag > k:
            best = items
    return items, best


PROGRAMS = [made, twice_in_one, first_there, outside, outside_in_a_tuple, returned_by_a_branch,
            early, of_an_object, left_by_a_loop]


def _places(x: Any, seen: dict[int, int]) -> Any:
    """The places of items, and which container of a result, or from outside, each one is."""
    number = seen.setdefault(id(x), len(seen))
    if isinstance(x, (list, tuple)):
        return type(x), number, [_places(item, seen) for item in x]
    if isinstance(x, (dict, Point)):
        items = x if isinstance(x, dict) else vars(x)
        return type(x), number, {key: _places(item, seen) for key, item in items.items()}
    return type(x)


@pytest.mark.parametrize("flag", [1, -5])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_they_are_one(program: Callable[..., Any], flag: int) -> None:
    compiled = fusec.jit(program)
    for _ in range(2):
        ours, numpys = ({id(OUTSIDE_LIST): 0, id(OUTSIDE_DICT): 1} for _ in range(2))
        wanted, found = program(np.ones(3), flag), compiled(np.ones(3), np.int64(flag))
        assert _places(found, ours) == _places(wanted, numpys)


def test_beside_an_array_that_is_one_of_two() -> None:
    """Results with such arrays are put together anew, and were with all that lay in them."""
    def program(x: Any, y: Any, flag: Any) -> Any:
        best = None
        if flag > 0:
            best = OUTSIDE_LIST
        return x if flag > 2 else y, best, OUTSIDE_DICT

    x, y = np.ones(3), np.zeros(3)
    for flag, one in ((3, x), (1, y)):
        array, items, names = fusec.jit(program)(x, y, np.int64(flag))
        assert array is one and items is OUTSIDE_LIST and names is OUTSIDE_DICT


def test_beside_a_namespace() -> None:
    def program(x: Any) -> Any:
        return vars(Point), OUTSIDE_LIST, x

    names, items, _ = fusec.jit(program)(np.ones(3))
    assert type(names) in (dict, MappingProxyType) and items is OUTSIDE_LIST
