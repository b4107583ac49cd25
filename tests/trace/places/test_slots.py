"""Attributes in slots: read, guarded and assigned as those in a ``__dict__`` are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fusec


class Slots:
    __slots__ = ("array", "items", "n", "other")

    def __init__(self) -> None:
        self.n, self.array, self.items = 1, np.ones(2), [1.0]


class Both(Slots):
    def __init__(self) -> None:
        super().__init__()
        self.extra = 3


def assigned(s, x):
    s.n += 1
    s.array = s.array * x + s.n
    s.items.append(float(s.n))
    if x[0] > 0:
        s.n = s.n * 2
    s.other = 5
    return x * s.n + s.array + s.other


def replaced(s, x):
    s.items = [s.items[0] + 1]
    s.n = s.n + len(s.items)
    return x * s.items[0]


def _with(name: str, value: Any) -> Any:
    def change(s: Any) -> None:
        setattr(s, name, value(getattr(s, name)))

    return change


CASES = {
    "a number": (lambda s, x: x * s.n, _with("n", lambda n: n + 1)),
    "an array": (lambda s, x: x * s.array, _with("array", lambda a: a + 1)),
    "a list": (lambda s, x: x * s.items[0], _with("items", lambda items: [items[0] + 1])),
    "an item": (lambda s, x: x * s.items[0], lambda s: s.items.append(s.items.pop() + 1)),
    "assigned": (assigned, _with("n", lambda n: n)),
    "replaced": (replaced, _with("n", lambda n: n + 2)),
}


@pytest.mark.parametrize("kind", [Slots, Both])
@pytest.mark.parametrize("name", CASES)
def test_attributes_in_slots(name, kind):
    program, change = CASES[name]
    s, t = kind(), kind()
    f = fusec.jit(lambda x: program(s, x))
    for _ in range(4):
        assert f(np.ones(2)).tolist() == program(t, np.ones(2)).tolist()
        assert (s.n, s.array.tolist(), s.items) == (t.n, t.array.tolist(), t.items)
        change(s)
        change(t)


def test_an_object_in_a_slot_is_guarded():
    s = Slots()
    s.other = Both()
    f = fusec.jit(lambda x: x * s.other.extra)
    assert f(np.ones(2)).tolist() == [3, 3]
    s.other = Both()
    s.other.extra = 4
    assert f(np.ones(2)).tolist() == [4, 4]
