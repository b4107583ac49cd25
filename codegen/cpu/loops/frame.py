"""The frame of a native loop's function: its argument block, its arrays, its error exits.

The function is ``i64 run(ptr block)``; the block is an array of 64-bit words, and every word is
loaded once, at entry.  Sizes and strides are words too, so the code does not depend on them.  The
result is 0, or 1 plus the number of the error exit that was taken.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from fusec.codegen.backend import NotNativeError
from fusec.codegen.control_program import ErrorExit, HostSite, Word
from fusec.codegen.cpu.emitter import I64, Emitter, Operand, memory_type
from fusec.codegen.loop_ir import Param
from fusec.codegen.native_nest import RECORD
from fusec.codegen.specialise import LoopForm
from fusec.ir.dims import Dim, Size, is_at_least
from fusec.ir.polynomials import Call
from fusec.ops.windows import UNLIMITED
from fusec.records import dataclass, field

from .arrays import ArrayRef, Token, contiguous
from .bounds import bound_of

MAX_LITERAL = 3
WORD = 8  # bytes
MANY_WORDS = 256  # beyond these none stays in a register from the entry on


@dataclass
class NestCall:
    """A nest that the function calls: its form and constants."""

    form: LoopForm
    params: tuple[Param, ...]


@dataclass
class Frame:
    """The state that all emitters of one function share."""

    em: Emitter = field(default_factory=Emitter)
    words: list[Word] = field(default_factory=list)
    entry: list[str] = field(default_factory=list)
    nests: list[NestCall] = field(default_factory=list)
    exits: list[ErrorExit] = field(default_factory=list)
    sites: list[HostSite] = field(default_factory=list)
    sizes: dict[str, str] = field(default_factory=dict)  # by symbol, the memory of its value
    limits: dict[str, int] = field(default_factory=dict)  # by symbol, its upper bound
    outer: frozenset[str] = frozenset()  # symbols that are defined before the loop
    passed: list[str] = field(default_factory=list)  # the outer symbols that the block passes in
    left: dict[int, str] = field(default_factory=dict)  # by result, memory of its address
    code: str = ""  # memory of the code that an early exit returns
    budget: str = ""  # memory of the ns of work left until the next poll
    at_end: str = ""  # an instruction to run before every return
    has_loops: bool = True  # whether any part of the function may run twice
    caller: Frame | None = None  # of a function that this one calls, with which it shares the block
    numbers: dict[Word, int] = field(default_factory=dict)
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

    def host_word(self, dtype: np.dtype = I64) -> int:
        """Add a ``host`` word to the block; returns its number."""
        number = sum(w.kind == "host" for w in self.words)
        self.scalar_address("host", number, dtype)
        return number

    def number(self, value: Size) -> str:
        """A size or stride: 0 and 1 are literals in the code, others are words of the block."""
        if isinstance(value, Dim):
            return self._expression(value)
        return str(value) if value in (0, 1) else self.word("number", value)

    def _expression(self, size: Dim) -> str:
        """The value of a run-time size."""
        em, total = self.em, ""
        for monomial, factor in size.terms:
            product = str(factor)
            for atom in monomial:
                value = self.symbol(atom) if isinstance(atom, str) else self._call(atom)
                product = value if product == "1" else em.mul(value, product)
            total = em.add(total, product) if total else product
        return total

    def _call(self, call: Call) -> str:
        em = self.em
        if call.function in ("min", "max"):
            em.declare(f"declare i64 @llvm.s{call.function}.i64(i64, i64)")
            a, b = self.number(call.left), self.number(call.right)
            return em.value(f"call i64 @llvm.s{call.function}.i64(i64 {a}, i64 {b})")
        if not is_at_least(call.right, 1):
            raise NotNativeError(f"a size with a division, {call}")
        a, b = self.number(call.left), self.number(call.right)
        if not is_at_least(call.left, 0):
            return self._rounded_down(call.function, a, b)
        return em.value(f"{'udiv' if call.function == '//' else 'urem'} i64 {a}, {b}")

    def _rounded_down(self, function: str, a: str, b: str) -> str:
        """Python's quotient or remainder, of any integer by a positive one."""
        em = self.em
        rest = em.value(f"srem i64 {a}, {b}")
        negative = em.value(f"icmp slt i64 {rest}, 0")
        rest = em.add(rest, em.value(f"select i1 {negative}, i64 {b}, i64 0"))
        if function == "%":
            return rest
        return em.value(f"sdiv i64 {em.value(f'sub i64 {a}, {rest}')}, {b}")

    def define(self, name: str, value: str, limit: int) -> None:
        """Set the value of a run-time symbol, and its upper bound."""
        if name not in self.sizes:
            self.sizes[name] = self.em.alloca("i64", "size", 8)
        bound = bound_of(limit, self.limits)
        if bound < UNLIMITED:
            self.limits[name] = bound
        self.em.line(f"store i64 {value}, ptr {self.sizes[name]}")

    def symbol(self, name: str) -> str:
        """The value of a symbol."""
        if name in self.outer:
            if name not in self.passed:
                self.passed.append(name)
            return self.word("size", self.passed.index(name))
        if name not in self.sizes:
            raise NotNativeError(f"the size {name}, which is defined outside of it")
        return self.em.value(f"load i64, ptr {self.sizes[name]}", "n")

    def is_outer(self, size: Size) -> bool:
        """Whether the size is known when the call begins, and nothing bounds it before."""
        return isinstance(size, Dim) and size.symbols <= self.outer and not (
            size.symbols <= self.limits.keys())

    def constant(self, dtype: np.dtype, value: Any) -> Operand:
        """A constant of the program.  Large integers are mostly sizes: these are words, so that the
        code does not depend on them."""
        if dtype.kind == "c":
            bits = int.from_bytes(np.array(value, dtype).tobytes(), sys.byteorder)
            return Operand(str(bits), dtype, 1)
        if dtype == I64 and abs(int(value)) > MAX_LITERAL:
            return Operand(self.word("number", int(value)), dtype, 1)
        return self.em.const(dtype, value)

    def stride(self, value: int | str, dtype: np.dtype) -> str:
        """A byte stride: 0 and the item size are literals in the code, run-time strides are in
        registers already, others are words."""
        if isinstance(value, str):
            return value
        return str(value) if value in (0, dtype.itemsize) else self.word("number", value)

    # -- arrays

    def token(
        self, address: str, nbytes: int, dtype: np.dtype, lines: list[str] | None = None
    ) -> Token:
        """Memory that begins, at the entry or where ``lines`` go on, at an address."""
        slot = self.em.alloca("ptr", "array", 8)
        (self.entry if lines is None else lines).append(f"  store ptr {address}, ptr {slot}")
        return Token(slot, nbytes, dtype)

    def temporary(
        self, shape: Sequence[int], dtype: np.dtype, kind: str = "temp"
    ) -> ArrayRef:
        """Fresh memory that lives as long as the call; run-time sizes count as their bounds, or, in
        the first axis, as what they are when the call begins."""
        first = tuple(size if self.is_outer(size) else bound_of(size, self.limits)
                      for size in shape[:1])
        most = (*first, *(bound_of(size, self.limits) for size in shape[1:]))
        nbytes = math.prod(most) * dtype.itemsize
        at = len(self.words)
        self.words.append(Word(kind, nbytes))
        early = self.has_loops or self.em.depth > 0  # a loop may swap their addresses
        lines = self.entry if early else self.em.lines
        lines.append(f"  %w{at}.at = getelementptr i64, ptr %block, i64 {at}")
        lines.append(f"  %temp{at} = load ptr, ptr %w{at}.at")
        token = self.token(f"%temp{at}", nbytes, dtype, lines)
        return ArrayRef(token, tuple(shape), contiguous(most, dtype.itemsize), dtype)

    def address(self, ref: ArrayRef) -> str:
        """The address of an array's first element."""
        base = self.em.value(f"load ptr, ptr {ref.token.slot}", "base")
        if ref.offset != "0":
            base = self.em.offset(base, ref.offset)
        if ref.element == "0":
            return base
        kind = memory_type(ref.dtype)
        return self.em.value(f"getelementptr {kind}, ptr {base}, i64 {ref.element}", "p")

    def moved(self, offset: str, index: str, stride: str) -> str:
        """A byte offset moved by ``index`` strides."""
        if stride == "0" or index == "0":
            return offset
        step = self.em.mul(index, stride)
        return step if offset == "0" else self.em.add(offset, step)

    # -- scalars

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

    def watch(self, number: int, token: Token) -> None:
        """At an early exit, store the address of the result's memory in the block, for Python."""
        self.left[number] = token.slot

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
        em = Emitter()
        em.label("leave")
        for number, slot in self.left.items():
            em.line(f"%left{number} = load ptr, ptr {slot}")
            em.line(f"store ptr %left{number}, ptr {self.word_address('left', number)}")
        em.line(self.at_end)
        em.line(f"%code = load i64, ptr {self.code}")
        em.line("ret i64 %code")
        return em.lines

    def fail_unless(
        self, condition: str, exit_: ErrorExit, index: str = "0", size: str = "0"
    ) -> None:
        """Emit an early exit where the condition is false.  It stores the index in the block, and
        the size if the exit does not have it."""
        em, number = self.em, len(self.exits)
        self.exits.append(exit_)
        good, bad = em.fresh("good"), em.fresh("bad")
        em.line(f"br i1 {condition}, label %{good}, label %{bad}")
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

    def whole(self, head: str) -> str:
        """The function that begins with this line."""
        em, leaving = self.em, self._leaving()
        return "\n".join([head, "entry:", *em.allocas, *self.entry, *em.lines, f"  {self.at_end}",
                          "  ret i64 0", *leaving, "}"])


