"""A whole call, or the check of its arguments, as one plan of the native launcher."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from fusec.codegen.plan.call_plan import CallPlan, NativeParts, words_of
from fusec.codegen.structured.memory import View
from fusec.ir.types import RUN_TIME_INT

from ..call_spec import CallSpec, LeafSpec, ResultSpec, cell_count, cells_of
from ..native import launcher
from ..plan.plan_templates import OpenInt
from . import launch, launch_spec
from .launches import ArgumentBlocks, PointerSlot, make_blocks

# Above this the GIL is released around the kernels; giving it up and taking it back costs 0.1 µs
# alone but a switch interval of 5 ms when another thread wants it.
RELEASE_GIL_NS = 50_000.0
_PYTHON = {"b": bool, "i": int, "u": int, "f": float, "c": complex}


_Stores = dict[tuple[str, int], tuple[launch_spec.WordStore, ...]]


def stores_by_place(pointers: Iterable[PointerSlot]) -> _Stores:
    """Where the address of each place goes, by the place's kind and number."""
    stores_of: dict[tuple[str, int], list[launch_spec.WordStore]] = {}
    for p in pointers:
        stores_of.setdefault(p.place.key, []).append(
            launch_spec.WordStore(p.address, p.offset))
    return {key: tuple(stores) for key, stores in stores_of.items()}


def native_steps(blocks: ArgumentBlocks) -> tuple[launch_spec.NativeStep, ...]:
    return tuple(
        launch_spec.NativeStep(item.function, int(item.block.ctypes.data), item.tasks, item.grain,
                    item.parallel)
        for item in blocks.launches
    )


def partial_temps(blocks: ArgumentBlocks) -> list[launch_spec.Temp]:
    return [
        launch_spec.Temp(nbytes, (launch_spec.WordStore(int(block.ctypes.data) + 8 * slot),))
        for block, slot, nbytes in blocks.partials
    ]


def status_slots(blocks: ArgumentBlocks) -> tuple[int, ...]:
    return tuple(int(block.ctypes.data) + 8 * slot for block, slot in blocks.status)


Cells = Callable[[int], int]  # the address of a cell, by its number


def _address_of(cells: np.ndarray) -> Cells:
    first = int(cells.ctypes.data)
    return lambda number: first + 8 * number


class WholeCall:
    """A whole call as one native plan."""

    def __init__(self, call_plan: CallPlan, spec: CallSpec) -> None:
        native = call_plan.native
        self.cells = np.zeros(max(native.cells, 1), np.int64)
        blocks, work = make_blocks(native.nests_to_run(), self.cells)
        stores = stores_by_place(blocks.pointers)
        cells = _address_of(self.cells)
        outs = [out_of(native, spec, r, stores, cells) for r in spec.results]
        _store_fixed(spec, stores)
        hidden = [
            launch_spec.Temp(p.dtype.itemsize * math.prod(p.shape), stores["temp", i])
            for i, p in enumerate(native.temps) if ("temp", i) in stores
        ]
        self.plan = launch.NativePlan(launch_spec.PlanSpec(
            **arguments_of(spec, stores, cells), outs=tuple(outs), steps=native_steps(blocks),
            temps=tuple(hidden + partial_temps(blocks)),
            status_slots=status_slots(blocks), release_gil=work > RELEASE_GIL_NS,
            as_tuple=not spec.bare, holds=spec.holds,
            keep=(self.cells, blocks, call_plan, spec), name=spec.name,
        ))


def out_of(
    call_plan: NativeParts, spec: CallSpec, result: ResultSpec, stores: _Stores, cells: Cells
) -> Any:
    """A result of the native plan."""
    if result.kind == "const":
        return launch_spec.ObjectOut(result.value)
    if result.kind == "input":
        index = next(i for i, leaf in enumerate(spec.native_leaves)
                     if leaf.input == result.index)
        return launch_spec.ArgOut(index)
    place = call_plan.outputs[result.index]
    type_ = spec.output_types[result.index]
    if not isinstance(place, View):
        return launch_spec.ObjectOut(place)
    if place.is_cell:
        kind = _PYTHON[type_.dtype.kind] if type_.kind == "weak" else type_.dtype
        return launch_spec.ScalarOut(kind, cells(place.memory.position))
    return launch_spec.ArrayOut(place.dtype, place.shape, place.strides,
                           stores.get(("target", place.memory.position), ()))


