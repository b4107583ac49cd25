"""Defaults of parameters that hold lists and dicts: their items at the call count."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fusec

CASES: dict[str, tuple[Any, Callable[..., Any], Callable[[Any], Any]]] = {
    "item": ([1.0, 2.0], lambda x, w: x * w[0], lambda w: w.__setitem__(0, 5.0)),
    "length": ([1.0], lambda x, w: x * len(w), lambda w: w.append(2.0)),
    "empty": ([], lambda x, w: x * len(w), lambda w: w.append(2.0)),
    "int": ([2, 3], lambda x, w: x * w[0], lambda w: w.__setitem__(0, 5)),
    "flag": ([True], lambda x, w: x if w[0] else -x, lambda w: w.__setitem__(0, False)),
    "value of a dict": ({"a": 1.0}, lambda x, w: x * w["a"], lambda w: w.update(a=3.0)),
    "key of a dict": ({"a": 1.0}, lambda x, w: x * len(w), lambda w: w.update(b=3.0)),
    "list in a tuple": (([1.0], 2.0), lambda x, w: x * w[0][0], lambda w: w[0].reverse() or
                        w[0].__setitem__(0, 7.0)),
    "array in a list": ([np.ones(1)], lambda x, w: x * w[0], lambda w: w[0].fill(4.0)),
    "other array in a list": ([np.ones(1)], lambda x, w: x * w[0],
                              lambda w: w.__setitem__(0, np.full(1, 6.0))),
    "array": (np.ones(1), lambda x, w: x * w, lambda w: w.fill(4.0)),
}


@pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
@pytest.mark.parametrize("by_name", [False, True])
def test_changed_between_calls(case: Any, by_name: bool) -> None:
    default, compute, change = case

    def program(x: Any, w: Any = default) -> Any:
        return compute(x, w)

    def with_name(x: Any, *, w: Any = default) -> Any:
        return compute(x, w)

    eager = with_name if by_name else program
    jitted = fusec.jit(eager)
    for turn in range(2):
        for n in (3, 3, 5, 8):
            np.testing.assert_array_equal(jitted(np.ones(n)), eager(np.ones(n)))
        if turn == 0 and not by_name:
            change(default)


def test_a_tuple_stays_cheap() -> None:
    jitted = fusec.jit(lambda x, shape=(2, 3): x.reshape(shape))
    assert jitted(np.ones(6)).shape == (2, 3)
    assert jitted(np.ones(6)).shape == (2, 3)
    assert jitted.trace_count == 1
