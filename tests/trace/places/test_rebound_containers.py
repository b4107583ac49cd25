"""One side of a branch writes to a list or dict, the other one binds its name to another one."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fusec

POINTS = [[2.0, 3.0], [0.0, 1.0], [-1.0, -1.0], [5.0, -1.0]]


def item_then_list(x: Any) -> Any:
    items = [0.5, 0.0]
    if x[0] > 1:
        items[0] = 7.0
    else:
        items = [1.0, 2.0]
    return items[0]


def list_then_item(x: Any) -> Any:
    items = [0.5, 0.0]
    if x[0] > 1:
        items = [1.0, 2.0]
    else:
        items[0] = 7.0
    return items[0]


def dict_item(x: Any) -> Any:
    found = {"a": 0.5}
    if x[0] > 1:
        found["a"] = 7.0
    else:
        found = {"a": 1.0}
    return found["a"]


def dict_update(x: Any) -> Any:
    found = {"a": 0.5}
    if x[0] > 1:
        found.update(a=7.0)
    else:
        found = {"a": 1.0}
    return found


def two_items(x: Any) -> Any:
    items = [0.5, 0.0]
    if x[0] > 1:
        items[0] = 7.0
        items[1] = x[1]
    else:
        items = [1.0, 2.0]
    return items


def under_another_name(x: Any) -> Any:
    items = [0.5, 0.0]
    other = items
    if x[0] > 1:
        items[0] = 7.0
    else:
        items = [1.0, 2.0]
    return items[0], other[0]


def in_elif(x: Any) -> Any:
    items = [0.5, 1.0]
    if x[0] > 1:
        items[0] = 7.0
    elif x[1] > 0:
        items = [x[1], 1.0]
    return items[0]


def inner_list(x: Any) -> Any:
    items = [[0.5], [1.0]]
    if x[0] > 1:
        items[0][0] = 7.0
    else:
        items = [[1.0], [2.0]]
    return items[0][0]


def made_in_the_side(x: Any) -> Any:
    if x[0] > 1:
        items = [1.0, 2.0]
        if x[1] > 1:
            items[0] = 5.0
    else:
        items = [3.0, 4.0]
    return items[0]


def to_another_one_there(x: Any) -> Any:
    items, others = [1.0, 2.0], [0.0, 1.0]
    if x[0] > 1:
        items[0] = 3.0
        items = others
    else:
        items[1] = 4.0
        others[0] = 9.0
    return items[0], items[1], others[0]


def in_a_tuple(x: Any) -> Any:
    items = [1.0, 2.0]
    pair = (items, 1.0)
    if x[0] > 1:
        items[0] = 3.0
        pair = (items, 2.0)
    else:
        items[1] = 4.0
    return pair[0][0], pair[0][1], pair[1], items[0]


def returned(x: Any) -> Any:
    items = [1.0, 2.0]

    def one() -> Any:
        if x[0] > 1:
            items[0] = 3.0
            return items
        return [8.0, 9.0]

    found = one()
    return found[0], items[0]


def nested_branches(x: Any) -> Any:
    items = [1.0, 2.0]
    other = items
    if x[0] > 1:
        items[0] = 3.0
        if x[1] > 1:
            items = [5.0, 6.0]
        else:
            items[1] = 7.0
    else:
        items = [9.0, 9.0]
    return items[0], items[1], other[0], other[1]


def none_before(x: Any) -> Any:
    items = [None, 2.0]
    if x[0] > 1:
        items[0] = 3.0
    else:
        items = [4.0, 5.0]
    return items


def of_a_deque(x: Any) -> Any:
    items = deque([1.0, 2.0])
    if x[0] > 1:
        items[0] = 3.0
    else:
        items = deque([4.0, 5.0])
    return items[0]


def of_arrays(x: Any) -> Any:
    items = [x * 2, x]
    if x[0] > 1:
        items[0] = x * 3
    else:
        items = [x, x + 1]
    return items[0]


def in_a_while(x: Any) -> Any:
    items = [1.0, 2.0]
    while x[0] > items[0]:
        items[0] += 1.0
        if items[0] > 3:
            items = [9.0, x[1]]
    return items


@pytest.mark.parametrize("program", [
    item_then_list, list_then_item, dict_item, dict_update, two_items, under_another_name, in_elif,
    inner_list, made_in_the_side, to_another_one_there, in_a_tuple, returned, nested_branches,
    none_before, of_a_deque, of_arrays, in_a_while])
def test_what_was_written_is_there(program: Callable[..., Any]) -> None:
    jitted = fusec.jit(program)
    for point in POINTS:
        x = np.array(point)
        want, got = leaves_of(program(x)), leaves_of(jitted(x))
        assert len(got) == len(want)
        assert all(np.array_equal(a, b) for a, b in zip(got, want, strict=True))


def leaves_of(x: Any) -> list[Any]:
    """The items of lists, tuples and dicts."""
    if isinstance(x, dict):
        return [leaf for key in x for leaf in [key, *leaves_of(x[key])]]
    return [leaf for item in x for leaf in leaves_of(item)] if isinstance(
        x, list | tuple) else [x]


def test_what_data_may_have_chosen_is_not_changed() -> None:
    def f(x: Any) -> Any:
        items = [1.0, 2.0]
        if x[0] > 1:
            items[0] = 3.0
        else:
            items = [4.0, 5.0]
        items[1] = 6.0
        return items

    with pytest.raises(fusec.UnsupportedError, match="a list that data chooses"):
        fusec.jit(f)(np.array(POINTS[0]))
