"""Fourier transforms of a plan as launches among those of its kernels."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from fusec.codegen.structured.memory import View
from fusec.core.records import dataclass
from fusec.ir import Node

from ..launches import Address, Base, Filled, value
from .cufft import Cufft
from .product_launch import Operand
from .transform import Transform


@dataclass(frozen=True)
class TransformLaunch:
    """Transforms; ``args`` are addresses: of the operand, the result, the memory to work in."""

    made: Transform
    cufft: Cufft
    args: tuple[Address | int, ...]

    def filled(self, where: Mapping[Base, int]) -> Filled:
        """See `AnyLaunch.filled`."""
        words = tuple(value(arg, where) for arg in self.args)
        return Filled(self._launch, (1, 1, 1), (1, 1, 1), words, 0)

    def _launch(
        self, grid: Any, block: Any, words: tuple[int, ...], shared_mem: int, stream: Any = None
    ) -> None:
        """As CuPy's functions are called."""
        stream = stream or self.cufft.driver.current_stream()
        self.cufft.call(self.made, stream.ptr, *words)


@dataclass(frozen=True)
class PlacedTransform:
    """Transforms, and where their operand and their result are."""

    node: Node
    made: Transform
    cufft: Cufft
    workspace: int
    places: tuple[Operand, Operand]

    by = "cuFFT"

    @property
    def name(self) -> str:
        """See `Named`."""
        return f"{self.node.name} by cuFFT"

    @property
    def locs(self) -> Sequence[Any]:
        """See `Named`."""
        return [self.node.loc] if self.node.loc else []

    def launch(
        self, address: Callable[[View | np.ndarray, int], Address], room: Address
    ) -> TransformLaunch:
        """The launch, for a function that gives addresses of operands."""
        args = (*(address(*place) for place in self.places), room)
        return TransformLaunch(self.made, self.cufft, args)
