"""The steps of a plan on the timeline: kernels, library calls, copies, branches and loops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from fusec.codegen.plan.call_plan import CallPlan
from fusec.codegen.structured.calls.call_statements import NodeCall
from fusec.codegen.structured.kernel_statements import RunKernel
from fusec.core import timeline
from fusec.ir.graph import Loc
from fusec.ops import get

from .. import memory

_SAMPLE_NS = 20_000  # no more often is it asked how much memory is in use: that takes 1 us


class StepNote(NamedTuple):
    """What the timeline says of a step; ``args`` has bytes and operations where sizes are known."""

    kind: str
    name: str
    loc: Loc | None
    args: dict[str, Any]


def notes_of(call_plan: CallPlan) -> list[StepNote]:
    """One for each step, in order."""
    return [_kernel(step) if isinstance(step, RunKernel) else _extern(step)
            for step in call_plan.steps]


def _kernel(step: RunKernel) -> StepNote:
    kernel = step.kernel
    args = _known(bytes=[kernel.bytes_of(i) for i in range(len(kernel.buffers))],
                  operations=[kernel.work])
    computes = kernel.operations or any(s.reductions for n in kernel.nests for s in n.stages)
    lines = list(dict.fromkeys(map(str, kernel.locs)))
    return StepNote("kernel" if computes else "copy", kernel.name,
                    kernel.locs[0] if kernel.locs else None,
                    {**args, **({"lines": lines} if len(lines) > 1 else {})})


def _extern(step: NodeCall) -> StepNote:
    node, control = step.node, step.run
    args = _known(bytes=[t.nbytes for t in (*(v.type for v in node.inputs), *node.types)])
    if control is not None:
        how = "native" if control.is_native else "step by step"
        return StepNote("control", node.name, node.loc, {"op": node.op, "runs": how})
    kind = "copy" if get(node.op).kind == "view" else "library"
    return StepNote(kind, node.name, node.loc, {"op": node.op, **args})


def _known(**sizes: Sequence[Any]) -> dict[str, int]:
    return {name: sum(each) for name, each in sizes.items()
            if all(isinstance(n, int) for n in each)}


class StepSpans(list[tuple[str, float]]):
    """Takes the (step, microseconds) pairs of one run, as they come, for the timeline."""

    def __init__(self, notes: Sequence[StepNote]) -> None:
        super().__init__()
        self._notes = iter(notes)
        self._device = timeline.device_here()
        self._sampled = 0

    def append(self, pair: tuple[str, float]) -> None:
        end = timeline.now()
        note = next(self._notes)
        timeline.span(self._device, note.kind, note.name, end - int(1e3 * pair[1]), end, note.loc,
                      **note.args)
        if end - self._sampled > _SAMPLE_NS:
            self._sampled = end
            count_memory()


def count_memory() -> None:
    """The memory in use by large results and temporaries, on the timeline."""
    timeline.counter("", "bytes in use", memory.live_bytes())
