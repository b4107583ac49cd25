"""Rules of ufuncs that libraries compute, each by each of its arguments that has a formula."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from rule_harness import judge
from scipy import special

import fusec
from fusec.errors import UnsupportedError
from fusec.ops.derivatives.elements.ufuncs import _SPECIAL

RNG = np.random.default_rng(11)
POSITIVE, OTHER = RNG.uniform(0.3, 2.5, 4), RNG.uniform(0.4, 1.9, 4)
UNIT, SIGNED = RNG.uniform(0.1, 0.9, 4), np.array([-1.3, 0.7, 2.1, -0.4])
OF_UNIT = {"erfinv", "erfcinv", "ndtri", "betainc"}
OF_SIGNED = {"dawsn", "erfi", "erfcx", "log_expit", "exprel", "cosm1", "i0e", "i1e", "j1", "i1",
             "huber", "pseudo_huber", "sindg"}


def _arguments(name: str, count: int) -> list[np.ndarray]:
    if name == "ndtri_exp":
        return [-POSITIVE]
    last = UNIT if name in OF_UNIT else SIGNED if name in OF_SIGNED else POSITIVE
    return [*[OTHER, OTHER + 0.3][:count - 1], last]


def _by_one(function: Callable[..., Any], number: int) -> Callable[..., Any]:
    """With the other arguments as integers' quarters, which are no variables."""
    def program(x: Any, *others: Any) -> Any:
        given = [k * 0.25 for k in others]
        return function(*given[:number], x, *given[number:])

    return program


CASES = [(name, number) for name, entries in _SPECIAL.items()
         for number, entry in enumerate(entries) if entry is not None and name != "zeta"]


@pytest.mark.parametrize(("name", "number"), CASES)
def test_special_functions(name: str, number: int) -> None:
    function: Any = getattr(special, name)
    given = _arguments(name, len(_SPECIAL[name]))
    others = [np.round(a * 4).astype(int) for k, a in enumerate(given) if k != number]
    judge(_by_one(function, number), given[number], *others, step=2.0**-9, differences=1e-6)


def test_others() -> None:
    x = RNG.standard_normal((3, 4))
    judge(lambda x: (np.hypot.reduce(x), np.logaddexp.reduce(x, axis=1)), x)
    judge(lambda x: np.ldexp(x, 3), POSITIVE)


def test_derivatives_of_gamma_functions_have_derivatives() -> None:
    """The second one of gammaln is a Hurwitz zeta function, which no program calls by itself."""
    third = fusec.grad(fusec.grad(fusec.grad(lambda x: special.gammaln(x))))
    np.testing.assert_allclose(third(1.7), special.polygamma(2, 1.7), rtol=1e-12)


def test_what_has_no_formula_is_refused_by_name() -> None:
    x = POSITIVE
    with pytest.raises(UnsupportedError, match="fusec has no formula for the derivative of"):
        fusec.grad(lambda x: special.stdtr(x, 0.5).sum())(x)
    with pytest.raises(UnsupportedError, match="by argument 0"):
        fusec.grad(lambda x: special.jv(x, 0.5).sum())(x)


def test_sums_of_slices() -> None:
    x = np.round(RNG.normal(size=(3, 6)), 2)
    judge(lambda x: (np.add.reduceat(x, [0, 1, 4], axis=1), np.add.reduceat(x, [1])), x)
    for starts in ([0, 2, 5], [3, 1, 4, 4]):  # those that do not grow overlap
        judge(lambda x, i: np.add.reduceat(x, i, -1), x, np.array(starts))
    for size in range(3):  # no slice, of nothing too
        judge(lambda x, i: np.add.reduceat(x, i, -1), x[:, :size], np.zeros(0, int))


def test_sums_of_slices_that_are_refused() -> None:
    for program in (lambda x: np.add.reduceat(x, [2, 1]).sum(),
                    lambda x: np.multiply.reduceat(x, [1, 2]).sum()):
        with pytest.raises(UnsupportedError, match="reduceat"):
            fusec.grad(program)(SIGNED)
