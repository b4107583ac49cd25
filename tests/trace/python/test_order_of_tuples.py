"""Tuples and lists with numbers of data are ordered as Python orders them."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fusec

FORMS: dict[str, Callable[[Any], Any]] = {
    "max of pairs": lambda x: max((v, i) for i, v in enumerate(x))[1],
    "min of a list": lambda x: min([(x[0], 1), (x[1], 0)])[1],
    "max of arguments": lambda x: max((x[0], 1), (x[1], 0)),
    "sorted": lambda x: sorted((v, i) for i, v in enumerate(x))[0][1],
    "sorted, reversed": lambda x: [i for _, i in sorted(
        ((abs(v), i) for i, v in enumerate(x)), reverse=True)],
    "nsmallest": lambda x: heapq.nsmallest(2, [(v, i) for i, v in enumerate(x)]),
    "nlargest": lambda x: heapq.nlargest(1, [(x[0], 1), (x[1], 2), (x[2], 0)]),
    "orders": lambda x: ((x[0], 1) < (x[1], 0), (x[0], x[1]) <= (x[1], x[0]),
                         (1, x[0]) > (1, x[1]), (x[0], 1) >= (x[1], 1)),
    "lists": lambda x: [x[0], 2.0] < [x[1], 3.0],
    "nested": lambda x: ((x[0], 1), 2) < ((x[1], 1), 3),
    "other lengths": lambda x: ((x[0],) < (x[0], 1), (x[0], 1) < (x[1],)),
    "key": lambda x: (max(range(3), key=lambda i: x[i]), min([3, 1, 2], key=lambda i: x[i - 1])),
    "key of tuples": lambda x: max(range(3), key=lambda i: (x[i], -i)),
    "branch": lambda x: 1.0 if (x[0], x[2]) < (x[1], x[2]) else 2.0,
}
VALUES = ([0.5, 2.0, -1.0], [2.0, 2.0, 2.0], [3.0, 1.0, 7.0])


@pytest.mark.parametrize("name", FORMS)
def test_as_python_orders_them(name: str) -> None:
    function = FORMS[name]
    compiled = fusec.jit(function)
    for values in VALUES:
        x = np.array(values)
        got, want = compiled(x), function(x)
        assert type(got) is type(want) or np.ndim(want) == 0
        assert got == want


def test_a_key_is_called_once_for_each_item_where_nothing_is_traced() -> None:
    asked = []

    def function(x: Any) -> Any:
        best = max(["a", "bbb", "cc"], key=lambda word: asked.append(word) or len(word))
        return x * len(best)

    np.testing.assert_array_equal(fusec.jit(function)(np.ones(2)), [3.0, 3.0])
    assert asked == ["a", "bbb", "cc"]


def test_nan_in_sorted_tuples_says_so() -> None:
    with pytest.raises(fusec.errors.UnsupportedError, match="NaN"):
        fusec.jit(FORMS["sorted"])(np.array([1.0, np.nan, 2.0]))


def test_arrays_in_tuples_have_no_order() -> None:
    with pytest.raises(ValueError, match="ambiguous"):
        fusec.jit(lambda x: max((x, 1), (x + 1, 2)))(np.ones(3))
