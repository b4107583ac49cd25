"""A function that is called for each element of an array, and writes into that array."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fusec

USES: dict[str, Callable[[Any, Any], Any]] = {
    "vectorize": lambda g, y: np.vectorize(g, otypes=[float])(y),
    "vectorize of unknown dtype": lambda g, y: np.vectorize(g)(y),
    "vectorize of cores": lambda g, y: np.vectorize(g, signature="()->()")(y),
    "frompyfunc": lambda g, y: np.frompyfunc(g, 1, 1)(y).astype(float),
    "sorted": lambda g, y: np.array(sorted(y, key=g)),
    "map": lambda g, y: np.array(list(map(g, y[::-1]))),
    "comprehension": lambda g, y: np.array([g(v) for v in y]),
    "sum": lambda g, y: sum(map(g, y)),
    "zip": lambda g, y: np.array([g(a) + b for a, b in zip(y, y[2:], strict=False)]),
}


def writing(use: Callable[[Any, Any], Any]) -> Callable[[Any], Any]:
    def program(x: Any) -> Any:
        y = x

        def to_the_second(v: Any) -> Any:
            y[1] = v
            return v

        return use(to_the_second, y)

    return program


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("size", [5, 40])
def test_elements_are_those_that_python_reads(use: str, size: int) -> None:
    program, x = writing(USES[use]), np.linspace(3.0, 1.0, size)
    mine, numpys = x.copy(), x.copy()
    np.testing.assert_array_equal(fusec.jit(program)(mine), program(numpys))
    np.testing.assert_array_equal(mine, numpys)


@pytest.mark.parametrize("size", [5, 40])
def test_a_key_that_writes_is_refused(size: int) -> None:
    program = writing(lambda g, y: min(y, key=g))
    with pytest.raises(fusec.UnsupportedError, match="a key= that writes into the array"):
        fusec.jit(program)(np.linspace(3.0, 1.0, size))
