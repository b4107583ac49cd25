"""An argument that is written and differentiated by, and has another name too."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fusec
from fusec.errors import UnsupportedError


def written(x: Any, y: Any) -> Any:
    x[0] = 5.0
    return np.sum(x * y)


def written_in_a_loop(x: Any, y: Any) -> Any:
    for i in range(1, x.shape[0]):
        x[i] += 0.3 * y[i - 1]
    return np.sum(x ** 2 + y)


def start() -> np.ndarray:
    return np.array([0.1, 0.5, 0.9, 1.3])


PAIRS = {
    "same": lambda v: (v, v), "reversed": lambda v: (v, v[::-1]),
    "shifted": lambda v: (v[1:], v[:-1]), "strided": lambda v: (v[::2], v[:2]),
}


@pytest.mark.parametrize("function", [written, written_in_a_loop])
@pytest.mark.parametrize("pair", PAIRS)
def test_reading_it_by_the_other_name_is_refused(function: Any, pair: str) -> None:
    v = start()
    for gradient in (fusec.value_and_grad(function), fusec.grad(lambda y, x: function(x, y), 1)):
        args = PAIRS[pair](v)
        with pytest.raises(UnsupportedError, match=r"reading argument . by another name"):
            gradient(*(args if gradient.__name__ != "grad_<lambda>" else args[::-1]))
    np.testing.assert_array_equal(v, start())


def test_in_a_list_and_in_a_compiled_function() -> None:
    v = start()
    with pytest.raises(UnsupportedError, match=r"reading argument 0\[0\] by another name"):
        fusec.grad(lambda xs, y: written(xs[0], y))([v], v)
    with pytest.raises(UnsupportedError, match="pass a copy for one of the two names"):
        fusec.jit(lambda p: fusec.grad(written)(p, p))(v)


def test_a_view_that_was_read_before() -> None:
    def within(p: Any) -> Any:
        return p[::-1].sum(), fusec.grad(written)(p, p[::-1])

    with pytest.raises(UnsupportedError, match="by another name"):
        fusec.jit(within)(start())


def own(x: Any) -> Any:
    x[0] = 5.0
    return (x * x[::-1]).sum()


def test_other_names_that_the_function_does_not_read() -> None:
    def within(p: Any) -> Any:
        value, gradient = fusec.value_and_grad(own)(p[1:])
        return value, gradient, p * 1

    x = start()
    value, gradient, after = fusec.jit(within)(x)
    np.testing.assert_allclose(gradient, [0, 1.8, 10])
    np.testing.assert_array_equal(after, [0.1, 5, 0.9, 1.3])
    np.testing.assert_allclose(value, 2 * 5 * 1.3 + 0.9 ** 2)


def test_names_of_memory_that_is_not_written() -> None:
    x = start()
    np.testing.assert_allclose(fusec.grad(lambda x, y: (x * y).sum())(x, x), x)
    np.testing.assert_allclose(fusec.grad(written)(x, start()), [0, 0.5, 0.9, 1.3])
