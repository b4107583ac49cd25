"""Rules of reductions, scans, shapes, indices and products, judged by differences of programs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from rule_harness import judge

import fusec

RNG = np.random.default_rng(24)
A, B = RNG.standard_normal((4, 3)), RNG.standard_normal((4, 3))
CUBE = RNG.standard_normal((2, 4, 3))
LINE = RNG.standard_normal(7)
Z, W = A + 1j * B, B - 2j * A[::-1]
ZEROS = np.array([[1.5, 0.0, -2.0, 0.5], [0.0, 3.0, 0.0, 1.0], [0.5, 2.0, 1.0, -1.0]])
AT = np.array([2, 0, 2, 1, 1])
ROWS, COLUMNS = np.array([[0, 3], [1, 0]]), np.array([2, 0])


def _put(x: Any, v: Any, at: Any) -> Any:
    y = x.copy()
    y[at] = v
    return y


def _put_pairs(x: Any, v: Any, rows: Any, columns: Any) -> Any:
    y = x.copy()
    y[rows, columns] = v
    return y * y


def _at(ufunc: np.ufunc) -> Callable[[Any, Any, Any], Any]:
    def program(x: Any, v: Any, at: Any) -> Any:
        y = x.copy()
        ufunc.at(y, at, v)
        return y

    return program


def _put_columns(x: Any, v: Any, at: Any) -> Any:
    y = x.copy()
    y[:, at] = v
    return y


PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "sum": (lambda x: (x.sum(0), x.sum((0, 2), keepdims=True), x.sum()), (CUBE,)),
    "sum of complex numbers": (lambda x: x.sum(1), (Z,)),
    "mean": (lambda x: (x.mean(0), x.mean(), x.mean((0, 1))), (CUBE,)),
    "mean of complex numbers": (lambda x: x.mean(0), (Z,)),
    "prod": (lambda x: (x.prod(0), x.prod(), x.prod((0, 2))), (CUBE,)),
    "prod with zeros": (lambda x: (x.prod(0), x.prod(1), x.prod()), (ZEROS,)),
    "prod of complex numbers": (lambda x: x.prod(0), (Z,)),
    "max": (lambda x: (x.max(0), x.max(), x.max((0, 2)), x.min(1)), (CUBE,)),
    "var": (lambda x: (x.var(0), x.var(ddof=1), x.var((0, 2))), (CUBE,)),
    "std": (lambda x: (x.std(0), x.std(ddof=1), x.std((0, 2))), (CUBE,)),
    "cumsum": (lambda x: (np.cumsum(x, 0), np.cumsum(x, 2)), (CUBE,)),
    "cumprod": (lambda x: (np.cumprod(x, 0), np.cumprod(x, 1)), (CUBE,)),
    "cumprod with zeros": (lambda x: (np.cumprod(x, 0), np.cumprod(x, 1)), (ZEROS,)),
    "cumprod of complex numbers": (lambda x: np.cumprod(x, 0), (Z,)),
    "running extrema": (lambda x: (np.maximum.accumulate(x), np.minimum.accumulate(x)), (LINE,)),
    "views": (lambda x: (
        x.T[1:] * 2, x[::-2, 1] * 2, x.reshape(2, 6) * 2, x[None] * 2, x[:, :1].squeeze(1) * 2),
              (A,)),
    "broadcast": (lambda x: np.broadcast_to(x[:, :1], (2, 4, 5)) * 2, (A,)),
    "diagonal": (lambda x: (np.diagonal(x, 1), np.diagonal(x, -1, 1, 2), np.trace(x)), (CUBE,)),
    "concatenate": (lambda x, y: np.concatenate((x, y, x[:, :1]), 1), (A, B)),
    "gather": (lambda x, at, rows, columns: (x[at], x[:, at], x[rows, columns], x[1, at]),
               (A, AT, ROWS, COLUMNS)),
    "take along": (lambda x: np.take_along_axis(x, np.argsort(x, 1), 1), (A,)),
    "scatter": (_put, (A, RNG.standard_normal((5, 3)), AT)),
    "scatter a row": (_put, (A, B[0], AT)),
    "scatter pairs": (_put_pairs, (A, RNG.standard_normal((2, 2)), ROWS, COLUMNS)),
    "scatter columns": (_put_columns, (A, RNG.standard_normal((4, 2)), AT[1:3])),
    "add.at": (_at(np.add), (A, RNG.standard_normal((5, 3)), AT)),
    "subtract.at": (_at(np.subtract), (A, RNG.standard_normal((5, 3)), AT)),
    "maximum.at": (_at(np.maximum), (A, RNG.standard_normal((5, 3)), AT)),
    "matmul": (lambda x, y: x @ y.T, (A, B)),
    "matmul of a stack": (
        lambda x, y: (x @ y.T, y[0] @ y[1], x @ y[0], y[1] @ x.transpose(0, 2, 1)), (CUBE, B)),
    "matmul of stacks": (lambda x, y: x[:, None] @ y, (CUBE, RNG.standard_normal((3, 3, 2)))),
    "matmul of complex matrices": (lambda x, y: (x @ y.T, x[0] @ y[0]), (Z, W)),
    "abs of complex numbers": (lambda x: np.abs(x), (Z,)),
    "sign of complex numbers": (lambda x: np.sign(x), (Z,)),
    "abs": (lambda x: np.abs(x) * np.sign(x), (A,)),
    "parts": (lambda x: (x.real * x.imag, np.conj(x) * x, np.angle(x)), (Z,)),
    "real to complex": (lambda x: np.exp(1j * x), (A,)),
    "where": (lambda x, y: np.where(x > 0, x * y, y), (A, B)),
    "conversions": (lambda x: x.astype(np.complex128) * (1 + 2j), (A,)),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_rules_are_derivatives(name: str) -> None:
    program, arguments = PROGRAMS[name]
    judge(program, *arguments)


def test_the_cumulative_sum_of_a_number() -> None:
    x = np.array(2.5)
    assert fusec.grad(lambda x: x.cumsum(0, dtype="f4").sum())(x) == 1
    assert fusec.grad(lambda x: np.cumprod(x, 0, dtype="f4").sum())(x) == 1
