"""The files that hold rules: importing them fills the rows' columns."""

from . import (
    arithmetic,
    choices,
    elementary,
    indices,
    parts,
    powers,
    products,
    reductions,
    scans,
    special,
    views,
)

__all__ = [
    "arithmetic", "choices", "elementary", "indices", "parts", "powers", "products", "reductions",
    "scans", "special", "views",
]
