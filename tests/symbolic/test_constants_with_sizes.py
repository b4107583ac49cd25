"""Arrays of constants that sizes change, where Python takes a value: the trace is for that size."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fusec

SIZES = (5, 8, 13, 8, 21, 34, 5)
OUTSIDE = np.array(2)


def in_a_while(x: Any) -> Any:
    k, turns = np.zeros(2), 0
    k[0] = len(x)
    while k[0] > 3:
        k[0] -= 3
        turns += 1
    return x * turns


def in_a_range(x: Any) -> Any:
    total = x[0] * 0
    for i in range((np.ones(2, dtype=int) * len(x))[0]):
        total = total + x[i] * i
    return total


def matched(x: Any) -> Any:
    match int(counts(x)[0]):
        case 5 | 13:
            return x
        case 8:
            return -x
    return x * 2


def counts(x: Any) -> Any:
    return np.full(3, 1) * len(x)


FORMS: dict[str, Callable[[Any], Any]] = {
    "test": lambda x: x if np.ones(3).sum() * len(x) > 30 else -x,
    "while": in_a_while,
    "range": in_a_range,
    "match": matched,
    "shape": lambda x: np.zeros(counts(x)[:2]) + len(x),
    "key": lambda x: x * {5: 1.0, 8: 2.0}.get(int(counts(x)[0]), 3.0),
    "index of a tuple": lambda x: x * (1, 2, 3, 4, 5, 6, 7)[counts(x)[0] // 5],
    "text": lambda x: x * len(str(counts(x)[0])) * len(f"{counts(x)[1]}"),
    "digits": lambda x: np.round(x * 1.234567, counts(x)[0] // 5),
    "axis": lambda x: np.stack([x, x]).sum(axis=int(counts(x)[0] > 10)),
    "truth": lambda x: (x * bool(counts(x)[0] - 8), x * (not (counts(x)[0] - 8))),
    "membership": lambda x: (x * (counts(x)[0] in [8, 21]), x * (8 in counts(x))),
    "step": lambda x: x[::counts(x)[0] // 4],
    "shift": lambda x: (np.roll(x, counts(x)[0] - 6), np.tile(x, counts(x)[0] - 4)),
    "repeats": lambda x: (np.repeat(x[:3], counts(x)), np.repeat(x, counts(x)[:1])),
    "pieces": lambda x: np.array_split(x, OUTSIDE),
    "list": lambda x: [counts(x).tolist(), (np.ones(2) * len(x)).item(0)],
    "not taken": lambda x: x[:3] * counts(x) + np.cumsum(counts(x)),
}


def check_same(got: Any, want: Any) -> None:
    if isinstance(want, (list, tuple)):
        for a, b in zip(got, want, strict=True):
            check_same(a, b)
    else:
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("function", FORMS.values(), ids=list(FORMS))
def test_every_size_has_its_own_value(function: Callable[[Any], Any]) -> None:
    jitted = fusec.jit(function)
    for n in SIZES:
        check_same(jitted(np.arange(1.0, n + 1)), function(np.arange(1.0, n + 1)))


def test_what_nobody_takes_limits_nothing() -> None:
    jitted = fusec.jit(FORMS["not taken"])
    for n in SIZES:
        jitted(np.ones(n))
    assert jitted.trace_count == 1
