"""A refusal inside of a library's own code has a cure for the program."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import signal
from scipy.optimize import curve_fit

import fusec

X = np.linspace(0.1, 1, 20)


class SingularError(Exception):
    def __init__(self, column: int, value: Any) -> None:
        super().__init__(f"pivot {value:.1e} in column {column}")


class ReadableError(Exception):
    def __init__(self, column: int, value: Any) -> None:
        super().__init__(column, value)
        self.column, self.value = column, value

    def __str__(self) -> str:
        return f"pivot {self.value} in column {self.column}"


def pivot(x: Any, kind: Any) -> Any:
    for k in range(3):
        if abs(x[k]) < 1e-12:
            raise kind(k, x[k])
    return x.sum()


@pytest.mark.parametrize(("program", "name"), [
    (lambda x, fs: curve_fit(lambda t, a: a * t, X, x)[0], "curve_fit"),
    (lambda x, fs: signal.butter(4, [5 * x[0], 40], btype="band", fs=fs)[0], "butter"),
])
def test_the_cure_names_what_the_program_calls(program: Any, name: str) -> None:
    with pytest.raises(fusec.FusecError, match=rf"cure: call scipy\.\w+\.{name} before or after"):
        fusec.jit(program)(X, 100.0)


def test_an_exception_that_formats_a_value_in_its_init() -> None:
    x = np.array([1.0, 0.0, 2.0])
    with pytest.raises(fusec.ConcreteValueError, match=r"make the text in SingularError\.__str__"):
        fusec.jit(lambda x: pivot(x, SingularError))(x)
    with pytest.raises(ReadableError, match=r"pivot \{x\[k\]\} in column 1"):
        fusec.jit(lambda x: pivot(x, ReadableError))(x)  # as the cure says


def test_a_generator_is_left_out_of_the_result() -> None:
    with pytest.raises(TypeError, match="cure: leave it out of the result"):
        fusec.jit(lambda rng: (rng.normal(), rng))(np.random.default_rng(0))
