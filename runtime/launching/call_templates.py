"""Native calls of plans that differ in sizes alone, and comparisons of arguments for those that
run step by step: copies of a template, in which words that sizes and values decide are filled in.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fusec.codegen.machine_code.native_backend import NativeBackend
from fusec.codegen.machine_code.native_nest import NONE, NestBlock
from fusec.codegen.plan.call_plan import CallPlan
from fusec.core.records import dataclass, replace
from fusec.ir import TensorType
from fusec.ir.regions import byte_extent

from ..call_spec import CallSpec, LeafSpec, ResultSpec, cell_count
from ..native import records
from ..plan.plan_templates import Inside, Opened, OpenInt, PlanTemplate
from ..plan.segments_at_sizes import OpenNest, nests_of, share_of
from . import launch, launch_spec
from .whole_call import RELEASE_GIL_NS, Cells, arguments_of, out_of

MOST_PATTERNS = 8  # of one plan: of other objects among the arguments
_FLAGS = records.PLAN.index("flags")


@dataclass(frozen=True)
class _Call:
    """A plan, from which the open words of its template are filled in."""

    call_plan: CallPlan
    spec: CallSpec
    blocks: Sequence[NestBlock]


class CallPattern:
    """The template of calls whose specs are of one form; ``nests``: None where they compare
    arguments, and run nothing."""

    def __init__(
        self, call_plan: CallPlan, spec: CallSpec, nests: Sequence[OpenNest] | None
    ) -> None:
        self.runs, self.nests, self._open_plan = nests is not None, nests or (), call_plan.open
        self._variables = dict(spec.variables)
        cells = call_plan.cells if self.runs else cell_count(spec.input_types)
        blocks = [*(nest.block.block.words for nest in self.nests),
                  np.zeros(max(cells, 1), np.int64)]
        self._template = PlanTemplate(blocks, lambda starts, opened: self._made(
            _opened(spec, opened), starts, opened))

    def call(self, call_plan: CallPlan, spec: CallSpec) -> Callable[..., Any] | None:
        """The native call of a plan; None where a kernel of it has nothing to do."""
        blocks = self._blocks(call_plan)
        if not all(block.tasks for block in blocks):
            return None
        template = self._template
        table, address = template.table_of(_Call(call_plan, spec, blocks))
        self._write_blocks(table, address, spec, blocks)
        work = sum(block.ns * block.points for block in blocks)
        table[template.plan + _FLAGS] = (
            (records.FLAG_TUPLE if template.spec.as_tuple else 0)
            | (records.FLAG_RELEASE_GIL if work > RELEASE_GIL_NS else 0)
            | (records.FLAG_PARALLEL if any(share_of(block)[2] for block in blocks) else 0))
        slots = [start + block.status for start, block in zip(template.starts, blocks, strict=False)
                 if block.status != NONE]
        return launch.call_of(table, address, template.plan, slots, (template, call_plan, spec))

    def _blocks(self, call_plan: CallPlan) -> list[NestBlock]:
        if not self.runs:
            return []
        steps = [step for step in call_plan.kernels for _ in step.code]
        return [step.filled(nest.block) for step, nest in zip(steps, self.nests, strict=True)]

    def _write_blocks(
        self, table: np.ndarray, address: int, spec: CallSpec, blocks: Sequence[NestBlock],
    ) -> None:
        """Fill in the blocks, with the addresses of cells, and of Variables, which stay where they
        are."""
        starts = self._template.starts
        cells = address + 8 * starts[-1]
        for nest, block, start in zip(self.nests, blocks, starts, strict=False):
            table[start: start + len(block.words)] = block.words
            for number, slot, cell in nest.cells:
                table[start + slot] = cells + 8 * cell + block.pointers[number][2]
            for number, slot, key in nest.arrays:
                if self._is_fixed(key):
                    buffer = spec.captured[key[1] - spec.first_captured]
                    table[start + slot] = buffer.ctypes.data + block.pointers[number][2]

    def _is_fixed(self, key: tuple[str, int]) -> bool:
        return key[0] == "operand" and key[1] in self._variables

    # -- the template

    def _made(self, spec: CallSpec, starts: Sequence[int], opened: Opened) -> launch_spec.PlanSpec:
        stores = self._stores(starts, opened)
        cells: Cells = lambda number: Inside(8 * (starts[-1] + number))  # noqa: E731
        steps: list[launch_spec.NativeStep] = []
        temps = [_temp(key[1], stored, opened) for key, stored in stores.items()
                 if key[0] == "temp"]
        for number, (nest, start) in enumerate(zip(self.nests, starts, strict=False)):
            steps += nest.steps(start, opened.some(3, _share(number)))
            if nest.has_partials:
                temps.append(nest.partial_temp(start, opened.one(_partial_bytes(number))))
        outs = [_out(self._open_plan, spec, r, stores, cells, opened)
                for r in spec.results] if self.runs else [launch_spec.ObjectOut(None)]
        return launch_spec.PlanSpec(
            outs=tuple(outs), steps=tuple(steps), temps=tuple(temps), name=spec.name,
            as_tuple=self.runs and not spec.bare, holds=spec.holds if self.runs else (),
            **_apart(arguments_of(spec, stores, cells), spec, opened))

    def _stores(
        self, starts: Sequence[int], opened: Opened
    ) -> dict[tuple[str, int], tuple[launch_spec.WordStore, ...]]:
        stores: dict[tuple[str, int], tuple[launch_spec.WordStore, ...]] = {}
        for at, (nest, start) in enumerate(zip(self.nests, starts, strict=False)):
            for number, slot, key in nest.arrays:
                if not self._is_fixed(key):
                    store = launch_spec.WordStore(
                        Inside(8 * (start + slot)), opened.one(_offset(at, number)))
                    stores[key] = (*stores.get(key, ()), store)
        return stores


def _offset(nest: int, pointer: int) -> Callable[[_Call], int]:
    return lambda call: call.blocks[nest].pointers[pointer][2]


def _share(nest: int) -> Callable[[_Call], Sequence[int]]:
    return lambda call: share_of(call.blocks[nest])


def _partial_bytes(nest: int) -> Callable[[_Call], int]:
    return lambda call: call.blocks[nest].partial_bytes * call.blocks[nest].tasks


def _nbytes(place: Any) -> int:
    return place.dtype.itemsize * math.prod(place.shape)


def _temp(
    number: int, stores: tuple[launch_spec.WordStore, ...], opened: Opened
) -> launch_spec.Temp:
    return launch_spec.Temp(opened.one(lambda call: _nbytes(call.call_plan.temps[number])), stores)


def _out(
    call_plan: CallPlan, spec: CallSpec, result: ResultSpec, stores: Any, cells: Cells,
    opened: Opened,
) -> Any:
    out, number = out_of(call_plan, spec, result, stores, cells), result.index
    if isinstance(out, launch_spec.ObjectOut) and result.kind == "graph":  # a constant
        return launch_spec.ObjectOut(opened.one(lambda call: id(call.call_plan.outputs[number])))
    if not isinstance(out, launch_spec.ArrayOut):
        return out
    rank = len(out.shape)
    return replace(
        out, shape=opened.some(rank, lambda call: call.call_plan.outputs[number].shape),
        strides=opened.some(rank, lambda call: call.call_plan.outputs[number].strides),
        nbytes=opened.one(lambda call: _nbytes(call.call_plan.outputs[number])))


def _apart(arguments: dict[str, Any], spec: CallSpec, opened: Opened) -> dict[str, Any]:
    """The bytes by which arrays must be apart are open, too."""
    def bounds(leaf: int) -> Any:
        number = spec.native_leaves[leaf].input
        return opened.some(2, lambda call: byte_extent(
            call.spec.input_types[number].shape, _strides(call.spec, number),
            call.spec.input_types[number].dtype.itemsize))

    relations = tuple(
        replace(r, bounds=(*bounds(r.first), *bounds(r.second)))
        if isinstance(r, launch_spec.Disjoint) else r for r in arguments["relations"])
    return {**arguments, "relations": relations}


# -- specs whose sizes and values are open words

def _opened(spec: CallSpec, opened: Opened) -> CallSpec:
    numbers = range(len(spec.input_types))
    types = tuple(_open_type(number, spec, opened) for number in numbers)
    strides = tuple(opened.some(len(spec.input_strides[number]), _any_strides(number))
                    for number in numbers)
    return replace(
        spec, input_types=types, input_strides=strides,
        leaves=tuple(_open_leaf(i, leaf, opened) for i, leaf in enumerate(spec.leaves)),
        results=tuple(_open_result(i, result, opened) for i, result in enumerate(spec.results)))


def _open_type(number: int, spec: CallSpec, opened: Opened) -> TensorType:
    type_ = spec.input_types[number]
    shape = opened.some(len(type_.shape), lambda call: call.spec.input_types[number].shape)
    return TensorType(type_.dtype, shape, type_.kind)


def _strides(spec: CallSpec, number: int) -> list[int]:
    """Strides, with 0 for axes of one element."""
    return [0 if size == 1 else step for size, step in zip(
        spec.input_types[number].shape, spec.input_strides[number], strict=True)]


def _any_strides(number: int) -> Callable[[_Call], Sequence[int]]:
    return lambda call: [records.ANY_STRIDE if size == 1 else step for size, step in zip(
        call.spec.input_types[number].shape, call.spec.input_strides[number], strict=True)]


def _open_leaf(number: int, leaf: LeafSpec, opened: Opened) -> LeafSpec:
    if leaf.input >= 0 or leaf.generator is not None or leaf.is_weak:
        return leaf
    if _is_word(leaf.value):
        return replace(leaf, value=OpenInt(opened.one(lambda call: call.spec.leaves[number].value)))
    return replace(leaf, value=opened.one(lambda call: id(call.spec.leaves[number].value)))


def _is_word(value: Any) -> bool:
    return type(value) is int and -(1 << 63) <= value < 1 << 63


def _open_result(number: int, result: ResultSpec, opened: Opened) -> ResultSpec:
    if result.kind != "const":
        return result
    return replace(result, value=opened.one(lambda call: id(call.spec.results[number].value)))


# -- the patterns of a plan

def native_call(call_plan: CallPlan, spec: CallSpec, runs: bool) -> Callable[..., Any] | None:
    """The native call of a plan that is one of several sizes, or the comparison of its arguments
    where it does not run them; None where it has to be made by itself."""
    open_, form = call_plan.open, (runs, _form(spec))
    if open_ is call_plan:
        return None
    patterns: dict[Any, CallPattern] = vars(open_).setdefault("patterns", {})
    pattern = patterns.get(form)
    if pattern is None:
        if len(patterns) >= MOST_PATTERNS:
            return None
        pattern = patterns.setdefault(form, CallPattern(
            call_plan, spec, _native_nests(open_) if runs else None))
    return pattern.call(call_plan, spec)


def _native_nests(call_plan: CallPlan) -> list[OpenNest]:
    assert isinstance(call_plan.backend, NativeBackend)
    return nests_of(call_plan.kernels, call_plan.backend)


def _form(spec: CallSpec) -> tuple[Any, ...]:
    """The key of a template: all of a spec but sizes and values."""
    leaves = tuple([
        (leaf.input, leaf.alias_of, leaf.generator, id(leaf.object) if leaf.is_weak else
         leaf.input < 0 and _is_word(leaf.value)) for leaf in spec.leaves])
    return (leaves, len(spec.input_types), len(spec.captured), spec.updates, spec.read_only,
            spec.asked_flags, spec.apart, spec.bare, spec.name,
            tuple([number for number, _ in spec.variables]),
            tuple([(use.address, writes) for use, writes in spec.holds]),
            tuple([(id(owner), id(code)) for owner, code in spec.code]),
            tuple([(r.kind, r.index) for r in spec.results]))


__all__ = ["native_call"]
