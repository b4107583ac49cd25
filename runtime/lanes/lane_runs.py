"""Loops over lanes: ranges of lanes run at the same time, each as a call of the native loop.

Lanes differ in length, so a thread takes the next few when it is done with some, fewer towards the
end.  How long one takes is measured by the first.  A lane that raises ends all: those before it are
finished, for one of them may raise too, and the first one's exception is raised.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from fusec.codegen.backend import DeviceArrays
from fusec.codegen.plan.control_program import ControlProgram
from fusec.codegen.plan.control_runs import ControlRun
from fusec.ops.calls.subgraph_ops import lane_operands

from ..launching import threads
from ..launching.cells import idle_or_new
from ..plan import control_flow
from ..plan.control_flow import NativeBlocks, NativeRun
from ..plan.sub_programs import Memory, Planner, results_for
from .lane_threads import Job, run_job

FIRST = 16  # lanes that are measured first
GROWTH = 4
MEASURED_NS = 20_000  # how long lanes run before the rest is divided
SHORT_NS = 400_000  # a loop of less is left to the thread that calls it: others wake up late
RANGE_NS = 1_000_000  # of the lanes that a thread takes at once
VECTORS_NS = 4_000_000  # where lanes run in vectors, which are not full at a range's end


class LaneRun(NativeRun):
    """Calls of a compiled loop over lanes."""

    def __init__(self, run: ControlRun, program: ControlProgram, planner: Planner) -> None:
        super().__init__(run, program, planner)
        self.first, self.last = lane_operands(run.node)
        if program.is_divisible:
            self.is_parallel = False  # kernels of lanes; lanes themselves are

    def new_blocks(self) -> NativeBlocks:
        return idle_or_new(self._idle, lambda: NativeBlocks(self.program, self.pool))

    def _called(
        self, blocks: NativeBlocks, operands: Sequence[Any], memory: Sequence[Memory],
        sizes: Mapping[str, int],
    ) -> list[np.ndarray]:
        results = results_for(self.program, self.reused, operands, memory)
        call = LanesOfCall(self, operands, results, sizes)
        own = LaneBlocks(call, blocks)
        begin, end = int(operands[self.first]), int(operands[self.last])
        failed = call.run(own, begin, end)
        if failed is not None:
            call.raise_first(own, failed, end)
        results[0] = np.asarray(end, results[0].dtype) if results[0] is not None else end
        return results


class LanesOfCall:
    """One call: what its threads share."""

    def __init__(
        self, run: LaneRun, operands: Sequence[Any], results: list[Any], sizes: Mapping[str, int]
    ) -> None:
        self.of, self.operands, self.results, self.sizes = run, operands, results, sizes

    def run(self, own: LaneBlocks, begin: int, end: int) -> int | None:
        """All lanes; the first lane of the first range in which one raised."""
        if not self.of.program.is_divisible:
            return own.failed_at(begin, end)
        count, done, lane_ns = FIRST, begin, 0.0
        begun = start = time.perf_counter_ns()
        while done < end:
            stop = min(done + count, end)
            if own.failed_at(done, stop) is not None:
                return done
            now = time.perf_counter_ns()
            lane_ns, done, start = (now - start) / (stop - done), stop, now
            if now - begun > MEASURED_NS:
                break
            count *= GROWTH
        workers = threads.get_num_threads() - 1
        if not workers or (end - done) * lane_ns < SHORT_NS:
            return own.failed_at(done, end) if done < end else None
        least = self.of.program.together
        most = max(int((RANGE_NS if least == 1 else VECTORS_NS) / max(lane_ns, 1.0)), least)
        job = Job(self.new_worker, done, end, most, workers + 1, least)
        return run_job(job, own.failed_at)

    def new_worker(self) -> LaneBlocks:
        """The blocks of one more thread."""
        return LaneBlocks(self, self.of.new_blocks())

    def raise_first(self, own: LaneBlocks, begin: int, end: int) -> None:
        """Raise the exception of the first lane from ``begin`` on that has one.

        A lane writes to its own results alone, so it may run again.
        """
        for lane in range(begin, end):
            try:
                own.run(lane, lane + 1)
            except Exception as error:
                error.add_note(f"in lane {lane}")
                raise
        raise AssertionError("internal error: no lane raised again")


class LaneBlocks:
    """The argument blocks of one thread, with the words of one call."""

    def __init__(self, call: LanesOfCall, blocks: NativeBlocks) -> None:
        self.run_of, self.blocks, self.results = call.of, blocks, call.results
        self.kept = call.of._bound(blocks, call.operands, call.results, call.sizes)
        self.begin, self.end = blocks.scalar(call.of.first), blocks.scalar(call.of.last)

    def failed_at(self, begin: int, end: int) -> int | None:
        """Run these lanes; ``begin`` if one raised."""
        self.begin[0], self.end[0] = begin, end
        status = self.run_of.function(self.blocks.address)
        return begin if status else None

    def run(self, begin: int, end: int) -> None:
        """The same, raising what the lane raises."""
        self.begin[0], self.end[0] = begin, end
        self.run_of._run(self.blocks, list(self.results))

    def done(self) -> None:
        """Another call may have them."""
        self.run_of._idle.append(self.blocks)


def run_of(
    control: ControlRun, planner: Planner, arrays: DeviceArrays | None = None
) -> Callable[..., list[np.ndarray]]:
    """`control_flow.run_of`; of a native loop over lanes a function that runs them on threads."""
    if control.node.attrs.get("lanes") and isinstance(control.program, ControlProgram):
        return LaneRun(control, control.program, planner)
    return control_flow.run_of(control, planner, arrays)
