"""The op registry: one declaration per op, a file per family."""

from . import (
    calls,
    checks,
    complex_parts,
    composite,
    counting,
    elementwise,
    externs,
    gather,
    host_calls,
    library,
    picking,
    reductions,
    scalar_calls,
    scans,
    sizes,
    sources,
    special,
    structured,
    views,
    windows,
)
from .build import Builder, Namer
from .registry import Op, all_ops, get, register

__all__ = [
    "Builder", "Namer", "Op", "all_ops", "calls", "checks", "complex_parts", "composite",
    "counting", "elementwise", "externs", "gather", "get", "host_calls", "library", "picking",
    "reductions", "register", "scalar_calls", "scans", "sizes", "sources", "special", "structured",
    "views", "windows",
]
