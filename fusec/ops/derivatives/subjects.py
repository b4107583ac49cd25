"""The files that hold rules: importing them fills the rows' columns."""

from . import (
    arithmetic,
    choices,
    einsum,
    elementary,
    fourier,
    indices,
    linear_algebra,
    parts,
    powers,
    products,
    reductions,
    scans,
    signals,
    special,
    spectral,
    views,
)

__all__ = [
    "arithmetic", "choices", "einsum", "elementary", "fourier", "indices", "linear_algebra",
    "parts", "powers", "products", "reductions", "scans", "signals", "special", "spectral",
    "views",
]