def _store_fixed(spec: CallSpec, stores: _Stores) -> None:
    """Buffers of Variables stay where they are: their addresses are stored once."""
    for number, _ in spec.variables:
        buffer = spec.captured[number - spec.first_captured]
        for store in stores.get(("operand", number), ()):
            ctypes.c_int64.from_address(store.slot).value = buffer.ctypes.data + store.offset


def guard_plan(spec: CallSpec) -> launch.NativePlan:
    """A plan without steps.  It compares the arguments with the signature, and captured values with
    those at the time of the trace."""
    cells = np.zeros(max(cell_count(spec.input_types), 1), np.int64)
    return launch.NativePlan(launch_spec.PlanSpec(
        **arguments_of(spec, {}, _address_of(cells)), outs=(launch_spec.ObjectOut(None),),
        steps=(), keep=(cells,), name=spec.name,
    ))


def arguments_of(spec: CallSpec, stores: _Stores, cells: Cells) -> dict[str, Any]:
    """The conditions on arguments, as fields of a `PlanSpec`."""
    numbers = cells_of(spec.input_types)
    return {"args": tuple(_leaf_guard(
                spec, leaf, stores.get(("operand", leaf.input), ()), cells, numbers)
                for leaf in spec.native_leaves),
            "relations": _relations(spec), "words": _words(spec)}


def _leaf_guard(
    spec: CallSpec, leaf: LeafSpec, stores: tuple[launch_spec.WordStore, ...], cells: Cells,
    numbers: dict[int, int],
) -> Any:
    """The condition on a leaf; arrays go to ``stores``, scalars to their cell."""
    if leaf.input < 0:
        if type(leaf.value) is OpenInt or (
                type(leaf.value) is int and -(1 << 63) <= leaf.value < 1 << 63):
            return launch_spec.IntArg((), leaf.value, leaf.value)
        if leaf.generator is not None:
            return launch_spec.TypeArg(leaf.generator.type)
        if leaf.is_weak:
            return launch_spec.AddressArg(id(leaf.object))
        return launch_spec.ObjectArg(leaf.value)
    type_ = spec.input_types[leaf.input]
    if type_.kind == "array":
        strides = tuple(
            None if size == 1 else s
            for size, s in zip(type_.shape, spec.input_strides[leaf.input], strict=True)
        )
        is_outside = leaf.input >= spec.first_captured
        return launch_spec.ArrayArg(
            type_.dtype, type_.shape, strides, stores,
            read_only=leaf.input in spec.read_only or (leaf.input, False) in spec.asked_flags,
            writeable=leaf.input in spec.updates or (leaf.input, True) in spec.asked_flags or (
                is_outside and leaf.input not in spec.read_only))
    first = numbers[leaf.input]
    cell = tuple(
        launch_spec.WordStore(cells(first + k), 8 * k) for k in range(words_of(type_.dtype)))
    if type_.kind == "scalar":
        return launch_spec.ScalarArg(type_.dtype.type, cell)
    if type_.dtype.kind == "i":
        return launch_spec.IntArg(cell, *RUN_TIME_INT)
    return launch_spec.ScalarArg(complex if type_.dtype.kind == "c" else float, cell)


def _relations(spec: CallSpec) -> tuple[Any, ...]:
    """Aliased leaves must be the same memory; written ones must not overlap any other."""
    result: list[Any] = []
    leaves = spec.native_leaves
    arrays = [
        i for i, leaf in enumerate(leaves)
        if leaf.input >= 0 and spec.input_types[leaf.input].kind == "array"
    ]
    for i in arrays:
        if leaves[i].alias_of >= 0:
            result.append(launch_spec.SameMemory(leaves[i].alias_of, i))
    for i in arrays:
        if leaves[i].input in spec.updates:
            result.extend(
                launch_spec.Disjoint(i, j) for j in arrays
                if j != i and leaves[j].alias_of != i and leaves[i].alias_of != j
            )
    at = {leaves[i].input: i for i in arrays}
    result.extend(launch_spec.Disjoint(at[one], at[other]) for one, other in sorted(spec.apart))
    return tuple(result)


def _words(spec: CallSpec) -> tuple[launch_spec.OpenWord, ...]:
    return tuple(launch_spec.OpenWord(fn, launcher.code_offset(), code) for fn, code in spec.code)
