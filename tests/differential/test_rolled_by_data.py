"""``np.roll`` by shifts of the run: numbers, several numbers, and arrays of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from harness import check

import fusec

A = np.arange(12.0).reshape(3, 4)
PROGRAMS: dict[str, Any] = {
    "array for axes": lambda x, s: np.roll(x, s, axis=(0, 1)),
    "array for one axis": lambda x, s: np.roll(x, s, axis=1),
    "array": lambda x, s: np.roll(x, s),
    "one element": lambda x, s: np.roll(x, s[:1]),
    "numbers": lambda x, s: np.roll(x, (s[0], s[1]), axis=(1, 0)),
    "number and constant": lambda x, s: np.roll(x, (2, s[1]), axis=(-1, 0)),
    "number for axes": lambda x, s: np.roll(x, s[0], axis=(0, 1)),
    "the same axis": lambda x, s: np.roll(x, s, axis=(1, 1)),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_roll(name: str) -> None:
    for shifts in ([1, 2], [-5, 100], [0, -1]):
        check(PROGRAMS[name], A, np.array(shifts))


def test_other_shifts_are_refused() -> None:
    with pytest.raises(fusec.UnsupportedError, match=r"(?s)np\.roll by a shift.*convert the shift"):
        fusec.jit(PROGRAMS["array"])(A, np.array([1.0, 2.0]))
