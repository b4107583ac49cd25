"""One call of each op for the per-op table: the function and its operands."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

Args = tuple[Any, ...]
FLOATS = ("float32", "float64")
INTS = ("int32", "int64")


@dataclass(frozen=True)
class OpCase:
    """``function`` on ``make(elements, dtype, rng)``; ``most`` caps the elements of costly ones."""

    name: str
    function: Callable[..., Any]
    make: Callable[[int, str, np.random.Generator], Args]
    dtypes: tuple[str, ...] = FLOATS
    most: int = 1_000_000


# ----------------------------------------------------------------------------------- operands


def _uniform(low: float, high: float, count: int = 1) -> Callable[..., Args]:
    def make(n: int, dtype: str, rng: np.random.Generator) -> Args:
        return tuple(rng.uniform(low, high, n).astype(dtype) for _ in range(count))

    return make


def _whole(low: int, high: int, count: int = 2) -> Callable[..., Args]:
    def make(n: int, dtype: str, rng: np.random.Generator) -> Args:
        return tuple(rng.integers(low, high, n).astype(dtype) for _ in range(count))

    return make


def _matrix(n: int, dtype: str, rng: np.random.Generator) -> Args:
    side = math.isqrt(n)
    return (rng.uniform(-4, 4, (side, side)).astype(dtype),)


def _system(n: int, dtype: str, rng: np.random.Generator) -> Args:
    side = math.isqrt(n)
    matrix = rng.uniform(-1, 1, (side, side)) + side * np.eye(side)
    return matrix.astype(dtype), rng.uniform(-1, 1, side).astype(dtype)


def _masked(n: int, dtype: str, rng: np.random.Generator) -> Args:
    return rng.random(n) < 0.5, *_uniform(-4, 4, 2)(n, dtype, rng)


def _indexed(n: int, dtype: str, rng: np.random.Generator) -> Args:
    return rng.uniform(-4, 4, n).astype(dtype), rng.integers(0, n, n)


_real, _two = _uniform(-4, 4), _uniform(-4, 4, 2)
_positive, _two_positive = _uniform(0.1, 4), _uniform(0.1, 4, 2)
_unit, _inside, _above = _uniform(0.05, 0.95), _uniform(-0.95, 0.95), _uniform(1.05, 5)
_counts, _small_counts = _whole(1, 1000), _whole(1, 12)


# -------------------------------------------------------------------------------------- tables


ARITHMETIC: dict[str, tuple[Callable[..., Any], Any]] = {
    "add": (lambda x, y: x + y, _two), "subtract": (lambda x, y: x - y, _two),
    "multiply": (lambda x, y: x * y, _two), "divide": (lambda x, y: x / y, _two_positive),
    "floor_divide": (lambda x, y: x // y, _two_positive),
    "remainder": (lambda x, y: x % y, _two_positive),
    "fmod": (lambda x, y: np.fmod(x, y), _two_positive),
    "negative": (lambda x: -x, _real), "abs": (lambda x: np.abs(x), _real),
    "sign": (lambda x: np.sign(x), _real), "square": (lambda x: np.square(x), _real),
    "reciprocal": (lambda x: np.reciprocal(x), _positive),
    "maximum": (lambda x, y: np.maximum(x, y), _two),
    "fmin": (lambda x, y: np.fmin(x, y), _two),
    "copysign": (lambda x, y: np.copysign(x, y), _two),
    "heaviside": (lambda x, y: np.heaviside(x, y), _two),
    "floor": (lambda x: np.floor(x), _real), "rint": (lambda x: np.round(x), _real),
    "clip": (lambda x: np.clip(x, -1.0, 1.0), _real),
    "where": (lambda m, x, y: np.where(m, x, y), _masked),
    "nan_to_num": (lambda x: np.nan_to_num(x), _real),
    "less": (lambda x, y: x < y, _two), "isfinite": (lambda x: np.isfinite(x), _real),
    "logical_and": (lambda x, y: np.logical_and(x, y), _two),
}
FUNCTIONS: dict[str, tuple[Callable[..., Any], Any]] = {
    "sqrt": (lambda x: np.sqrt(x), _positive), "cbrt": (lambda x: np.cbrt(x), _real),
    "exp": (lambda x: np.exp(x), _real), "exp2": (lambda x: np.exp2(x), _real),
    "expm1": (lambda x: np.expm1(x), _real), "log": (lambda x: np.log(x), _positive),
    "log2": (lambda x: np.log2(x), _positive), "log10": (lambda x: np.log10(x), _positive),
    "log1p": (lambda x: np.log1p(x), _positive), "sin": (lambda x: np.sin(x), _real),
    "cos": (lambda x: np.cos(x), _real), "tan": (lambda x: np.tan(x), _real),
    "arcsin": (lambda x: np.arcsin(x), _inside), "arccos": (lambda x: np.arccos(x), _inside),
    "arctan": (lambda x: np.arctan(x), _real),
    "arctan2": (lambda x, y: np.arctan2(x, y), _two),
    "sinh": (lambda x: np.sinh(x), _real), "cosh": (lambda x: np.cosh(x), _real),
    "tanh": (lambda x: np.tanh(x), _real), "arcsinh": (lambda x: np.arcsinh(x), _real),
    "arccosh": (lambda x: np.arccosh(x), _above), "arctanh": (lambda x: np.arctanh(x), _inside),
    "hypot": (lambda x, y: np.hypot(x, y), _two),
    "power": (lambda x, y: np.power(x, y), _two_positive), "x**3": (lambda x: x**3, _real),
    "logaddexp": (lambda x, y: np.logaddexp(x, y), _two),
    "sinc": (lambda x: np.sinc(x), _real),
    "special.erf": (lambda x: special.erf(x), _real),
    "special.erfc": (lambda x: special.erfc(x), _real),
    "special.gammaln": (lambda x: special.gammaln(x), _positive),
    "special.expit": (lambda x: special.expit(x), _real),
    "special.logit": (lambda x: special.logit(x), _unit),
    "special.ndtr": (lambda x: special.ndtr(x), _real),
    "special.log_ndtr": (lambda x: special.log_ndtr(x), _real),
    "special.xlogy": (lambda x, y: special.xlogy(x, y), _two_positive),
    "special.entr": (lambda x: special.entr(x), _unit),
    "special.kl_div": (lambda x, y: special.kl_div(x, y), _two_positive),
}
REDUCTIONS: dict[str, tuple[Callable[..., Any], Any]] = {
    "sum": (lambda x: np.sum(x), _real), "sum of rows": (lambda x: np.sum(x, axis=1), _matrix),
    "sum of columns": (lambda x: np.sum(x, axis=0), _matrix),
    "prod": (lambda x: np.prod(x), _uniform(1.0, 1.0)),
    "mean": (lambda x: np.mean(x), _real), "var": (lambda x: np.var(x), _real),
    "std of rows": (lambda x: np.std(x, axis=1), _matrix),
    "max": (lambda x: np.max(x), _real), "max of rows": (lambda x: np.amax(x, axis=1), _matrix),
    "min of columns": (lambda x: np.amin(x, axis=0), _matrix),
    "argmax": (lambda x: np.argmax(x), _real),
    "argmin of rows": (lambda x: np.argmin(x, axis=1), _matrix),
    "any": (lambda x: np.any(x > 5), _real), "all of rows": (lambda x: np.all(x < 5, axis=1),
                                                             _matrix),
    "count_nonzero": (lambda x: np.count_nonzero(x > 0), _real),
    "norm": (lambda x: np.linalg.norm(x), _real), "ptp": (lambda x: np.ptp(x), _real),
    "nansum": (lambda x: np.nansum(x), _real), "nanmean": (lambda x: np.nanmean(x), _real),
    "special.logsumexp": (lambda x: special.logsumexp(x), _real),
    "special.softmax": (lambda x: special.softmax(x, axis=1), _matrix),
    "cumsum": (lambda x: np.cumsum(x), _real),
    "cumprod": (lambda x: np.cumprod(x), _uniform(1.0, 1.0)),
    "median": (lambda x: np.median(x), _real),
    "percentile": (lambda x: np.percentile(x, 30.0), _real),
}
SHAPES: dict[str, tuple[Callable[..., Any], Any]] = {
    "copy": (lambda x: np.copy(x), _real),
    "transposed copy": (lambda x: np.ascontiguousarray(x.T), _matrix),
    "concatenate": (lambda x, y: np.concatenate((x, y)), _two),
    "stack": (lambda x, y: np.stack((x, y), axis=1), _two),
    "pad": (lambda x: np.pad(x, 2), _matrix), "roll": (lambda x: np.roll(x, 3), _real),
    "flip": (lambda x: np.flip(x) + 0, _real), "tile": (lambda x: np.tile(x, 2), _real),
    "repeat": (lambda x: np.repeat(x, 2), _real), "diff": (lambda x: np.diff(x), _real),
    "gradient": (lambda x: np.gradient(x), _real), "tril": (lambda x: np.tril(x), _matrix),
    "outer": (lambda x: np.outer(x[:1000], x[:1000]), _real),
    "astype": (lambda x: x.astype(np.int32), _real),
    "take": (lambda x, i: np.take(x, i), _indexed), "x[i]": (lambda x, i: x[i], _indexed),
    "interp": (lambda x, y: np.interp(x, np.arange(-4.0, 5.0), np.arange(9.0) ** 2), _two),
}
LINEAR: dict[str, tuple[Callable[..., Any], Any]] = {
    "matmul": (lambda a, b: a @ a, _system), "matrix @ vector": (lambda a, b: a @ b, _system),
    "dot": (lambda x, y: np.dot(x, y), _two),
    "einsum ij,ij->i": (lambda x: np.einsum("ij,ij->i", x, x), _matrix),
    "linalg.solve": (lambda a, b: np.linalg.solve(a, b), _system),
    "linalg.inv": (lambda a, b: np.linalg.inv(a), _system),
    "linalg.det": (lambda a, b: np.linalg.det(a), _system),
    "linalg.qr": (lambda a, b: np.linalg.qr(a)[1], _system),
    "linalg.eigvalsh": (lambda a, b: np.linalg.eigvalsh(a + a.T), _system),
    "sort": (lambda x: np.sort(x), _real), "argsort": (lambda x: np.argsort(x), _real),
    "searchsorted": (lambda x, y: np.searchsorted(y[:100], x), _two),
    "histogram": (lambda x: np.histogram(x, 50, (-4.0, 4.0))[0], _real),
    "convolve": (lambda x: np.convolve(x, x[:9]), _real),
}
ON_INTS: dict[str, tuple[Callable[..., Any], Any]] = {
    "add": (lambda x, y: x + y, _counts), "multiply": (lambda x, y: x * y, _counts),
    "floor_divide": (lambda x, y: x // y, _counts), "remainder": (lambda x, y: x % y, _counts),
    "true divide": (lambda x, y: x / y, _counts),
    "bitwise_xor": (lambda x, y: np.bitwise_xor(x, y), _counts),
    "left_shift": (lambda x, y: np.left_shift(x, y), _small_counts),
    "maximum": (lambda x, y: np.maximum(x, y), _counts), "sum": (lambda x, y: x.sum(), _counts),
    "max": (lambda x, y: x.max(), _counts), "argmax": (lambda x, y: x.argmax(), _counts),
    "x**2": (lambda x, y: x**2, _counts),
    "to float64": (lambda x, y: x.astype(np.float64), _counts),
    "bitwise_count": (lambda x, y: np.bitwise_count(x), _counts),
    "gcd": (lambda x, y: np.gcd(x, y), _counts), "sort": (lambda x, y: np.sort(x), _counts),
    "cumsum": (lambda x, y: np.cumsum(x), _counts),
}
# How many elements the large size has at most, for ops in which a million would take too long.
MOST = {name: 10_000 for name in LINEAR if name.startswith(("linalg", "matmul"))} | dict.fromkeys(
    ("sort", "argsort", "median", "percentile", "histogram", "searchsorted", "interp"), 100_000)


def all_cases() -> list[OpCase]:
    """Every case, by family."""
    floats = {**ARITHMETIC, **FUNCTIONS, **REDUCTIONS, **SHAPES, **LINEAR}
    cases = [OpCase(name, f, make, FLOATS, MOST.get(name, 1_000_000))
             for name, (f, make) in floats.items()]
    return cases + [OpCase(f"{name} (integers)", f, make, INTS)
                    for name, (f, make) in ON_INTS.items()]


__all__ = ["OpCase", "all_cases"]
