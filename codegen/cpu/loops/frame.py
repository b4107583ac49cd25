"""The frame of a native loop's function: its argument block, its memory, its error exits.

The function is ``i64 run(ptr block)``; the block is an array of 64-bit words, and every word is
loaded once, at entry.  Sizes and strides are words too, so the code does not depend on them.  The
result is 0, or 1 plus the number of the error exit that was taken.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from fusec.codegen.cpu.emitter import I64, LIKELY, LlvmEmitter, LlvmValue, memory_type
from fusec.codegen.structured.kernel_statements import NestUse
from fusec.codegen.structured.memory import (
    Constant,
    Memory,
    Operand,
    Register,
    Variable,
    View,
    is_zero,
)
from fusec.codegen.structured.statements import Function
from fusec.core.records import dataclass, field
from fusec.ir.sizes.dims import Dim, Size
from fusec.ir.sizes.symbolic_numbers import Symbolic

from ...machine_code.native_nest import RECORD
from ...plan.control_program import ErrorExit, Word
from ..nests.inlining import with_few_copies
from ..size_text import SizeText

WORD = 8  # bytes
MANY_WORDS = 256  # beyond these none stays in a register from the entry on


@dataclass
class Frame:
    """The state that the printers of one function's statements share."""

    exits: list[ErrorExit]
    em: LlvmEmitter = field(default_factory=LlvmEmitter)
    words: list[Word] = field(default_factory=list)
    entry: list[str] = field(default_factory=list)
    nests: list[NestUse] = field(default_factory=list)
    values: dict[Register, LlvmValue] = field(default_factory=dict)
    # By an index that has been wrapped, and the size: whether it is in range.
    inside: dict[tuple[Operand, ...], LlvmValue] = field(default_factory=dict)
    # Memory of variables, and of the addresses of arrays, which a loop may exchange.
    slots: dict[Variable | Memory, str] = field(default_factory=dict)
    sizes: dict[str, str] = field(default_factory=dict)  # by symbol, the memory of its value
    outer: frozenset[str] = frozenset()  # symbols that are defined before the loop
    passed: list[str] = field(default_factory=list)  # the outer symbols that the block passes in
    left: dict[int, str] = field(default_factory=dict)  # by result, memory of its address
    code: str = ""  # memory of the code that an early exit returns
    budget: str = ""  # memory of the ns of work left until the next poll
    at_end: str = ""  # an instruction to run before every return
    has_loops: bool = True  # whether any part of the function may run twice
    caller: Frame | None = None  # of a function that this one calls, with which it shares the block
    function: Function | None = None  # the one that calls itself; None: the program's own
    callees: dict[Function, str] = field(default_factory=dict)  # their names in the code
    numbers: dict[Word, int] = field(default_factory=dict)
    lanes: list[str] = field(default_factory=list)  # how each loop over lanes runs, in words
    lanes_together: int = 1  # how many lanes run in one vector
    lane_count: int = 0  # of the loop over lanes that all is; 0: nobody knows how many
    _registers: dict[Word, str] = field(default_factory=dict)

    def word(self, kind: str, value: int = 0, type_: str = "i64") -> str:
        """The value of a word that the function only reads."""
        if not self._loads_in_place:
            return self.early_word(kind, value, type_)
        place = self.em.value(f"getelementptr i64, ptr %block, i64 {self._number(kind, value)}")
        return self.em.value(f"load {type_}, ptr {place}, align 8, !invariant.load !{{}}", "word")

    @property
    def _loads_in_place(self) -> bool:
        """Whether words are loaded where they are used, not at the entry.

        Code that runs once gains nothing from a register.  And a value loaded at the entry is live
        through the whole function: with thousands of them, LLVM's register allocator takes time
        that grows with the square of their number.
        """
        if self.has_loops:
            return len(self.words) > MANY_WORDS
        return self.em.depth == 0

    def early_word(self, kind: str, value: int = 0, type_: str = "i64") -> str:
        """The same, loaded at the entry.  Equal words are one load: LLVM sees which sizes
        and strides are equal."""
        key = Word(kind, value)
        if key not in self._registers:
            number = self._number(kind, value)
            name = self._registers[key] = f"%w{number}"
            self.entry.append(f"  {name}.from = getelementptr i64, ptr %block, i64 {number}")
            self.entry.append(f"  {name} = load {type_}, ptr {name}.from")
        return self._registers[key]

    def _number(self, kind: str, value: int) -> int:
        """The number of the word, which is added to the block if it is new."""
        key = Word(kind, value)
        if key not in self.numbers:
            self.numbers[key] = len(self.words)
            self.words.append(key)
        return self.numbers[key]

    def word_address(self, kind: str, value: int) -> str:
        """The address of a word that the function writes."""
        key = Word(kind, value)
        if key not in self._registers:
            number = self._number(kind, value)
            self._registers[key] = f"%w{number}.at"
            self.entry.append(f"  %w{number}.at = getelementptr i64, ptr %block, i64 {number}")
        return self._registers[key]

    def scalar_address(self, kind: str, value: int, dtype: np.dtype) -> str:
        """The same for a number; a complex one may take the next word too."""
        address = self.word_address(kind, value)
        if dtype.itemsize > WORD and self.words[-1] == Word(kind, value):
            self.words.append(Word("rest", len(self.words)))
        return address

    def host_word(self, number: int, dtype: np.dtype = I64) -> str:
        """The address of a ``host`` word, which is added to the block."""
        return self.scalar_address("host", number, dtype)

    def number(self, value: Size) -> str:
        """A size or stride: 0 and 1 are literals in the code, others are words of the block, and
        what only the run knows is computed."""
        if isinstance(value, Dim):
            return SizeText(self.em, self.symbol, self._constant).number(value)
        return self._constant(value)

    def _constant(self, value: int) -> str:
        return str(value) if value in (0, 1) else self.word("number", value)

    def define(self, name: str, value: str) -> None:
        """Set the value of a run-time symbol."""
        if name not in self.sizes:
            self.sizes[name] = self.em.alloca("i64", "size", 8)
        self.em.line(f"store i64 {value}, ptr {self.sizes[name]}")

    def symbol(self, name: str) -> str:
        """The value of a symbol."""
        if name in self.outer:
            if name not in self.passed:
                self.passed.append(name)
            return self.word("size", self.passed.index(name))
        return self.em.value(f"load i64, ptr {self.sizes[name]}", "n")

    # -- operands

    def operand(self, operand: Register | Constant) -> LlvmValue:
        """A register, or a constant as a literal.  A complex number is its bits."""
        if isinstance(operand, Register):
            return self.values[operand]
        dtype, value = operand.dtype, operand.value
        if type(value) is Symbolic and dtype == np.float64:
            bits: Any = value
            return LlvmValue(self.word("bits", bits, "double"), dtype, 1)
        if dtype.kind == "c":
            bits = int.from_bytes(np.array(value, dtype).tobytes(), sys.byteorder)
            return LlvmValue(str(bits), dtype, 1)
        return self.em.const(dtype, value)

    def text_of(self, operand: Register | Constant) -> str:
        return self.operand(operand).text

    def stride(self, value: Any, dtype: np.dtype) -> str:
        """A byte stride: 0 and the item size are literals in the code, run-time strides are in
        registers already, others are words."""
        if isinstance(value, Register):
            return self.text_of(value)
        return str(value) if value in (0, dtype.itemsize) else self.word("number", value)

    # -- variables and memory

    def slot(self, address: str, lines: list[str] | None = None) -> str:
        """A slot that holds, from the entry or from where ``lines`` go on, an address."""
        slot = self.em.alloca("ptr", "array", 8)
        (self.entry if lines is None else lines).append(f"  store ptr {address}, ptr {slot}")
        return slot

    def fresh_memory(self, memory: Memory) -> str:
        """The slot of memory that the runtime makes for the call."""
        at = len(self.words)
        self.words.append(Word(memory.origin, memory.nbytes))
        early = self.has_loops or self.em.depth > 0  # a loop may swap their addresses
        lines = self.entry if early else self.em.lines
        lines.append(f"  %w{at}.at = getelementptr i64, ptr %block, i64 {at}")
        lines.append(f"  %temp{at} = load ptr, ptr %w{at}.at")
        return self.slot(f"%temp{at}", lines)

    def base(self, memory: Memory) -> str:
        """The address of memory."""
        return self.em.value(f"load ptr, ptr {self.slots[memory]}", "base")

    def address(self, view: View) -> str:
        """The address of an array's first element."""
        base = self.base(view.memory)
        if not is_zero(view.offset):
            base = self.em.offset(base, self.text_of(view.offset))
        if is_zero(view.element):
            return base
        kind, element = memory_type(view.dtype), self.text_of(view.element)
        return self.em.value(f"getelementptr {kind}, ptr {base}, i64 {element}", "p")

    def variable(self, dtype: np.dtype) -> str:
        """An alloca for one scalar; LLVM promotes it to a register."""
        return self.em.alloca(memory_type(dtype), "var", 8)

    # -- errors

    def failure_words(self) -> tuple[str, str]:
        """The addresses of the nests' status word and failure record; both are 0 at the entry."""
        if Word("failure", 0) not in self._registers:
            places = [self.word_address("failure", k) for k in range(1 + len(RECORD))]
            for number, place in enumerate(places):
                clear = -1 if number == 1 + RECORD.index("check") else 0
                self.entry.append(f"  store i64 {clear}, ptr {place}")
        return self.word_address("failure", 0), self.word_address("failure", 1)

    def leave(self, code: int | str) -> None:
        """Leave the function early."""
        if not self.code:
            self.code = self.em.alloca("i64", "code", 8)
        self.em.line(f"store i64 {code}, ptr {self.code}")
        self.em.line("br label %leave")

    def _leaving(self) -> list[str]:
        """The code of early exits: a block of its own at the function's end."""
        if not self.code:
            return []
        em = LlvmEmitter()
        em.label("leave")
        for number, slot in self.left.items():
            em.line(f"%left{number} = load ptr, ptr {slot}")
            em.line(f"store ptr %left{number}, ptr {self.word_address('left', number)}")
        em.line(self.at_end)
        em.line(f"%code = load i64, ptr {self.code}")
        em.line("ret i64 %code")
        return em.lines

    def fail_unless(
        self, condition: str, number: int, index: str = "0", size: str = "0"
    ) -> None:
        """Leave through that exit where the condition is false.  The index is stored in the block,
        and the size if the exit does not have it."""
        em, exit_ = self.em, self.exits[number]
        good, bad = em.fresh("good"), em.fresh("bad")
        em.line(f"br i1 {condition}, label %{good}, label %{bad}{LIKELY}")
        em.label(bad)
        em.line(f"store i64 {index}, ptr {self.word_address('index', 0)}")
        if isinstance(exit_.size, Dim):
            size = self.number(exit_.size)
        if exit_.size is None or isinstance(exit_.size, Dim):
            em.line(f"store i64 {size}, ptr {self.word_address('index', 1)}")
        self.leave(number + 1)
        em.label(good)

    def text(self, name: str) -> str:
        """The finished function."""
        block_type = f"ptr dereferenceable({8 * len(self.words)})"
        return self.whole(f"define i64 @{name}({block_type} %block) nounwind {{")

    @property
    def first_line(self) -> int:
        """The number of the first line of the statements in the text."""
        return 2 + len(self.em.allocas) + len(self.entry)

    def whole(self, head: str) -> str:
        """The function that begins with this line."""
        em, leaving = self.em, self._leaving()
        lines = with_few_copies(em.lines, em.functions)
        return "\n".join([head, "entry:", *em.allocas, *self.entry, *lines, f"  {self.at_end}",
                          "  ret i64 0", *leaving, "}"])


