"""Upper bounds of run-time sizes, while a native loop is compiled.

A symbol is defined by a slice of an axis; the length of that axis is its upper bound.  A temporary
with such a size is allocated once, at the bound, and its strides are those of the bound: during the
run only extents vary.
"""

from __future__ import annotations

from collections.abc import Mapping

from fusec.codegen.backend import NotNativeError
from fusec.ir.dims import Dim, Size


def bound_of(size: Size, limits: Mapping[str, int]) -> int:
    """The upper bound of a size."""
    if not isinstance(size, Dim):
        return int(size)
    missing = [name for name in size.symbols if name not in limits]
    if missing:
        raise NotNativeError(f"a size that only the run knows, {size}")
    if not _grows(size):
        raise NotNativeError(f"a size without a simple bound, {size}")
    return size.evaluate(limits)


def _grows(size: Size) -> bool:
    """Whether the size is monotonic: largest where all its symbols are largest."""
    if not isinstance(size, Dim) or size.name is not None:
        return True
    return all(factor >= 0 and all(
        isinstance(atom, str) or (atom.function in ("min", "max") and _grows(atom.left) and (
            _grows(atom.right))) for atom in monomial) for monomial, factor in size.terms)
