"""An array that a loop, if it runs, leaves with another dtype: it has that one before, too."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import fusec
from fusec.errors import DtypeWarning


def of_data(x: Any) -> Any:
    y, k = np.arange(3), 0
    while k < x[0]:
        y = y * 0.5
        k += 1
    return y


def of_an_argument(x: Any, y: Any) -> Any:
    k = 0
    while k < x[0]:
        y = y + x
        k += 1
    return y


def certain(x: Any) -> Any:
    y = np.arange(3)
    for i in range(40):
        y = y + x[i % 3]
    return y


def unchanged(x: Any) -> Any:
    y, k = np.arange(3), 0
    while k < x[0]:
        y = y * 2
        k += 1
    return y


def line_of(function: Any, offset: int) -> str:
    return f"(line {function.__code__.co_firstlineno + offset})"


def test_it_is_said_once() -> None:
    jitted = fusec.jit(of_data)
    with pytest.warns(DtypeWarning, match=r"'y' is an array of int64") as found:
        assert jitted(np.zeros(3)).dtype == np.float64  # NumPy's is int64
    message = str(found[0].message)
    assert line_of(of_data, 2) in message and line_of(of_data, 3) in message
    assert "y = y.astype(np.float64)" in message
    assert [w.lineno for w in found] == [of_data.__code__.co_firstlineno + 2]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.array_equal(jitted(np.ones(3)), of_data(np.ones(3)))
        fusec.jit(of_data)(np.ones(3))


def test_of_arguments() -> None:
    jitted = fusec.jit(of_an_argument)
    with pytest.warns(DtypeWarning, match="int32"):
        jitted(np.ones(3), np.arange(3, dtype=np.int32))


@pytest.mark.parametrize("program", [certain, unchanged])
def test_where_numpy_gives_the_same_nothing_is_said(program: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for x in (np.zeros(3), np.ones(3)):
            got, want = fusec.jit(program)(x), program(x)
            assert got.dtype == want.dtype
            assert np.array_equal(got, want)
