"""Bounds of sizes that only the run knows, while a native loop is compiled.

A symbol is defined by a slice of an axis of known length, which bounds it.  Temporaries of such
sizes are allocated once, at their bounds, and strides are those of the bounds: only extents vary.
"""

from __future__ import annotations

from collections.abc import Mapping

from fusec.codegen.backend import NotNativeError
from fusec.ir.dims import Dim, Size


def bound_of(size: Size, limits: Mapping[str, int]) -> int:
    """What a size is at most."""
    if not isinstance(size, Dim):
        return int(size)
    missing = [name for name in size.symbols if name not in limits]
    if missing:
        raise NotNativeError(f"a size that only the run knows, {size}")
    if not _grows(size):
        raise NotNativeError(f"a size without a simple bound, {size}")
    return size.evaluate(limits)


def _grows(size: Size) -> bool:
    """Whether it is largest where its symbols are."""
    if not isinstance(size, Dim) or size.name is not None:
        return True
    return all(factor >= 0 and all(
        isinstance(atom, str) or (atom.function in ("min", "max") and _grows(atom.left) and (
            _grows(atom.right))) for atom in monomial) for monomial, factor in size.terms)
