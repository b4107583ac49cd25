"""A form's kernels as text, by mode, and modules of several forms."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from fusec.core.records import dataclass

from ...kernels.specialise import LoopForm
from ..module import CudaKernel, CudaModule
from ..scalars.math_builder import definitions
from ..scalars.scalar_functions import ScalarText, definition
from .elementwise_kernels import MapKernel
from .launch_plan import Geometry, Slot
from .nest_kernel import KernelWriter
from .ordered_stores import way_of
from .partitioned_stores import SORTED, is_partitioned
from .reductions.column_parts import part_kernels, parts_of
from .reductions.columns import ColumnKernel
from .reductions.full_reductions import (
    FinishKernel,
    OneBlockKernel,
    PartialKernel,
    RowFinishKernel,
    RowPartialKernel,
    chunks_of,
    is_for_one_block,
)
from .reductions.long_scans import ClearKernel, LongScanKernel, is_long_scan
from .reductions.rows import RowKernel
from .tiles import TileKernel, tiles_of


@dataclass(frozen=True)
class WrittenKernel:
    """A kernel's text, the functions that it calls (fusec's own, the user's), its arguments, its
    layout, the elements that a thread computes in one turn of a loop."""

    text: str
    kernel: CudaKernel
    math: tuple[tuple[str, object], ...]
    functions: tuple[ScalarText, ...]
    slots: tuple[Slot, ...]
    geometry: Geometry
    elements: int


_MODES: dict[str, tuple[type[KernelWriter], ...]] = {
    "map": (MapKernel,), "row": (RowKernel,), "flat": (PartialKernel, FinishKernel),
    "column": (ColumnKernel,), "tiled": (ColumnKernel,),
}


def write_form(form: LoopForm, index: str, name: str) -> list[WrittenKernel]:
    """The kernels of a form, in the order in which they are launched."""
    kinds = _kinds(form)
    writers = [kind(form, f"{name}_{number}", index) for number, kind in enumerate(kinds)]
    return [_written(writer) for writer in writers]


def noted_texts(
    form: LoopForm, index: str, name: str
) -> Iterator[tuple[str, list[tuple[int, int, Any]]]]:
    """The texts of `write_form`, each with notes: the lines from a first to before another are of
    an expression of the nest; inner notes come before those around them."""
    for number, kind in enumerate(_kinds(form)):
        writer = kind(form, f"{name}_{number}", index)
        writer.em.notes = []
        text, _ = writer.write()
        before = 1 + len(writer.head)
        yield text, [(before + low, before + high, e) for low, high, e in writer.em.notes]


def _kinds(form: LoopForm) -> Sequence[Callable[[LoopForm, str, str], KernelWriter]]:
    if form.nest.sequential:
        return SORTED if is_partitioned(form) else (way_of(form),)
    if is_long_scan(form):
        return ClearKernel, LongScanKernel
    if chunks_of(form) > 1:
        return RowPartialKernel, RowFinishKernel
    if parts_of(form) > 1:
        return part_kernels(form)
    if is_for_one_block(form):
        return (OneBlockKernel,)
    return (TileKernel,) if tiles_of(form) is not None else _MODES[form.mode]


def _written(writer: KernelWriter) -> WrittenKernel:
    text, kernel = writer.write()
    return WrittenKernel(text, kernel, tuple(writer.em.math),
                         tuple(map(definition, writer.em.functions)), tuple(writer.slots),
                         writer.geometry(), writer.elements)


@functools.cache
def prelude() -> str:
    """The C++ that every module begins with."""
    return (Path(__file__).parent / "prelude.cuh").read_text()


def module_of(kernels: Sequence[WrittenKernel]) -> CudaModule:
    """One module: the prelude, the functions that are called, the kernels."""
    source = source_of([r for k in kernels for r in k.math], [k.text for k in kernels],
                       [f for k in kernels for f in k.functions])
    return CudaModule(source, tuple(k.kernel for k in kernels))


def source_of(
    math: Sequence[tuple[str, object]], texts: Sequence[str], functions: Sequence[ScalarText]
) -> str:
    """The prelude, the functions that are called, and their callers."""
    once = list(dict.fromkeys(functions))
    requests: list[Any] = list(dict.fromkeys([*math, *(r for f in once for r in f.math)]))
    return "\n".join(["namespace fusec {", prelude(), *definitions(requests),
                      *(f.text for f in once), "}  // namespace fusec", "using namespace fusec;",
                      *texts, ""])
