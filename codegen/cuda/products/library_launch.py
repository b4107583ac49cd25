"""Calls of NVIDIA's libraries, products and Fourier transforms of a plan, as launches among those
of its kernels."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from fusec.codegen.structured.memory import View
from fusec.core.records import dataclass
from fusec.ir import Node

from ..launches import Address, Base, Filled, value
from .cublas import Cublas
from .cufft import Cufft
from .matrix_product import MatrixProduct
from .transform import Transform

Operand = tuple[View | np.ndarray, int]  # and bytes after its first element


@dataclass(frozen=True)
class LibraryLaunch:
    """A call; ``args`` are addresses: of operands, the result, the memory to work in."""

    made: MatrixProduct | Transform
    library: Cublas | Cufft
    args: tuple[Address | int, ...]

    def filled(self, where: Mapping[Base, int]) -> Filled:
        """See `AnyLaunch.filled`."""
        words = tuple(value(arg, where) for arg in self.args)
        return Filled(self._launch, (1, 1, 1), (1, 1, 1), words, 0)

    def _launch(
        self, grid: Any, block: Any, words: tuple[int, ...], shared_mem: int, stream: Any = None
    ) -> None:
        """As CuPy's functions are called."""
        library: Any = self.library  # which is that of what is made
        stream = stream or library.driver.current_stream()
        library.call(self.made, stream.ptr, *words)


@dataclass(frozen=True)
class PlacedCall:
    """A call, and where its operands and its result are; ``by``: the library, as texts name it,
    and ``note`` what they add."""

    node: Node
    made: MatrixProduct | Transform
    library: Cublas | Cufft
    workspace: int
    places: tuple[Operand, ...]
    by: str
    note: str = ""

    @property
    def name(self) -> str:
        """See `Named`."""
        return f"{self.node.name} by {self.by}{self.note}"

    @property
    def locs(self) -> Sequence[Any]:
        """See `Named`."""
        return [self.node.loc] if self.node.loc else []

    def launch(
        self, address: Callable[[View | np.ndarray, int], Address], room: Address
    ) -> LibraryLaunch:
        """The launch, for a function that gives addresses of operands."""
        args = (*(address(*place) for place in self.places), room)
        return LibraryLaunch(self.made, self.library, args)
