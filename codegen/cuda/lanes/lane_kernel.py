"""The text of a kernel that runs lanes, as it grows: a thread has a lane, with numbers and arrays.

Nobody waits for anybody: a lane in which a check fails leaves its number, the smallest of which
counts, and its thread is done.  Launched for that lane alone the kernel leaves the failed check.
"""

from __future__ import annotations

from collections.abc import Sequence

from fusec.codegen.structured import statements as s
from fusec.codegen.structured.analyses.iteration_counts import iterations
from fusec.codegen.structured.memory import Memory, Operand, View, is_zero
from fusec.codegen.structured.not_native import NotNativeError
from fusec.codegen.structured.program import StructuredProgram
from fusec.ir.sizes.bindings import resolve
from fusec.ir.sizes.dims import is_static
from fusec.ops.calls.subgraph_ops import lane_operands

from ..persistent.hazards import Hazards
from ..persistent.program_kernel import (
    EXIT,
    INTERRUPTED,
    MOST_UNWATCHED,
    STOP,
    ProgramKernel,
)
from .lane_arrays import LaneArrays

BLOCK = 128  # threads: few, so that a block's place is free as soon as its longest lane has ended
FAILED = -2  # and below: less the number of the lane
MOST_WORK = 10**12  # ns of a CPU for all lanes, which nobody has to be able to end
_SPENT = "u32 spent = 0;"


