"""Dict arguments and results whose keys are equal but of other types, or in another order."""

from __future__ import annotations

from collections import OrderedDict
from enum import IntEnum

import numpy as np
import pytest

import fusec
from fusec.errors import UnsupportedError

X = np.arange(3.0)


class Colour(IntEnum):
    RED = 1


@pytest.mark.parametrize("first", [1, True, 1.0, np.int64(1), Colour.RED, (1, 2)])
@pytest.mark.parametrize("second", [1, True, 1.0, np.int64(1), Colour.RED, (True, 2)])
def test_equal_keys_of_other_types_are_other_calls(first, second):
    def scaled(d):
        return {key: value * (2 if isinstance(key, bool) else 3) for key, value in d.items()}

    fast = fusec.jit(scaled)
    for _ in range(2):
        for key in (first, second):
            got, want = fast({key: X}), scaled({key: X})
            assert [repr(k) for k in got] == [repr(k) for k in want]
            np.testing.assert_array_equal(got[key], want[key])


def test_dicts_with_numbers_as_keys_are_traced_once():
    fast = fusec.jit(lambda layers: layers[0] @ layers[1])
    for k in range(4):
        fast({0: np.eye(3) + k, 1: X})
    assert fast.trace_count == 1


def moved(d):
    d = d.copy()
    d.move_to_end("a")
    return d


def test_an_ordered_dict_that_is_moved_inside_comes_out_moved():
    given = OrderedDict(a=X, b=X + 1)
    fast = fusec.jit(moved)
    for _ in range(3):
        assert list(fast(given)) == ["b", "a"]


def test_moving_an_argument_is_refused():
    def moved_in_place(d):
        d.move_to_end("a")
        return d["b"]

    with pytest.raises(UnsupportedError, match="changing an OrderedDict that is an argument"):
        fusec.jit(moved_in_place)(OrderedDict(a=X, b=X + 1))
