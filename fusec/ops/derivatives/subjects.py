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
    order,
    parts,
    powers,
    products,
    reductions,
    scans,
    signals,
    special,
    spectral,
    ufuncs,
    views,
)

__all__ = [
    "arithmetic", "choices", "cumulative", "einsum", "elementary", "fourier", "indices",
    "linear_algebra", "moves", "order", "parts", "powers", "products", "reductions", "scans",
    "signals", "special", "spectral", "ufuncs", "views",
]
