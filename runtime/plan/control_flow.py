"""Branches and loops in a plan: as one native function, or step by step from Python.

What the back end can compile runs natively.  Everything else (a library call whose result has any
size, say) runs from Python, each sub-graph as a plan of its own.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from fusec import config
from fusec.codegen.backend import DeviceArrays
from fusec.codegen.machine_code.native_nest import NONE, RECORD
from fusec.codegen.plan.control_program import (
    CALLS,
    RUN,
    ControlCode,
    ControlProgram,
    ErrorExit,
    LoopNest,
)
from fusec.codegen.plan.control_runs import ControlRun
from fusec.core.process import stack
from fusec.errors import InternalError, located
from fusec.ir import Node
from fusec.ir.lazy_values import lazy
from fusec.ir.sizes.bindings import resolve
from fusec.ops.calls.recursion import TOO_DEEP, is_repeated
from fusec.ops.rows.gather import kernel_checks, out_of_bounds

from .. import memory
from ..draws import Draws
from ..exit_errors import error_at, scalar_error
from ..failed_checks import early_exit_error
from ..launching import threads
from ..launching.addresses import address_of
from ..launching.cells import idle_or_new, number_at
from ..launching.grain import GRAIN_NS
from ..native import interrupts
from .host_sites import HostCaller, OutgrownError
from .recursive_calls import CallRun, RecursionRun, RepeatedRun
from .sub_programs import Memory, Planner, SubProgram, as_array, lying_as, own, results_for

MOST = 1 << 62
NO_ROOM = "a result had more elements than there was room for: all ran again, step by step"
_OF_NESTS = "nest", "code", "finish", "tasks", "grain", "work"


class LoopRun:
    """A loop over two plans."""

    def __init__(
        self, run: ControlRun, planner: Planner, arrays: DeviceArrays | None = None
    ) -> None:
        self.node, self.reused, self.arrays = run.node, run.reused, arrays
        self.test, self.body = (SubProgram(run.plans[k], planner) for k in ("test", "body"))
        self.carried: int = run.node.attrs["carried"]

    def __call__(
        self, operands: Sequence[Any], memory: Sequence[Memory], sizes: dict[str, int]
    ) -> list[np.ndarray]:
        fresh = {i for i in range(self.carried) if i not in self.reused}
        now = [own(x, v.type, memory[i] if i in fresh else None, self.arrays)
               for i, (x, v) in enumerate(zip(operands, self.node.inputs, strict=True))]
        scalars = [i for i in range(self.carried) if self.node.types[i].kind != "array"]
        while bool(self.test.run(now, sizes)[0]):
            for i, value in zip(scalars, self.body.run(now, sizes), strict=True):
                now[i] = value
        return [as_array(x, t) for x, t in zip(now[: self.carried], self.node.types, strict=True)]


class CondRun:
    """A branch over two plans, of which one is run, and made when it is first needed."""

    def __init__(
        self, run: ControlRun, planner: Planner, arrays: DeviceArrays | None = None
    ) -> None:
        self.node, self.reused, self.arrays = run.node, run.reused, arrays
        self.sides = tuple(SubProgram(run.plans[k], planner) for k in ("orelse", "then"))
        self.changed: int = run.node.attrs["changed"]

    def __call__(
        self, operands: Sequence[Any], memory: Sequence[Memory], sizes: dict[str, int]
    ) -> list[np.ndarray]:
        test, *rest = operands
        first = len(self.node.types) - self.changed
        fresh = {i for i in range(self.changed) if first + i not in self.reused}
        now = [own(x, v.type, memory[first + i] if i in fresh else None, self.arrays)
               for i, (x, v) in enumerate(zip(rest, self.node.inputs[1:], strict=True))]
        outputs = self.sides[bool(test)].run(now, sizes)
        return [as_array(x, t) for x, t in zip(
            [*outputs, *now[: self.changed]], self.node.types, strict=True)]


class NativeRun:
    """Calls of a compiled control node."""

    def __init__(self, run: ControlRun, program: ControlProgram, planner: Planner) -> None:
        self.program, self.strides = program, run.strides
        self.reused = run.reused
        self.run, self.planner = run, planner
        self.is_parallel = any(_work(n)[0] > config.parallel_threshold for n in program.nests)
        self.function = RUN(program.address)
        self.pool = threads.pool_address() if program.nests else 0
        self._idle: list[NativeBlocks] = []

    def __call__(
        self, operands: Sequence[Any], memory: Sequence[Memory], sizes: dict[str, int]
    ) -> list[np.ndarray]:
        blocks = idle_or_new(self._idle, lambda: NativeBlocks(self.program, self.pool))
        try:
            if not self.program.may_outgrow:
                return self._called(blocks, operands, memory, sizes)
            return self._called_or_repeated(blocks, operands, memory, sizes)
        finally:
            self._idle.append(blocks)

    def _called_or_repeated(
        self, blocks: NativeBlocks, operands: Sequence[Any], memory: Sequence[Memory],
        sizes: dict[str, int],
    ) -> list[np.ndarray]:
        """The call; of one that has no room for a result what it changed is put back first."""
        changed = {self.program.copied[number] for number in self.reused}
        before = {k: operands[k].copy() for k in changed}
        try:
            return self._called(blocks, operands, memory, sizes)
        except OutgrownError:
            self.program.called.setdefault("NumPy", NO_ROOM)
            for k, contents in before.items():
                np.copyto(operands[k], contents)
        return self._step_by_step(operands, memory, sizes)

    @lazy
    def _step_by_step(self) -> LoopRun | CondRun:
        """From Python there is room for results of any size."""
        return (LoopRun if self.run.node.op == "Loop" else CondRun)(self.run, self.planner)

    def _called(
        self, blocks: NativeBlocks, operands: Sequence[Any], memory: Sequence[Memory],
        sizes: Mapping[str, int],
    ) -> list[np.ndarray]:
        results = results_for(self.program, self.reused, operands, memory)
        kept = self._bound(blocks, operands, results, sizes)
        self._run(blocks, results)
        del kept  # the function has returned
        return results

    def _bound(
        self, blocks: NativeBlocks, operands: Sequence[Any], results: Sequence[Any],
        sizes: Mapping[str, int],
    ) -> list[Any]:
        """Write the words of a call; what must live until it has returned."""
        program, words = self.program, blocks.words
        for cell, position in blocks.scalars:
            cell[0] = operands[position]
        for at, number in blocks.sizes:
            words[at] = sizes[program.passed[number]]
        kept = []
        for at, position in blocks.operands:
            kept.append(lying := lying_as(operands[position], self.strides[position]))
            words[at] = address_of(lying)
        for at, number in blocks.targets:
            words[at] = address_of(results[number])
        for at, nbytes in blocks.temps:
            kept.append(array := memory_of(resolve(nbytes, sizes)))
            words[at] = address_of(array)
        for at, nbytes in blocks.zeros:
            kept.append(array := np.zeros(max(nbytes, 1), np.uint8))
            words[at] = address_of(array)
        return kept

    def _run(self, blocks: NativeBlocks, results: list[Any]) -> None:
        program = self.program
        if self.is_parallel:
            threads.ensure_workers()
        try:
            status = self._status(blocks)
        except BaseException:  # of a signal's handler
            self._settle(blocks, results)
            raise
        if status:
            self._settle(blocks, results)
            raise blocks.error(program.exits[status - 1])
        for cell, number in blocks.results:
            results[number] = cell[0]

    def _status(self, blocks: NativeBlocks) -> int:
        if blocks.draws is None:
            return self.function(blocks.address)
        with blocks.draws.ready(blocks.words):
            return self.function(blocks.address)

    def _settle(self, blocks: NativeBlocks, results: Sequence[Any]) -> None:
        """Copy what an unfinished loop has computed into the arrays that the caller sees.

        Loops exchange the addresses of arrays instead of copying them.
        """
        homes = {number: blocks.words[at] for at, number in blocks.targets}
        moved = {number: ctypes.string_at(int(blocks.words[at]), results[number].nbytes)
                 for at, number in blocks.left
                 if number in self.reused and blocks.words[at] != homes[number]}
        for number, contents in moved.items():
            ctypes.memmove(int(homes[number]), contents, len(contents))


class CodeRun:
    """Calls of a control node that is a Python function of arrays."""

    def __init__(
        self, run: ControlRun, program: ControlCode, arrays: DeviceArrays | None = None
    ) -> None:
        self.program, self.strides, self.reused = program, run.strides, run.reused
        self.arrays = arrays

    def __call__(
        self, operands: Sequence[Any], memory: Sequence[Memory], sizes: dict[str, int]
    ) -> list[np.ndarray]:
        results = results_for(self.program, self.reused, operands, memory, self.arrays)
        lying = [lying_as(x, strides, self.arrays) if v.type.kind == "array" else x
                 for x, v, strides in zip(
                     operands, self.program.node.inputs, self.strides, strict=True)]
        left = self.program.code(lying, results, sizes)
        if left is not None:
            raise early_exit_error(left)
        return results


def memory_of(nbytes: int) -> np.ndarray:
    """Fresh memory."""
    return memory.empty((max(nbytes, 1),), np.dtype(np.uint8), "C")


def _work(nest: LoopNest) -> tuple[float, int]:
    """The ns that a nest takes at most on one thread, and its tasks."""
    return nest.block.ns * nest.block.points, nest.block.tasks


def _partials(nest: LoopNest) -> np.ndarray:
    """Memory of a nest's partial results."""
    tasks = nest.block.tasks if nest.block.partials != NONE else 0
    return np.zeros(max(nest.block.partial_bytes * tasks, 1), np.uint8)


