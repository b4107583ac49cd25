"""Lists that a loop appends to and the program reads by another way than their variable."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

import fusec

V = np.arange(1.0, 4.0)
STEPS = 18  # more than are written out


class Log:
    items: list[Any]

    def last(self) -> Any:
        return self.items[-1]


LOG = Log()


def last_of(items: list[Any]) -> Any:
    return items[-1]


def last_of_log() -> Any:
    return LOG.items[-1]


def by_closure(v):
    items = [v]

    def last():
        return items[-1]

    for _ in range(STEPS):
        items.append(last() + 1)
    return items[-1]


def by_length_in_a_closure(v):
    items = []

    def size():
        return len(items)

    for _ in range(STEPS):
        items.append(v * size())
    return np.array(items)


def by_default_value(v):
    items = [v]
    last = lambda i=-1, items=items: items[i]  # noqa: E731
    for _ in range(STEPS):
        items.append(last() + 1)
    return items[-1]


def by_method(v):
    items, log = [v], Log()
    log.items = items
    for _ in range(STEPS):
        items.append(log.last() + 1)
    return items[-1]


def by_partial(v):
    items = [v]
    last = partial(last_of, items)
    for _ in range(STEPS):
        items.append(last() + 1)
    return items[-1]


def by_containers(v):
    items = [v]
    held = {"a": {"b": (items,)}}
    for _ in range(STEPS):
        items.append(held["a"]["b"][0][-1] + 1)
    return items[-1]


def by_class(v):
    listed = [v]

    class Held:
        items = listed

    for _ in range(STEPS):
        listed.append(Held.items[-1] + 1)
    return listed[-1]


def by_object_from_outside(v):
    items = LOG.items = [v]
    for _ in range(STEPS):
        items.append(last_of_log() + 1)
    return items[-1]


def past_its_length_before(v):
    items = [v]
    w = v * 1
    for _ in range(STEPS):
        w = w + 1
        items.append(w)
        w = w - items[-2]
    return w


@pytest.mark.parametrize("program", [
    by_closure, by_length_in_a_closure, by_default_value, by_method, by_partial, by_containers,
    by_object_from_outside, past_its_length_before])
def test_what_is_appended_is_seen(program: Any) -> None:
    np.testing.assert_array_equal(fusec.jit(program)(V), program(V))


def test_a_list_in_a_class_is_refused() -> None:
    with pytest.raises(fusec.FusecError):
        fusec.jit(by_class)(V)


def not_seen(v):
    items = []

    def shift(x):
        return x + v

    for _ in range(STEPS):
        items.append(shift(v))
        v = v * 0.5
    return np.array(items)


def test_functions_that_do_not_hold_the_list_leave_it_to_the_loop() -> None:
    jitted = fusec.jit(not_seen)
    np.testing.assert_array_equal(jitted(V), not_seen(V))
    assert "is unrolled" not in str(fusec.explain(jitted, V))
