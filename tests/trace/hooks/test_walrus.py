"""``name := value`` in tests, conditions, branches and loops that data decides."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from harness import check


def while_test(x: np.ndarray) -> Any:
    n = 0
    while (r := x[n]) < 0.9 and n < len(x) - 1:
        n += 1
    return n, r


def while_second_operand(x: np.ndarray) -> Any:
    n, r = 0, x[0] * 0
    while n < len(x) - 1 and (r := x[n]) < 0.9:
        n += 1
    return n, r


def while_with_break(x: np.ndarray) -> Any:
    n, s = 0, x[0] * 0
    while (r := x[n]) < 0.95:
        s += r
        n += 1
        if s > 5 or n == len(x):
            break
    return n, r, s


def while_with_continue(x: np.ndarray) -> Any:
    n, s = 0, x[0] * 0
    while (n := n + 1) < len(x):
        if x[n] < 0.5:
            continue
        s += x[n]
    return n, s


def in_an_if(x: np.ndarray) -> Any:
    if (m := x.max()) > 0.5:
        return m
    return m * 2


def in_an_elif(x: np.ndarray) -> Any:
    if x[0] > 2:
        y = x[0]
    elif (m := x.max()) > 0.5:
        y = m
    else:
        y = m * 2
    return y


def in_an_and(x: np.ndarray) -> Any:
    if x[0] < 2 and (m := x.max()) > 0.5:
        return m
    return x[0]


def kept_after_an_or(x: np.ndarray) -> Any:
    m = x[0] * 0
    found = x[0] > 0.5 or (m := x[1]) > 0.25
    return found, m


def in_a_conditional_expression(x: np.ndarray) -> Any:
    m = x[0] * 0
    y = (m := x[1]) if x[0] > 0.5 else x[2]
    return y, m


def in_a_loop(x: np.ndarray) -> Any:
    best = x[0] * 0
    for i in range(len(x) - 1):
        if (d := x[i + 1] - x[i]) > best:
            best = d
    return best, d


def in_a_comprehension(x: np.ndarray) -> Any:
    s = x[0]
    return [s := s * 0.5 + x[k] for k in range(4)], s


def in_a_lambda(x: np.ndarray) -> Any:
    f = lambda v: (w := v * 2) + w  # noqa: E731
    return f(x[0])


def in_an_assertion(x: np.ndarray) -> Any:
    assert (m := x.max()) < 2  # noqa: RUF018
    return m


def in_a_chain(x: np.ndarray) -> Any:
    return (x[0] < (m := x[1]) < 1.5), m


@pytest.mark.parametrize("program", [
    while_test, while_second_operand, while_with_break, while_with_continue, in_an_if, in_an_elif,
    in_an_and, kept_after_an_or, in_a_conditional_expression, in_a_loop, in_a_comprehension,
    in_a_lambda, in_an_assertion, in_a_chain,
])
def test_names_bound_in_expressions(program: Callable[..., Any]) -> None:
    for seed in range(4):
        check(program, np.random.default_rng(seed).random(40), fp="strict")
