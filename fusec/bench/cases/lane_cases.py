"""Programs of one lane whose loops its data end, and arguments for many lanes.

Ensembles of them are one CUDA kernel each.  Tolerances are those of the dtype, which a lane of
float32 reaches too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fusec.core.code_roles import AS_USERS
from fusec.core.records import dataclass

FUSEC_ROLE = AS_USERS
_RNG_SEED = 41


@dataclass(frozen=True)
class LaneCase:
    """``lanes``: of the measured size; ``dtypes``: for which there are arguments.

    ``iterations`` of the inmost loop that warps of 32 of these lanes take on average, in float64;
    ``longest``: that the longest lane takes.
    """

    name: str
    make: Callable[[float], Callable[..., Any]]  # of the relative accuracy
    arguments: Callable[[np.random.Generator, int], Sequence[np.ndarray]]
    lanes: int
    iterations: float
    longest: float
    dtypes: tuple[str, ...] = ("float32", "float64")

    def function(self, dtype: str) -> Callable[..., Any]:
        """Of one lane."""
        return self.make(1e-4 if dtype == "float32" else 1e-10)

    def args(self, dtype: str, lanes: int = 0) -> list[np.ndarray]:
        """For so many lanes, or as many as are measured; integers stay what they are."""
        made = self.arguments(np.random.default_rng(_RNG_SEED), lanes or self.lanes)
        return [x.astype(dtype) if x.dtype.kind == "f" else x for x in made]


def _kepler(tolerance: float) -> Callable[..., Any]:
    def kepler(mean: Any) -> Any:
        e = mean
        while abs(e - 0.3 * np.sin(e) - mean) > tolerance * (1 + mean):
            e = e - (e - 0.3 * np.sin(e) - mean) / (1 - 0.3 * np.cos(e))
        return e

    return kepler


def _mandelbrot(_: float) -> Callable[..., Any]:
    def mandelbrot(a: Any, b: Any) -> Any:
        x, y, k = a * 0, b * 0, 0
        while x * x + y * y < 4.0 and k < 200:
            x, y, k = x * x - y * y + a, 2 * x * y + b, k + 1
        return k

    return mandelbrot


def _heun(tolerance: float) -> Callable[..., Any]:
    """With a step of its own size (Hairer, Norsett, Wanner, Solving ODEs I, II.4) on y' = -w y."""
    limit = math.sqrt(tolerance)

    def heun(w: Any) -> Any:
        t, y, h = w * 0, w * 0 + 1, w * 0 + 0.1
        while t < 3.0:
            h = min(h, 3.0 - t)
            a = -w * y
            b = -w * (y + h * a)
            error = abs(h * (b - a)) * 0.5
            if error < limit:
                t, y = t + h, y + 0.5 * h * (a + b)
            h = h * min(2.0, 0.9 * np.sqrt(limit / (error + 1e-15)))
            if h < 1e-7:
                break
        return y

    return heun


def _bogacki_shampine(tolerance: float) -> Callable[..., Any]:
    """The 3(2) pair (Bogacki and Shampine, Applied Mathematics Letters 2(4), 1989) on the
    predators and prey of Lotka and Volterra, from an initial value of the lane's."""
    limit = math.sqrt(tolerance)

    def bogacki_shampine(u: Any, v: Any) -> Any:
        t, h = u * 0, u * 0 + 0.05
        a, b = u * (1.1 - 0.4 * v), v * (0.1 * u - 0.4)
        while t < 10.0:
            h = min(h, 10.0 - t)
            p, q = u + 0.5 * h * a, v + 0.5 * h * b
            a2, b2 = p * (1.1 - 0.4 * q), q * (0.1 * p - 0.4)
            p, q = u + 0.75 * h * a2, v + 0.75 * h * b2
            a3, b3 = p * (1.1 - 0.4 * q), q * (0.1 * p - 0.4)
            p = u + h * (2 * a + 3 * a2 + 4 * a3) / 9
            q = v + h * (2 * b + 3 * b2 + 4 * b3) / 9
            a4, b4 = p * (1.1 - 0.4 * q), q * (0.1 * p - 0.4)
            d = h * (-5 * a + 6 * a2 + 8 * a3 - 9 * a4) / 72
            e = h * (-5 * b + 6 * b2 + 8 * b3 - 9 * b4) / 72
            error = np.sqrt(d * d + e * e)
            if error < limit:
                t, u, v, a, b = t + h, p, q, a4, b4
            h = h * min(3.0, max(0.2, 0.9 * (limit / (error + 1e-12)) ** (1 / 3)))
            if h < 1e-6:
                break
        return u, v

    return bogacki_shampine


