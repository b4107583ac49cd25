"""Reads of the user's code that Python and its library call by themselves: compared before each
call, as the program's own reads are.
"""

from __future__ import annotations

import bisect
import functools
import operator
import weakref
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import fusec

K = 1.0


class Scaled:
    def __init__(self, s: Any, v: float) -> None:
        self.s, self.v = s, v

    def __lt__(self, other: Any) -> bool:
        return bool(self.v * self.s.k < other.v * other.s.k)

    def __str__(self) -> str:
        return "a" * int(abs(self.s.k))


W = np.ones(2)


def _in_order(s, x):
    return x * sorted([Scaled(s, 2.0), Scaled(s, 1.0)])[0].v


def _doubled(x, k):
    return x * k


READ: dict[str, Callable[[Any, Any], Any]] = {
    "a closure's attribute": lambda s, x: x * bisect.bisect([1, 2, 3], 5, key=lambda v: v * s.k),
    "__lt__": _in_order,
    "__str__": lambda s, x: x * len(f"{s.scaled}"),
    "a list": lambda s, x: x * bisect.bisect([1, 2, 3], 5, key=lambda v: v * s.list[0]),
    "an array": lambda s, x: x * bisect.bisect([1, 2, 3], 5, key=lambda v: v * s.array[0]),
    "a global array": lambda s, x: x * bisect.bisect([1, 2, 3], 5, key=lambda v: v * W[0]),
    "eval": lambda s, x: x * eval("s.k", {"s": s}),
    "eval of a global": lambda s, x: eval("x * K"),
    "eval in a dict": lambda s, x: x * eval("k + 1", s.dict),
    "globals()": lambda s, x: x * globals()["K"],
    "a partial's keywords": lambda s, x: s.partial(x),
    "a partial's arguments": lambda s, x: x * s.getter(0),
    "a WeakKeyDictionary": lambda s, x: x * s.by_key[s.scaled] * s.by_key.get(s.scaled),
    "a WeakValueDictionary": lambda s, x: x * sum(v.v for v in s.by_value.values()),
    "a WeakSet": lambda s, x: x * len(s.weak),
    "a weak reference": lambda s, x: x * (2 if s.reference() is None else 3),
    "an object that is let go": lambda s, x: x * (2 if s.object is None else 3),
}


def _changed(s: Any) -> None:
    global K
    s.k, K = -s.k - 1, K + 1
    s.list[0] += 1
    s.array[0] += 1
    W[0] += 1
    s.dict["k"] += 1
    s.partial.keywords["k"] += 1
    s.by_key[s.scaled] += 1
    s.more.append(Scaled(s, s.k))
    s.by_value["a"] = s.more[-1]
    s.weak.add(s.more[-1])
    s.object, s.held = None, None


@pytest.mark.parametrize("name", READ)
def test_what_is_not_compiled_reads(name):
    s = SimpleNamespace(k=1.0, list=[1.0], array=np.ones(2), dict={"k": 1.0}, more=[])
    s.scaled, s.object, s.held = Scaled(s, 1.0), Scaled(s, 0.0), Scaled(s, 0.0)
    s.getter = functools.partial(operator.getitem, s.list)
    s.partial, s.reference = functools.partial(_doubled, k=2.0), weakref.ref(s.held)
    s.by_key, s.by_value = weakref.WeakKeyDictionary({s.scaled: 2}), weakref.WeakValueDictionary()
    s.by_value["a"], s.weak = s.scaled, weakref.WeakSet([s.scaled])
    f = fusec.jit(lambda x: READ[name](s, x))
    for _ in range(4):
        assert f(np.arange(3.0)).tolist() == READ[name](s, np.arange(3.0)).tolist()
        _changed(s)
    assert f.trace_count >= 2
