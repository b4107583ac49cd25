"""The steps of a plan that are calls of NVIDIA's libraries, among launches of kernels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from fusec.codegen.plan.call_plan import CallPlan
from fusec.codegen.structured.calls.call_statements import NodeCall
from fusec.codegen.structured.memory import View
from fusec.codegen.structured.still_views import NotStillError, PlacesOfCall

from .cublas import Cublas
from .cufft import Cufft
from .cusolver import Cusolver
from .factorization import factorization_of, may_be_factorization
from .library_launch import PlacedCall
from .matrix_product import Laid
from .transform import may_be_transform, transform_of


class Libraries(Protocol):
    """Those of one GPU, made when they are first asked for."""

    @property
    def cublas(self) -> Cublas: ...
    @property
    def cufft(self) -> Cufft: ...
    @property
    def cusolver(self) -> Cusolver: ...


class DirectCalls:
    """Which products, transforms and equations of a plan cuBLAS, cuFFT and cuSOLVER are called for,
    with CuPy left out."""

    def __init__(self, libraries: Libraries, places: PlacesOfCall) -> None:
        self.libraries, self.places = libraries, places

    def of(self, call_plan: CallPlan) -> dict[int, PlacedCall]:
        """By the step's id.  Memory that CuPy makes at another step, it makes at all."""
        endless = max((n for n, step in enumerate(call_plan.externs) if step.run is not None),
                      default=-1)
        placed = [(step, self._placed(step, n < endless))
                  for n, step in enumerate(call_plan.externs)]
        by_cupy = {place.key for step, made in placed if made is None for place in step.results}
        return {id(step): made for step, made in placed
                if made is not None and step.results[0].key not in by_cupy}

    def _placed(self, step: NodeCall, is_before_loop: bool) -> PlacedCall | None:
        """``is_before_loop``: what follows from a matrix that was refused may go on for ever."""
        is_product = step.node.op == "MatMul"
        is_equation = may_be_factorization(step.node)
        if step.run is not None or not (is_product or may_be_transform(step.node) or (
                is_equation and not is_before_loop)):
            return None
        (result,) = step.results
        if result.views or result.is_cell or not result.is_static or any(
                isinstance(x, View) and x.key == result.key for x in step.operands):
            return None
        try:
            laid = [self._laid(operand) for operand in step.operands]
        except NotStillError:
            return None
        if is_equation:
            return self._equation(step, result, laid)
        return self._product(step, result, laid[0], laid[1]) if is_product else (
            self._transform(step, result, *laid[0]))

    def _equation(
        self, step: NodeCall, result: View, laid: Sequence[tuple[Laid, int]]
    ) -> PlacedCall | None:
        made = factorization_of(step.node, [x for x, _ in laid], result.dtype)
        if made is None or not result.is_dense:
            return None
        cusolver = self.libraries.cusolver
        room = cusolver.workspace(made)
        places = *zip(step.operands, (offset for _, offset in laid), strict=True), (result, 0)
        return None if room is None else PlacedCall(
            step.node, made, cusolver, room, places, "cuSOLVER")

    def _transform(
        self, step: NodeCall, result: View, laid: Laid, offset: int
    ) -> PlacedCall | None:
        made = transform_of(step.node, laid, step.node.inputs[0].dtype)
        if made is None or not result.is_dense:
            return None
        cufft = self.libraries.cufft
        room = cufft.workspace(made)
        return None if room is None else PlacedCall(
            step.node, made, cufft, room, ((step.operands[0], offset), (result, 0)), "cuFFT")

    def _product(
        self, step: NodeCall, result: View, left: tuple[Laid, int], right: tuple[Laid, int]
    ) -> PlacedCall | None:
        if {v.dtype for v in step.node.inputs} != {result.dtype}:
            return None
        cublas = self.libraries.cublas
        made = cublas.product(
            result.dtype, left[0], right[0], Laid(result.shape, result.strides),
            "estimated" in step.node.attrs)
        places = (step.operands[0], left[1]), (step.operands[1], right[1]), (result, 0)
        return made and PlacedCall(step.node, made, cublas, cublas.workspace, places,
                                   "cuBLAS", ", in TF32" if made.is_tf32 else "")

    def _laid(self, operand: Any) -> tuple[Laid, int]:
        """How an operand lies, and its first element's bytes from the beginning of its memory."""
        if isinstance(operand, np.ndarray) and operand.flags.c_contiguous:
            return Laid(operand.shape, operand.strides), 0
        if not isinstance(operand, View) or operand.is_cell:
            raise NotStillError("no array whose place is known")
        view = self.places.still(operand)
        return Laid(view.shape, view.strides), view.offset
