"""``scipy.special``: fused rows and formulas in every dtype and layout, the rest library calls."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from arrays import DTYPES, LAYOUTS, ordinary, pairs, specials
from harness import check
from scipy import special
from tolerance import Tolerance, Ulp

import fusec
from fusec.trace.scipy.special import FORMULAS, ROWS

# SciPy's own errors reach a thousand ulp (log_ndtr at 31); ours are held to their bounds against
# mpmath in tests/codegen/test_vecmath.py.
NEAR = Ulp(2048, factor=0)
LOG_GAMMA = Ulp(16, factor=0, scale=1.0)  # below 0 it has zeros between the poles
ARITY = {name: getattr(special, name).nin for name in (*ROWS, *FORMULAS)}


@dataclass(frozen=True)
class Close(Tolerance):
    """To a relative error, of 1 where the value is smaller: terms that cancel."""

    error: float

    def check(self, got: np.ndarray, want: np.ndarray, wide: Any, what: str) -> None:
        if want.dtype.kind != "f":
            Tolerance.check(self, got, want, None, what)
            return
        bound = self.error * np.finfo(want.dtype).eps
        np.testing.assert_allclose(got, want, bound, bound, err_msg=what)


def caller(name: str) -> Callable[..., Any]:
    ufunc = getattr(special, name)
    return (lambda x: ufunc(x)) if ufunc.nin == 1 else lambda x, y: ufunc(x, y)


def in_domain(name: str, x: np.ndarray) -> np.ndarray:
    """SciPy's gammaln takes subnormal numbers for 0."""
    if name != "gammaln" or x.dtype.kind != "f":
        return x
    return np.where(np.abs(x) < np.finfo(x.dtype).tiny, x.dtype.type(0), x)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ROWS)
def test_row_in_dtype(name: str, dtype: str) -> None:
    tolerance = LOG_GAMMA if name == "gammaln" else NEAR
    x = in_domain(name, specials(dtype))
    function = check(caller(name), x, tolerance=tolerance)
    assert not function.traces[0].externs


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", FORMULAS)
def test_formula_in_dtype(name: str, dtype: str) -> None:
    args = (specials(dtype),) if ARITY[name] == 1 else pairs(dtype, dtype)
    function = check(caller(name), *args, tolerance=Close(64))
    assert not function.traces[0].externs


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", ["f4", "f8", "i2"])
def test_layouts_and_readable_source(layout: str, dtype: str) -> None:
    def f(x: Any) -> Any:
        inside = special.expit(x)
        return (special.erf(x), special.erfc(x), special.gammaln(x), inside, special.ndtr(x),
                special.log_ndtr(x), special.exp10(x / 4), special.logit(x / 60 + 0.5),
                special.xlogy(x, inside), special.entr(inside))

    check(f, LAYOUTS[layout](dtype), source=True, tolerance=Close(1000))


def test_far_below_the_readable_source_has_a_series() -> None:
    x = np.array([-30.0, -36.0, -100.0, -1e10, -np.inf, np.inf, np.nan])
    check(lambda x: special.log_ndtr(x), x, source=True, tolerance=Close(1000))


def test_mixed_operands_and_out() -> None:
    x, y = ordinary("f4", 4, 5), np.abs(ordinary("f8", 5)) + 0.5

    def f(x: Any, y: Any, s: float) -> Any:
        out, other = np.zeros(5), np.zeros((4, 5))
        special.erf(y, out=out)
        special.xlogy(x, y, out=other)
        return special.xlogy(x, y), special.huber(s, x), special.erfc(s), out, other

    check(f, x, y, 1.5, tolerance=NEAR)


def test_where() -> None:
    """Against the function under `np.where`: SciPy 1.17 itself writes other elements than asked."""
    y = np.array([0.5, 3.0, 0.8, 2.5, 0.7])

    @fusec.jit
    def masked(y: Any) -> Any:
        out = np.full(5, 7.0)
        special.expit(y, out=out, where=y > 2)
        return special.xlogy(y, y, out=out, where=y < 1)

    plain = np.where(y < 1, special.xlogy(y, y), np.where(y > 2, special.expit(y), 7.0))
    np.testing.assert_allclose(masked(y), plain, 1e-15)


def test_one_kernel() -> None:
    f = fusec.jit(lambda x: (special.gammaln(x) * special.expit(x) + special.entr(x)).sum())
    assert len(f.concrete(np.ones(9)).kernels) == 1


def test_numpys_own_under_scipys_name() -> None:
    x = ordinary("f8", 9)
    check(lambda x: (special.exp2(x), special.expm1(x), special.cbrt(x)), x, tolerance=NEAR)


@pytest.mark.parametrize("function", [math.erf, math.erfc, math.lgamma])
def test_pythons_own(function: Callable[[float], float]) -> None:
    check(lambda s: function(s * 2.0) + 1.0, 0.7, tolerance=NEAR)
    check(lambda x: function(x.max()), ordinary("f4", 3), tolerance=NEAR)


def library_ufuncs() -> list[str]:
    """Every other ufunc of one to four operands."""
    found = [n for n in dir(special) if isinstance(getattr(special, n), np.ufunc)]
    return [n for n in found if n not in ROWS and n not in FORMULAS]


# Functions that take whole numbers first; SciPy warns where it gets others.
WHOLE = {"bdtr": (2.0, 5, 0.5), "bdtrc": (2.0, 5, 0.5), "bdtri": (2.0, 5, 0.5),
         "eval_hermite": (3, 0.5), "eval_hermitenorm": (3, 0.5)}
ARGUMENTS: tuple[tuple[Any, ...], ...] = (
    (np.array([0.3, 0.6, 0.9]), np.array([0.2, 0.4, 0.7]), np.array([0.5, 0.1, 0.3]),
     np.array([0.25, 0.5, 0.75])),
    (np.array([1, 2, 3]), np.array([1, 1, 2]), np.array([0.5, 0.1, 0.3]),
     np.array([0.2, 0.3, 0.4])),
)


@pytest.mark.parametrize("name", library_ufuncs())
def test_other_functions_are_library_calls(name: str) -> None:
    ufunc = getattr(special, name)
    chosen = [tuple(np.array([v] * 3) for v in WHOLE[name])] if name in WHOLE else ARGUMENTS
    for arguments in chosen:
        args = (arguments * 2)[: ufunc.nin]
        results = ufunc(*args)
        if all(np.asarray(r).dtype.kind == "f" for r in (
                results if ufunc.nout > 1 else (results,))):
            check(lambda *args: ufunc(*args), *args)
            return
    assert np.asarray(results).dtype.kind == "c", name