def _volatility(tolerance: float) -> Callable[..., Any]:
    """Of an option at that price, by Newton's method on Black and Scholes' formula."""
    def volatility(price: Any) -> Any:
        v, k = price * 0 + 0.3, 0
        while k < 50:
            d = (math.log(100 / 105) + 0.02 + 0.5 * v * v) / v
            value = 50 * (1 + math.erf(d / math.sqrt(2.0))) - 52.5 * math.exp(-0.02) * (
                1 + math.erf((d - v) / math.sqrt(2.0)))
            step = (value - price) / (100 / math.sqrt(2 * math.pi) * np.exp(-0.5 * d * d))
            v, k = v - step, k + 1
            if abs(step) < tolerance:
                break
        return v

    return volatility


def _walk(_: float) -> Callable[..., Any]:
    """Until it is 20 away from its start, by a linear congruential generator."""
    def walk(seed: Any) -> Any:
        state, x, k = seed, 0, 0
        while abs(x) < 20 and k < 100_000:
            state = (state * 1103515245 + 12345) & 0x7FFFFFFF
            x += 1 if (state >> 16) & 1 else -1
            k += 1
        return k

    return walk


def _levenshtein(_: float) -> Callable[..., Any]:
    """The distance of two strings, by one row of the table (Wagner and Fischer, 1974)."""
    def levenshtein(a: Any, b: Any) -> Any:
        row = np.arange(len(b) + 1)
        for i in range(len(a)):
            before = row[0]
            row[0] = i + 1
            for j in range(len(b)):
                best = min(row[j + 1] + 1, row[j] + 1, before + (a[i] != b[j]))
                before = row[j + 1]
                row[j + 1] = best
        return row[len(b)]

    return levenshtein


def _pixels(side: int) -> Sequence[np.ndarray]:
    """Of a square picture, in C order."""
    a, b = np.meshgrid(np.linspace(-2, 0.5, side), np.linspace(-1, 1, side))
    return [a.ravel(), b.ravel()]


CASES = (
    LaneCase("Kepler's equation", _kepler, lambda rng, n: [rng.uniform(0, 6, n)], 1_000_000,
             3, 3),
    LaneCase("Mandelbrot's set", _mandelbrot, lambda rng, n: _pixels(math.isqrt(n)), 160_000,
             85.5, 200),
    LaneCase("adaptive Heun", _heun, lambda rng, n: [rng.uniform(0.1, 20, n)], 100_000,
             530, 531),
    LaneCase("Bogacki and Shampine", _bogacki_shampine,
             lambda rng, n: [rng.uniform(1, 15, n), rng.uniform(1, 8, n)], 100_000,
             197, 219),
    LaneCase("implied volatility", _volatility, lambda rng, n: [rng.uniform(5, 20, n)], 100_000,
             4, 4),
    LaneCase("random walk", _walk, lambda rng, n: [rng.integers(1, 1 << 30, n)], 10_000,
             1272, 2078, ("float64",)),
    LaneCase("Levenshtein's distance", _levenshtein,
             lambda rng, n: [*rng.integers(0, 4, (2, n, 32))], 10_000,
             32, 32, ("float64",)),
)
