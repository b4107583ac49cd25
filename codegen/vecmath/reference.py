"""Exact values to measure against: mpmath functions, NumPy's and SciPy's for special cases.

Needs the ``test`` extra.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import mpmath
import numpy as np
import scipy.special
from mpmath import mpf

from .builder import Format

SCIPY: dict[str, Any] = {name: getattr(scipy.special, name) for name in (
    "erf", "erfc", "exp10", "expit", "gammaln", "log_ndtr", "logit", "ndtr")}
NUMPY: dict[str, Any] = {"pow": np.power, **SCIPY}


def numpy_function(name: str) -> np.ufunc:
    """The ufunc whose special cases are the law."""
    return NUMPY.get(name) or getattr(np, name)


def _exp(x: mpf) -> mpf:
    return mpmath.exp(max(min(x, mpf(2000)), mpf(-2000)))


def _pow(x: mpf, y: mpf) -> mpf:
    """``x**y`` for ``x > 0``, or any nonzero ``x`` and integral ``y``; capped far out of range."""
    odd = y == mpmath.floor(y) and mpmath.floor(y / 2) * 2 != y
    size = _exp(y * mpmath.log(abs(x)))
    return -size if x < 0 and odd else size


def _atan2(y: mpf, x: mpf) -> mpf:
    return mpmath.atan2(y, x)


def _bounded(f: Callable[[mpf], mpf]) -> Callable[[mpf], mpf]:
    """Huge arguments capped where the result has long been inf."""
    return lambda x: f(max(min(x, mpf(2000)), mpf(-2000)))


def _log_ndtr(x: mpf) -> mpf:
    """log of the normal distribution; by its asymptotic series where exp(-x*x/2) is no number."""
    if x < -10_000:
        return -x * x / 2 - mpmath.log(-x * mpmath.sqrt(2 * mpmath.pi)) + mpmath.log1p(-1 / x**2)
    with mpmath.workprec(400):
        q = mpmath.erfc(min(abs(x), mpf(2000)) / mpmath.sqrt(2)) / 2
        return mpmath.log1p(-q) if x > 0 else mpmath.log(mpmath.erfc(-x / mpmath.sqrt(2)) / 2)


def _logit(x: mpf) -> mpf:
    with mpmath.workprec(1200):  # 1 - x of the smallest x
        return mpmath.log(x / (1 - x))


EXACT: dict[str, Callable[..., mpf]] = {
    "exp": _exp, "expm1": _bounded(mpmath.expm1), "exp2": _bounded(lambda x: mpf(2) ** x),
    "log": mpmath.log, "log2": lambda x: mpmath.log(x) / mpmath.ln(2),
    "log10": lambda x: mpmath.log(x) / mpmath.ln(10), "log1p": mpmath.log1p,
    "sin": mpmath.sin, "cos": mpmath.cos, "tan": mpmath.tan, "sqrt": mpmath.sqrt,
    "sinh": _bounded(mpmath.sinh), "cosh": _bounded(mpmath.cosh), "tanh": _bounded(mpmath.tanh),
    "arcsin": mpmath.asin, "arccos": mpmath.acos, "arctan": mpmath.atan, "arctan2": _atan2,
    "arcsinh": mpmath.asinh, "arccosh": mpmath.acosh, "arctanh": mpmath.atanh,
    "cbrt": lambda x: mpmath.sign(x) * mpmath.cbrt(abs(x)),
    "hypot": lambda x, y: mpmath.sqrt(x * x + y * y), "pow": _pow, "erf": mpmath.erf,
    "expit": lambda x: 1 / (1 + _exp(-x)), "erfc": _bounded(mpmath.erfc),
    "ndtr": lambda x: _bounded(mpmath.erfc)(-x / mpmath.sqrt(2)) / 2, "log_ndtr": _log_ndtr,
    "exp10": _bounded(lambda x: mpf(10) ** x), "gammaln": mpmath.loggamma, "logit": _logit,
}

# Where a finite operand has a finite result that is not a pole; the rest are special cases.
DOMAIN: dict[str, tuple[float, float]] = {
    **dict.fromkeys(("log", "log2", "log10", "sqrt", "pow"), (5e-324, math.inf)),
    "log1p": (-1 + 2**-53, math.inf), "arcsin": (-1, 1), "arccos": (-1, 1),
    "logit": (5e-324, 1 - 2**-24), "gammaln": (5e-324, math.inf),
    "arccosh": (1, math.inf), "arctanh": (-1 + 2**-53, 1 - 2**-53),
}
# Arguments near which something switches: overflow, reduction limits, branches of a formula.
TURNS: dict[str, tuple[float, ...]] = {
    "exp": (709.782712893384, 88.72284, -708.3964, -87.33655, -745.13, -103.97, 0.34657359),
    "expm1": (709.782712893384, 88.72284, -37.5, -17.33, 0.34657359, 2**-60),
    "exp2": (1024.0, 128.0, -1022.0, -126.0, -1074.0, -149.0, 0.5),
    "sinh": (710.4758600739439, 89.41599, 1.0), "cosh": (710.4758600739439, 89.41599, 1.0),
    "tanh": (19.06, 9.01, 22.0, 10.0, 0.1732868), "expit": (-745.13, -103.97, 36.7, 16.6),
    "sin": (2.0**30, 2.0**15, 0.785398163), "cos": (2.0**30, 2.0**15, 0.785398163),
    "tan": (2.0**30, 2.0**15, 0.785398163, 1.57079632679), "arcsin": (0.5, 1.0, -1.0),
    "arccos": (0.5, 1.0, -1.0), "arctan": (0.41421356, 2.41421356, 1.0), "arccosh": (1.0,),
    "erfc": (0.5, 26.5, 27.2, 9.2, 10.05, 1.0, 5.9), "logit": (0.5, 1.0, 0.25),
    "ndtr": (0.70710678, 37.5, 38.5, 12.9, 14.1, 5.0), "exp10": (308.25, 38.53, -307.6, -323.3, 22),
    "log_ndtr": (0.70710678, 37.5, 14.0, 1e4, 1e19, 2.0**60, 8.3, 0.5),
    "gammaln": (0.5, 1.0, 1.5, 2.0, 2.5, 3.5, 8.5, 2.556e305, 4.08e36),
    "arctanh": (0.5,), "erf": (1.0, 0.84375, 5.92, 3.9), "log": (1.0, 0.70710678, 1.41421356),
}


def expected(name: str, args: Sequence[np.ndarray]) -> np.ndarray:
    """NumPy's values; SciPy's are up to ten ulp off, and its gammaln of subnormals is inf.

    So where SciPy is the law only its special cases are: finite values come from mpmath.
    """
    with np.errstate(all="ignore"):
        values = numpy_function(name)(*args)
    if name not in SCIPY:
        return values
    low, high = DOMAIN.get(name, (-math.inf, math.inf))
    (x,) = args
    for i in np.flatnonzero(np.isfinite(x) & (x != 0) & (x >= low) & (x <= high)):
        with mpmath.workprec(120):
            values[i] = float(EXACT[name](mpf(float(x[i]))))
    return values


def random_bits(count: int, dtype: np.dtype, rng: np.random.Generator) -> np.ndarray:
    """Every bit pattern equally likely: NaNs, infinities, subnormals and all magnitudes."""
    width = dtype.itemsize * 8
    whole = rng.integers(0, 2**width, count, dtype=f"u{dtype.itemsize}")
    return whole.view(dtype)


def magnitudes(count: int, low: float, high: float, rng: np.random.Generator) -> np.ndarray:
    """Random signs, exponents uniform between the two powers of two."""
    return np.exp2(rng.uniform(low, high, count)) * rng.choice([-1.0, 1.0], count)


def points(name: str, dtype: np.dtype, count: int, seed: int = 1) -> np.ndarray:
    """About ``count`` finite arguments in the function's domain, all regions represented."""
    rng = np.random.default_rng(seed)
    part = count // 4
    turns = [
        t * (1 + k * float(np.finfo(dtype).eps)) * sign
        for t in TURNS.get(name, (1.0,)) for k in range(-8, 9) for sign in (1.0, -1.0)
    ]
    bits = random_bits(part, dtype, rng)
    sample = np.concatenate([
        np.where(np.isnan(bits), 1, bits).astype(float), magnitudes(part, -30, 12, rng),
        rng.uniform(-4, 4, part), 1 + magnitudes(part, -12, -1, rng), turns,
    ]).astype(dtype)
    low, high = DOMAIN.get(name, (-math.inf, math.inf))
    sample = np.where((sample < low) & (-sample >= low), -sample, sample)
    return sample[np.isfinite(sample) & (sample >= low) & (sample <= high)]


