"""``while`` loops whose test does something: it is done once more than the body."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fusec


class Counter:
    def __init__(self) -> None:
        self.total, self.array = 0.0, np.zeros(3)

    def add(self, c: Any) -> Any:
        self.total += c
        return self.total

    def add_to_element(self, c: Any) -> Any:
        self.array[0] += c
        return self.array[0]

    def add_to_all(self, c: Any) -> Any:
        self.array = self.array + c
        return self.array[0]


outer = Counter()


def lowered(x: np.ndarray) -> Any:
    x[0] -= 1
    return x[0]


def element_of_the_argument(x: np.ndarray) -> Any:
    n = 0
    while lowered(x) > 0:
        n += 1
    return n, x


def after_and(x: np.ndarray) -> Any:
    n = 0
    while x[1] > n and lowered(x) > -5:
        n += 1
    return n, x


def local_object(x: np.ndarray) -> Any:
    counter, n = Counter(), 0
    while x[1] > n and counter.add(x[0]) < 50:
        n += 1
    return n, counter.total


def array_of_a_local_object(x: np.ndarray) -> Any:
    counter, n = Counter(), 0
    while x[1] > n and counter.add_to_element(x[0]) < 50:
        n += 1
    return n, counter.array


def attribute_rebound(x: np.ndarray) -> Any:
    counter, n = Counter(), 0
    while counter.add_to_all(x[0]) < 10:
        n += 1
    return n, counter.array


def outer_object(x: np.ndarray) -> Any:
    n = 0
    while x[1] > n and (outer.add_to_element(x[0]) < 50 or outer.add(1) > 0):
        n += 1
    return n, outer.total, outer.array


def nonlocal_name(x: np.ndarray) -> Any:
    s, w = 0.0, x[1]

    def bump(c: Any) -> Any:
        nonlocal s
        s += c
        return s

    while w > 0 and bump(x[0]) >= 0:
        w -= 1
    return s, w


def nonlocal_name_of_a_nested_loop(x: np.ndarray) -> Any:
    s = 0.0

    def bump(c: Any) -> Any:
        nonlocal s
        s += c
        return s * 0.5

    for _ in np.arange(12.0) + x[0]:
        if bump(1.0) > 0:
            for e in np.arange(12.0) + x[1]:
                s += e
    return s


def nonlocal_name_read_before(x: np.ndarray) -> Any:
    s = t = 0.0

    def bump(c: Any) -> Any:
        nonlocal s
        s += c
        return s * 0.5

    for _ in np.arange(12.0) + x[0]:
        s, t = s, bump(1.0)
        for e in np.arange(12.0) + x[1]:
            t += e
    return s, t


@pytest.mark.parametrize("program", [
    element_of_the_argument, after_and, local_object, array_of_a_local_object, attribute_rebound,
    outer_object, nonlocal_name, nonlocal_name_of_a_nested_loop, nonlocal_name_read_before,
], ids=lambda f: f.__name__)
def test_what_the_test_does(program: Callable[..., Any]) -> None:
    global outer
    found = []
    for run in (program, fusec.jit(program)):
        outer = Counter()
        results = [run(np.array([4.0, 3.0, 2.0])) for _ in range(2)]
        leaves = results if isinstance(results[0], float) else [v for r in results for v in r]
        found.append([np.asarray(v).tolist() for v in leaves])
    assert found[0] == found[1]


def walrus_before_a_break(x: np.ndarray) -> Any:
    k, w = 0, 3
    while w > 0 and (k := k + 1) > 0:
        w -= 1
        if x[0] < 0:
            break
    return k, w


def countdown_before_a_break(x: np.ndarray) -> Any:
    k, w = 0, 5
    while (w := w - 1) > 0:
        if x[0] < 0:
            break
        if x[1] < 0:
            continue
        k += 1
    return k, w


def nonlocal_name_before_a_break(x: np.ndarray) -> Any:
    k, w = 0, 3

    def counted() -> bool:
        nonlocal k
        k += 1
        return k > 0

    while w > 0 and counted():
        w -= 1
        if x[0] < 0:
            break
    return k, w


def attribute_before_a_break(x: np.ndarray) -> Any:
    counter, w = Counter(), 3
    while w > 0 and counter.add(1.0) > 0:
        w -= 1
        if x[0] < 0:
            break
    return counter.total, w


def element_before_a_break(x: np.ndarray) -> Any:
    counter, w = Counter(), 3
    while w > 0 and counter.add_to_element(1.0) > 0:
        w -= 1
        if x[0] < 0:
            break
    return counter.array, w


def item_before_a_break(x: np.ndarray) -> Any:
    items = [3.0, 0.0]

    def counted() -> bool:
        items[0] -= 1.0
        return items[0] > 0

    while counted():
        items[1] += x[1]
        if x[0] < 0:
            break
    return items[0], items[1]


def before_a_return(x: np.ndarray) -> Any:
    k, w = 0, 3
    while (k := k + 1) > 0 and w > 0:
        w -= 1
        if x[0] < 0:
            continue
        if x[1] < 0:
            return k, w
    return k + 10, w


def before_an_else(x: np.ndarray) -> Any:
    k, w = 0, 3
    while (k := k + 1) and w > 0:
        w -= 1
        if x[0] < 0:
            break
    else:
        k += 10
    return k, w


def evaluated_late(x: np.ndarray) -> Any:
    """Python knows the first half of the test for a while, and the second half is not reached."""
    flag, k, w = True, 0, 0

    def counted() -> bool:
        nonlocal k
        k += 1
        return k < 40

    while flag or counted():
        w += 1
        flag = w < 20
        if x[0] < w - 25:
            break
    return k, w


def element_written_late(x: np.ndarray) -> Any:
    counter, flag, w = Counter(), True, 0
    while flag or counter.add_to_element(1.0) < 3:
        w += 1
        flag = w < 5
        if x[0] < w - 6:
            break
    return counter.array, w


@pytest.mark.parametrize("program", [
    walrus_before_a_break, countdown_before_a_break, nonlocal_name_before_a_break,
    attribute_before_a_break, element_before_a_break, item_before_a_break, before_a_return,
    before_an_else, evaluated_late, element_written_late,
], ids=lambda f: f.__name__)
def test_no_more_tests_than_python_makes(program: Callable[..., Any]) -> None:
    jitted = fusec.jit(program)
    for point in ([2.0, 3.0], [0.0, 1.0], [-1.0, -1.0], [5.0, -1.0], [60.0, 2.0]):
        x = np.array(point)
        assert [np.asarray(v).tolist() for v in jitted(x)] == [
            np.asarray(v).tolist() for v in program(x)]
