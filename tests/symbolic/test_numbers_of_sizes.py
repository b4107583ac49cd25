"""Sizes given as numbers, ``np.tile(x, len(x))``: one trace serves every size."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fusec

LENGTHS = (8, 12, 18, 25)
OF_ITS_LENGTH: dict[str, Callable[[Any], Any]] = {
    "tile": lambda x: np.tile(x, len(x)),
    "tile rows": lambda x: np.tile(x, (2, len(x) // 2)),
    "repeat": lambda x: np.repeat(x, len(x)),
    "diag": lambda x: np.diag(x, len(x) // 2),
    "diagflat": lambda x: np.diagflat(x, -len(x)),
}


@pytest.mark.parametrize("name", OF_ITS_LENGTH)
def test_one_trace(name: str) -> None:
    f = OF_ITS_LENGTH[name]
    function = fusec.jit(f)
    for n in LENGTHS:
        x = np.arange(float(n))
        np.testing.assert_array_equal(function(x), f(x))
    assert function.trace_count == 1, name


class OneIndex:
    def __index__(self) -> int:
        return 2


@pytest.mark.parametrize(("f", "words"), [
    (lambda x: np.tile(x, OneIndex()), "for *: 'int' and 'OneIndex'"),
    (lambda x: np.diag(x, OneIndex()), "bad operand type for abs(): 'OneIndex'")])
def test_objects_that_are_no_numbers(f: Callable[[Any], Any], words: str) -> None:
    """NumPy computes with them."""
    for function in (f, fusec.jit(f)):
        with pytest.raises(TypeError) as raised:
            function(np.arange(3.0))
        assert words in str(raised.value)
