"""Lists that outlive the call and that the program appends to where data decides."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fusec

X = np.array([0.6, 0.3, 0.2, 0.1])
State = Any


class Holder:
    def __init__(self) -> None:
        self.h: list[Any] = []
        self.events: list[Any] = []
        self.w = np.zeros(4)
        self.last = 0.0


def in_a_branch(o: State, x: Any) -> Any:
    if x[0] > 0.5:
        o.h.append(x[1])
    return x.max()


def after_an_early_return(o: State, x: Any) -> Any:
    if x[0] < 0:
        return -1.0
    o.h.append(float(x[1]))
    if x[0] > 1:
        return 1.0
    o.h.append(float(x[0]))
    return 0.0


def in_both_sides(o: State, x: Any) -> None:
    o.h.append("call")
    if x[0] > 0.5:
        o.h.append(("high", x[0]))
    else:
        o.h.append(("low", x[1], x[0]))
        o.events.append(None)
    o.h.append(x[3])


def in_branches_within_branches(o: State, x: Any) -> None:
    if x[0] > 0:
        o.h.append({"step": 1, "x": x})
        if x[0] > 1:
            o.h.append({"step": 2, "x": x * 2, "part": x[1:]})
        elif x[0] > 0.5:
            o.events.append(x[0])
        o.h.append(len("end"))
    o.last = x[0]


def in_a_short_loop(o: State, x: Any) -> None:
    for i, v in enumerate(x):
        if v > 0.25:
            o.events.append((i, v))


def extended(o: State, x: Any) -> None:
    if x[0] > 0.5:
        o.h.extend([x[0], x[1]])
        o.h.extend(v * 2 for v in (x[2], x[3]))


def arrays_themselves(o: State, x: Any) -> None:
    new = x * 2
    if x[0] > 0.5:
        o.h.append(o.w)
        o.h.append(new)
    elif x[0] > 0:
        o.h.append(new + 1)
    o.w[1] += x[1]


def in_a_helper(o: State, x: Any) -> Any:
    def log(what: str, value: Any) -> None:
        if value > 0.5:
            o.events.append((what, value))

    log("first", x[0])
    log("last", x[-1] * 3)
    return x[0]


def with_values_of_branches(o: State, x: Any) -> None:
    best, at = None, -1
    for i in range(4):
        if best is None or x[i] > best:
            best, at = x[i], i
    if best is not None and best > 0.25:
        o.h.append((at, best))


PROGRAMS = [
    in_a_branch, after_an_early_return, in_both_sides, in_branches_within_branches,
    in_a_short_loop, extended, arrays_themselves, in_a_helper, with_values_of_branches]


@pytest.mark.parametrize("program", PROGRAMS)
def test_as_in_python(program: Callable[..., Any]) -> None:
    jitted = fusec.jit(program)
    states = [Holder(), Holder()]
    for x in (X, -X, X * 2, X, X[::-1].copy(), X * 0.1):
        want, got = program(states[0], x), jitted(states[1], x)
        assert repr(got) == repr(want)
        assert repr(vars(states[1])) == repr(vars(states[0]))
        assert whose(states[1]) == whose(states[0])
    assert len(jitted.traces) == 1


def whose(o: State) -> list[bool]:
    return [item is o.w for item in o.h]


def test_a_list_that_is_read_too_is_refused() -> None:
    @fusec.jit
    def program(o: State, x: Any) -> Any:
        if x[0] > 0.5:
            o.h.append(x[1])
        return len(o.h)

    with pytest.raises(TypeError, match="in a branch or loop that data decides"):
        program(Holder(), X)


def test_in_a_loop_of_the_graph_it_is_refused() -> None:
    @fusec.jit
    def program(o: State, x: Any) -> None:
        i = 0
        while x[i] > 0.15:
            o.h.append(x[i])
            i += 1

    o = Holder()
    with pytest.raises(TypeError, match="in a branch or loop that data decides"):
        program(o, X)
    assert o.h == []


def test_what_was_appended_before_an_exception_stays() -> None:
    @fusec.jit
    def program(o: State, x: Any) -> None:
        if x[0] > 0.5:
            o.h.append(x[1])
        if x[1] > 0.5:
            raise ValueError("too large")

    o = Holder()
    program(o, X)
    with pytest.raises(ValueError, match="too large"):
        program(o, X * 2)
    assert o.h == [0.3, 0.6]
