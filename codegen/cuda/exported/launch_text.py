"""A variant of an exported function as C++: the launches of its plan, in order, in one stream."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from fusec.core.records import dataclass, field
from fusec.errors import InternalError
from fusec.ir import Node, TensorType
from fusec.ir.sizes.symbolic_numbers import Symbolic, stored

from ...exported.failures import failures_of
from ...exported.parts import CheckFailure, ExportedFunction, NoTextError, Variant
from ...kernels.loop_ir import Param
from ...structured.kernel_statements import NestUse, RunKernel
from ...structured.memory import View
from ..compiled_nests import fixed_argument, raw_bits
from ..kernels.launch_plan import Layout
from .host_numbers import HostNumber, explored, text_number
from .host_text import HostText
from .kernels import WORDS, ExportedKernels, ExportedNest, at_numbers
from .loops import ExportedLoop
from .size_numbers import SizeNumbers

ALIGNMENT = 256  # of memory that CUDA gives
WORD = 8
_ADDRESSES = ("operand", "status", "partials", "scratch")


@dataclass
class ConstantBlock:
    """Arrays that are part of the library: a block of the device's memory, that loading fills."""

    data: bytearray = field(default_factory=bytearray)
    _known: dict[bytes, int] = field(default_factory=dict)

    def offset(self, array: Any) -> int:
        data = np.ascontiguousarray(array).tobytes()
        if data not in self._known:
            self.data += b"\0" * (-len(self.data) % ALIGNMENT)
            self._known[data] = len(self.data)
            self.data += data
        return self._known[data]


class PlannedLaunch(NamedTuple):
    """A launch of kernel ``number`` of the library; ``args`` are numbers, and slots of addresses
    with the offset in the scratch memory where it is there."""

    number: int
    layout: Layout
    args: list[Any]


class NestLaunches(NamedTuple):
    """Those of a nest, and the bytes of scratch memory that they take."""

    launches: list[PlannedLaunch]
    scratch: Any


