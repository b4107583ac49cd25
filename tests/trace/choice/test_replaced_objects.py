"""An object that a branch replaces is refused, with cures that work."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fusec

X = np.array([1.0, 2.0, 3.0])


class Vector:
    def __init__(self, x: Any, y: Any) -> None:
        self.x, self.y = x, y


def replaced(x: Any) -> Any:
    v = Vector(x[0], x[1])
    if x[0] > 0:
        v = Vector(x[1], x[2])
    return v.x + 2 * v.y


def assigned(x: Any) -> Any:
    v = Vector(x[0], x[1])
    if x[0] > 0:
        v.x, v.y = x[1], x[2]
    return v.x + 2 * v.y


def made_after(x: Any) -> Any:
    chosen = x[0], x[1]
    if x[0] > 0:
        chosen = x[1], x[2]
    v = Vector(*chosen)
    return v.x + 2 * v.y


def test_the_cure_names_the_attributes_and_cures() -> None:
    with pytest.raises(TypeError, match=r"(?s)assign the attributes .*v\.x, v\.y.*tuple of them"):
        fusec.jit(replaced)(X)
    for cured in (assigned, made_after):
        compiled = fusec.jit(cured)
        for x in (X, -X):
            assert compiled(x) == replaced(x)