class LaneKernel(ProgramKernel):
    """``loop`` is the loop over lanes, the only one of the program."""

    def __init__(self, program: StructuredProgram) -> None:
        super().__init__(program, Hazards())
        self.before, self.loop = parted(program)
        self.begin, self.end = lane_operands(program.node)
        test = self.loop.test if isinstance(self.loop, s.While) else ()
        lane = (*self.before, *test, *self.loop.body)
        self.arrays = LaneArrays(self.loop.body, self.aliases)
        self.times = iterations(lane)
        self.head += ["const i64 thread = i64(blockIdx.x) * blockDim.x + threadIdx.x;",
                      "const i64 threads = i64(gridDim.x) * blockDim.x;"]

    @property
    def variable(self) -> s.Variable:
        """The number of the lane."""
        if isinstance(self.loop, s.CountedLoop):
            return self.loop.variable
        assert self.loop.lanes is not None
        return self.loop.lanes.variable

    @property
    def most_threads(self) -> int:
        return BLOCK

    @property
    def is_bounded(self) -> bool:
        """Whether it needs memory for each of its threads, of which there are only so many."""
        return any(place != "local" for place in self.arrays.of.values())

    def bound(self, position: int) -> str:
        """The first lane, or the one after the last."""
        return self.argument(("bound", position), "int64", False)

    # -- memory

    def declare_memory(self, memory: Memory) -> None:
        place = self.arrays.of.get(memory)
        if place is None:
            super().declare_memory(memory)
            self.left.clear()  # nobody reads results of lanes that have failed
        elif place == "local":
            self.head += [f"alignas(16) char own_{memory!r}[{max(int(memory.nbytes), 1)}];",
                          f"char *{memory!r} = own_{memory!r};"]
        else:
            step = memory.nbytes if place == "apart" else memory.dtype.itemsize
            self.head.append(f"char *{memory!r} = {self._of_threads(memory)} + "
                             f"thread * {self.size(step)};")

    def _of_threads(self, memory: Memory) -> str:
        self.require_outer(memory.nbytes)
        nbytes = memory.nbytes
        return self.argument(("of threads", memory.number),
                             of=lambda sizes: max(int(resolve(nbytes, sizes)), 1))

    def scale(self, memory: Memory) -> str:
        """What steps in the memory are multiplied by."""
        members = [m for m in self.arrays.of if self.aliases.class_of(m)
                   == self.aliases.class_of(memory)]
        is_interleaved = any(self.arrays.of[m] == "interleaved" for m in members)
        return " * threads" if is_interleaved else ""

    def place(self, view: View) -> str:
        text, scale = repr(view.memory), self.scale(view.memory)
        if not is_zero(view.offset):
            text += f" + {self.value(view.offset)}{scale}"
        if not is_zero(view.element):
            text += f" + {self.value(view.element)} * {view.dtype.itemsize}{scale}"
        return text

    # -- nobody waits

    def barrier(self) -> None:
        raise NotNativeError("a lane that waits for others")

    def is_short(self, work: int) -> bool:
        """Of lanes; all of them count."""
        lanes = self.node.inputs[self.end].node
        if self.times is None or self.times > MOST_UNWATCHED or lanes.op != "Const":
            return False
        return (1 + self.times) * work * int(lanes.attrs["value"]) <= MOST_WORK

    def poll(self, cost: int, most: int) -> None:
        em = self.em
        if _SPENT not in self.head:
            self.head.append(_SPENT)
        em.line(f"spent += {cost};")
        with em.block(f"if (spent >= {most})"):
            em.line("spent = 0;")
            with em.block(f"if (asked_to_stop({self._flag()}) != 0)"):
                self.leave(INTERRUPTED - 1)

    def _flag(self) -> str:
        return self.argument(("flag",), is_written=False)

    def look_before(self) -> None:
        """Before its lanes a thread sees whether the host wants the kernel to end, which the first
        one of some blocks asks, if there are many."""
        if ("flag",) not in self.arguments:
            return
        em, stop = self.em, self.state(STOP)
        em.line(f"if (blockIdx.x % 64 == 63 && threadIdx.x == 0 && asked_to_stop({self._flag()}) "
                f"!= 0) store<u32>({stop}, 1);")
        with em.block(f"if (gridDim.x >= 64 && asked_to_stop({stop}) != 0)"):
            self.leave(INTERRUPTED - 1)

    def leave(
        self, exit_: int, operands: Sequence[Operand | View] = (), index: str = "0",
        size: str = "0",
    ) -> None:
        """End the thread, in the lane where a check has failed."""
        em, self.exits[exit_] = self.em, list(operands)
        taken = self.argument(("exit",))
        if exit_ == INTERRUPTED - 1:
            em.line(f"leave_with({taken}, {INTERRUPTED});")
            em.line("return;")
            return
        with em.block(f"if ({self.bound(self.end)} - {self.bound(self.begin)} == 1)"):
            self.store_exit(exit_, operands, index, size)
        em.line(f"else leave_with({taken}, {FAILED} - {self.variable!r});")
        em.line("return;")

    def place_for_host(self, view: View) -> str:
        if view.memory not in self.arrays.of:
            return super().place_for_host(view)
        return self._copied_out(view.memory, view)

    def _copied_out(self, memory: Memory, view: View) -> str:
        """A lane's own array, where the host finds it."""
        if not is_static((memory.nbytes,)):
            raise NotNativeError("an array of a lane of a size that only the call knows")
        size, scale = memory.dtype.itemsize, self.scale(memory)
        copy = self.in_scratch(self.reserve(int(memory.nbytes)))
        count = int(memory.nbytes) // size
        kind = "u8" if scale == "" else f"u{8 * size}"
        step, count = (1, int(memory.nbytes)) if scale == "" else (size, count)
        self.em.line(f"for (i64 n = 0; n < {count}; ++n) store<{kind}>({copy} + n * {step}, "
                     f"load<{kind}>({memory!r} + n * {step}{scale}));")
        moved = self.place(view).removeprefix(repr(memory)).replace(" * threads", "")
        return f"{copy}{moved}"


def parted(program: StructuredProgram) -> tuple[s.Block, s.While | s.CountedLoop]:
    """The statements before the loop over lanes, and the loop, after which nothing is done."""
    if not program.is_divisible:
        raise NotNativeError("lanes that call Python, or results that change places")
    for position, x in enumerate(program.body):
        if (isinstance(x, s.While) and x.lanes is not None) or (
                isinstance(x, s.CountedLoop) and x.lanes):
            return program.body[:position], x
    raise NotNativeError("no loop over lanes")


__all__ = ["BLOCK", "EXIT", "FAILED", "LaneKernel"]
