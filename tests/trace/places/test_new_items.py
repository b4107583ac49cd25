"""Items that a call puts into a list or dict that outlives it, which branches and loops change."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fusec
from fusec.errors import ConcreteValueError, UnsupportedError


class State:
    def __init__(self) -> None:
        self.table: dict[Any, Any] = {}
        self.items: list[Any] = []


def in_a_branch(s: State, x: Any) -> Any:
    s.table["w"] = 0.0
    if x[0] > 1:
        s.table["w"] += x[1]
    else:
        s.table["w"] -= x[1]
    return s.table["w"]


def counted(s: State, x: Any) -> Any:
    s.table["n"] = 0
    for v in x:
        if v > 0:
            s.table["n"] += 1
    s.table["share"] = s.table["n"] / len(x)
    return s.table["share"]


def appended(s: State, x: Any) -> Any:
    s.items.append(0)
    s.items.append(0)
    for v in x:
        if v > 0:
            s.items[0] += 1
        else:
            s.items[-1] += 1
    return s.items[0] - s.items[1]


def nested_loops(s: State, x: Any) -> Any:
    s.table["w"] = 0.0
    for _i in range(5):
        for _j in range(5):
            s.table["w"] += x[0]
    return s.table["w"]


def while_it_is_small(s: State, x: Any) -> Any:
    s.table["e"] = 0.0
    k = 0
    while s.table["e"] < 3.0:
        s.table["e"] += abs(x[k])
        k += 1
    return k


def array_of_a_branch(s: State, x: Any) -> Any:
    s.table["y"] = x * 2
    if x.sum() > 0:
        s.table["y"] = s.table["y"] + 5
    return s.table["y"].sum()


def best_pair(s: State, x: Any) -> Any:
    s.table["best"] = (-9.0, 0)
    for i in range(len(x)):
        if x[i] > s.table["best"][0]:
            s.table["best"] = (x[i], i)
    return s.table["best"][1]


def longer_list(s: State, x: Any) -> Any:
    s.items[:] = [0, 0, 0]
    if x[0] > 1:
        s.items[1] = 1
    else:
        s.items[2] = 1
    return s.items[1]


def appended_then_scaled(s: Any, x: Any) -> Any:
    """All items are written at a position of the loop: appended ones kept values of an attempt."""
    for _ in range(3):
        s.items.append(x[0])
    for k in range(len(s.items)):
        s.items[k] *= 0.5
        for i in range(len(x)):
            s.items[1] += x[i]
    return s.items[1]


@pytest.mark.parametrize("program", [
    appended_then_scaled, in_a_branch, counted, appended, nested_loops, while_it_is_small,
    array_of_a_branch, best_pair, longer_list], ids=lambda p: p.__name__)
def test_new_items_are_variables(program: Callable[..., Any]) -> None:
    """The side that was not taken, and trials of the loop, were counted as well."""
    jitted, mine, pythons = fusec.jit(program), State(), State()
    for x in (np.array([3.0, -1.0, 2.0, 1.0]), np.array([0.5, -4.0, 1.0, 1.0])):
        assert jitted(mine, x) == program(pythons, x)
        np.testing.assert_equal(copy.deepcopy(vars(mine)), vars(pythons))


def test_items_of_large_ones_are_refused_there() -> None:
    """They are no variables; a change in a branch was made whichever side was taken."""
    table = dict.fromkeys(range(3000), 0.0)

    def program(y: Any) -> Any:
        if y > 0:
            table[3] = y
        return table[3]

    with pytest.raises(ConcreteValueError, match="in a branch or loop"):
        fusec.jit(program)(-1.0)


class Log:
    def __init__(self) -> None:
        self.items, self.rows, self.count = [1.0, 2.0], [[1.0, 2.0]], 0.0

    def record(self, number: Any) -> Any:
        self.items.append(number)
        return self.items[-1]


def test_refusals_of_what_outlives_the_call_say_so() -> None:
    """They ended in an IndexError of an append that had been taken back, and a KeyError."""
    def recorded(log: Log, x: Any, n: Any) -> Any:
        if x > 0:
            for _ in range(n):
                log.record(x)
            log.items[-1] += x
        return x

    def put_in_another(log: Log, x: Any, n: Any) -> Any:
        log.rows.append(log.items)
        for _ in range(n):
            if n > 1:
                log.items[0] = log.count
            log.rows[1][0] = log.rows[1][0]
        return x

    log = Log()
    with pytest.raises(ConcreteValueError, match=r"list.append in a branch or loop"):
        fusec.jit(recorded)(log, 1.0, np.int64(2))
    with pytest.raises(UnsupportedError, match=r"a list that outlives the call into.*Log\.rows"):
        fusec.jit(put_in_another)(log, 1.0, np.int64(2))
    assert vars(log) == vars(Log())
