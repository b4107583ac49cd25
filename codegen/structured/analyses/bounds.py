"""Upper bounds of run-time sizes, while a native loop is compiled.

A symbol is defined by a slice of an axis; the length of that axis is its upper bound, and sizes
computed of symbols are bounded by interval arithmetic.  A temporary with such a size is allocated
once, at the bound, and its strides are those of the bound: during the run only extents vary.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from fusec.codegen.structured.not_native import NotNativeError
from fusec.ir.sizes.bounds import range_of
from fusec.ir.sizes.dims import Dim, Size, symbols_of
from fusec.ir.sizes.symbolic_numbers import Symbolic

# Room for a result of any size: the classes that are counted, the values that are there, are few.
ROOM = 4096
MOST_ROOM = 1 << 20  # elements of one array


def guessed(shape: Sequence[Size], limits: Mapping[str, int], room: int) -> dict[str, int]:
    """``room`` for each symbol that has no upper bound; none where that is much memory."""
    found = dict.fromkeys((s for s in symbols_of(tuple(shape)) if s not in limits), room)
    most = math.prod(bound_of(size, {**limits, **found}) for size in shape)
    return found if most <= MOST_ROOM else {}


def bound_of(size: Size, limits: Mapping[str, int]) -> int:
    """The upper bound of a size."""
    if not isinstance(size, Dim):
        known: Any = size
        return known if type(size) is Symbolic else int(size)
    missing = [name for name in size.symbols if name not in limits]
    if missing:
        raise NotNativeError(f"a size that only the run knows, {size}")
    return max(range_of(size, limits)[1], 0)
