"""An LLVM function that runs a plan: its numbers, its memory, the functions that it calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fusec.core.records import dataclass, field
from fusec.ir.sizes.dims import Size
from fusec.ir.sizes.symbolic_numbers import Symbolic, stored

from ...exported.parts import CField, CheckFailure, ExportedFunction, Variant
from ...kernels.specialise import LoopForm, structure_key
from ...structured.memory import Memory, View, contiguous
from ..emitter import LlvmEmitter, LlvmValue, memory_type
from ..nests.modes import emit_nest
from ..size_text import SizeText
from .workspace import Workspace


@dataclass(eq=False)
class LevelTexts:
    """The functions of one level of the CPU: ``nests`` by structure, ``programs`` (branches and
    loops, by name: emitter, text, whether it has loops), ``calls``; ``constants`` of all levels,
    by name."""

    prefix: str
    constants: dict[str, bytes]
    nests: dict[Any, str] = field(default_factory=dict)
    emitters: list[LlvmEmitter] = field(default_factory=list)
    programs: dict[str, tuple[LlvmEmitter, str, bool]] = field(default_factory=dict)
    calls: list[tuple[LlvmEmitter, str]] = field(default_factory=list)

    @property
    def library(self) -> str:
        """The library's name."""
        return self.prefix.rpartition(".")[0]

    def nest(self, form: LoopForm) -> str:
        """The name of the function of a form; forms of equal structure share it."""
        key = structure_key(form)
        name = self.nests.get(key)
        if name is None:
            name = self.nests[key] = f"{self.prefix}.nest{len(self.nests)}"
            self.emitters.append(emit_nest(form, name))
        return name

    def constant(self, array: Any) -> str:
        """The name of an array that is part of the library."""
        data = np.ascontiguousarray(array).tobytes()
        stem = self.library
        for name, known in self.constants.items():
            if known == data:
                return name
        name = f"{stem}.constant{len(self.constants)}"
        self.constants[name] = data
        return name


