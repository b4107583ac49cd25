"""Arguments of which the sizes are symbols: one trace for calls of more shapes than one.

So are Python's ints that a trace needs, and strides that do not follow from sizes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np

from fusec.core.records import dataclass
from fusec.ir.sizes.dims import Size
from fusec.ir.sizes.polynomials import ARGUMENT, LEAST_ARGUMENT, MOST_ARGUMENT
from fusec.ir.sizes.symbolic_numbers import Sizes

from ..facts.layout import Strides, contiguous, like_order

_ARRAY_PART = 5  # dtype, shape, strides, writeable, the first leaf of this memory


Layout = tuple[tuple[Size, ...], Strides]


@dataclass(frozen=True)
class SymbolicArguments:
    """``key``: equal for calls that one trace may serve: dtypes, ranks, orders of strides, which
    sizes are equal and which are 0 or 1; ``sizes``: the sizes of this call, by symbol."""

    key: tuple
    sizes: dict[str, int]

    def names(self, paths: Sequence[str]) -> dict[str, str]:
        """The argument of each symbol: ``x.shape[0]``, or the int ``n``."""
        named: dict[str, str] = {}
        for path, part in zip(paths, self.key[1:], strict=False):
            if part[0] is INT:
                named.setdefault(part[1], path)
            elif isinstance(part[0], np.dtype) and part[1] is LAYOUT:
                for axis, size in enumerate(part[2]):
                    named.setdefault(size, f"{path}.shape[{axis}]")
        return named

    def opened(self) -> OpenArguments:
        """The same for a trace that begins."""
        return OpenArguments(self.key, Sizes.of(self.sizes))


class OpenArguments:
    """Arguments of a trace: the shapes and strides of its arrays, and its ints, by leaf, in its
    symbols."""

    def __init__(self, key: tuple, sizes: Sizes) -> None:
        self.key, self.sizes = key, sizes
        self.layout_outside: Callable[[str, np.ndarray], Any] = lambda path, array: None
        symbols = sizes.symbols()
        self.layouts: dict[int, Layout] = {}
        self.ints: dict[int, Any] = {}
        for position, part in enumerate(key[1:]):
            if part[0] is INT:
                self.ints[position] = symbols[part[1]]
            elif isinstance(part[0], np.dtype) and part[1] is LAYOUT:
                dtype, _, names, order, steps, *_ = part
                shape = tuple(symbols.get(n, n) for n in names)
                strides = contiguous(shape, dtype.itemsize, order) if steps is None else tuple(
                    symbols.get(step, step) * unit for step, unit in steps)
                self.layouts[position] = shape, strides


LAYOUT = "layout"  # marks a part of a key with names of sizes, and the order of axes in memory
INT = "symbolic int"  # marks a part of a key with the name of a number


class _Symbols:
    """The symbols of one call, made as they are met.  Equal sizes share one, and equal strides;
    an int that happens to equal a size has one of its own."""

    def __init__(self) -> None:
        self.sizes: dict[str, int] = {}
        self._known: dict[tuple[str, int], str] = {}

    def named(self, kind: str, number: int) -> str:
        name = self._known.get((kind, number))
        return name or self._known.setdefault((kind, number), self.new(number))

    def new(self, number: int) -> str:
        name = f"{ARGUMENT}{len(self.sizes)}"
        self.sizes[name] = number
        return name

    def layout(self, part: tuple) -> tuple:
        """An array's part of the key, in symbols."""
        dtype, shape, strides, *rest = part
        order = tuple(like_order(strides))
        sizes = tuple(n if n < LEAST_ARGUMENT else self.named("size", n) for n in shape)
        is_dense = strides == contiguous(shape, dtype.itemsize, order)
        steps = None if is_dense else tuple(self._step(n, dtype.itemsize) for n in strides)
        return dtype, LAYOUT, sizes, order, steps, *rest

    def _step(self, stride: int, itemsize: int) -> tuple[Any, int]:
        """A stride as a number or a symbol, and its factor."""
        count, odd_bytes = divmod(abs(stride), itemsize)
        if odd_bytes or count < LEAST_ARGUMENT:
            return stride, 1
        return self.named("stride", count), itemsize if stride > 0 else -itemsize


def symbolic_arguments(
    key: tuple, ints: Collection[int] = (), *, opens_empty: bool = False
) -> SymbolicArguments | None:
    """The arguments of a call with this key, which needs these ints; None where arrays overlap.
    Arrays without elements are known as they are, unless ``opens_empty``."""
    symbols = _Symbols()
    parts: list[tuple] = []
    for position, part in enumerate(key[1:]):
        if position in ints and part[0] is int and LEAST_ARGUMENT <= part[-1] < MOST_ARGUMENT:
            parts.append((INT, symbols.new(part[1])))
        elif not isinstance(part[0], np.dtype) or (
                0 in part[1] and not opens_empty):
            parts.append(part)
        elif len(part) > _ARRAY_PART:
            return None
        else:
            parts.append(symbols.layout(part))
    return SymbolicArguments((key[0], *parts), symbols.sizes)
