"""The frame of a program's kernel: its parameters, its memory, and its early exits.

The kernel is ``run(char *words, const char *numbers, char *a0, …)``.  The host reads ``words``
afterwards: `CODE` (0, or 1 plus the number of the exit that was taken), `INDEX` and `SIZE` of
that exit, addresses of arrays that an exit leaves, numbers that are results, and numbers that
kernels read and write.  ``numbers`` are constants, sizes and operands, so that programs that differ
in these share their code.  Then come the addresses of arrays.

All threads of the block compute all numbers; one of them stores.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fusec.codegen.backend import NotNativeError
from fusec.codegen.cuda.compiled_nests import CudaForm, code_key
from fusec.codegen.structured.memory import Constant, Memory, Register, Variable, View, is_zero
from fusec.core.records import dataclass, field
from fusec.ir.sizes.dims import Dim, Size
from fusec.ir.sizes.polynomials import Call

from ...plan.control_program import ErrorExit
from ..kernels.kernel_sources import WrittenKernel, write_form
from ..scalars.emitter import BOOL, Emitter, Operand, memory_type, type_name

CODE, INDEX, SIZE = range(3)  # words
Number = tuple[str, Any]  # ("number", a constant), ("size", a symbol), ("input", a position)
Address = tuple[str, Size]  # ("operand", position), ("target", number), ("temp", bytes), …
WORD = 8  # bytes


@dataclass
class LoopFrame:
    """What the statements of one kernel share."""

    exits: list[ErrorExit]
    outer: frozenset[str]
    threads: int
    em: Emitter = field(default_factory=Emitter)
    head: list[str] = field(default_factory=list)
    words: int = SIZE + 1
    results: dict[int, tuple[int, np.dtype]] = field(default_factory=dict)  # word of each
    left: dict[int, tuple[int, Memory]] = field(default_factory=dict)  # by result, its word
    numbers: dict[Number, int] = field(default_factory=dict)
    addresses: list[Address] = field(default_factory=list)
    values: dict[Register, Operand] = field(default_factory=dict)
    names: dict[Variable | Memory, str] = field(default_factory=dict)
    symbols: dict[str, str] = field(default_factory=dict)
    kept: dict[int, tuple[int, Operand]] = field(default_factory=dict)  # by host word: word, value
    nests: dict[tuple, list[WrittenKernel]] = field(default_factory=dict)  # by what is code in them
    shared: int = 0  # bytes of dynamic shared memory

    def functions_of(self, form: CudaForm) -> list[WrittenKernel]:
        """The functions of a nest; nests that differ only in sizes share them."""
        key = code_key(form)
        if key not in self.nests:
            self.nests[key] = write_form(form.loops, form.index, f"nest_{len(self.nests)}")
        return self.nests[key]

    # -- what the kernel is passed

    def word(self) -> int:
        """A new word."""
        self.words += 1
        return self.words - 1

    def number(self, kind: str, value: Any) -> str:
        """A number of the host's: loaded once, at the kernel's beginning."""
        key = kind, value
        if key not in self.numbers:
            at = self.numbers[key] = len(self.numbers)
            self.head.append(f"const i64 n{at} = load<i64>(numbers + {WORD * at});")
        return f"n{self.numbers[key]}"

    def address(self, kind: str, value: Size) -> str:
        """The parameter that is an array's address; of fresh memory a new one each time."""
        key = kind, value
        if kind not in ("operand", "target") or key not in self.addresses:
            self.addresses.append(key)
            return f"a{len(self.addresses) - 1}"
        return f"a{self.addresses.index(key)}"

    def declare_memory(self, memory: Memory) -> None:
        """A pointer, which begins at the kernel's beginning: loops exchange it."""
        name = self.names[memory] = f"m{len(self.names)}"
        if memory.origin == "alias":
            self.head.append(f"char *{name} = words;")
            return
        kind = "const char *" if memory.origin == "operand" else "char *"
        value = memory.position if memory.origin in ("operand", "target") else memory.nbytes
        self.head.append(f"{kind}{name} = {self.address(memory.origin, value)};")
        if memory.left >= 0:
            self.left[memory.left] = self.word(), memory

    # -- operands

    def operand(self, operand: Register | Constant) -> Operand:
        if isinstance(operand, Register):
            return self.values[operand]
        return self.em.const(operand.dtype, operand.value)

    def text(self, operand: Register | Constant) -> str:
        return self.operand(operand).text

    def place(self, view: View) -> str:
        """The address of an array's first element."""
        text = self.names[view.memory]
        if not is_zero(view.offset):
            text += f" + {self.text(view.offset)}"
        if not is_zero(view.element):
            text += f" + {self.text(view.element)} * {view.dtype.itemsize}"
        return text

    def stride(self, step: Any) -> str:
        """A byte stride."""
        return self.text(step) if isinstance(step, Register) else self.size(step)

    # -- sizes

    def size(self, size: Size) -> str:
        """A size as an expression: 0 and 1 are part of the code."""
        if not isinstance(size, Dim):
            return str(size) if size in (0, 1) else self.number("number", int(size))
        terms = []
        for monomial, factor in size.terms:
            atoms = [self._symbol(a) if isinstance(a, str) else self._call(a) for a in monomial]
            terms.append(" * ".join([str(factor), *atoms] if factor != 1 or not atoms else atoms))
        return f"({' + '.join(terms)})"

    def _symbol(self, name: str) -> str:
        return self.number("size", name) if name in self.outer else self.symbols[name]

    def _call(self, call: Call) -> str:
        a, b = self.size(call.left), self.size(call.right)
        if call.function in ("min", "max"):
            return f"({a} {'<' if call.function == 'min' else '>'} {b} ? {a} : {b})"
        name = "int_floor_div" if call.function == "//" else "int_mod"
        return f"{name}<i64>({a}, {b})"

    def define(self, symbol: str, value: str) -> None:
        """Set a symbol's value."""
        if symbol not in self.symbols:
            self.symbols[symbol] = f"size{len(self.symbols)}"
            self.head.append(f"i64 {self.symbols[symbol]} = 0;")
        self.em.line(f"{self.symbols[symbol]} = {value};")

    # -- the block's threads

    def join(self) -> None:
        """Let all threads come here, and see what each has stored."""
        if self.threads > 1:
            self.em.line("__syncthreads();")

    def store(self, address: str, value: Operand) -> None:
        """One thread's store, which nobody else reads or writes meanwhile."""
        self.join()
        only = "if (threadIdx.x == 0) " if self.threads > 1 else ""
        self.em.line(f"{only}store<{memory_type(value.dtype)}>({address}, {in_memory(value)});")
        self.join()

    def load(self, dtype: np.dtype, address: str) -> Operand:
        text = f"load<{memory_type(dtype)}>({address})"
        return self.em.value(dtype, f"{text} != 0" if dtype == BOOL else text)

    def word_address(self, word: int) -> str:
        return f"words + {WORD * word}"

    # -- exits

    def fail_unless(self, condition: str, number: int, index: str = "0", size: str = "0") -> None:
        """Leave through an exit where the condition is false: in all threads, or in none."""
        exit_ = self.exits[number]
        if isinstance(exit_.size, Dim):
            size = self.size(exit_.size)
        with self.em.block(f"if (!({condition}))"):
            with self.em.block("if (threadIdx.x == 0)"):
                self._put(CODE, str(number + 1))
                self._put(INDEX, index)
                self._put(SIZE, size)
                for host, _ in exit_.call[1] if exit_.call else ():
                    word, value = self.kept[host]
                    self.em.line(f"store<{memory_type(value.dtype)}>({self.word_address(word)}, "
                                 f"{in_memory(value)});")
                for word, memory in self.left.values():
                    self._put(word, f"reinterpret_cast<i64>({self.names[memory]})")
            self.em.line("return;")

    def _put(self, word: int, text: str) -> None:
        self.em.line(f"store<i64>({self.word_address(word)}, {text});")


def in_memory(value: Operand) -> str:
    """A value as an element."""
    return f"u8({value})" if value.dtype == BOOL else value.text


def require_plain(dtype: np.dtype) -> None:
    """Raise `NotNativeError` for numbers that C++ has no type for here."""
    if dtype.kind not in "biuf" or dtype.itemsize > WORD:
        raise NotNativeError(f"{dtype} numbers in a loop on a CUDA device")


def from_word(text: str, dtype: np.dtype) -> str:
    """A number from the bits of an integer."""
    if dtype.kind == "f":
        whole = f"u{8 * dtype.itemsize}({text})"
        return f"half_of_bits({whole})" if dtype.itemsize == 2 else f"from_bits({whole})"
    return f"({text} & 1) != 0" if dtype == BOOL else f"{type_name(dtype)}({text})"