class LaunchText:
    """See the module docstring; ``status``: bytes at the workspace's begin for checks."""

    def __init__(
        self, function: ExportedFunction, variant: Variant, kernels: ExportedKernels,
        constants: ConstantBlock, status: StatusWords,
        loops: Mapping[int, tuple[ExportedLoop, int]],
    ) -> None:
        """``loops``: by the identity of a step its kernel, and that one's number."""
        self.function, self.variant, self.kernels = function, variant, kernels
        self.status, self.loops = status, loops
        self.constants, self.call_plan = constants, variant.call_plan
        self.sizes = SizeNumbers({
            **{name: function.sizes[k] for name, k in variant.symbols.items()},
            **{name: n for name, n in variant.numbers.items() if name not in variant.symbols}})
        self.text = HostText()
        self.cells = status.nbytes
        end: Any = self.cells + rounded(WORD * self.call_plan.cells)
        self.temps: list[Any] = []
        for place in self.call_plan.temps:
            self.temps.append(end)
            end = end + rounded(self.nbytes(place.shape, place.dtype))
        self.states: dict[int, Any] = {}
        for key, (loop, _) in loops.items():
            self.states[key] = end
            end = end + rounded(loop.state_bytes)
        self.own = end
        self.trees = {id(use): explored(partial(self._planned, step, use))
                      for step in self.call_plan.kernels for use in step.nests}

    def nbytes(self, shape: Sequence[Any], dtype: np.dtype) -> Any:
        """Of an array."""
        return math.prod(map(self.sizes.number, shape)) * dtype.itemsize

    # -- which launches there are

    def _planned(self, step: RunKernel, use: NestUse) -> NestLaunches:
        nest, end = self.kernels.nest(use.form), 0
        form = at_numbers(nest.form.loops, self.sizes.number)
        params = [self._bits(p) for p in use.params]
        launches, places = list[PlannedLaunch](), dict[Any, Any]()
        for number, written in zip(nest.numbers, nest.kernels, strict=True):
            layout = written.geometry(form)
            if layout.partials and ("partials",) not in places:
                places["partials",], end = end, end + rounded(layout.partials)
            for k, dtype in enumerate(form.nest.scratch if layout.scratch else ()):
                places["scratch", k] = end
                end = end + rounded(layout.scratch * dtype.itemsize)
            launches.append(PlannedLaunch(number, layout, [
                (slot, places.get(slot, 0)) if slot[0] in _ADDRESSES else
                fixed_argument(slot, form, params, layout) for slot in written.slots]))
        return NestLaunches(launches, end)

    def _bits(self, param: Param) -> Any:
        value = stored(param.value)
        if value is param.value:
            return raw_bits(param, {})
        return text_number(self.sizes.bits(value, param.dtype))

    def workspace(self) -> str:
        """The body of the function that gives the bytes of the workspace."""
        text = self.text = HostText()
        text.line(f"int64_t bytes = {text.number(self.own)};")
        for step in self.call_plan.kernels:
            for use in step.nests:
                text.branches(self.trees[id(use)], self._note_scratch)
        scratch = max((loop.made.scratch_bytes for loop, _ in self.loops.values()), default=0)
        self._note_scratch(NestLaunches([], rounded(scratch)))
        text.line("return bytes;")
        return "\n".join(text.lines)

    def _note_scratch(self, made: NestLaunches) -> None:
        if isinstance(made.scratch, HostNumber) or made.scratch:
            end = self.text.number(self.own + made.scratch)
            self.text.line(f"if (bytes < {end}) bytes = {end};")

    # -- the call

    def call(self) -> str:
        """The body of the function that launches."""
        text = self.text = HostText()
        if self.cells:
            text.line("FUSEC_TRY(detail::driver(cuMemsetD8Async("
                      f"CUdeviceptr(workspace), 0, {self.cells}, stream)));")
        self._take_numbers()
        for step in self.call_plan.steps:
            if isinstance(step, RunKernel):
                self._run(step)
            else:
                self._run_loop(*self.loops[id(step)])
        for index, place in enumerate(self.call_plan.outputs):
            self._give(index, place)
        text.line("return 0;")
        return "\n".join(text.lines)

    def _run(self, step: RunKernel) -> None:
        for use in step.nests:
            nest = self.kernels.nest(use.form)
            self.text.branches(self.trees[id(use)], partial(self._launch, step, nest))

    def _launch(self, step: RunKernel, nest: ExportedNest, made: NestLaunches) -> None:
        for launch in made.launches:
            layout = launch.layout
            words = ", ".join(self._word(step, nest, arg) for arg in launch.args)
            grid = ", ".join(map(self.text.number, (
                layout.blocks, *layout.threads, layout.shared)))
            with self.text.block(""):
                self.text.line(f"const int64_t words[] = {{{words}}};")
                self.text.line(f"FUSEC_TRY(detail::launch(library, {launch.number}, {grid}, "
                               "stream, words));")

    def _word(self, step: RunKernel, nest: ExportedNest, arg: Any) -> str:
        if not isinstance(arg, tuple):
            return self.text.number(arg)
        (kind, *numbers), at = arg
        if kind == "operand":
            operand = nest.form.loops.operands[numbers[0]]
            place = step.places[operand.buffer]
            return self._address(place, operand.offset, step.kernel.has_checks)
        if kind == "status":
            return _at("workspace", str(WORD * self._failure(step)))
        return _at("workspace", self.text.number(self.own + at))

    def _failure(self, step: RunKernel) -> int:
        return self.status.word([failure_of_kernel(self.call_plan.graph.nodes, step)])

    def _run_loop(self, loop: ExportedLoop, number: int) -> None:
        text, step = self.text, loop.step
        for result, source in loop.copies:
            target, operand = step.results[result], step.operands[source]
            nbytes = text.number(self.nbytes(target.shape, target.dtype))
            elements = self._source(operand, step.node.inputs[source].type)
            text.line(f"FUSEC_TRY(detail::copy({_pointer(self._address(target))}, {elements}, "
                      f"{nbytes}, stream));")
        state = self.states[id(step)]
        at = _at("workspace", text.number(state))
        text.line(f"FUSEC_TRY(detail::driver(cuMemsetD8Async(CUdeviceptr({at}), 0, "
                  f"{loop.state_bytes}, stream)));")
        words = ", ".join(
            self._loop_word(loop, argument.source, at) if argument.of is None else
            text.number(argument.of({})) for argument in loop.made.arguments.values())
        together = "_together" if loop.blocks > 1 else ""
        with text.block(""):
            words += ", " if words else ""
            text.line(f"const int64_t words[] = {{{words}int64_t(workspace), "
                      f"{len(self.status.words)}}};")
            text.line(f"FUSEC_TRY(detail::launch{together}(library, {number}, {loop.blocks}, "
                      f"{loop.threads}, 1, {loop.shared}, stream, words));")

    def _loop_word(self, loop: ExportedLoop, source: Sequence[Any], state: str) -> str:
        match source:
            case ("operand" | "input", position):
                return self._address(loop.step.operands[position])
            case ("target" | "result", position):
                return self._address(loop.step.results[position])
            case ("scratch",):
                return _at("workspace", self.text.number(self.own))
            case ("exit",) if loop.failures:
                return _at("workspace", str(WORD * self.status.word(loop.failures)))
        return state  # whose first word is 0: nobody asks the kernel to stop

    def _source(self, operand: Any, type_: TensorType) -> str:
        """Where a copy finds its elements."""
        if isinstance(operand, View):
            return self._address(operand)
        array = np.broadcast_to(np.asarray(operand, type_.dtype), type_.shape)
        return _at("library.constants", str(self.constants.offset(array)))

    # -- memory

    def _address(self, place: View, offset: Any = 0, has_checks: bool = False) -> str:
        """Where a value is, and bytes after its first element; a wrong index, that becomes 0,
        reads no array without elements."""
        size = math.prod(map(self.sizes.number, place.shape))
        if isinstance(size, int) and size == 0:
            return "int64_t(workspace)"
        at = _at(*self._place(place, self.sizes.number(offset)))
        if has_checks and isinstance(size, HostNumber) and not (size.bounds[0] or 0) > 0:
            return f"({self.text.number(size)} ? {at} : int64_t(workspace))"
        return at

    def _place(self, place: View, offset: Any) -> tuple[str, str]:
        """A pointer's name, and bytes behind it."""
        memory, number = place.memory, self.text.number
        match memory.origin:
            case "operand":
                argument = self.variant.arguments.get(memory.position)
                if argument is not None:
                    return self.function.arguments[argument].name, number(offset)
                constant = self.constants.offset(self.variant.constants[memory.position])
                return "library.constants", number(offset + constant)
            case "target":
                result = self.function.results[self.variant.results[memory.position]]
                return result.name, number(offset)
            case "cell":
                return "workspace", number(offset + self.cells + WORD * memory.position)
        return "workspace", number(offset + self.temps[memory.position])

    # -- numbers and results

    def _take_numbers(self) -> None:
        """Numbers that are passed by value, and those from outside, into their cells."""
        words: list[str] = []
        for position, value in enumerate(self.call_plan.graph.inputs):
            if value.type.kind == "array":
                continue
            number = self.variant.arguments.get(position)
            words += self._known_words(self.variant.constants[position], value.type.dtype) if (
                number is None) else _passed_words(self.function.arguments[number])
        self._write("workspace", self.cells, words)

    @staticmethod
    def _known_words(value: Any, dtype: np.dtype) -> list[str]:
        data = np.asarray(value, dtype).tobytes()
        data += b"\0" * (-len(data) % WORD)
        return [f"int64_t(0x{int(w):x}ull)" for w in np.frombuffer(data, np.uint64)]

    def _write(self, pointer: str, offset: int, words: Sequence[str]) -> None:
        """Put words into memory of the device."""
        for first in range(0, len(words), WORDS):
            part = list(words[first: first + WORDS])
            at = _at(pointer, str(offset + WORD * first))
            listed = ", ".join([at, str(len(part)), *part, *["0"] * (WORDS - len(part))])
            with self.text.block(""):
                self.text.line(f"const int64_t words[] = {{{listed}}};")
                self.text.line("FUSEC_TRY(detail::launch(library, 0, 1, 32, 1, 0, stream, words));")

    def _give(self, index: int, place: Any) -> None:
        """Copy a result to the caller's memory where it is not computed there."""
        number = self.variant.results.get(index)
        if number is None:
            return
        value, target = self.call_plan.graph.outputs[index], self.function.results[number].name
        if type(place) is Symbolic:
            self._write(target, 0, [self._word_of_size(place, value.dtype)])
            return
        if isinstance(place, View):
            source = self._address(place)
            if source == _at(target, "0"):
                return
        else:
            array = np.asarray(place, value.type.dtype)
            source = _at("library.constants", str(self.constants.offset(array)))
        nbytes = self.text.number(self.nbytes(value.shape, value.dtype))
        self.text.line(f"FUSEC_TRY(detail::copy({target}, {source}, {nbytes}, stream));")

    def _word_of_size(self, number: Symbolic, dtype: np.dtype) -> str:
        if dtype.itemsize != WORD:
            raise NoTextError(f"{number}, a {dtype}, which is a result")
        return self.text.number(text_number(self.sizes.bits(stored(number), dtype)))


