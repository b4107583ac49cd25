"""``a[i, mask]``: a mask over the axes that follow integers, read, written, in native loops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fusec


def copied(a: Any, mask: Any, k: Any) -> Any:
    a[0, mask] = a[k, mask]
    return a


def updated(a: Any, mask: Any, k: Any) -> Any:
    a[k, mask] += 1
    a[0, mask] *= a[k, mask]
    return a


def in_a_loop(a: Any, mask: Any, k: Any) -> Any:
    for _ in range(30):
        for i in range(3):
            a[i, mask] = a[2 - i, mask] * 0.5
    return a


PROGRAMS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "read": lambda a, mask, k: a[1, mask], "of the run": lambda a, mask, k: a[k, mask] * 2,
    "from the end": lambda a, mask, k: a[-1, mask],
    "over one axis": lambda a, mask, k: a[1, mask[:, 0]],
    "two integers": lambda a, mask, k: a[1, k, mask[0]],
    "length": lambda a, mask, k: len(a[1, mask]), "copied": copied, "updated": updated,
    "in a loop": in_a_loop,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_masks_after_integers(name: str) -> None:
    jitted, rng = fusec.jit(PROGRAMS[name]), np.random.default_rng(0)
    for shape in ((3, 4, 5), (3, 3, 1), (3, 30, 20)):
        for share in (0.5, 0, 1):
            a, mask = rng.normal(size=shape), rng.random(shape[1:]) < share
            for k in (0, np.int64(2)):
                mine, plain = a.copy(), a.copy()
                np.testing.assert_array_equal(
                    jitted(mine, mask, k), PROGRAMS[name](plain, mask, k))
                np.testing.assert_array_equal(mine, plain)


@pytest.mark.parametrize("k", [3, -4, np.int64(3)])
def test_an_integer_out_of_range(k: Any) -> None:
    for mask in (np.ones((4, 5), bool), np.zeros((4, 5), bool)):
        with pytest.raises(IndexError):
            fusec.jit(lambda a, mask: a[k, mask])(np.ones((3, 4, 5)), mask)


@pytest.mark.one_device
def test_no_python_in_the_loop() -> None:
    text = str(fusec.explain(fusec.jit(in_a_loop), np.ones((3, 4, 5)), np.ones((4, 5), bool), 0))
    assert "one native function" in text and "calls Python" not in text
