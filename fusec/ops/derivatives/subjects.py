"""The files that hold rules: importing them fills the rows' columns."""

from . import (
    arithmetic,
    choices,
    elementary,
    indices,
    linear_algebra,
    parts,
    powers,
    products,
    reductions,
    scans,
    special,
    spectral,
    views,
)

__all__ = [
    "arithmetic",
    "choices",
    "elementary",
    "indices",
    "linear_algebra",
    "parts",
    "powers",
    "products",
    "reductions",
    "scans",
    "special",
    "spectral",
    "views",
]