class NativeBlocks:
    """The argument blocks of one call at a time."""

    def __init__(self, program: ControlProgram, pool: int) -> None:
        self.words = np.zeros(max(program.size, 1), np.int64)
        self.address = int(self.words.ctypes.data)
        self.nests = [n.block.words.copy() for n in program.nests]
        self.partials = [_partials(n) for n in program.nests]
        for nest, words, partial in zip(program.nests, self.nests, self.partials, strict=True):
            if nest.block.partials != NONE:
                words[nest.block.partials] = int(partial.ctypes.data)
        self.by_kind = program.by_kind
        host = {number: at for at, number in self._of("host")}
        sites: Any = program.sites
        self.host = HostCaller(
            sites, lambda number, dtype: self._cell(host[number], dtype), program.called)
        self.draws = self._draws(program)
        self._write_fixed(program, pool)
        self.operands, self.targets = self._of("operand"), self._of("target")
        self.temps, self.zeros = self._of("temp"), self._of("zeros")
        self.sizes = self._of("size")
        self.left = self._of("left")
        node = program.kinds
        self.scalars = [(self._cell(at, node.inputs[k].dtype), k) for at, k in self._of("scalar")]
        self.results = [(self._cell(at, node.types[k].dtype), k) for at, k in self._of("result")]
        self._by_operand = {position: cell for cell, position in self.scalars}

    def scalar(self, operand: int) -> np.ndarray:
        """The word of an operand that is a number."""
        return self._by_operand[operand]

    def _draws(self, program: ControlProgram) -> Draws | None:
        if not self._of("draw"):
            return None
        return Draws(program.sites, {(kind, number): at for kind in ("draw", "source")
                                     for at, number in self._of(kind)}, program.called)

    def _cell(self, at: int, dtype: np.dtype) -> np.ndarray:
        return number_at(self.words, at, dtype)

    def _of(self, kind: str) -> list[tuple[int, int]]:
        return self.by_kind.get(kind, [])

    def _write_fixed(self, program: ControlProgram, pool: int) -> None:
        """The words that are the same in each call."""
        words = self.words
        for at, number in self._of("number"):
            words[at] = number
        for at, number in self._of("bits"):
            words[at] = int(np.float64(number).view(np.int64))
        for at, _ in self._of("pool"):
            words[at] = pool
        for at, number in self._of("callback"):
            words[at] = self.host.address(number)
        for at, _ in self._of("deepest"):
            words[at] = stack.limit()
        for kind in CALLS:
            for at, _ in self._of(kind):
                words[at] = interrupts.addresses()[kind]
        for kind in _OF_NESTS:
            for at, number in self._of(kind):
                words[at] = self._of_nest(program.nests[number], kind, number)

    def _of_nest(self, nest: LoopNest, kind: str, number: int) -> int:
        if kind == "nest":
            return int(self.nests[number].ctypes.data)
        if kind in ("code", "finish"):
            return nest.code.entry if kind == "code" else nest.code.finish
        work, tasks = _work(nest)
        parallel = work > config.parallel_threshold and tasks > 1 and not nest.block.sequential
        grain = math.ceil(tasks * GRAIN_NS / max(work, 1.0)) if parallel else tasks
        grain = MOST if nest.block.sequential else grain  # there may be more than was thought
        return {"tasks": tasks, "grain": max(grain, 1), "work": math.ceil(work / max(tasks, 1))}[
            kind]

    def error(self, error_exit: ErrorExit) -> BaseException:
        if error_exit.outgrown:
            return OutgrownError()
        if error_exit.call is not None:
            return scalar_error(error_exit, [
                self.host.cell(number, dtype)[0] for number, dtype in error_exit.call[1]])
        if self.host.error is not None or error_exit.node.op == "HostCall":
            raised, self.host.error = self.host.error, None
            if isinstance(raised, OutgrownError):
                return raised
            return located(raised or InternalError("a host call failed without an error"),
                           error_exit.node.loc)
        if error_exit.node.op == "Call":
            return located(RecursionError(TOO_DEEP), error_exit.node.loc)
        if error_exit.node.op == "Fused":
            return self._kernels_error(error_exit.node)
        return error_at(error_exit, *(
            int(self.words[at]) for value in range(2) for at, word in self._of("index")
            if word == value))

    def _kernels_error(self, node: Node) -> Exception:
        """What NumPy raises for the first index that a kernel found out of range."""
        number, index, size = (int(self.words[self._at("failure", 1 + RECORD.index(name))])
                               for name in ("check", "index", "size"))
        check = kernel_checks(node.attrs["body"])[number]
        return located(out_of_bounds(index, check.attrs["axis"], size), check.loc or node.loc)

    def _at(self, kind: str, value: int) -> int:
        """The word of that kind and value."""
        return next(at for at, word in self._of(kind) if word == value)


def run_of(
    control: ControlRun, planner: Planner, arrays: DeviceArrays | None = None
) -> Callable[..., list[np.ndarray]]:
    """The function that runs a control node: ``run(operands, memory, sizes)`` -> results.

    ``arrays``: of the device in whose memory it runs.
    """
    if isinstance(control.program, ControlCode):
        return CodeRun(control, control.program, arrays)
    if control.program is not None:
        return NativeRun(control, control.program, planner)
    if not control.node.graphs:
        return RecursionRun(control, planner)
    if control.node.op == "Call":
        return (RepeatedRun if is_repeated(control.node) else CallRun)(control, planner)
    return (LoopRun if control.node.op == "Loop" else CondRun)(control, planner, arrays)
