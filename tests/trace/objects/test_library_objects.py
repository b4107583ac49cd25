"""Objects that library code makes in the call: their contents are of the call, new at each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.polynomial import Chebyshev, Polynomial
from scipy import signal
from scipy.interpolate import CubicSpline

import fusec

X = np.linspace(0, 1, 6)
Y = np.sin(X)
PROGRAMS: dict[str, Callable[[np.ndarray], Any]] = {
    "method": lambda x: np.poly1d([1, 2, 3]).deriv().c * 1.5,
    "method's result": lambda x: Polynomial([1, 2, 3]).integ().coef,
    "class method": lambda x: Polynomial.fit(X, Y, 2).convert().coef,
    "of another class": lambda x: Polynomial([1, 2, 3]).convert(kind=Chebyshev).coef,
    "operator": lambda x: (Polynomial([1, 2, 3]) + Polynomial([1, 2])).coef,
    "with an argument": lambda x: Polynomial([1, 2, 3]).deriv().coef * x[:2],
    "constructor": lambda x: CubicSpline(X, Y).c[0],
    "of a constructor": lambda x: CubicSpline(X, Y).derivative().c + x[0],
    "two": lambda x: signal.TransferFunction([1.0], [1.0, 2.0]).to_zpk().poles,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_arrays_of_objects_that_a_library_made(name: str) -> None:
    jitted, x = fusec.jit(PROGRAMS[name]), np.arange(3.0)
    for _ in range(3):
        result = jitted(x)
        np.testing.assert_allclose(result, PROGRAMS[name](x), rtol=1e-12)
        assert type(result) is np.ndarray
        result[...] = 7  # the next call gives another one
    assert jitted.trace_count == 1
