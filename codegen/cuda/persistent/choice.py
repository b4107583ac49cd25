"""One kernel for all iterations, or launches of kernels: which costs less.

Figures are those of kernels written by hand for an H200, here and in `launch_shape`: a step of a
loop as a launch in a CUDA graph, the rate of memory for a grid of any size, the time of a look of
the host at a number.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from fusec.codegen.structured import statements as s
from fusec.codegen.structured.program import StructuredProgram
from fusec.core.records import dataclass

from ..programs.residence import Residence
from .launch_shape import is_for_one_block, iteration_us
from .program_kernel import ProgramKernel

LAUNCH_US, LOOK_US, GRID_GBS = 0.98, 20.0, 4100.0
_WORTH = 1.25  # of which the time of Python is part that launches each iteration

Way = Literal["", "persistent", "launched"]
forced: Way = ""  # by tests


@dataclass(frozen=True)
class ChosenWay:
    """Estimated times of an iteration of all loops; ``looks``: how often the host has to wait for a
    number in it."""

    persistent_us: float
    launched_us: float
    launches: int
    looks: int
    has_loops: bool = True
    is_only_way: bool = False  # launches at sizes that only the run knows are planned one by one

    @property
    def is_persistent(self) -> bool:
        return self.is_only_way or self.persistent_us <= _WORTH * self.launched_us

    def __str__(self) -> str:
        looks = f", {self.looks} of which the host waits for" if self.looks else ""
        of = "an iteration" if self.has_loops else "it"
        if self.is_only_way:
            return (f"{of} is estimated at {self.persistent_us:.2g} us beside nests of sizes that "
                    f"the run decides, for each of which the host would plan a launch")
        return (f"{of} is estimated at {self.persistent_us:.2g} us, and at "
                f"{self.launched_us:.2g} us as {self.launches} "
                f"{'launch' if self.launches == 1 else 'launches'}{looks}")


def choose(program: StructuredProgram, made: ProgramKernel) -> ChosenWay:
    """Of a program, by its kernel; sizes that calls give count as those of large arrays."""
    static = [grid for grid in made.grids if grid.form.is_static]
    work = max(map(_threads, static), default=1)
    repeated = [grid for grid in static if grid.is_repeated]
    moved, looks = sum(grid.form.loops.moved_bytes for grid in repeated), _looks(program)
    in_one = len(static) == len(made.grids) and is_for_one_block(work, made.barriers, moved)
    return ChosenWay(iteration_us(made.barriers, moved, in_one),
                  LAUNCH_US * made.launches + moved / (1e3 * GRID_GBS) + looks * LOOK_US,
                  made.launches, looks, program.has_loops,
                  any(grid.limits is not None for grid in made.grids) or made.selects)


def _threads(grid: Any) -> int:
    layout = grid.layout({})
    return int(layout.blocks * layout.threads[0] * layout.threads[1])


def _looks(program: StructuredProgram) -> int:
    """Conditions and indices that follow from what kernels compute."""
    residence = Residence(program.body)
    inside = [*_inside_loops(program.body, not program.has_loops)]
    checks = sum(isinstance(x, s.RunKernel) and any(use.exit >= 0 for use in x.nests)
                 for x in inside)
    return checks + sum(residence.is_there(number) for x in inside for number in _waited_for(x))


def _waited_for(x: Any) -> Iterator[Any]:
    if isinstance(x, (s.If, s.While, s.Check, s.PointInto)):
        yield x.condition
    elif isinstance(x, (s.Load, s.Store)):
        yield x.place.element


def _inside_loops(block: s.Block, inside: bool = False) -> Iterator[Any]:
    for x in block:
        in_loop = inside or isinstance(x, (s.While, s.CountedLoop))
        if in_loop:
            yield x
        for inner in s.blocks_of(x):
            yield from _inside_loops(inner, in_loop)
