"""Library calls in the text of a call with CuPy's arrays: see `fusec.runtime.resident.gpu_calls`.

An operand is CuPy's array in the memory where the plan has the value, or shows a part of it; a
result takes the place of the plan's own array where it lies as that would.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fusec.codegen.plan.call_plan import contiguous_strides
from fusec.codegen.structured.calls.call_statements import NodeCall
from fusec.codegen.structured.memory import View
from fusec.codegen.structured.still_views import NotStillError, PlacesOfCall
from fusec.core.records import replace
from fusec.ir.regions import byte_extent
from fusec.ops.calls.library import LIBRARY, call_text, leaves_of

from .resident_arrays import PreparedKernels

Base = tuple[str, int]


class NotPreparedError(Exception):
    """Calls of a plan are no function of straight text; the message says why."""


class LibraryText:
    """The lines of library calls; ``pointer`` gives the expression of CuPy's pointer to a base,
    ``leaf`` the name of an argument that is CuPy's array already, or nothing."""

    def __init__(
        self, places: PlacesOfCall, prepared: PreparedKernels, bind: Callable[[str, Any], str],
        pointer: Callable[[Base], str], leaf: Callable[[Base], str],
    ) -> None:
        self.prepared, self.bind, self.pointer, self.leaf = prepared, bind, pointer, leaf
        self.places = places
        self.uses_block = False

    def lines(self, step: NodeCall) -> list[str]:
        """The call, and what becomes of its results."""
        operands, before = [], []
        for number, (place, value) in enumerate(zip(step.operands, step.node.inputs, strict=True)):
            name = f"a{number}"
            if value.type.kind != "array":
                raise NotPreparedError(f"{step.node.op} takes a number")
            before.append(f"{name} = {self._operand(step, place)}")
            operands.append(name)
        results = [f"r{number}" for number in range(len(step.results))]
        made = f"{results[0]} = {self._call(step, operands)}"
        if len(results) > 1 or not step.results[0].is_static:  # which may be a tuple of one
            made = (f"{''.join(f'{r}, ' for r in results)}= {self.bind('leaves', leaves_of)}"
                    f"({self._call(step, operands)})")
        around = self.prepared.around(step.node)
        if around is not None:
            made = f"with {self.bind('around', around)}(): {made}"
        lines = [*before, "try:", f"    {made}", "except refused: return MISS"]
        for name, place in zip(results, step.results, strict=True):
            lines += self._kept(name, place, operands)
        return lines

    def _call(self, step: NodeCall, operands: Sequence[str]) -> str:
        node, function = step.node, self.prepared.function(step.node)
        row = LIBRARY.get(node.op)
        if row is None:
            return f"{self.bind('call', function)}({', '.join(operands)})"
        return call_text(replace(row, function=function), node.attrs["form"], node.attrs["named"],
                         operands, self.bind)

    def _operand(self, step: NodeCall, place: Any) -> str:
        if isinstance(place, np.ndarray):
            return f"{self.bind('constant', self.prepared.constant(place))}()"
        if not isinstance(place, View) or place.is_cell:
            raise NotPreparedError(f"{step.node.op} takes a number")
        base = place.key
        if not place.views:
            return self.leaf(base) or self._array(base, place.shape, place.strides, place.dtype, 0)
        try:
            view = self.places.still(place)
        except NotStillError as error:
            raise NotPreparedError(f"{step.node.op} takes a view that moves") from error
        return self._array(base, view.shape, view.strides, view.dtype, view.offset)

    def _array(self, base: Base, shape: Any, strides: Any, dtype: np.dtype, offset: int) -> str:
        if base[0] == "temp" and base not in self.prepared.called:
            self.uses_block = True
        shift = f" + {offset}" if offset else ""
        return (f"kind({shape}, {self.bind('dtype', dtype)}, {self.pointer(base)}{shift}, "
                f"{strides})")

    def _kept(self, name: str, place: View, operands: Sequence[str]) -> list[str]:
        """A result in the memory of its place; an array of its own is that memory."""
        dtype = self.bind("dtype", place.dtype)
        if place.is_cell:
            self.uses_block = True
            _, offset = self.prepared.address(place)
            return [f"if {name}.dtype != {dtype}: return MISS",
                    f"copy(block.ptr + {offset}, {name}.data.ptr, {place.dtype.itemsize})"]
        target = f"{place.memory.origin}{place.memory.position}"
        if not place.is_static:  # CuPy has made it
            return [f"{target} = contiguous({name}, {dtype})"]
        is_own = " and ".join([
            f"{name}.strides == {place.strides}", f"{name}.dtype == {dtype}",
            *(f"{name}.data.mem is not {operand}.data.mem" for operand in operands)])
        return [f"{target} = {name}", f"if not ({is_own}):",
                f"    try: {target} = {new_text(place, dtype)}",
                "    except full: return MISS",
                f"    {target}[...] = {name}"]


def new_text(place: View, dtype: str) -> str:
    """The expression of a fresh array that lies as a place does."""
    if place.strides == contiguous_strides(place.shape, place.dtype.itemsize):
        return f"kind({place.shape}, {dtype})"
    low, high = byte_extent(place.shape, place.strides, place.dtype.itemsize)
    return f"kind({place.shape}, {dtype}, alloc({high - low}) + {-low}, {place.strides})"