class CallText:
    """The text of one variant of a function, while it is printed (see `.call_printer`)."""

    def __init__(
        self, function: ExportedFunction, variant: Variant, name: str, level: LevelTexts,
        threads: str,
    ) -> None:
        self.function, self.variant, self.name, self.level = function, variant, name, level
        self.threads = threads
        self.em, self.entry = LlvmEmitter(), list[str]()
        self.workspace = Workspace()
        self.known: dict[Any, str] = {}
        self.words = 1  # of the block that all nests of the call use in turn
        self._sizes = SizeText(self.em, variant.symbol)
        self.temps: dict[int, str] = {}
        self.becomes = _that_become_results(variant)
        self.externals: set[str] = set()

    # -- numbers

    def number(self, size: Size) -> str:
        """A size as an int64, computed once at the entry."""
        return self._at_entry(("number", stored(size)), lambda: self._sizes.number(size))

    def bits(self, value: Any, dtype: np.dtype) -> LlvmValue:
        """A number that follows from sizes, or does not, of that type."""
        if type(value) is not Symbolic:
            return self.em.const(dtype, value)
        text = self._at_entry((dtype.str, stored(value)),
                              lambda: self._sizes.as_dtype(value, dtype).text)
        return LlvmValue(text, dtype, 1)

    def _at_entry(self, key: Any, emit: Callable[[], str]) -> str:
        if key not in self.known:
            lines, self.em.lines = self.em.lines, self.entry
            self.known[key] = emit()
            self.em.lines = lines
        return self.known[key]

    # -- memory

    def address(self, place: View) -> str:
        """The address of a place's memory."""
        memory = place.memory
        match memory.origin:
            case "operand":
                return self.operand(memory.position)
            case "target":
                return f"%r{self.variant.results[memory.position]}"
            case "cell":
                return self._cell(memory.position)
        return self._temp(memory)

    def operand(self, position: int) -> str:
        """The address of an array that is an input of the graph."""
        number = self.variant.arguments.get(position)
        if number is not None:
            return f"%a{number}"
        held = self.variant.fields.get(position)
        return self.constant(self.variant.constants[position]) if held is None else (
            self.field(held))

    def field(self, held: CField) -> str:
        """The address of a field of the state."""
        return self._at_entry(("field", held.offset), lambda: self.em.offset(
            "%state", str(held.offset)))

    def constant(self, array: Any) -> str:
        name = self.level.constant(array)
        self.externals.add(name)
        return f"@{name}"

    def _cell(self, number: int) -> str:
        return self._at_entry(("cell", number), lambda: self.em.value(
            f"getelementptr i64, ptr %cells, i64 {number}"))

    def _temp(self, memory: Memory) -> str:
        if memory.position in self.becomes:
            return self.address(self.becomes[memory.position])
        if memory.position not in self.temps:
            self.temps[memory.position] = self.workspace.block(memory.nbytes)
        return self.temps[memory.position]

    def fails(self, condition: str, code: Callable[[], str], failures: list[CheckFailure]) -> None:
        """Leave where the condition holds; ``code`` emits the number of the failure among these."""
        em, first = self.em, len(self.function.failures) + 1
        known = self.function.failures
        at = next((k for k in range(len(known)) if known[k: k + len(failures)] == failures), None)
        if at is None:
            known += failures
        else:
            first = at + 1
        self.workspace.may_fail = True
        with em.branch(condition):
            em.line(f"ret i64 {em.add(code(), first)}")
            em.label(em.fresh("never"))

    def take_numbers(self) -> None:
        """Numbers that are passed by value, and those from outside, into their cells."""
        cell = 0
        for position, value in enumerate(self.variant.call_plan.graph.inputs):
            if value.type.kind == "array":
                continue
            dtype, place = value.type.dtype, self._cell(cell)
            cell += max(1, dtype.itemsize // 8)
            number = self.variant.arguments.get(position)
            parts = [f"%a{number}"] if dtype.kind != "c" else [f"%a{number}.re", f"%a{number}.im"]
            part = dtype if dtype.kind != "c" else np.dtype(f"f{dtype.itemsize // 2}")
            if number is None and position in self.variant.fields:
                self.copy(place, self.field(self.variant.fields[position]), str(dtype.itemsize))
                continue
            if number is None:
                data = np.asarray(self.variant.constants[position], dtype).reshape(1)
                self.copy(place, self.constant(data), str(dtype.itemsize))
                continue
            for k, text in enumerate(parts):
                kind = passed_type(part)
                self.em.line(f"store {kind} {text}, ptr {self._moved(place, k * part.itemsize)}")

    def _moved(self, address: str, nbytes: int) -> str:
        return self.em.offset(address, str(nbytes)) if nbytes else address

    def copy(self, target: str, source: str, nbytes: str) -> None:
        self.em.declare("declare void @llvm.memmove.p0.p0.i64(ptr, ptr, i64, i1)")
        self.em.line(f"call void @llvm.memmove.p0.p0.i64(ptr {target}, ptr {source}, "
                     f"i64 {nbytes}, i1 false)")

    def give(self, index: int, place: Any) -> None:
        """Copy a result to the caller's memory where it is not computed there."""
        number, held = self.variant.results.get(index), self.variant.assigned.get(index)
        if number is None and held is None:
            return
        value = self.variant.call_plan.graph.outputs[index]
        target = f"%r{number}" if held is None else self.field(held)
        itemsize = value.type.dtype.itemsize
        if type(place) is Symbolic:
            self.em.line(f"store {self.bits(place, value.type.dtype)}, ptr {target}")
        elif not isinstance(place, View):
            array = np.asarray(place, value.type.dtype)
            self.copy(target, self.constant(array), str(array.nbytes))
        elif place.is_cell:
            self.copy(target, self.address(place), str(itemsize))
        elif place.key[0] != "target" or self.address(place) != target:
            dense = contiguous(value.type.shape, itemsize)
            assert place.strides == dense, "a result that lies otherwise is copied by the graph"
            self.copy(target, self.address(place), self.number(value.type.nbytes))


def _that_become_results(variant: Variant) -> dict[int, View]:
    """Temporaries, by number, that a branch or loop changes and that are its results from then on:
    they lie where those do."""
    found: dict[int, View] = {}
    for step, program in variant.programs.items():
        for number in () if step.run is None else step.run.reused:
            operand, place = step.operands[program.copied[number]], step.results[number]
            if operand.memory is not place.memory and operand.memory.origin == "temp":
                found[operand.memory.position] = place
    return found


def passed_type(dtype: np.dtype) -> str:
    """LLVM's type of a number that C passes by value: half precision as its bits."""
    return "i16" if dtype == np.float16 else memory_type(dtype)


def _passed(dtype: np.dtype, name: str) -> str:
    if dtype.kind == "c":
        kind = memory_type(np.dtype(f"f{dtype.itemsize // 2}"))
        return f"{kind} {name}.re, {kind} {name}.im"
    extension = "" if dtype.itemsize > 2 or dtype == np.float32 else (
        " signext" if dtype.kind == "i" else " zeroext")
    return f"{passed_type(dtype)}{extension} {name}"


def parameters(function: ExportedFunction) -> str:
    """The parameters of a function, in LLVM's words."""
    sizes = [f"i64 %n{k}" for k in range(len(function.sizes))]
    arguments = [f"ptr %a{k}" if a.is_array else _passed(a.dtype, f"%a{k}")
                 for k, a in enumerate(function.arguments)]
    results = [f"ptr %r{k}" for k in range(len(function.results))]
    state = ["ptr %state"] if function.state_bytes else []
    return ", ".join([*sizes, *arguments, *results, *state, "ptr %workspace"])
