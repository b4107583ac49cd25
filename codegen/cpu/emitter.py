"""A tiny emitter of LLVM IR text: fresh names, typed operands, loops as context managers.

Loop counters and accumulators live in allocas; LLVM's first pass turns them into SSA form, which
keeps this file free of phi nodes.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from fusec.core.records import dataclass

I64 = np.dtype(np.int64)
BOOL = np.dtype(np.bool_)
UNLIKELY = ", !prof !0"  # after a branch whose first side is hardly ever taken
LIKELY = ", !prof !1"  # after one whose second side is
_WEIGHTS = """!0 = !{!"branch_weights", i32 1, i32 2000}
!1 = !{!"branch_weights", i32 2000, i32 1}"""


def with_weights(text: str) -> str:
    """A module's text with what branches that are `LIKELY` or `UNLIKELY` refer to."""
    return f"{text}\n\n{_WEIGHTS}\n" if ", !prof !" in text else f"{text}\n"


def scalar_type(dtype: np.dtype) -> str:
    """The LLVM type of one value in registers (booleans are i1 there, i8 in memory).

    A complex number is its bits, which native loops move around; kernels take it apart.
    """
    if dtype.kind == "f":
        return {2: "half", 4: "float", 8: "double"}[dtype.itemsize]
    return "i1" if dtype.kind == "b" else f"i{8 * dtype.itemsize}"


def memory_type(dtype: np.dtype) -> str:
    return "i8" if dtype.kind == "b" else scalar_type(dtype)


def vector_type(element: str, lanes: int) -> str:
    return element if lanes == 1 else f"<{lanes} x {element}>"


def type_suffix(dtype: np.dtype, lanes: int) -> str:
    """The suffix of an intrinsic overloaded on this type: ``v8f64``."""
    kind = "f" if dtype.kind == "f" else "i"
    bits = 1 if dtype.kind == "b" else 8 * dtype.itemsize
    return f"{'' if lanes == 1 else f'v{lanes}'}{kind}{bits}"


def literal(dtype: np.dtype, value: Any) -> str:
    """A constant as LLVM text; floats exactly, by their bits."""
    if dtype.kind == "b":
        return "true" if value else "false"
    if dtype.kind == "f" and dtype.itemsize == 2:
        return f"0xH{int(np.float16(value).view(np.uint16)):04X}"
    if dtype.kind == "f":
        bits = struct.unpack("<Q", struct.pack("<d", float(dtype.type(value))))[0]
        return f"0x{bits:016X}"
    return str(int(value))


@dataclass(frozen=True, slots=True)
class LlvmValue:
    """An SSA name or a literal with its dtype and number of lanes."""

    text: str
    dtype: np.dtype
    lanes: int

    @property
    def type(self) -> str:
        return vector_type(scalar_type(self.dtype), self.lanes)

    def __str__(self) -> str:
        return f"{self.type} {self.text}"


Origin = tuple[int, int, Any]  # lines from and to, and the expression that they compute


