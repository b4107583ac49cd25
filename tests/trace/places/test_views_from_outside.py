"""Attributes and outer variables whose arrays share memory, now or at a later call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fusec
from fusec.errors import UnsupportedError


class State:
    """A buffer and views of it, as simulations keep them."""

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        self.buffer = np.arange(12.0)
        self.table = self.buffer.reshape(3, 4)
        self.left, self.right = self.buffer[:6], self.buffer[6:]
        self.every, self.back = self.buffer[::2], self.buffer[::-1]
        self.other = np.ones(12)


FIELD = np.arange(6.0)
INNER = FIELD[1:-1]
state = State()


def writes_the_buffer(x: Any) -> Any:
    state.buffer[2] = x
    return state.left.sum(), state.table[0]


def writes_a_view(x: Any) -> Any:
    state.table[1, 2] += x
    return state.buffer[6], state.right[0] + state.back[5]


def writes_in_a_loop(x: Any) -> Any:
    for i in range(6):
        state.left[i] = state.back[i] * x
    return state.every + 1


def halves_apart(x: Any) -> Any:
    state.left += state.right * x
    return state.right.sum()


def writes_what_may_be_rebound(x: Any) -> Any:
    state.other[1] = state.buffer.sum() + x
    return state.other + state.buffer


def writes_globals(x: Any) -> Any:
    INNER[:] = INNER + x
    return FIELD + 0


def makes_it_a_view(s: State) -> None:
    s.other = s.buffer


def makes_it_another_view(s: State) -> None:
    s.left, s.right = s.right, s.left


def replaces_the_buffer(s: State) -> None:
    s.buffer = np.arange(12.0) * 2


def replaces_all(s: State) -> None:
    s.begin()
    s.buffer += 3


PROGRAMS = (writes_the_buffer, writes_a_view, writes_in_a_loop, halves_apart,
            writes_what_may_be_rebound, writes_globals)


def outcomes(program: Callable[..., Any], change: Callable[[State], None] | None) -> list[Any]:
    global state
    state = State()
    FIELD[:] = np.arange(6.0)
    found = []
    for k in range(4):
        if k == 2 and change is not None:
            change(state)
        result = program(0.5 + k)
        leaves = result if isinstance(result, tuple) else (result,)
        held = [v for _, v in sorted(vars(state).items())]
        found.append([np.asarray(v).tolist() for v in (*leaves, *held, FIELD, INNER)])
        found.append([np.may_share_memory(a, b) for a in held for b in held])
    return found


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("change", [
    None, makes_it_a_view, makes_it_another_view, replaces_the_buffer, replaces_all,
], ids=lambda f: getattr(f, "__name__", "no_change"))
def test_views_of_one_array(
    program: Callable[..., Any], change: Callable[[State], None] | None
) -> None:
    assert outcomes(fusec.jit(program), change) == outcomes(program, change)


def test_one_trace_does() -> None:
    global state
    state = State()
    compiled = fusec.jit(writes_a_view)
    for k in range(4):
        compiled(float(k))
    assert compiled.trace_count == 1


def test_views_of_other_dtypes_are_refused() -> None:
    class Bits:
        def __init__(self) -> None:
            self.floats = np.ones(4)
            self.ints = self.floats.view("i8")

    bits = Bits()

    def program(x: Any) -> Any:
        bits.floats[0] = x
        return bits.ints + 1

    with pytest.raises(UnsupportedError, match=r"Bits\.\w+ and views of its memory"):
        fusec.jit(program)(2.0)


def reads_the_attribute_first(x: Any) -> Any:
    before = state.other[1] + x
    FIELD[5] += before
    return before


def reads_the_global_first(x: Any) -> Any:
    before = FIELD[1] + x
    state.other[5] += before
    return before


@pytest.mark.parametrize("program", [reads_the_attribute_first, reads_the_global_first])
def test_an_attribute_that_is_a_global_array_until_it_is_another(
    program: Callable[..., Any]
) -> None:
    def apart(s: State) -> None:
        s.other = s.left

    def started(run: Callable[..., Any]) -> list[Any]:
        found = []
        global state
        state, FIELD[:] = State(), np.arange(6.0)
        state.other = FIELD
        for k in range(4):
            if k == 2:
                apart(state)
            found.append([float(run(0.5 + k)), FIELD.tolist(), state.other.tolist()])
        return found

    assert started(fusec.jit(program)) == started(program)
