"""The struct that holds the state of a library: a field for each Variable, and for each number and
array outside that some function of it changes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from fusec.codegen.exported.identifiers import identifier
from fusec.codegen.exported.parts import CField, ExportedFunction, Variant, layout

from .functions import Exporter, unused_in_c
from .refusals import Refusal, RefusedError
from .shared_state import refusals_of
from .states import StateCells, TraceState, found_cells
from .traces import PlannedCall

OF_A_STATE = ("address", "reset")  # names of `StubState`'s own


def give_fields(
    exporters: Sequence[Exporter], functions: Sequence[ExportedFunction]
) -> list[CField]:
    """The fields; variants know theirs from then on."""
    traces = [*_traces(exporters, functions)]
    states = [plan.state for _, _, plan in traces]
    cells = found_cells(states)
    refusals = [*refusals_of(states, cells)]
    if refusals:
        raise RefusedError(refusals)
    fields, taken = dict[int, CField](), {*OF_A_STATE}
    for _, variant, plan in traces:
        _fill(variant, plan.state, cells, fields, taken)
        variant.assigned |= {k: variant.fields[n] for k, n in plan.results.assigned.items()}
    made = [*fields.values()]
    size, align = layout(made)
    for function, variant, _ in traces:
        if variant.fields:
            function.state_bytes, function.state_align = size, align
    return made


def _traces(
    exporters: Sequence[Exporter], functions: Sequence[ExportedFunction]
) -> Iterator[tuple[ExportedFunction, Variant, PlannedCall]]:
    for exporter, function in zip(exporters, functions, strict=True):
        for variant, plan in zip(function.variants, exporter.plans, strict=True):
            yield function, variant, plan


def _fill(
    variant: Variant, state: TraceState, cells: StateCells, fields: dict[int, CField],
    taken: set[str],
) -> None:
    for number in state.keys:
        cell = cells.find(state.own_keys(number))
        value = np.ascontiguousarray(variant.constants[number]).reshape(
            np.shape(variant.constants[number]))
        if cell is None or not value.nbytes:
            continue
        dtype = variant.call_plan.graph.inputs[number].type.dtype
        value = value.astype(dtype, copy=False)
        if cell not in fields:
            end, align = max((f.end for f in fields.values()), default=0), dtype.alignment
            at = -(-end // align) * align  # as C lays a struct out
            name = unused_in_c(identifier(state.names[number]), taken)
            fields[cell] = CField(name, at, value)
        if (fields[cell].dtype, fields[cell].value.shape) != (dtype, value.shape):
            raise RefusedError([Refusal(
                f"{state.names[number]}, which has several types or sizes", None)])
        variant.fields[number] = fields[cell]
