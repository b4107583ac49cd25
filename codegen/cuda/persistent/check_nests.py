"""Nests that check and store nothing: for kernels that change their operand.

Who reports a failed check shows the operands as they were, so the checks come before the stores.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from fusec.codegen.structured.not_native import NotNativeError
from fusec.core.records import replace

from ...kernels.loop_ir import CHECKS, Stage, walk
from ..compiled_nests import CudaForm


def checks_alone(forms: Iterable[CudaForm]) -> Iterator[CudaForm]:
    """The forms that check something, without their stores."""
    for form in forms:
        nest = form.loops.nest
        if not nest.has_checks:
            continue
        if form.mode != "map" or nest.scratch:
            raise NotNativeError("a reduction that checks and changes its operand")
        stages = tuple(Stage(stage.inner, checks=tuple(
            e for e in walk(stage.roots) if e.op in CHECKS)) for stage in nest.stages)
        loops = replace(form.loops, nest=replace(nest, stages=stages, sequential=False))
        yield replace(form, loops=loops)
