"""One call of a persistent kernel: its arguments, its launch, what it leaves for the host."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fusec.codegen.structured.interpreter import array_at
from fusec.codegen.structured.memory import View
from fusec.codegen.structured.program import StructuredProgram

from ...kernels.loop_ir import Kernel
from ...plan.control_program import EarlyExit
from ..driver.arrays import DriverArrays
from ..driver.device_memory import DeviceMemory
from ..module import CudaKernel
from ..programs.device_numbers import host_number
from ..programs.program_text import is_still
from ..programs.settled import settle
from .launch_shape import LaunchShape
from .numbers import placed, words_of
from .program_kernel import EXIT, FIRST, INDEX, INTERRUPTED, SIZE, KernelArgument, ProgramKernel

_ARRAYS = ("operand", "target")
MOST_INTERRUPTS = 100  # while one is being ended


class PersistentProgram:
    """``program(operands, results, sizes)``: see `ControlCode`."""

    def __init__(
        self, program: StructuredProgram, made: ProgramKernel, kernel: CudaKernel, loaded: Any,
        driver: Any, whole: Kernel,
    ) -> None:
        """``whole`` names it, and its lines, where it fails."""
        self.made, self.kernel, self.loaded, self.driver = made, kernel, loaded, driver
        self.exits = program.exits
        self.waits = bool(made.exits or made.results)  # whether a call is over when it returns
        self.shape = LaunchShape(made, driver, loaded, kernel)
        self.arrays = [a.source for a in made.arguments.values() if a.source[0] in _ARRAYS]
        self.copied, self.whole = program.copied, whole
        # Behind the state are numbers: operands, then results.
        self.words: dict[tuple[str, int], int] = {}
        self._end = made.state_words
        for key, dtype in (*((("input", n), dtype) for n, dtype in made.numbers.items()),
                           *((("result", n), dtype) for n, (dtype, _) in made.results.items())):
            self.words[key] = self._end
            self._end += words_of(dtype)

    def empty_state(self) -> np.ndarray:
        """The state and the numbers as words, all 0."""
        return np.zeros(self._end, np.int64)

    def new_run(self, *call: Any) -> KernelRun:
        """A call: its memory, operands, results and sizes."""
        return KernelRun(self, *call)

    def layout_of(self, operands: Sequence[Any]) -> tuple[int, int, int]:
        """Of a call with these operands, where all sizes are known: see `LaunchShape`."""
        return self.shape.at({})

    def __call__(
        self, operands: Sequence[Any], results: list[Any], sizes: Mapping[str, int]
    ) -> EarlyExit | None:
        memory = DeviceMemory(self.driver)
        try:
            call = self.new_run(memory, operands, results, sizes)
            try:
                if self.waits:
                    return call.outcome()
                call.launch()
                return None
            finally:
                memory.copy_back({n for n, (kind, _) in enumerate(self.arrays)
                                  if kind == "target"})
        finally:
            memory.release()


class KernelRun:
    """A call while it runs."""

    def __init__(
        self, program: PersistentProgram, memory: DeviceMemory, operands: Sequence[Any],
        results: list[Any], sizes: Mapping[str, int],
    ) -> None:
        self.program, self.memory, self.results = program, memory, results
        self.operands, self.sizes = operands, sizes
        self.driver, self.made = program.driver, program.made
        of_kind = {"operand": operands, "target": results}
        found = memory.addresses_of([of_kind[kind][k] for kind, k in program.arrays])
        self.places = dict(zip(program.arrays, found, strict=True))
        self.state = 0
        self.flag: Any = None

    def launch(self) -> None:
        program = self.program
        grid, threads, shared = program.shape.at(self.sizes)
        values = [self._value(argument) for argument in self.made.arguments.values()]
        self.driver.launch(program.loaded, program.kernel, (grid, 1, 1), (threads, 1, 1), shared,
                           values)

    def _value(self, argument: KernelArgument) -> int:
        """What a parameter is given."""
        source = argument.source
        match source[0]:
            case "operand" | "target":
                return self.places[source]
            case "input" | "result":
                return self._state_at() + 8 * self.program.words[source]
            case "fresh":
                return self.memory.fresh(self.program.shape.size(source[2], self.sizes))
            case "scratch":
                return self.memory.fresh(self.made.scratch_bytes)
            case "state":
                return self._state_at()
            case "exit":
                return self._state_at() + 8 * EXIT
            case "flag":
                self.flag = self.driver.flag()
                return self.flag.address
        assert argument.of is not None
        value = argument.of(self.sizes)
        return self.memory.fresh(value) if source[0] == "lent" else value

    def _state_at(self) -> int:
        """The state and the numbers, which a copy begins."""
        if not self.state:
            state = self.program.empty_state()
            for position, dtype in self.made.numbers.items():
                word = self.program.words["input", position]
                state[word:].view(np.uint8)[:dtype.itemsize].view(dtype)[0] = (
                    self.operands[position])
            self.state = self.memory.fresh(state.nbytes)
            self.driver.copy_in(self.state, state)
        return self.state

    # -- what it leaves

    def outcome(self) -> EarlyExit | None:
        """Launch it, and wait for the end: numbers that are results, or the exit."""
        try:
            self.launch()
            self.driver.wait()
        except BaseException:  # Ctrl-C, a time-out, a step that is cancelled; a fault
            self._end()
            raise
        self._give_flag_back()
        return self.left_by(self._state())

    def left_by(self, state: np.ndarray) -> EarlyExit | None:
        """The exit that the words of the state tell of; numbers that are results."""
        taken = int(state[EXIT])
        if taken == 0:
            for position, (dtype, _) in self.made.results.items():
                word = self.program.words["result", position]
                self.results[position] = dtype.type(_number(state, word, dtype))
            return None
        self._settle(state)
        number = taken - 1
        arguments = tuple(self._shown(operand, state, word)
                          for word, operand in placed(self.made.exits[number], FIRST))
        return EarlyExit(self.program.exits[number], int(state[INDEX]), int(state[SIZE]), arguments)

    def _end(self) -> None:
        """Have the kernel end, and leave what it has computed; more interrupts change nothing."""
        for _ in range(MOST_INTERRUPTS):
            try:
                if self.flag is not None:
                    self.flag.raise_it()
                self.driver.wait()
                self._give_flag_back()
                state = self._state()
                if state[EXIT] == INTERRUPTED:
                    self._settle(state)
                return
            except BaseException:
                continue

    def _give_flag_back(self) -> None:
        """When nothing looks at it any more."""
        flag, self.flag = self.flag, None
        if flag is not None:
            flag.give_back()

    def _state(self) -> np.ndarray:
        state = self.program.empty_state()
        if self.state:
            self.driver.copy_out(state, self.state)
        return state

    def _settle(self, state: np.ndarray) -> None:
        left = {number: int(state[self.made.first_left + n])
                for n, number in enumerate(self.made.left)}
        settle(self.driver, self.results, self.places, left)

    def _shown(self, operand: Any, state: np.ndarray, word: int) -> Any:
        """An operand of an exit, on the host."""
        if isinstance(operand, View):
            shape, strides = operand.shape, operand.strides
            if not is_still(operand):
                first, middle, end = word + 1, word + 1 + len(shape), word + 1 + 2 * len(shape)
                shape, strides = (tuple(map(int, state[a:b])) for a, b in (
                    (first, middle), (middle, end)))
            there = array_at(int(state[word]), shape, strides, operand.dtype)
            return DriverArrays(self.driver).fetch(there)
        return _number(state, word, operand.dtype)


def _number(state: np.ndarray, word: int, dtype: np.dtype) -> Any:
    return host_number(state[word:].view(np.uint8)[:dtype.itemsize].view(dtype)[0], dtype)
