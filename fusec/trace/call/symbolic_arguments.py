"""Arguments of which the sizes are symbols: one trace for calls of more shapes than one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fusec.ir.dims import Size
from fusec.ir.polynomials import ARGUMENT, LEAST_ARGUMENT
from fusec.ir.symbolic_numbers import Sizes

from ..facts.layout import Strides, contiguous, like_order

_ARRAY_PART = 5  # dtype, shape, strides, writeable, the first leaf of this memory


Layout = tuple[tuple[Size, ...], Strides]


@dataclass(frozen=True)
class SymbolicArguments:
    """``key``: equal for calls that one trace may serve: dtypes, ranks, orders of strides, which
    sizes are equal and which are 0 or 1; ``sizes``: the sizes of this call, by symbol."""

    key: tuple
    sizes: dict[str, int]

    def opened(self) -> OpenArguments:
        """The same for a trace that begins."""
        return OpenArguments(self.key, Sizes.of(self.sizes))


class OpenArguments:
    """Arguments of a trace: the shapes and strides of its arrays, by leaf, in its symbols."""

    def __init__(self, key: tuple, sizes: Sizes) -> None:
        self.key, self.sizes = key, sizes
        symbols = sizes.symbols()
        self.layouts: dict[int, Layout] = {}
        for position, part in enumerate(key[1:]):
            if isinstance(part[0], np.dtype) and part[1] is LAYOUT:
                _, _, names, order, *_ = part
                shape = tuple(symbols.get(n, n) for n in names)
                self.layouts[position] = shape, contiguous(shape, part[0].itemsize, order)


LAYOUT = "layout"  # marks a part of a key with names of sizes, and the order of axes in memory


def symbolic_arguments(key: tuple) -> SymbolicArguments | None:
    """The arguments of a call with this key; None where it has no sizes, or strides that do not
    follow from them."""
    names: dict[int, str] = {}
    parts: list[tuple] = []
    for part in key[1:]:
        if not isinstance(part[0], np.dtype) or 0 in part[1]:
            parts.append(part)
            continue
        dtype, shape, strides, writeable, *first = part
        order = tuple(like_order(strides))
        if len(part) > _ARRAY_PART or strides != contiguous(shape, dtype.itemsize, order):
            return None
        sizes = tuple(n if n < LEAST_ARGUMENT else names.setdefault(n, f"{ARGUMENT}{len(names)}")
                      for n in shape)
        parts.append((dtype, LAYOUT, sizes, order, writeable, *first))
    if not names:
        return None
    return SymbolicArguments((key[0], *parts), {name: n for n, name in names.items()})
