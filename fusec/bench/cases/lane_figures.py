"""Machine instructions of kernels that run lanes, and times that follow: no GPU is needed.

An ensemble takes at least the larger of two times, on an H200: that of all iterations at the rate
at which multiprocessors issue instructions (Williams, Waterman and Patterson's roofline, 2009),
each warp taking as many as its longest lane; and that of the longest lane of all by itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import fusec
from fusec.codegen.cuda.disassembly import disassembled
from fusec.codegen.cuda.driver import nvrtc
from fusec.codegen.cuda.driver.nvrtc import Compiled
from fusec.codegen.cuda.lanes.lane_costs import DOUBLES, GHZ, ISSUED, MULTIPROCESSORS
from fusec.codegen.cuda.lanes.lane_kernel import BLOCK
from fusec.codegen.cuda.lanes.lane_printer import lane_kernel
from fusec.codegen.cuda.lanes.lane_program import NAME
from fusec.codegen.cuda.persistent.program import module_of_program
from fusec.codegen.structured.program import build_program
from fusec.core.records import dataclass

from . import lane_cases, sass
from .lane_cases import LaneCase

TRACED = 1000  # lanes; the code is the same for any number
CYCLES = 4.5  # from an instruction to one that needs its result


@dataclass(frozen=True)
class LaneFigures:
    """One ensemble's kernel; ``instructions`` of an iteration of its inmost loops, by class."""

    case: LaneCase
    dtype: str
    registers: int
    spilled_bytes: int
    occupancy: float
    instructions: Mapping[str, float]

    @property
    def name(self) -> str:
        """Its key in the record of the static gate."""
        return f"{self.case.name}: an iteration of a lane {self.dtype}"

    @property
    def instructions_in_all(self) -> float:
        return sum(self.instructions.values())

    @property
    def issue_us(self) -> float:
        """All lanes, at the rate of the multiprocessors."""
        cycles = max(self.instructions_in_all / ISSUED, self.instructions["double"] / DOUBLES)
        lanes = self.case.lanes * self.case.iterations
        return 1e-3 * lanes * cycles / (MULTIPROCESSORS * GHZ)

    @property
    def longest_us(self) -> float:
        """The longest lane by itself."""
        return 1e-3 * self.case.longest * self.instructions_in_all * CYCLES / GHZ


def compiled(case: LaneCase, dtype: str, architecture: str = "sm_90") -> Compiled:
    """The kernel of an ensemble; raises `NoNvrtcError` where NVRTC is missing."""
    lowered = fusec.vmap(case.function(dtype)).lower(*case.args(dtype, TRACED))
    (step,) = (s for s in lowered.call_plan.externs if s.node.attrs.get("lanes"))
    made = lane_kernel(build_program(step.node, step.run.strides))
    return nvrtc.compile(module_of_program(made, NAME, waits=False), architecture)


def figures_of(case: LaneCase, dtype: str) -> LaneFigures:
    """Raises `NoNvrtcError` and `NoDisassemblerError`."""
    made = compiled(case, dtype)
    usage = made.usage[NAME]
    return LaneFigures(
        case, dtype, usage.registers, usage.spill_stores + usage.spill_loads,
        usage.occupancy(BLOCK, 0), sass.iteration(disassembled(made.cubin)))


def every_ensemble(dtypes: Sequence[str]) -> Iterator[LaneFigures]:
    """Of all cases that have arguments of these dtypes."""
    for dtype in dtypes:
        for case in lane_cases.CASES:
            if dtype in case.dtypes:
                yield figures_of(case, dtype)


_HEAD = ("ensemble", "dtype", "lanes", "registers", "spilled B", "occupancy",
         "instructions / iteration", "of float64", "iterations", "by issue µs", "longest lane µs")


def table(dtypes: Sequence[str]) -> str:
    """The figures as a table."""
    rows: list[Sequence[Any]] = [_HEAD, ["---"] * len(_HEAD)]
    rows += [(f.case.name, f.dtype, f"{f.case.lanes:,}", f.registers, f.spilled_bytes,
              f"{f.occupancy:.0%}", f"{f.instructions_in_all:.0f}",
              f"{f.instructions['double']:.0f}", f"{f.case.iterations:.1f}", f"{f.issue_us:.0f}",
              f"{f.longest_us:.0f}") for f in every_ensemble(dtypes)]
    return "\n".join(f"| {' | '.join(map(str, row))} |" for row in rows)