class LlvmEmitter:
    """The body of one function, line by line, and the declarations it needs."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.allocas: list[str] = []
        self.declarations: set[str] = set()
        self.functions: dict[str, str] = {}
        self.links: dict[str, str] = {}  # modules to be linked, by the symbol they define
        self.depth = 0  # of loops around what is emitted next
        # Of each function the number of its first line in its text, and which lines are of which
        # expression; None where nobody asks.
        self.origins: dict[str, tuple[int, list[Origin]]] | None = None
        self.of_lines: list[Origin] = []
        self._count = 0

    def fresh(self, stem: str = "t") -> str:
        self._count += 1
        return f"{stem}{self._count}"

    def line(self, text: str) -> None:
        self.lines.append("  " + text)

    def value(self, text: str, stem: str = "t") -> str:
        """Assign an instruction to a fresh name."""
        name = "%" + self.fresh(stem)
        self.line(f"{name} = {text}")
        return name

    def label(self, name: str) -> None:
        self.lines.append(f"{name}:")

    def alloca(self, type_: str, stem: str = "slot", align: int = 64) -> str:
        """Stack memory, reserved once at function entry."""
        name = "%" + self.fresh(stem)
        self.allocas.append(f"  {name} = alloca {type_}, align {align}")
        return name

    def declare(self, text: str) -> None:
        self.declarations.add(text)

    def note(self, start: int, source: Any) -> None:
        """The lines from ``start`` on are of this expression."""
        if self.origins is not None:
            self.of_lines.append((start, len(self.lines), source))

    # -- integers used for addressing

    def add(self, a: str, b: str | int) -> str:
        return a if b == 0 else self.value(f"add i64 {a}, {b}")

    def mul(self, a: str, b: str | int) -> str:
        return self.value(f"mul i64 {a}, {b}")

    def minimum(self, a: str, b: str) -> str:
        below = self.value(f"icmp slt i64 {a}, {b}")
        return self.value(f"select i1 {below}, i64 {a}, i64 {b}")

    def offset(self, pointer: str, offset: str) -> str:
        """A pointer moved by a number of bytes."""
        return self.value(f"getelementptr i8, ptr {pointer}, i64 {offset}", "p")

    # -- control flow

    @contextmanager
    def loop(self, start: str | int, stop: str, step: str | int = 1) -> Iterator[str]:
        """``for i in range(start, stop, step)``; yields the counter."""
        slot = self.alloca("i64", "i", 8)
        head, body, done = self.fresh("head"), self.fresh("body"), self.fresh("done")
        self.line(f"store i64 {start}, ptr {slot}")
        self.line(f"br label %{head}")
        self.label(head)
        counter = self.value(f"load i64, ptr {slot}", "i")
        inside = self.value(f"icmp slt i64 {counter}, {stop}")
        self.line(f"br i1 {inside}, label %{body}, label %{done}")
        self.label(body)
        self.depth += 1
        yield counter
        self.depth -= 1
        self.line(f"store i64 {self.add(counter, step)}, ptr {slot}")
        self.line(f"br label %{head}")
        self.label(done)

    @contextmanager
    def branch(self, condition: str, weights: str = "") -> Iterator[None]:
        """``if condition:``; ``weights`` may be `UNLIKELY`."""
        taken, after = self.fresh("then"), self.fresh("after")
        self.line(f"br i1 {condition}, label %{taken}, label %{after}{weights}")
        self.label(taken)
        yield
        self.line(f"br label %{after}")
        self.label(after)

    @contextmanager
    def either(self, condition: str) -> Iterator[Callable[[], None]]:
        """``if condition:``; the yielded function is called where the other side begins."""
        taken, other, after = self.fresh("then"), self.fresh("else"), self.fresh("after")

        def otherwise() -> None:
            self.line(f"br label %{after}")
            self.label(other)

        self.line(f"br i1 {condition}, label %{taken}, label %{other}")
        self.label(taken)
        yield otherwise
        self.line(f"br label %{after}")
        self.label(after)

    @contextmanager
    def while_loop(self) -> Iterator[tuple[str, str]]:
        """Repeats until the body branches to the second label; yields (head, done) labels."""
        head, done = self.fresh("head"), self.fresh("done")
        self.line(f"br label %{head}")
        self.label(head)
        self.depth += 1
        yield head, done
        self.depth -= 1
        self.line(f"br label %{head}")
        self.label(done)

    # -- vectors

    def splat(self, operand: LlvmValue, lanes: int) -> LlvmValue:
        """The operand in every lane; itself when it has that many already."""
        if operand.lanes == lanes:
            return operand
        element = scalar_type(operand.dtype)
        if not operand.text.startswith("%"):
            return LlvmValue(f"splat ({element} {operand.text})", operand.dtype, lanes)
        wide = vector_type(element, lanes)
        first = self.value(f"insertelement {wide} poison, {element} {operand.text}, i64 0")
        zeros = f"<{lanes} x i32> zeroinitializer"
        text = self.value(f"shufflevector {wide} {first}, {wide} poison, {zeros}")
        return LlvmValue(text, operand.dtype, lanes)

    def const(self, dtype: np.dtype, value: Any, lanes: int = 1) -> LlvmValue:
        return self.splat(LlvmValue(literal(dtype, value), dtype, 1), lanes)

    def lane(self, vector: LlvmValue, index: int) -> LlvmValue:
        text = self.value(f"extractelement {vector}, i64 {index}")
        return LlvmValue(text, vector.dtype, 1)

    def iota(self, start: str, lanes: int) -> LlvmValue:
        """``start, start+1, …`` as int64 lanes."""
        base = self.splat(LlvmValue(start, I64, 1), lanes)
        if lanes == 1:
            return base
        steps = ", ".join(f"i64 {k}" for k in range(lanes))
        return LlvmValue(self.value(f"add {base}, <{steps}>"), I64, lanes)

    def intrinsic(self, name: str, dtype: np.dtype, lanes: int, *args: LlvmValue) -> LlvmValue:
        """Call ``llvm.name`` overloaded on one type."""
        kind = vector_type(scalar_type(dtype), lanes)
        symbol = f"llvm.{name}.{type_suffix(dtype, lanes)}"
        self.declare(f"declare {kind} @{symbol}({', '.join([kind] * len(args))})")
        text = self.value(f"call {kind} @{symbol}({', '.join(map(str, args))})")
        return LlvmValue(text, dtype, lanes)

    def intrinsic_of_vector(self, name: str, x: LlvmValue) -> LlvmValue:
        """Call ``llvm.name``, which makes one value of a vector's lanes."""
        kind = scalar_type(x.dtype)
        symbol = f"llvm.{name}.{type_suffix(x.dtype, x.lanes)}"
        self.declare(f"declare {kind} @{symbol}({x.type})")
        return LlvmValue(self.value(f"call {kind} @{symbol}({x})"), x.dtype, 1)

    # -- memory

    def load(self, pointer: str, dtype: np.dtype, lanes: int) -> LlvmValue:
        """``lanes`` neighbouring values; booleans are bytes, any non-zero byte is true."""
        kind = vector_type(memory_type(dtype), lanes)
        text = self.value(f"load {kind}, ptr {pointer}, align {dtype.alignment}")
        if dtype.kind == "b":
            zero = "0" if lanes == 1 else "zeroinitializer"
            text = self.value(f"icmp ne {kind} {text}, {zero}")
        return LlvmValue(text, dtype, lanes)

    def store(self, pointer: str, operand: LlvmValue) -> None:
        text, dtype = operand.text, operand.dtype
        kind = vector_type(memory_type(dtype), operand.lanes)
        if dtype.kind == "b":
            text = self.value(f"zext {operand} to {kind}")
        self.line(f"store {kind} {text}, ptr {pointer}, align {dtype.alignment}")

    def gather(self, pointer: str, stride: str, dtype: np.dtype, lanes: int) -> LlvmValue:
        """Load lanes ``stride`` bytes apart one by one."""
        kind = vector_type(scalar_type(dtype), lanes)
        text = "poison"
        for k in range(lanes):
            one = self.load(self._strided(pointer, stride, k), dtype, 1)
            text = self.value(f"insertelement {kind} {text}, {one}, i64 {k}")
        return LlvmValue(text, dtype, lanes)

    def scatter(self, pointer: str, stride: str, operand: LlvmValue) -> None:
        for k in range(operand.lanes):
            self.store(self._strided(pointer, stride, k), self.lane(operand, k))

    def _strided(self, pointer: str, stride: str, k: int) -> str:
        return pointer if k == 0 else self.offset(pointer, self.mul(stride, k))
