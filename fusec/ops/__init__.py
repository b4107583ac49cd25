"""The op registry: one declaration per op, a file per family."""

from . import (
    checks,
    composite,
    elementwise,
    externs,
    gather,
    library,
    picking,
    reductions,
    scans,
    sizes,
    sources,
    special,
    structured,
    views,
)
from .build import Builder, Namer
from .registry import Op, all_ops, get, register

__all__ = [
    "Builder", "Namer", "Op", "all_ops", "checks", "composite", "elementwise", "externs",
    "gather", "get", "library", "picking", "reductions", "register", "scans", "sizes", "sources",
    "special", "structured", "views",
]
