"""Products of a plan as launches among those of its kernels."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from fusec.codegen.plan.call_plan import CallPlan
from fusec.codegen.structured.calls.call_statements import NodeCall
from fusec.codegen.structured.memory import View
from fusec.codegen.structured.still_views import NotStillError, PlacesOfCall
from fusec.core.records import dataclass
from fusec.ir import Node

from ..launches import Address, Base, Filled, value
from .cublas import Cublas
from .matrix_product import Laid, MatrixProduct

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


class Products:
    """Which products of a plan cuBLAS is called for, with CuPy left out."""

    def __init__(self, cublas: Cublas, places: PlacesOfCall) -> None:
        self.cublas, self.places = cublas, places

    def of(self, call_plan: CallPlan) -> dict[int, PlacedProduct]:
        """By the step's id.  Memory that CuPy makes at another step, it makes at all."""
        placed = [(step, self._placed(step)) for step in call_plan.externs]
        by_cupy = {place.key for step, made in placed if made is None for place in step.results}
        return {id(step): made for step, made in placed
                if made is not None and step.results[0].key not in by_cupy}

    def _placed(self, step: NodeCall) -> PlacedProduct | None:
        if step.node.op != "MatMul" or step.run is not None:
            return None
        (result,) = step.results
        if result.views or result.is_cell or not result.is_static or any(
                isinstance(x, View) and x.key == result.key for x in step.operands):
            return None
        try:
            left, right = (self._laid(operand) for operand in step.operands)
        except NotStillError:
            return None
        if {v.dtype for v in step.node.inputs} != {result.dtype}:
            return None
        made = self.cublas.product(
            result.dtype, left[0], right[0], Laid(result.shape, result.strides),
            "estimated" in step.node.attrs)
        return made and PlacedProduct(step.node, made, self.cublas, (
            (step.operands[0], left[1]), (step.operands[1], right[1]), (result, 0)))

    def _laid(self, operand: Any) -> tuple[Laid, int]:
        """How an operand lies, and its first element's bytes from the beginning of its memory."""
        if isinstance(operand, np.ndarray) and operand.flags.c_contiguous:
            return Laid(operand.shape, operand.strides), 0
        if not isinstance(operand, View) or operand.is_cell:
            raise NotStillError("no array whose place is known")
        view = self.places.still(operand)
        return Laid(view.shape, view.strides), view.offset
