"""Second derivatives by the rules, of a sample of programs, and kernels for them.

``python tests/gradients/test_second_order_rules.py`` runs them all.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from rule_harness import judge
from test_narrow_dtypes import CASES

import fusec

SAMPLE = ("array_rules: cumprod with zeros", "array_rules: std", "array_rules: scatter pairs",
          "linear_algebra_rules: eigh", "linear_algebra_rules: pinv", "order_rules: quantiles",
          "product_rules: einsum along diagonals", "product_rules: irfft",
          "scipy_rules: cho_solve", "scipy_rules: solve_triangular")


def leaves(result: Any) -> Iterator[Any]:
    if isinstance(result, tuple | list):
        for item in result:
            yield from leaves(item)
    else:
        yield result


def squared(program: Callable[..., Any]) -> Callable[..., Any]:
    """A float of all that a program returns, with a second derivative even where it is linear."""
    def loss(*arguments: Any) -> Any:
        total = 0.0
        for x in leaves(program(*arguments)):
            if x.dtype.kind == "c":
                total = total + (x.real * x.real).sum() + (x.imag * 0.5).sum()
            elif x.dtype.kind == "f":
                total = total + (x * x + x).sum()
        return total

    return loss


def weighted_gradient(program: Callable[..., Any], argnums: tuple[int, ...]) -> Callable[..., Any]:
    """A sum of the gradient's elements with weights of both signs."""
    gradient = fusec.grad(squared(program), argnums=argnums)

    def weighted(*arguments: Any) -> Any:
        total = 0.0
        for k, x in enumerate(leaves(gradient(*arguments))):
            weights = np.cos(1.0 + k + np.arange(x.size)).reshape(x.shape)
            total = total + (x.real * weights).sum()
            if x.dtype.kind == "c":
                total = total + (x.imag * weights).sum()
        return total

    return weighted


@pytest.mark.parametrize("name", SAMPLE)
def test_second_derivatives(name: str) -> None:
    program, arguments = CASES[name]
    numbers = tuple(k for k, a in enumerate(arguments) if np.asarray(a).dtype.kind in "fc")
    judge(weighted_gradient(program, numbers), *arguments, step=2.0**-10, differences=1e-5,
          consistent=1e-9)


def main() -> None:
    for name in CASES:
        try:
            test_second_derivatives(name)
        except Exception as error:
            print(f"{name}: {type(error).__name__}: {str(error)[:300]}")
    print(f"{len(CASES)} programs")


if __name__ == "__main__":
    sys.exit(main())
