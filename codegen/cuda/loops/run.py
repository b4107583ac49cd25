"""One call of a program's kernel: its arrays on the device, its numbers, what it left."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fusec.codegen.cuda.module import CudaKernel
from fusec.codegen.structured.program import StructuredProgram
from fusec.ir.sizes.bindings import resolve

from ...plan.control_program import EarlyExit
from ..driver.device_memory import DeviceMemory
from ..driver.driver import Driver
from .frame import CODE, INDEX, SIZE, WORD, Address, LoopFrame, Number


class LoopCall:
    """``call(operands, results, sizes)``: see `ControlCode`."""

    def __init__(
        self, program: StructuredProgram, frame: LoopFrame, driver: Driver, loaded: Any,
        kernel: CudaKernel,
    ) -> None:
        self.node, self.exits = program.node, program.exits
        self.driver, self.loaded, self.kernel = driver, loaded, kernel
        self.threads, self.shared, self.words = frame.threads, frame.shared, frame.words
        self.numbers: list[Number] = list(frame.numbers)
        self.addresses: list[Address] = list(frame.addresses)
        self.results = frame.results
        self.left = {number: word for number, (word, _) in frame.left.items()}
        self.kept = {host: word for host, (word, _) in frame.kept.items()}

    def __call__(
        self, operands: Sequence[Any], results: list[Any], sizes: Mapping[str, int]
    ) -> EarlyExit | None:
        memory = DeviceMemory(self.driver)
        try:
            arrays, written = self._arrays(operands, results)
            places = dict(zip(arrays, memory.addresses_of(list(arrays.values())), strict=True))
            words = memory.zeros(WORD * self.words)
            numbers = memory.fresh(WORD * len(self.numbers))
            self.driver.copy_in(numbers, self._numbers(operands, sizes))
            fresh = [places[a] if a in places else self._fresh(memory, a, sizes)
                     for a in self.addresses]
            self.driver.launch(self.loaded, self.kernel, (1, 1, 1), (self.threads, 1, 1),
                               self.shared, [words, numbers, *fresh])
            memory.copy_back(written)
            left = np.zeros(self.words, np.int64)
            self.driver.copy_out(left, words)
            return self._outcome(left, results, places)
        finally:
            memory.release()

    def _arrays(
        self, operands: Sequence[Any], results: Sequence[Any]
    ) -> tuple[dict[Address, Any], set[int]]:
        """The arrays that the kernel gets, and which of them it writes."""
        of_kind = {"operand": operands, "target": results}
        arrays = {(kind, k): of_kind[kind][int(k)] for kind, k in self.addresses
                  if kind in of_kind}
        return arrays, {n for n, (kind, _) in enumerate(arrays) if kind == "target"}

    def _fresh(self, memory: DeviceMemory, address: Address, sizes: Mapping[str, int]) -> int:
        kind, nbytes = address
        size = int(resolve(nbytes, sizes))
        return memory.zeros(max(size, 1)) if kind == "zeros" else memory.fresh(size)

    def _numbers(self, operands: Sequence[Any], sizes: Mapping[str, int]) -> np.ndarray:
        values = np.zeros(max(len(self.numbers), 1), np.int64)
        for at, (kind, value) in enumerate(self.numbers):
            if kind == "input":
                bits = np.asarray(operands[value], self.node.inputs[value].dtype).tobytes()
                values[at] = int.from_bytes(bits.ljust(WORD, b"\0"), "little", signed=True)
            else:
                values[at] = sizes[value] if kind == "size" else value
        return values[: len(self.numbers)]

    def _outcome(
        self, words: np.ndarray, results: list[Any], places: Mapping[Address, int]
    ) -> EarlyExit | None:
        for number, (word, dtype) in self.results.items():
            results[number] = _number(words, word, dtype)
        if not words[CODE]:
            return None
        self._settle(words, results, places)
        left = self.exits[int(words[CODE]) - 1]
        arguments = [_number(words, self.kept[host], dtype)
                     for host, dtype in (left.call[1] if left.call else ())]
        return EarlyExit(left, int(words[INDEX]), int(words[SIZE]), tuple(arguments))

    def _settle(
        self, words: np.ndarray, results: Sequence[Any], places: Mapping[Address, int]
    ) -> None:
        """Put what an unfinished loop has computed where it belongs: loops exchange addresses."""
        moved = {}
        for number, word in self.left.items():
            home = places["target", number]
            if int(words[word]) != home:
                moved[number] = np.empty(results[number].shape, results[number].dtype)
                self.driver.copy_out(moved[number], int(words[word]))
        for number, contents in moved.items():
            if self.driver.address_of(results[number]) is None:
                results[number][...] = contents
            else:
                self.driver.copy_in(places["target", number], contents)


def _number(words: np.ndarray, word: int, dtype: np.dtype) -> Any:
    """What a word holds."""
    return words[word: word + 1].view(np.uint8)[: dtype.itemsize].view(dtype)[0]
