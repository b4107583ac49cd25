"""Branches, loops and other steps that no kernel computes: functions that a call runs.

Each is a structured program, printed as an LLVM function of one argument block (`..loops.frame`).
Here are the words of that block: what `fusec.runtime.plan.control_flow` writes for a call from
Python.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import numpy as np

from fusec.errors import InternalError
from fusec.ir import TensorType
from fusec.ir.sizes.dims import Dim

from ...exported.failures import failures_of_exit
from ...exported.parts import CheckFailure
from ...machine_code.native_nest import RECORD
from ...plan.control_program import CALLS, ErrorExit, Word
from ...structured.calls.call_statements import NodeCall
from ...structured.memory import ConstantView, View
from ...structured.program import StructuredProgram
from ..abi import BlockLayout
from ..emitter import memory_type
from ..loops.frame import Frame
from ..loops.printer import print_block
from ..size_text import NoTextError
from .call_text import CallText
from .nest_calls import MANY, fill_block, tasks_at
from .workspace import INDEX, SIZE

MOST_CALLS = 1000  # of a function by itself: Python's own limit, which no library can ask for
_CHECK, _INDEX, _SIZE = (1 + RECORD.index(name) for name in ("check", "index", "size"))


def run_program(text: CallText, step: NodeCall) -> None:
    """Call the program of a step, and leave where it does."""
    program = text.variant.programs[step]
    frame = Frame(program.exits, outer=program.outer, has_loops=program.has_loops)
    print_block(frame, program.body)
    name = f"{text.name}.{len(text.level.programs)}"
    text.level.programs[name] = frame.em, frame.text(name), frame.has_loops
    text.externals.add(name)
    _ProgramCall(text, step, program, frame).emit(name)


class _ProgramCall:
    """The words of one program's block."""

    def __init__(
        self, text: CallText, step: NodeCall, program: StructuredProgram, frame: Frame
    ) -> None:
        self.text, self.em, self.step, self.program = text, text.em, step, program
        self.frame = frame
        self.block = self.em.alloca(f"[{max(len(frame.words), 1)} x i64]", "program", 16)
        self.reused = step.run.reused if step.run is not None else ()

    def emit(self, name: str) -> None:
        em = self.em
        self._begin_results()
        for at, word in enumerate(self.frame.words):
            rule = _RULES.get(word.kind)
            if rule is not None:
                em.line(f"store {rule(self, word)}, ptr {self._word(at)}")
            elif word.kind == "scalar":
                self._scalar(at, word.value)
            elif word.kind not in _LEFT_TO_THE_PROGRAM:
                raise InternalError(f"no library fills in a word of the kind {word.kind}")
        status = em.value(f"call i64 @{name}(ptr {self.block})")
        if self.program.exits:
            self._leave(status)
        for at, word in enumerate(self.frame.words):
            if word.kind == "result":
                place = self.step.results[word.value]
                self._move(self._word(at), self.text.address(place), place.dtype)

    def _word(self, at: int) -> str:
        return self.em.value(f"getelementptr i64, ptr {self.block}, i64 {at}")

    def _move(self, source: str, target: str, dtype: np.dtype) -> None:
        kind = memory_type(dtype)
        value = self.em.value(f"load {kind}, ptr {source}, align {dtype.alignment}")
        self.em.line(f"store {kind} {value}, ptr {target}, align {dtype.alignment}")

    # -- operands and results

    def _begin_results(self) -> None:
        """Results that start as a copy of an operand in other memory."""
        for number, source in enumerate(self.program.copied):
            if source < 0 or number in self.reused:
                continue
            operand, place = self.step.operands[source], self.step.results[number]
            if isinstance(operand, View) and operand.memory is place.memory:
                continue
            if isinstance(operand, View) and len(operand.strides) < len(operand.shape):
                raise NoTextError("a part that the data decides of an array, which a loop changes")
            if isinstance(operand, View) and not operand.is_dense:
                self._copy_strided(operand, place)
                continue
            self.text.copy(self.text.address(place), self._operand(source),
                            self.text.number(self.step.node.types[number].nbytes))

    def _copy_strided(self, source: View, target: View) -> None:
        em, to, come = self.em, self.text.address(target), self.text.address(source)
        with ExitStack() as stack:
            for size, step, other in zip(
                    target.shape, target.strides, source.strides, strict=True):
                counter = stack.enter_context(em.loop(0, self.text.number(size)))
                to = em.offset(to, em.mul(counter, self.text.number(step)))
                come = em.offset(come, em.mul(counter, self.text.number(other)))
            self._move(come, to, target.dtype)

    def _operand(self, position: int) -> str:
        operand, type_ = self.step.operands[position], self.step.node.inputs[position].type
        if isinstance(operand, View):
            return self.text.address(operand)
        if isinstance(operand, ConstantView):
            return self._repeated(operand.constant, type_)
        array = np.asarray(operand, type_.dtype)
        return self._repeated(array.flat[0], type_) if array.size > 1 and not any(
            array.strides) else self.text.constant(array)

    def _repeated(self, constant: Any, type_: TensorType) -> str:
        """Memory in which each element is one number; none of it is part of the library."""
        if np.size(constant) != 1:
            raise NoTextError("a view of a constant whose sizes follow from arguments")
        em, value = self.em, np.asarray(constant, type_.dtype).reshape(())
        place = self.text.workspace.block(type_.nbytes)
        if not value.tobytes().strip(b"\0"):
            self._clear(place, self.text.number(type_.nbytes))
            return place
        source = self.text.constant(value)
        with em.loop(0, self.text.number(math.prod(type_.shape))) as counter:
            to = em.offset(place, em.mul(counter, value.itemsize))
            self._move(source, to, type_.dtype)
        return place

    def _clear(self, place: str, nbytes: str) -> None:
        self.em.declare("declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)")
        self.em.line(f"call void @llvm.memset.p0.i64(ptr {place}, i8 0, i64 {nbytes}, i1 false)")

    def _target(self, number: int) -> str:
        if number in self.reused:
            return self._operand(self.program.copied[number])
        return self.text.address(self.step.results[number])

    def _scalar(self, at: int, position: int) -> None:
        dtype = self.step.node.inputs[position].dtype
        self._move(self._operand(position), self._word(at), dtype)

    # -- nests

    def nest(self, word: Word) -> str:
        use = self.frame.nests[word.value]
        size = fill_size(use)
        block = self.em.alloca(f"[{size} x i64]", "nest", 16)
        fill_block(self.text, block, use.largest, use.params, largest=True)
        return f"ptr {block}"

    def code(self, word: Word) -> str:
        name = self.text.level.nest(self.frame.nests[word.value].form)
        name += ".finish" if word.kind == "finish" else ""
        self.text.externals.add(name)
        return f"ptr @{name}"

    def tasks(self, word: Word) -> str:
        return f"i64 {self.text.number(tasks_at(self.frame.nests[word.value].largest))}"

    def memory(self, word: Word) -> str:
        place = self.text.workspace.block(word.value)
        if word.kind == "zeros":
            self._clear(place, self.text.number(word.value))
        return f"ptr {place}"

    def function(self, word: Word) -> str:
        """A function of the interpreter's lock, which nobody holds: there is nothing to do."""
        name = f"{self.text.level.prefix}.nothing"
        self.text.externals.add(name)
        return f"ptr @{name}"

    # -- exits

    def _leave(self, status: str) -> None:
        em = self.em
        text, failures, firsts = self.text, list[CheckFailure](), list[int]()
        for exit_ in self.program.exits:
            firsts.append(len(failures))
            failures += failures_of_exit(exit_)

        def code() -> str:
            number = em.value(f"sub i64 {status}, 1")
            code = self._chosen(number, [str(first) for first in firsts])
            if any(e.node.op == "Fused" for e in self.program.exits):
                of_kernel = em.value(f"load i64, ptr {self._failed(_CHECK)}")
                zero = em.value(f"icmp slt i64 {of_kernel}, 0")
                of_kernel = em.value(f"select i1 {zero}, i64 0, i64 {of_kernel}")
                code = em.add(code, self._chosen(number, [
                    of_kernel if e.node.op == "Fused" else "0" for e in self.program.exits]))
            self._note(number)
            return code

        text.fails(em.value(f"icmp ne i64 {status}, 0"), code, failures)

    def _chosen(self, number: str, values: list[str]) -> str:
        """The value of that number."""
        em, chosen = self.em, values[0]
        for k, value in enumerate(values[1:], 1):
            if value != chosen or k < len(values):
                is_it = em.value(f"icmp eq i64 {number}, {k}")
                chosen = em.value(f"select i1 {is_it}, i64 {value}, i64 {chosen}")
        return chosen

    def _note(self, number: str) -> None:
        """Put the index and the size that the exit reports into the workspace."""
        em = self.em
        for word, reported, of in ((INDEX, self._reported(0), _INDEX),
                                   (SIZE, self._reported(1), _SIZE)):
            values = []
            for exit_ in self.program.exits:
                if exit_.node.op == "Fused":
                    values.append(em.value(f"load i64, ptr {self._failed(of)}"))
                elif word == SIZE and not _is_reported(exit_):
                    values.append(self.text.number(exit_.size or 0))
                else:
                    values.append(reported)
            at = em.value(f"getelementptr i64, ptr %workspace, i64 {word}")
            em.line(f"store i64 {self._chosen(number, values)}, ptr {at}")

    def _reported(self, value: int) -> str:
        at = self.frame.numbers.get(Word("index", value))
        return "0" if at is None else self.em.value(f"load i64, ptr {self._word(at)}")

    def _failed(self, value: int) -> str:
        return self._word(self.frame.numbers[Word("failure", value)])


