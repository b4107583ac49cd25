"""European option prices and their greeks.

Sources: F. Black and M. Scholes, *The pricing of options and corporate liabilities*, Journal of
Political Economy 81 (1973); greeks as in J. Hull, *Options, futures and other derivatives*;
the normal distribution by J. F. Hart et al., *Computer approximations* (1968), algorithm 5666, in
the double-precision form of G. West, *Better approximations to cumulative normal functions* (2005).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..measuring.program import Program

NUMERATOR = (
    3.52624965998911e-2, 0.700383064443688, 6.37396220353165, 33.912866078383, 112.079291497871,
    221.213596169931, 220.206867912376,
)
DENOMINATOR = (
    8.83883476483184e-2, 1.75566716318264, 16.064177579207, 86.7807322029461, 296.564248779674,
    637.333633378831, 793.826512519948, 440.413735824752,
)
SPLIT = 7.07106781186547
ROOT_TWO_PI = 2.5066282746310002


def horner(coefficients: tuple[float, ...], x: np.ndarray) -> np.ndarray:
    """The polynomial with these coefficients, highest power first."""
    total = coefficients[0] * x + coefficients[1]
    for c in coefficients[2:]:
        total = total * x + c
    return total


def normal_pdf(x: np.ndarray) -> np.ndarray:
    return np.exp(-0.5 * x * x) / ROOT_TWO_PI


def normal_cdf(x: np.ndarray) -> np.ndarray:
    """Cumulative normal distribution, about 1e-15 absolute in float64."""
    z = np.abs(x)
    e = np.exp(-0.5 * z * z)
    near = horner(NUMERATOR, z) / horner(DENOMINATOR, z)
    far = 1.0 / (ROOT_TWO_PI * (z + 1.0 / (z + 2.0 / (z + 3.0 / (z + 4.0 / (z + 0.65))))))
    tail = e * np.where(z < SPLIT, near, far)
    return np.where(x > 0.0, 1.0 - tail, tail)


def black_scholes(
    S: np.ndarray, K: np.ndarray, T: np.ndarray, r: np.ndarray, sigma: np.ndarray
) -> tuple[np.ndarray, ...]:
    """Call and put: price, delta, gamma (shared), vega (shared), theta, rho; ten arrays."""
    root = sigma * np.sqrt(T)
    d1 = (np.log(S / K) + (r + 0.5 * sigma**2) * T) / root
    d2 = d1 - root
    n1, n2, density = normal_cdf(d1), normal_cdf(d2), normal_pdf(d1)
    discounted = K * np.exp(-r * T)
    call = S * n1 - discounted * n2
    put = discounted * (1.0 - n2) - S * (1.0 - n1)
    gamma = density / (S * root)
    vega = S * density * np.sqrt(T)
    decay = -0.5 * S * density * sigma / np.sqrt(T)
    theta_call = decay - r * discounted * n2
    theta_put = decay + r * discounted * (1.0 - n2)
    rho_call = T * discounted * n2
    rho_put = -T * discounted * (1.0 - n2)
    return call, put, n1, n1 - 1.0, gamma, vega, theta_call, theta_put, rho_call, rho_put


def make_args(size: int, dtype: Any, seed: int) -> tuple[np.ndarray, ...]:
    """Spot, strike, years, rate and volatility of ``size`` options."""
    rng = np.random.default_rng(seed)
    ranges = ((20.0, 180.0), (20.0, 180.0), (0.1, 5.0), (0.005, 0.08), (0.05, 0.6))
    return tuple(rng.uniform(low, high, size).astype(dtype) for low, high in ranges)


PROGRAM = Program(
    name="black_scholes", function=black_scholes, make_args=make_args,
    sizes=(100, 1_000, 10_000, 100_000, 1_000_000), quick_sizes=(1_000, 300_000),
    description="European options with greeks, ten outputs", elementwise=True,
    source="Black and Scholes (1973); Hart 5666 normal distribution as in West (2005)",
)
