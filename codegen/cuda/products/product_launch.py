"""Products of a plan as launches among those of its kernels."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from fusec.codegen.structured.memory import View
from fusec.core.records import dataclass
from fusec.ir import Node

from ..launches import Address, Base, Filled, value
from .cublas import Cublas
from .matrix_product import MatrixProduct

Operand = tuple[View | np.ndarray, int]  # and bytes after its first element


@dataclass(frozen=True)
class ProductLaunch:
    """A product of matrices; ``args`` are addresses: of operands, the result, the workspace."""

    made: MatrixProduct
    cublas: Cublas
    args: tuple[Address | int, ...]

    def filled(self, where: Mapping[Base, int]) -> Filled:
        """See `AnyLaunch.filled`."""
        words = tuple(value(arg, where) for arg in self.args)
        return Filled(self._launch, (1, 1, 1), (1, 1, 1), words, 0)

    def _launch(
        self, grid: Any, block: Any, words: tuple[int, ...], shared_mem: int, stream: Any = None
    ) -> None:
        """As CuPy's functions are called."""
        stream = stream or self.cublas.driver.current_stream()
        self.cublas.call(self.made, stream.ptr, *words)


@dataclass(frozen=True)
class PlacedProduct:
    """A product and where its operands and its result are."""

    node: Node
    made: MatrixProduct
    cublas: Cublas
    places: tuple[Operand, Operand, Operand]

    by = "cuBLAS"

    @property
    def name(self) -> str:
        """See `Named`."""
        return f"{self.node.name} by cuBLAS{', in TF32' if self.made.is_tf32 else ''}"

    @property
    def locs(self) -> Sequence[Any]:
        """See `Named`."""
        return [self.node.loc] if self.node.loc else []

    @property
    def workspace(self) -> int:
        return self.cublas.workspace

    def launch(
        self, address: Callable[[View | np.ndarray, int], Address], room: Address
    ) -> ProductLaunch:
        """The launch, for a function that gives addresses of operands."""
        args = (*(address(*place) for place in self.places), room)
        return ProductLaunch(self.made, self.cublas, args)