def failure_of_kernel(nodes: Sequence[Node], step: RunKernel) -> CheckFailure:
    """What is said where a check of the kernel has failed: it notes no more than that."""
    node = next((n for n in nodes if n.name == step.kernel.name), None)
    if node is None:
        raise InternalError(f"no node is of the kernel {step.kernel.name}")
    failures = failures_of(node)
    if not failures:
        return CheckFailure("ValueError: a check of the program failed", node.loc)
    texts = dict.fromkeys(f.text for f in failures)
    return CheckFailure(", or ".join(texts), failures[0].loc)


class StatusWords:
    """The words at the begin of the workspace that say which checks have failed: of a kernel one
    that is not 0, of a loop the number of the exit plus one.  ``words`` have the first of their
    failures among the function's, and how many there are."""

    def __init__(self, function: ExportedFunction) -> None:
        self.function = function
        self.words: list[tuple[int, int]] = []
        self._known: dict[tuple[CheckFailure, ...], int] = {}

    def word(self, failures: Sequence[CheckFailure]) -> int:
        """The number of the word for these."""
        key = tuple(failures)
        if key not in self._known:
            self._known[key] = len(self.words)
            self.words.append((len(self.function.failures), len(key)))
            self.function.failures += key
        return self._known[key]

    @property
    def nbytes(self) -> int:
        return int(rounded(WORD * len(self.words)))


def rounded(nbytes: Any) -> Any:
    """A multiple of the alignment."""
    return (nbytes + (ALIGNMENT - 1)) // ALIGNMENT * ALIGNMENT


def _pointer(address: str) -> str:
    return f"reinterpret_cast<void *>({address})"


def _at(pointer: str, offset: str) -> str:
    return f"int64_t({pointer})" if offset == "0" else f"int64_t({pointer}) + {offset}"


def _passed_words(parameter: Any) -> list[str]:
    """A number that C++ passes by value, as words of 8 bytes."""
    if parameter.dtype.kind != "c":
        return [f"detail::word({parameter.name})"]
    parts = f"{parameter.name}_re, {parameter.name}_im"
    if parameter.dtype.itemsize == 8:
        return [f"detail::pair({parts})"]
    return [f"detail::word({part})" for part in parts.split(", ")]


__all__ = ["ConstantBlock", "LaunchText", "failure_of_kernel"]
