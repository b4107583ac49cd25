"""``as_strided`` of windows of an array, and of every so many of its elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided

import fusec

X, A = np.arange(12.0), np.arange(30.0).reshape(5, 6)


def written_below(x: Any, a: Any) -> Any:
    y = x.copy()
    windows = as_strided(y, (3, 2), (8, 8))
    y[1] = 50.0
    return windows * 1


def written_through(x: Any, a: Any) -> Any:
    y = x.copy()
    as_strided(y, (3,), (16,))[0] = 5.0
    return y


FORMS: dict[str, Callable[[Any, Any], Any]] = {
    "windows": lambda x, a: as_strided(x, (len(x) - 2, 3), x.strides * 2).sum(axis=1),
    "frames": lambda x, a: as_strided(x[1:], (2, 2), (16, 8)),
    "every third": lambda x, a: as_strided(x, (4,), (24,)),
    "of every second": lambda x, a: as_strided(x[::2], (3, 2), (16, 16)),
    "patches": lambda x, a: as_strided(a, (3, 4, 3, 3), a.strides * 2).sum(axis=(2, 3)),
    "apart": lambda x, a: as_strided(
        a, (2, 2, 2, 2), (a.strides[0] * 2, a.strides[1] * 3, *a.strides)),
    "transposed": lambda x, a: as_strided(a.T, (2, 3), a.T.strides),
    "written below": written_below,
    "written through": written_through,
}


@pytest.mark.parametrize("name", FORMS)
def test_windows(name: str) -> None:
    np.testing.assert_array_equal(fusec.jit(FORMS[name])(X, A), FORMS[name](X, A))


@pytest.mark.parametrize("form", [
    lambda x: as_strided(x, (3, 12), (0, 8)), lambda x: as_strided(x, (13, 1), (8, 8)),
    lambda x: as_strided(x[::-1], (3,), (8,)), lambda x: as_strided(x, (3,), (4,))])
def test_what_is_no_window_is_refused(form: Callable[[Any], Any]) -> None:
    with pytest.raises(fusec.UnsupportedError, match="no window of its array"):
        fusec.jit(form)(X)


def test_negative_sizes_are_refused_in_numpys_words() -> None:
    with pytest.raises(ValueError, match="negative dimensions are not allowed"):
        fusec.jit(lambda x: as_strided(x, (-1,), (8,)))(X)


def test_windows_are_not_written_to() -> None:
    def function(x: Any) -> Any:
        y = x.copy()
        as_strided(y, (3, 2), (8, 8))[0, 0] = 5.0
        return y

    with pytest.raises(ValueError, match="read-only"):
        fusec.jit(function)(X)
