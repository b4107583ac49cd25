"""Calls of NVIDIA's libraries, products, transforms and equations of a plan, as launches among
those of its kernels."""

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
from .cusolver import Cusolver
from .factorization import Factorization
from .matrix_product import MatrixProduct
from .transform import Transform

Operand = tuple[View | np.ndarray, int]  # and bytes after its first element


@dataclass(frozen=True)
class LibraryLaunch:
    """A call; ``args`` are addresses: of operands, the result, the memory to work in, and of words
    for what it refuses."""

    made: MatrixProduct | Transform | Factorization
    library: Cublas | Cufft | Cusolver
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
        library.call(self.made, stream, *words)


@dataclass(frozen=True)
class PlacedCall:
    """A call, and where its operands and its result are; ``by``: the library, as texts name it,
    and ``note`` what they add."""

    node: Node
    made: MatrixProduct | Transform | Factorization
    library: Cublas | Cufft | Cusolver
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

    @property
    def may_refuse(self) -> bool:
        """Whether it is given words for that."""
        return isinstance(self.made, Factorization)

    @property
    def outside(self) -> str:
        """Why it is launched beside graphs; empty where it is a part of them."""
        return self.library.outside_of(self.made) if isinstance(
            self.library, Cusolver) and isinstance(self.made, Factorization) else ""

    def launch(
        self, address: Callable[[View | np.ndarray, int], Address], *own: Address
    ) -> LibraryLaunch:
        """The launch, for a function that gives addresses of operands; ``own``: the memory to work
        in, and the words of what is refused."""
        args = (*(address(*place) for place in self.places), *own)
        return LibraryLaunch(self.made, self.library, args)
