"""A loop over lanes as one kernel: made of its statements, compiled, and what people see of it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from fusec import config
from fusec.codegen.backend import Strides
from fusec.codegen.structured import statements as s
from fusec.codegen.structured.not_native import NotNativeError
from fusec.codegen.structured.program import StructuredProgram, build_program
from fusec.codegen.structured.verify import verify

from ...machine_code.native_nest import CompileStats
from ...plan.control_program import ControlCode
from ..kernels.kernel_texts import KernelTexts
from ..persistent.program import (
    MOST_LINES,
    PersistentCompiler,
    compiled_module,
    module_of_program,
    whole_of,
)
from .lane_call import LaneProgram
from .lane_costs import TRIPS, core_ns, instructions
from .lane_kernel import LaneKernel
from .lane_printer import lane_kernel

NAME = "lanes"


def lane_program(
    program: StructuredProgram, strides: Sequence[Strides], compiler: PersistentCompiler,
    stats: CompileStats,
) -> ControlCode:
    """Raises `NotNativeError` for lanes that cannot be a kernel's."""
    if config.verify:
        verify(program)
    start = time.perf_counter()
    made = lane_kernel(program)
    if len(made.em.lines) > MOST_LINES:
        raise NotNativeError(f"{len(made.em.lines)} lines of code, of at most {MOST_LINES}")
    module = module_of_program(made, NAME, waits=False)
    kernel, loaded = compiled_module(module, compiler.driver, stats, start)
    whole = whole_of(program)
    run: Any = LaneProgram(program, made, kernel, loaded, compiler.driver_for(whole), whole)
    return ControlCode(program.node, run, [], program.copied, KernelTexts(module),
                       lambda: build_program(program.node, strides),
                       told(made))


def told(made: LaneKernel) -> str:
    """How lanes run, in words."""
    test = made.loop.test if isinstance(made.loop, s.While) else ()
    body = (*test, *made.loop.body)
    of_lane = instructions(body)
    places = [*dict.fromkeys(made.arrays.of.values())]
    arrays = "".join(f"; arrays of a lane are {_WORDS[place]}" for place in places)
    return (f"one kernel, a thread a lane (with {TRIPS} iterations of a loop estimated at "
            f"{of_lane.lane_ns:.2g} ns a lane on an H200, of {of_lane.all:,.0f} instructions, and "
            f"on one core of a CPU at {core_ns(body):.2g}{arrays})")


_WORDS = {
    "local": "in registers or local memory", "interleaved": "in global memory, interleaved",
    "apart": "in global memory"}
