"""Functions that the standard library makes of the user's: their effects happen at each call."""

from __future__ import annotations

import contextlib
import functools
from typing import Any

import numpy as np
import pytest

import fusec


class State:
    def __init__(self) -> None:
        self.entered: list[Any] = []
        self.total: Any = 0.0
        self.depth = 0


state = State()


@contextlib.contextmanager
def entered(k):
    state.entered.append(k)
    state.depth += 1
    try:
        yield k * 2
    except KeyError:
        state.entered.append("missing")
    finally:
        state.depth -= 1
        state.total = state.total + k


class Timer(contextlib.ContextDecorator):
    def __enter__(self):
        state.depth += 1
        return self

    def __exit__(self, *_):
        state.entered.append(state.depth)
        return False


@functools.singledispatch
def scaled(x):
    state.entered.append("other")
    return 1


@scaled.register
def _(x: np.ndarray):
    state.total = state.total + x.sum()
    return x * 2


def in_a_block(x, key):
    with entered(x[0]) as twice:
        x = x * twice * state.depth + {"a": 1}[key]
    return x + 1


def in_a_loop(x, key):
    for i in range(2):
        with entered(i) as twice:
            if x[0] > 0:
                x = x * twice - 1
    return x


@entered(3)
def decorated(x, key):
    return x * state.depth


@Timer()
def timed(x, key):
    return x * state.depth


def dispatched(x, key):
    return scaled(x) + scaled(key)


def _told(fn: Any) -> list[Any]:
    state.__init__()  # type: ignore[misc]
    found = []
    for i, key in enumerate("aabb"):
        result = fn(np.arange(3.0) + i, key)
        assert type(state.total) in (float, np.float64), type(state.total)
        assert all(type(x) in (float, np.float64, int, str) for x in state.entered)
        found.append([np.asarray(result).tolist(), list(state.entered), state.total, state.depth])
    return found


@pytest.mark.parametrize("fn", [in_a_block, in_a_loop, decorated, timed, dispatched])
def test_effects_of_what_python_wraps_happen_at_each_call(fn: Any) -> None:
    assert _told(fusec.jit(fn, fp="strict")) == _told(fn)
