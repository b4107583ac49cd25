"""The files that hold rules: importing them fills the rows' columns."""

from . import formulas, parts, rest
from .arrays import cumulations, fourier, indices, moves, order, reductions, scans, signals, views
from .elements import arithmetic, choices, elementary_functions, powers, special_functions, ufuncs
from .matrices import einsum, linear_algebra, norms, products, spectral
from .scipy import (
    scipy_banded,
    scipy_calls,
    scipy_equations,
    scipy_factors,
    scipy_signals,
    scipy_systems,
)

__all__ = [
    "arithmetic", "choices", "cumulations", "einsum", "elementary_functions", "formulas", "fourier",
    "indices", "linear_algebra", "moves", "norms", "order", "parts", "powers", "products",
    "reductions", "rest", "scans", "scipy_banded", "scipy_calls", "scipy_equations",
    "scipy_factors", "scipy_signals", "scipy_systems", "signals", "special_functions", "spectral",
    "ufuncs", "views",
]
