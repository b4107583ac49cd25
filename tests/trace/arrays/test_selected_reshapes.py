"""Elements selected by a mask, reshaped to known sizes: right, or NumPy's error at run time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fusec


@fusec.jit
def table(x: Any) -> Any:
    positive = x[x > 0]
    return positive.reshape(2, 3) * 2, np.reshape(positive, (6,)), positive.reshape((3, 1, 2))


@fusec.jit
def without_a_column(x: Any) -> Any:
    """As seams are carved out of a picture."""
    h, w = x.shape
    kept = np.ones((h, w), bool)
    kept[np.arange(h), np.argmin(x, axis=1)] = False
    return x[kept].reshape(h, w - 1)


@fusec.jit
def rows(x: Any) -> Any:
    return x[x[:, 0] > 0].reshape(3, 2, 2)


def test_as_many_as_asked_for() -> None:
    for x in ([1., -1, 2, 3, 4, -4, 5, 6], [6., 5, 4, 3, 2, 1], [-1., 1, 2, -1, 3, 4, 5, 6, -2]):
        got, want = table(np.array(x)), table.python_function(np.array(x))
        for a, b in zip(got, want, strict=True):
            assert a.shape == b.shape and a.flags.c_contiguous
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("x", [[1., 2, 3], [], [-1.], [1., 2, 3, 4, 5, 6, 7]])
def test_others_raise(x: list[float]) -> None:
    with pytest.raises(ValueError, match=r"cannot reshape array .*into shape \(2, *3\)"):
        table(np.array(x))


def test_sizes_of_arguments() -> None:
    for shape in ((4, 6), (5, 7), (6, 6), (3, 8), (1, 2)):
        x = np.random.default_rng(4).normal(size=shape)
        np.testing.assert_array_equal(
            without_a_column(x), without_a_column.python_function(x))
    assert without_a_column.trace_count <= 3


def test_rows_of_a_table() -> None:
    x = np.abs(np.random.default_rng(5).normal(size=(5, 4)))
    x[[1, 3], 0] = -1
    np.testing.assert_array_equal(rows(x), rows.python_function(x))
    x[2, 0] = -1
    with pytest.raises(ValueError, match="cannot reshape array"):
        rows(x)


@fusec.jit
def stored(x: Any) -> Any:
    h, w = x.shape
    kept = np.ones((h, w), bool)
    kept[:, 1] = False
    y = np.zeros(h * (w - 1))
    y[:] = x[kept]
    return y


def test_stored_into_an_array_of_sizes_of_arguments() -> None:
    for shape in ((3, 4), (5, 6), (7, 4)):
        x = np.random.default_rng(6).normal(size=shape)
        np.testing.assert_array_equal(stored(x), stored.python_function(x))
