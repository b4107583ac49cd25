"""The public functions for type checkers: mypy and pyright read this file (`make types`)."""

from collections.abc import Callable
from typing import Any, assert_type

import numpy as np

import fusec

Array = np.ndarray[tuple[Any, ...], np.dtype[np.float64]]


@fusec.jit
def scaled(x: Array, factor: float = 1.0) -> Array:
    return np.multiply(x, factor)


@fusec.jit(static="steps", fp="strict")
def loss(x: Array, steps: int) -> float:
    return float(steps) * float(x[0])


class Model:
    @fusec.jit
    def step(self, x: Array) -> Array:
        return x


def plain(x: Array) -> float:
    return float(x[0])


@fusec.custom_vjp
def own(x: Array) -> Array:
    return x


@fusec.vectorize
def clipped(v: float) -> float:
    return v if v > 0 else 0.0


def counted(i: Any, total: float) -> float:
    return total + 1.0


def calls(x: Array) -> None:
    assert_type(scaled(x), Array)
    assert_type(scaled(x, factor=2.0), Array)
    assert_type(loss(x, steps=3), float)
    assert_type(Model().step(x), Array)
    assert_type(Model().step.trace_count, int)
    assert_type(fusec.jit(plain)(x), float)
    assert_type(fusec.value_and_grad(plain)(x)[0], float)
    assert_type(fusec.value_and_grad(loss)(x, 3)[0], float)
    assert_type(fusec.stop_gradient(x), Array)
    assert_type(own(x), Array)
    assert_type(fusec.fori_loop(0, 3, counted, 0.0), float)
    unary: Callable[[Array], float] = fusec.jit(plain)
    for f in (fusec.grad(plain), fusec.hessian(plain), clipped, unary):
        f(x)


def misuses(x: Array) -> None:
    scaled(x, factors=2.0)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    loss("x", 1)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    Model().step()  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    fusec.grad(plain)(x, 1)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    fusec.jit(plain, fp="exact")  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue, reportArgumentType]
    fusec.jut  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]


def catching() -> None:
    try:
        pass
    except (fusec.FusecValueError, fusec.UnsupportedError) as error:
        assert_type(str(error), str)
    assert issubclass(fusec.UnrolledWarning, UserWarning)
