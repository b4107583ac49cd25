"""The op registry: one declaration per op, a file per family."""

from . import complex_parts, counting, formulas
from .build import Builder, Namer
from .calls import (
    checks,
    given_derivatives,
    host_calls,
    library,
    recursion,
    scalar_calls,
    subgraph_ops,
)
from .registry import Op, all_ops, get, register
from .rows import (
    composite,
    elementwise,
    externs,
    gather,
    picking,
    reductions,
    scans,
    sizes,
    sources,
    special,
    transfers,
    views,
    windows,
)

__all__ = [
    "Builder",
    "Namer",
    "Op",
    "all_ops",
    "checks",
    "complex_parts",
    "composite",
    "counting",
    "elementwise",
    "externs",
    "formulas",
    "gather",
    "get",
    "given_derivatives",
    "host_calls",
    "library",
    "picking",
    "recursion",
    "reductions",
    "register",
    "scalar_calls",
    "scans",
    "sizes",
    "sources",
    "special",
    "subgraph_ops",
    "transfers",
    "views",
    "windows",
]