def pairs(name: str, dtype: np.dtype, count: int, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Operands of a binary function; for pow the exponents mostly keep the result in range."""
    x = points(name, dtype, count, seed)
    rng = np.random.default_rng(seed + 1)
    y = rng.permutation(x)
    if name == "pow":
        limit = 1.02 * math.log(float(np.finfo(dtype).max))
        with np.errstate(all="ignore"):
            exponents = rng.uniform(-limit, limit, x.size) / np.log(x.astype(float))
            y = np.where(rng.random(x.size) < 0.8, exponents, y).astype(dtype)
    else:
        with np.errstate(all="ignore"):
            near = (x * magnitudes(x.size, -30, 30, rng)).astype(dtype)
        y = np.where((rng.random(x.size) < 0.7) & np.isfinite(near), near, y)
    keep = np.isfinite(y)
    return x[keep], y[keep]


def operands(name: str, dtype: np.dtype, arity: int, count: int) -> tuple[np.ndarray, ...]:
    """Arguments for one or two operands."""
    return (points(name, dtype, count),) if arity == 1 else pairs(name, dtype, count)


def error(got: float, exact: mpf, fmt: Format) -> float:
    """The distance in units in the last place of the exact value (of the largest, past it)."""
    if exact == 0 or math.isnan(got):
        return 0.0 if got == 0 and exact == 0 else math.inf
    top = mpf(2) ** (fmt.bias + 1)
    exact = max(min(exact, top), -top)
    value = mpf(got) if math.isfinite(got) else math.copysign(1, got) * top
    exponent = min(max(mpmath.frexp(abs(exact))[1] - 1, 1 - fmt.bias), fmt.bias)
    return float(abs(value - exact) / mpf(2) ** (exponent - fmt.mantissa))


def errors(name: str, got: np.ndarray, args: tuple[np.ndarray, ...], fmt: Format) -> np.ndarray:
    """Errors in ulp of ``got = f(*args)``, worked in 120 bits (more where mpmath needs it)."""
    exact = EXACT[name]
    with mpmath.workprec(120):
        return np.array([
            error(float(g), exact(*(mpf(float(a)) for a in each)), fmt)
            for g, *each in zip(got, *args, strict=True)
        ])
