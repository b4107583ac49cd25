"""Programs with one infinity or NaN planted in each: the line and the index are marked.

``PLANTED`` holds (name, function, arguments, index): the line that makes it ends with ``# planted``
or, where it is in a derivative, ``# planted in the derivative``.  ``ONLY_FUSED`` holds programs
that have finite numbers run node by node, and the pass that changes that.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import fusec


class Planted(NamedTuple):
    name: str
    program: Callable[..., Any]
    arguments: Callable[[], tuple[Any, ...]]
    index: tuple[int, ...]
    of_gradient: bool = False

    @property
    def line(self) -> int:
        lines, first = inspect.getsourcelines(_innermost(self.program))
        return next(first + i for i, line in enumerate(lines) if "# planted" in line)


def _innermost(program: Any) -> Any:
    return getattr(program, "planted", program)


def ramp() -> tuple[Any, ...]:
    return (np.arange(40.0),)


def with_zero() -> tuple[Any, ...]:
    x = np.arange(1.0, 41.0)
    x[7] = 0.0
    return (x,)


def with_minus() -> tuple[Any, ...]:
    x = np.arange(1.0, 41.0)
    x[23] = -1.0
    return (x,)


def square() -> tuple[Any, ...]:
    x = np.full((6, 5), 2.0)
    x[4, 3] = 0.0
    return (x,)


def divides(x):
    y = x + 1
    z = y / x  # planted
    return z * 2


def logarithm(x):
    y = np.log(x)  # planted
    return np.exp(y) - y


def masked_one_is_not_it(x):
    safe = np.where(x > 0, np.log(x), 0.0)
    return safe + 1 / x  # planted


def overflows(x):
    y = np.exp(x * 20)  # planted
    return y - y


def cast(x):
    y = (x * 1e38).astype(np.float32)  # planted
    return y + np.float32(1)


def broadcast(x):
    scale = x[4]
    return x / scale  # planted


def of_a_view(x):
    y = np.sqrt(x[1:])  # planted
    return y[::-1].reshape(3, 13)


def reduction(x):
    y = np.sum(x * 1e306)  # planted
    return x - y


def by_rows(x):
    return np.prod(x * 1e155, axis=1)  # planted


def product(x):
    y = (x * 1e300) @ (x.T * 1e10)  # planted
    return y + 1


def written(x, y):
    y[1:] = 1 / x[:-1]  # planted
    return y.size


def in_a_loop(x):
    total = 0.0
    for i in range(len(x)):
        total = total + 1 / x[i]  # planted
    return total


def in_a_while(x):
    value, steps = x[1], 0
    while steps < 400:
        value = value * 10.0  # planted
        steps += 1
    return value, steps


def nested(x):
    table = np.zeros(x.shape)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            table[i, j] = np.log(x[i, j]) * 2  # planted
    return table


def array_in_a_loop(x):
    y = x.copy()
    for _ in range(12):
        y = np.sqrt(y - 2)  # planted
    return y


def in_a_branch(x):
    if x.sum() > 3:
        y = np.arcsin(x / 30)  # planted
        z = y + 1
    else:
        y = z = x
    return y, z


def gathered(x):
    order = np.argsort(-x)
    y = x[order] - 1
    return np.log(y + 1)  # planted


def added_at_indices(x):
    y = np.zeros(4)
    np.add.at(y, [1, 3, 2, 3], np.array([np.inf, 1e308, 1.0, 1e308]) + x[:4])  # planted
    return y[1:]


def summed_at_indices(x):
    ends = np.array([2, 5, 2])
    return np.sum(x[ends] * (1e308 + x[ends]))  # planted in the derivative


def root(x):
    return np.sum(np.sqrt(x))  # planted in the derivative


def logarithms(x):
    return np.sum(np.log(x) * x)  # planted


def trap(x):
    y = np.where(x > 0, np.sqrt(x), 0.0) + np.cbrt(x)  # planted in the derivative
    return y.sum()


def loop_with_root(x):
    total = 0.0
    for i in range(len(x)):
        total = total + np.sqrt(x[i])  # planted in the derivative
    return total


def power(x):
    return np.sum(x ** 0.5)  # planted in the derivative


def _grad(program: Callable[..., Any]) -> Any:
    gradient = fusec.grad(program)
    gradient.planted = program
    return gradient


PLANTED = [
    Planted("divides", divides, with_zero, (7,)),
    Planted("logarithm", logarithm, with_minus, (23,)),
    Planted("masked", masked_one_is_not_it, with_zero, (7,)),
    Planted("overflows", overflows, ramp, (36,)),
    Planted("cast", cast, ramp, (4,)),
    Planted("view", of_a_view, with_minus, (22,)),
    Planted("broadcast", broadcast, square, (0, 3)),
    Planted("reduction", reduction, ramp, ()),
    Planted("rows", by_rows, square, (0,)),
    Planted("product", product, square, (0, 0)),
    Planted("written", written, lambda: (*with_zero(), np.ones(40)), (7,)),
    Planted("loop", in_a_loop, with_zero, ()),
    Planted("while", in_a_while, ramp, ()),
    Planted("nested", nested, square, ()),
    Planted("array loop", array_in_a_loop, ramp, (0,)),
    Planted("branch", in_a_branch, ramp, (31,)),
    Planted("gathered", gathered, with_zero, (39,)),
    Planted("indices", added_at_indices, ramp, (3,)),
    Planted("sums at indices", _grad(summed_at_indices), ramp, (2,), True),
    Planted("root", _grad(root), with_zero, (7,), True),
    Planted("logarithms", _grad(logarithms), with_zero, (7,)),
    Planted("trap", _grad(trap), with_zero, (7,), True),
    Planted("loop gradient", _grad(loop_with_root), with_zero, (), True),
    Planted("power", _grad(power), with_zero, (7,), True),
]


class OnlyFused(NamedTuple):
    name: str
    program: Callable[..., Any]
    arguments: Callable[[], tuple[Any, ...]]
    by: str  # the pass
    part: str = ""  # the sub-graph that it runs on

    line = Planted.line


def products() -> tuple[Any, ...]:
    """x, y and the rounded x * y, from which the product in an Fma differs."""
    rng = np.random.default_rng(0)
    x, y = rng.random(50), rng.random(50)
    return x, y, x * y


def difference(x, y, z):
    return np.sqrt(x * y - z)  # planted


def differences_in_a_loop(x, y, z):
    total = 0.0
    for i in range(len(x)):
        total = total + np.sqrt(x[i] * y[i] - z[i])  # planted
    return total


def arrays_in_a_loop(x, y, z):
    change, total, less = 1.0, np.zeros(len(x)), np.zeros(len(x))
    while change > 0.1:
        total = total + np.sqrt(x * y - less)  # planted
        x, y, less = y, x, z
        change = change * total.max() / 2
    return total


def in_one_branch(x, y, z):
    w = x
    if x[0] > 0:
        w = np.sqrt(x * y - z)  # planted
    return w


def of_gradient(x, y, z):
    return np.sum(np.sqrt(x * y - z + 1e-300) * x)  # planted


def large_factors() -> tuple[Any, ...]:
    return np.full(50, 1e-150), np.full(40, 1e160), np.full(40, 1e160)


def numbers_first(x, a, b):
    total = 0.0
    for i in range(len(a)):
        y = (x * a[i]) * b[i]  # planted
        total += np.sum(y * x) * 1e-250
    return total


ONLY_FUSED = [
    OnlyFused("kernel", difference, products, "fma"),
    OnlyFused("loop", differences_in_a_loop, products, "fma", "body"),
    OnlyFused("arrays in a loop", arrays_in_a_loop, products, "fma", "body"),
    OnlyFused("branch", in_one_branch, products, "fma", "then"),
    OnlyFused("gradient", _grad(of_gradient), products, "fma"),
    OnlyFused("loop of a gradient", _grad(numbers_first), large_factors, "scalar_factors", "back"),
]
