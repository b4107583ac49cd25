"""The text of a program that is launched: its lines, the objects that they name, its kernels.

Addresses of arrays are ints, which loops exchange; numbers are the host's or in words of the device
(`residence`).  Where the text needs one of those it waits for the device: at conditions, at indices
of single elements, and for results.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fusec.codegen.structured.analyses.aliases import Aliases
from fusec.codegen.structured.memory import (
    Memory,
    Operand,
    Register,
    View,
    contiguous,
    is_zero,
)
from fusec.codegen.structured.not_native import NotNativeError
from fusec.codegen.structured.program import StructuredProgram
from fusec.codegen.structured.statements import walk
from fusec.codegen.structured.text_writer import TextWriter, indented
from fusec.ir import Node, dtype_name
from fusec.ir.sizes.bindings import size_source
from fusec.ir.sizes.dims import Size, is_static, symbol

from ...kernels.complex_pairs import buffer_strides
from ...kernels.loop_ir import Expr, Kernel
from ...kernels.specialise import specialise
from ..compiled_nests import CudaForm, stores
from .device_counters import with_device_counters
from .device_numbers import host_number, on_host
from .host_numbers import wrapped
from .number_kernels import copy_kernel
from .program_call import ExitTakenError, ProgramCall
from .residence import Residence, reads

Address = tuple[str, int]  # "operand" or "target", and its number
# A call by the addresses, shapes, strides and dtypes of its arrays, and numbers, of a run.
LibraryAt = Callable[[Sequence[Any], Sequence[Any], ProgramCall], None]
Library = Callable[[Node], LibraryAt]


class ProgramText(TextWriter):
    """The text of one program: ``names`` are what it names; ``sites`` the forms of the nests that
    are launched at each `LaunchSite`, by the name that it has in the text.  ``library`` gives the
    device's function for a library call, or raises `NotNativeError`."""

    def __init__(self, program: StructuredProgram, library: Library) -> None:
        self.program, self.node, self.library = program, program.node, library
        super().__init__({
            "wrapped": wrapped, "on_host": on_host, "ExitTakenError": ExitTakenError,
            "min": min, "max": max, "float64": np.float64,
            "LIBRARY_ERRORS": (ValueError, ArithmeticError)})
        self.sites: dict[str, list[CudaForm]] = {}
        self.apart: set[str] = set()  # those that write nothing in the memory of an operand
        # Of sites that compute numbers: the statement that each expression is of.
        self.expressions: dict[str, list[tuple[Expr, Any]]] = {}
        self.arrays: list[Address] = []
        self.body, counters, self._stands_for = with_device_counters(program.body)
        self.residence = Residence(self.body, counters)
        self.aliases = Aliases(self.body)
        self.readers = Counter(r for x in walk(self.body) for r in reads(x))
        self._left: dict[int, Memory] = {}
        self._written: set[Operand] = set()  # numbers that are on the device for sure
        self.kept: dict[int, str] = {}  # arguments of calls that may raise, by ``host`` word
        self._words = 0
        self._head: list[str] = ["sizes, numbers = call.sizes, call.numbers",
                                 "new, there = numbers.new, numbers.there"]

    def note(self, start: int, source: Any) -> None:
        """The lines from ``start`` on are of this statement, or the one that it stands for."""
        super().note(start, self.of_program(source))

    def note_expression(self, site: str, e: Expr, source: Any) -> None:
        """An expression of a site's kernel is of this statement."""
        if self.notes is not None:
            self.expressions.setdefault(site, []).append((e, self.of_program(source)))

    def of_program(self, statement: Any) -> Any:
        """The statement of the program that one stands for."""
        return self._stands_for.get(id(statement), statement)

    def finish(self) -> None:
        """Put the memory before the statements, and around them what an exit leaves."""
        before = 2 + len(self._head)  # lines, the function's own and "try:" among them
        self.notes = self.notes and [(before + low, before + high, of)
                                     for low, high, of in self.notes]
        left = ", ".join(f"{number}: {memory!r}" for number, memory in self._left.items())
        self.lines = [
            *self._head, "try:", *indented(self.lines or ["pass"]), "except BaseException:",
            f"    call.left = {{{left}}}", "    raise"]

    def dtype(self, dtype: np.dtype) -> str:
        return self.once(f"dtype_{dtype_name(dtype)}", dtype)

    def new(self, register: Register) -> str:
        """A word for a number that a kernel writes: its address."""
        self.line(f"{register!r} = new({self.dtype(register.dtype)}, {register.number})")
        self._written.add(register)
        return f"{register!r}.address"

    # -- operands

    def number(self, operand: Operand) -> str:
        """A number, wherever it is."""
        if isinstance(operand, Register):
            return repr(operand)
        value = host_number(operand.value, operand.dtype)
        return repr(value) if type(value) in (int, bool) else self.bind("number", value)

    def host(self, operand: Operand) -> str:
        """A number on the host."""
        text = self.number(operand)
        return f"on_host({text})" if self.residence.is_there(operand) else text

    def word(self, operand: Operand) -> str:
        """The address of a number's word; the name is what keeps the word meanwhile."""
        if operand in self._written:
            return f"{operand!r}.address"
        self._words += 1
        self.line(f"w{self._words} = there({self.number(operand)}, {self.dtype(operand.dtype)})")
        return f"w{self._words}.address"

    def size(self, size: Size) -> str:
        return size_source(size, "sizes") if is_static((size,)) else (
            f"({size_source(size, 'sizes')})")

    def place(self, view: View) -> str:
        """The address of an array's first element."""
        return address_text(view, self.host)

    def contents(self, operand: Operand | View) -> str:
        """A number or an array's elements, on the host."""
        if isinstance(operand, View):
            return f"call.fetched({self.place(operand)}, {self.laid(operand)})"
        return self.host(operand)

    def laid(self, view: View) -> str:
        """Shape, strides and dtype of a view, as they are when the text comes to it."""
        if is_still(view):
            return self.bind("view", (view.shape, view.strides, view.dtype))
        shape = "".join(f"{self.size(size)}, " for size in view.shape)
        strides = "".join(f"{self.host(step) if isinstance(step, Register) else self.size(step)}, "
                          for step in view.strides)
        return f"(({shape}), ({strides}), {self.dtype(view.dtype)})"

    # -- kernels

    def launch(
        self, kernel: Kernel, strides: Sequence[tuple[int, ...]], addresses: Sequence[str]
    ) -> str:
        """Launch all nests of a kernel, for buffers with these strides: see `run_nests`."""
        return self.run_nests([CudaForm(specialise(kernel, nest, strides), kernel)
                        for nest in kernel.nests], addresses)

    def run_nests(self, forms: Sequence[CudaForm], addresses: Sequence[str]) -> str:
        """Launch nests, but for those that store nothing: the name of the site, or nothing."""
        forms = [form for form in forms if not form.is_static or stores(form)]
        if not forms:
            return ""
        name = f"launch{len(self.sites)}"
        self.sites[name] = list(forms)
        self.line(f"{name}(call, {', '.join(addresses)})")
        return name

    # -- memory

    def declare(self, memory: Memory) -> None:
        """Memory is there from the beginning on: what a loop declares again keeps its address."""
        if memory.left >= 0:
            self._left[memory.left] = memory
        self._head.append(f"{memory!r} = {self._made(memory)}")

    def _made(self, memory: Memory) -> str:
        if memory.origin == "alias":
            return "0"
        if memory.origin in ("operand", "target"):
            address = memory.origin, memory.position
            if address not in self.arrays:
                self.arrays.append(address)
            return f"call.address({memory.origin!r}, {memory.position})"
        if memory.origin == "parameter":
            raise NotNativeError("a function that calls itself on a CUDA device")
        make = "zeros" if memory.origin == "zeros" else "fresh"
        return f"call.memory.{make}({self.size(memory.nbytes)})"

    def copy(self, target: View, source: View) -> None:
        """Through memory of its own where the two may overlap; what an alias is at has no size.
        """
        if self.aliases.class_of(target.memory) == self.aliases.class_of(source.memory) and (
                target.memory is source.memory
                or "alias" in (target.memory.origin, source.memory.origin)):
            nbytes = math.prod(source.shape) * source.dtype.itemsize
            own = f"call.lent({self.size(nbytes)})"
            dense = contiguous(source.shape, source.dtype.itemsize)
            self._copy((own, dense), (self.place(source), source.strides), source)
            self._copy((self.place(target), target.strides), (own, dense), source)
        else:
            self._copy((self.place(target), target.strides),
                       (self.place(source), source.strides), source)

    def _copy(
        self, target: tuple[str, Any], source: tuple[str, Any], like: View
    ) -> None:
        steps = [tuple(map(self._step, side[1])) for side in (source, target)]
        kernel = copy_kernel(f"{self.node.name}_copy", like.shape, like.dtype, self.node.loc)
        self.launch(kernel, [buffer_strides(like.dtype, each) for each in steps],
                    [source[0], target[0]])

    def _step(self, step: Size | Register) -> Size:
        """A stride; one that the run decides is a size."""
        if not isinstance(step, Register):
            return step
        name = f"step_{step!r}"
        self.line(f"sizes[{name!r}] = {self.host(step)}")
        return symbol(name)


def address_text(view: View, number: Callable[[Operand], str]) -> str:
    """The expression of the address of a view's first element, by those of numbers."""
    text = repr(view.memory)
    if not is_zero(view.offset):
        text += f" + {number(view.offset)}"
    if not is_zero(view.element):
        text += f" + {number(view.element)} * {view.dtype.itemsize}"
    return text


def is_still(view: View) -> bool:
    """Whether its shape and strides are the same in each call."""
    return is_static((*view.shape, *view.strides)) and not any(
        isinstance(step, Register) for step in view.strides)


def still(view: View) -> tuple[Any, Any, np.dtype]:
    """Shape, strides and dtype of a view that has the same in each call."""
    if not is_still(view):
        raise NotNativeError("an array of a size that only the run knows, on a CUDA device")
    return view.shape, view.strides, view.dtype
