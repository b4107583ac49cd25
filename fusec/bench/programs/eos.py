"""Density of sea water: the UNESCO 1980 international equation of state (EOS-80).

Source: N. P. Fofonoff and R. C. Millard Jr., *Algorithms for computation of fundamental
properties of seawater*, UNESCO technical papers in marine science 44 (1983); coefficients of
Millero and Poisson, Deep-Sea Research 28A (1981), and Millero et al., Deep-Sea Research 27A (1980).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..measuring.program import Program


def surface_density(S: np.ndarray, T: np.ndarray) -> np.ndarray:
    """rho(S, T, 0) in kg/m^3; practical salinity S, temperature T in degrees Celsius (IPTS-68)."""
    pure = 999.842594 + T * (6.793952e-2 + T * (-9.095290e-3 + T * (
        1.001685e-4 + T * (-1.120083e-6 + T * 6.536332e-9))))
    a = 8.24493e-1 + T * (-4.0899e-3 + T * (7.6438e-5 + T * (-8.2467e-7 + T * 5.3875e-9)))
    b = -5.72466e-3 + T * (1.0227e-4 - T * 1.6546e-6)
    return pure + a * S + b * S * np.sqrt(S) + 4.8314e-4 * S**2


def secant_bulk_modulus(S: np.ndarray, T: np.ndarray, p: np.ndarray) -> np.ndarray:
    """K(S, T, p) in bar, p in bar."""
    root = np.sqrt(S)
    pure = 19652.21 + T * (148.4206 + T * (-2.327105 + T * (1.360477e-2 - T * 5.155288e-5)))
    a = 54.6746 + T * (-0.603459 + T * (1.09987e-2 - T * 6.1670e-5))
    b = 7.944e-2 + T * (1.6483e-2 - T * 5.3009e-4)
    surface = pure + S * (a + b * root)
    first = 3.239908 + T * (1.43713e-3 + T * (1.16092e-4 - T * 5.77905e-7)) + S * (
        2.2838e-3 + T * (-1.0981e-5 - T * 1.6078e-6) + 1.91075e-4 * root)
    second = 8.50935e-5 + T * (-6.12293e-6 + T * 5.2787e-8) + S * (
        -9.9348e-7 + T * (2.0816e-8 + T * 9.1697e-10))
    return surface + p * (first + p * second)


def density(S: np.ndarray, T: np.ndarray, p: np.ndarray) -> np.ndarray:
    """In-situ density rho(S, T, p) in kg/m^3 with the sea pressure p in decibar."""
    bar = p / 10.0
    return surface_density(S, T) / (1.0 - bar / secant_bulk_modulus(S, T, bar))


# (S, T in C, p in bar, rho in kg/m^3) of UNESCO technical papers in marine science 36 and 44.
CHECK_VALUES = (
    (0.0, 5.0, 0.0, 999.96675), (0.0, 5.0, 1000.0, 1044.12802),
    (0.0, 25.0, 0.0, 997.04796), (0.0, 25.0, 1000.0, 1037.90204),
    (35.0, 5.0, 0.0, 1027.67547), (35.0, 5.0, 1000.0, 1069.48914),
    (35.0, 25.0, 0.0, 1023.34306), (35.0, 25.0, 1000.0, 1062.53817),
)


def make_args(size: int, dtype: Any, seed: int) -> tuple[np.ndarray, ...]:
    """Salinity 30 to 40, temperature -2 to 30 C, pressure 0 to 6000 dbar; ``(size,)`` each."""
    rng = np.random.default_rng(seed)
    ranges = ((30.0, 40.0), (-2.0, 30.0), (0.0, 6000.0))
    return tuple(rng.uniform(low, high, size).astype(dtype) for low, high in ranges)


PROGRAM = Program(
    name="eos", function=density, make_args=make_args,
    sizes=(100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000), quick_sizes=(1_000, 1_000_000),
    description="sea-water density, UNESCO EOS-80", elementwise=True,
    source="Fofonoff and Millard, UNESCO technical papers in marine science 44 (1983)",
)
