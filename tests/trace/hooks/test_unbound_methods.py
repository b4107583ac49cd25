"""``np.ndarray.sum(x)``: methods of the class, given the array."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fusec

PROGRAMS: dict[str, Callable[[np.ndarray], Any]] = {
    "reshape": lambda x: np.ndarray.reshape(x, (2, -1)),
    "sum": lambda x: np.ndarray.sum(x, keepdims=True),
    "astype": lambda x: np.ndarray.astype(x, np.float32),
    "operator": lambda x: np.ndarray.__add__(x, 1) + np.ndarray.__getitem__(x, 0),
    "written": lambda x: np.ndarray.fill(x, 2.5) or x,
    "map": lambda x: list(map(np.ndarray.sum, x.reshape(2, -1))),
    "comprehension": lambda x: np.array([np.ndarray.max(row) for row in np.outer(x, x)]),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_methods_of_the_class_are_those_of_the_array(name: str) -> None:
    for n in (6, 20):
        got = fusec.jit(PROGRAMS[name])(np.arange(float(n)))
        expected = PROGRAMS[name](np.arange(float(n)))
        assert type(got) is type(expected) and np.array(got).dtype == np.array(expected).dtype
        np.testing.assert_array_equal(got, expected)


def test_a_number_is_no_array() -> None:
    with pytest.raises(TypeError, match="descriptor 'sum'"):
        fusec.jit(lambda x: np.ndarray.sum(x.max()))(np.ones(3))
