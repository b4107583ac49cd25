"""The files that hold rules: importing them fills the rows' columns."""

from . import (
    arithmetic,
    choices,
    cumulative,
    einsum,
    elementary,
    fourier,
    indices,
    linear_algebra,
    moves,
    norms,
    order,
    parts,
    powers,
    products,
    reductions,
    rest,
    scans,
    scipy_banded,
    scipy_calls,
    scipy_equations,
    scipy_factors,
    scipy_signals,
    scipy_systems,
    signals,
    special,
    spectral,
    ufuncs,
    views,
)

__all__ = [
    "arithmetic", "choices", "cumulative", "einsum", "elementary", "fourier", "indices",
    "linear_algebra", "moves", "norms", "order", "parts", "powers", "products", "reductions",
    "rest", "scans", "scipy_banded", "scipy_calls", "scipy_equations", "scipy_factors",
    "scipy_signals", "scipy_systems", "signals", "special", "spectral", "ufuncs", "views",
]