def _is_reported(exit_: ErrorExit) -> bool:
    return exit_.size is None or isinstance(exit_.size, Dim)


def fill_size(use: Any) -> int:
    """The words of a nest's block."""
    return BlockLayout.of(use.largest).size


_LEFT_TO_THE_PROGRAM = frozenset(  # which writes them, or nobody needs them
    {"rest", "result", "index", "left", "failure", "lock"})
_RULES: dict[str, Callable[[_ProgramCall, Word], str]] = {
    "number": lambda call, word: f"i64 {call.text.number(word.value)}",
    "bits": lambda call, word: f"double {call.text.bits(word.value, np.dtype(np.float64)).text}",
    "operand": lambda call, word: f"ptr {call._operand(word.value)}",
    "target": lambda call, word: f"ptr {call._target(word.value)}",
    "temp": _ProgramCall.memory, "zeros": _ProgramCall.memory,
    "nest": _ProgramCall.nest, "code": _ProgramCall.code, "finish": _ProgramCall.code,
    "tasks": _ProgramCall.tasks, "grain": lambda call, word: f"i64 {MANY}",
    "work": lambda call, word: "i64 0", "pool": _ProgramCall.function,
    **dict.fromkeys(CALLS, _ProgramCall.function),
    "deepest": lambda call, word: f"i64 {MOST_CALLS}",
}
