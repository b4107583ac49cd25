"""A small LLVM IR builder: every function is written once and emitted for any (dtype, lanes).

A lane does the same IEEE operations in the same order whatever the lane count, so a scalar tail
and a vector body give the same bits.  Fused multiply-adds are explicit; no fast-math flag is used.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

import numpy as np

from fusec.records import dataclass


@dataclass(frozen=True)
class Format:
    """An IEEE 754 binary format and the constants the algorithms need of it."""

    name: str  # "f64", "f32"
    llvm: str  # "double", "float"
    bits: int
    mantissa: int  # stored mantissa bits
    bias: int

    @property
    def integer(self) -> str:
        return f"i{self.bits}"

    @property
    def magic(self) -> float:
        """Added to |v| < 2**(mantissa - 1), it leaves round(v) in the low mantissa bits."""
        return 1.5 * 2.0**self.mantissa

    @property
    def tiny(self) -> float:
        """The smallest normal number."""
        return 2.0 ** (1 - self.bias)

    @property
    def sign_mask(self) -> int:
        return 1 << (self.bits - 1)

    @property
    def mantissa_mask(self) -> int:
        return (1 << self.mantissa) - 1

    def encode(self, value: float) -> int:
        """The bits of ``value`` rounded to this format."""
        if self.bits == 64:
            return struct.unpack("<Q", struct.pack("<d", value))[0]
        return int(np.float32(value).view(np.uint32))

    def literal(self, value: float) -> str:
        """LLVM writes float constants, too, as the bits of a double."""
        rounded = float(value) if self.bits == 64 else float(np.float32(value))
        return f"0x{F64.encode(rounded):016X}"


F64 = Format("f64", "double", 64, 52, 1023)
F32 = Format("f32", "float", 32, 23, 127)
FORMATS = {np.dtype(np.float64): F64, np.dtype(np.float32): F32}


def format_of(dtype: np.dtype) -> Format:
    """The format of a dtype; raises ``TypeError`` for anything but float64 and float32."""
    fmt = FORMATS.get(np.dtype(dtype))
    if fmt is None:
        raise TypeError(f"internal error: vecmath knows float64 and float32, not {dtype}")
    return fmt


def suffix(fmt: Format, lanes: int) -> str:
    """The type part of a symbol: ``f64`` for a scalar, ``v8f64`` for eight lanes."""
    return fmt.name if lanes == 1 else f"v{lanes}{fmt.name}"


class Value:
    """An SSA value: ``kind`` is ``f`` (float), ``i`` (integer of that width) or ``m`` (mask)."""

    __slots__ = ("builder", "kind", "text")

    def __init__(self, builder: Builder, kind: str, text: str):
        self.builder, self.kind, self.text = builder, kind, text

    def _binary(self, float_op: str, int_op: str, other: Operand, swap: bool = False) -> Value:
        right = self.builder.operand(other, self.kind)
        left = self
        if swap:
            left, right = right, left
        op = float_op if self.kind == "f" else int_op
        if not op:
            raise TypeError(f"internal error: no such operation on kind {self.kind!r}")
        typ = self.builder.type(self.kind)
        return self.builder.emit(self.kind, f"{op} {typ} {left.text}, {right.text}")

    def __add__(self, other: Operand) -> Value:
        return self._binary("fadd", "add", other)

    def __radd__(self, other: Operand) -> Value:
        return self._binary("fadd", "add", other, swap=True)

    def __sub__(self, other: Operand) -> Value:
        return self._binary("fsub", "sub", other)

    def __rsub__(self, other: Operand) -> Value:
        return self._binary("fsub", "sub", other, swap=True)

    def __mul__(self, other: Operand) -> Value:
        return self._binary("fmul", "", other)

    def __rmul__(self, other: Operand) -> Value:
        return self._binary("fmul", "", other, swap=True)

    def __truediv__(self, other: Operand) -> Value:
        return self._binary("fdiv", "", other)

    def __rtruediv__(self, other: Operand) -> Value:
        return self._binary("fdiv", "", other, swap=True)

    def __and__(self, other: Operand) -> Value:
        return self._binary("", "and", other)

    def __or__(self, other: Operand) -> Value:
        return self._binary("", "or", other)

    def __xor__(self, other: Operand) -> Value:
        return self._binary("", "xor", other)

    def __invert__(self) -> Value:
        return self ^ (True if self.kind == "m" else -1)

    def __lshift__(self, count: int) -> Value:
        return self._binary("", "shl", count)

    def __rshift__(self, count: int) -> Value:
        """Logical: AVX2 has no packed 64-bit arithmetic shift."""
        return self._binary("", "lshr", count)

    def __neg__(self) -> Value:
        return self.builder.emit("f", f"fneg {self.builder.type('f')} {self.text}")

    def _compare(self, predicate: str, other: Operand) -> Value:
        right = self.builder.operand(other, self.kind)
        typ = self.builder.type(self.kind)
        op = f"fcmp {predicate}" if self.kind == "f" else f"icmp {predicate}"
        return self.builder.emit("m", f"{op} {typ} {self.text}, {right.text}")

    def __lt__(self, other: Operand) -> Value:
        return self._compare("olt" if self.kind == "f" else "slt", other)

    def __le__(self, other: Operand) -> Value:
        return self._compare("ole" if self.kind == "f" else "sle", other)

    def __gt__(self, other: Operand) -> Value:
        return self._compare("ogt" if self.kind == "f" else "sgt", other)

    def __ge__(self, other: Operand) -> Value:
        return self._compare("oge" if self.kind == "f" else "sge", other)

    def equals(self, other: Operand) -> Value:
        """Ordered: false where either is NaN."""
        return self._compare("oeq" if self.kind == "f" else "eq", other)

    def differs(self, other: Operand) -> Value:
        """Unordered: true where either is NaN."""
        return self._compare("une" if self.kind == "f" else "ne", other)

    def unordered(self, other: Operand) -> Value:
        """True where either is NaN."""
        return self._compare("uno", other)


Operand = Value | float | int


class Emitter:
    """The lines, fresh names and declarations of one function, shared by its builders."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.declarations: set[str] = set()
        self.needs: dict[str, None] = {}
        self._count = 0

    def fresh(self, prefix: str = "v") -> str:
        self._count += 1
        return f"{prefix}{self._count}"


class Builder:
    """Emits instructions on values of one float format and lane count."""

    def __init__(self, fmt: Format, lanes: int, emitter: Emitter | None = None):
        self.fmt, self.lanes = fmt, lanes
        self.emitter = emitter or Emitter()
        self.block = "entry"

    def type(self, kind: str) -> str:
        element = {"f": self.fmt.llvm, "i": self.fmt.integer, "m": "i1"}[kind]
        return element if self.lanes == 1 else f"<{self.lanes} x {element}>"

    def parameters(self, count: int) -> list[Value]:
        """The float operands of the function being built."""
        return [Value(self, "f", f"%x{i}") for i in range(count)]

    def emit(self, kind: str, text: str) -> Value:
        name = "%" + self.emitter.fresh()
        self.emitter.lines.append(f"  {name} = {text}")
        return Value(self, kind, name)

    def operand(self, value: Operand, kind: str) -> Value:
        if isinstance(value, Value):
            if value.kind != kind:
                raise TypeError(f"internal error: a {value.kind!r} operand where {kind!r} is due")
            return value
        if kind == "m":
            return self._splat("m", "i1", "true" if value else "false")
        return self.const(value) if kind == "f" else self.const_int(int(value))

    def _splat(self, kind: str, element: str, literal: str) -> Value:
        return Value(self, kind, literal if self.lanes == 1 else f"splat ({element} {literal})")

    def const(self, value: float) -> Value:
        """A float constant, rounded to the format."""
        return self._splat("f", self.fmt.llvm, self.fmt.literal(value))

    def const_int(self, value: int) -> Value:
        half, modulus = 1 << (self.fmt.bits - 1), 1 << self.fmt.bits
        return self._splat("i", self.fmt.integer, str((value + half) % modulus - half))

    def intrinsic(self, name: str, *args: Operand) -> Value:
        """Call ``llvm.<name>`` on float operands."""
        typ = self.type("f")
        symbol = f"@llvm.{name}.{suffix(self.fmt, self.lanes)}"
        self.emitter.declarations.add(f"declare {typ} {symbol}({', '.join([typ] * len(args))})")
        text = ", ".join(f"{typ} {self.operand(a, 'f').text}" for a in args)
        return self.emit("f", f"call {typ} {symbol}({text})")

    def fma(self, a: Operand, b: Operand, c: Operand) -> Value:
        """``a*b + c``, rounded once."""
        return self.intrinsic("fma", a, b, c)

    def sqrt(self, a: Operand) -> Value:
        return self.intrinsic("sqrt", a)

    def fabs(self, a: Operand) -> Value:
        return self.intrinsic("fabs", a)

    def trunc(self, a: Operand) -> Value:
        return self.intrinsic("trunc", a)

    def copysign(self, magnitude: Operand, sign: Operand) -> Value:
        return self.intrinsic("copysign", magnitude, sign)

    def select(self, mask: Value, yes: Operand, no: Operand, kind: str = "f") -> Value:
        a, b, typ = self.operand(yes, kind), self.operand(no, kind), self.type(kind)
        return self.emit(
            kind, f"select {self.type('m')} {mask.text}, {typ} {a.text}, {typ} {b.text}"
        )

    def minimum(self, bound: float, x: Value) -> Value:
        """The smaller of the two; a NaN in ``x`` stays."""
        return self.select(x > bound, bound, x)

    def maximum(self, bound: float, x: Value) -> Value:
        """The larger of the two; a NaN in ``x`` stays."""
        return self.select(x < bound, bound, x)

    def to_bits(self, x: Value) -> Value:
        return self.emit("i", f"bitcast {self.type('f')} {x.text} to {self.type('i')}")

    def from_bits(self, x: Value) -> Value:
        return self.emit("f", f"bitcast {self.type('i')} {x.text} to {self.type('f')}")

    def rounded(self, x: Value, scale: Operand = 1.0) -> tuple[Value, Value]:
        """``round(x*scale)`` to even as (float, bits whose low part is that integer).

        Needs ``|x*scale| < 2**(mantissa - 1)``.  AVX2 cannot convert packed doubles to 64-bit
        integers; the magic constant does it in one addition (Dekker 1971).
        """
        shifted = self.fma(x, scale, self.fmt.magic)
        return shifted - self.fmt.magic, self.to_bits(shifted)

    def power_of_two(self, k: Value) -> Value:
        """``2**k`` for integral float ``k`` with a normal result."""
        biased = k + (self.fmt.magic + self.fmt.bias)
        return self.from_bits(self.to_bits(biased) << self.fmt.mantissa)

    def halves(self, k: Value) -> tuple[Value, Value]:
        """Two factors whose product is ``2**k``, for results beyond the normal range."""
        offset = self.fmt.magic + self.fmt.bias
        biased = self.fma(k, 0.5, offset)
        rest = k - (biased - offset)
        half = self.from_bits(self.to_bits(biased) << self.fmt.mantissa)
        return half, self.power_of_two(rest)

    def scale(self, x: Value, k: Value) -> Value:
        """``x * 2**k``: the first step is exact, so that a subnormal result rounds once."""
        first, second = self.halves(k)
        return (x * first) * second

    def polynomial(self, x: Value, coefficients: tuple[float, ...]) -> Value:
        """``sum c[i]*x**i`` by Estrin's scheme: depth log2(n), one extra product per level."""
        terms: list[Operand] = list(coefficients)
        power = x
        while len(terms) > 1:
            pairs = [self.fma(power, terms[i + 1], terms[i]) for i in range(0, len(terms) - 1, 2)]
            terms = [*pairs, *terms[len(pairs) * 2:]]
            if len(terms) > 1:
                power = power * power
        return self.operand(terms[0], "f")

    def special(self, mask: Value, helper: str, x: Value, y: Value) -> Value:
        """``y``, with the lanes under ``mask`` recomputed by the out-of-line ``helper(x, y)``.

        The helper runs only when some lane asks for it, and touches only such lanes.
        """
        taken, done = self.emitter.fresh("rare"), self.emitter.fresh("done")
        any_lane = self._any(mask)
        self.emitter.declarations.add("declare i1 @llvm.expect.i1(i1, i1)")
        likely = self.emit("m", f"call i1 @llvm.expect.i1(i1 {any_lane.text}, i1 false)")
        self._line(f"br i1 {likely.text}, label %{taken}, label %{done}")
        before = self._open(taken)
        typ, fixed = self.type("f"), self.call(helper, x, y)
        self._line(f"br label %{done}")
        self._open(done)
        return self.emit("f", f"phi {typ} [ {y.text}, %{before} ], [ {fixed.text}, %{taken} ]")

    def call(self, helper: str, *args: Value) -> Value:
        """Call another function of this package, of this type, on float operands."""
        typ, name = self.type("f"), f"@fusec.{helper}.{suffix(self.fmt, self.lanes)}"
        self.emitter.needs[helper] = None
        operands = ", ".join(f"{typ} {a.text}" for a in args)
        return self.emit("f", f"call fastcc {typ} {name}({operands})")

    def each_lane(
        self, lane: Builder, x: Value, y: Value,
        needed: Callable[[Value], Value], compute: Callable[[Value], Value],
    ) -> Value:
        """``y`` with ``compute(x)`` in the lanes where ``needed(x)``: a scalar loop (or none)."""
        vector, element = self.type("f"), self.fmt.llvm
        slots = [self.raw(f"alloca {vector}") for _ in (x, y)]
        for slot, value in zip(slots, (x, y), strict=True):
            self._line(f"store {vector} {value.text}, ptr {slot}")
        loop, work, after, end = (self.emitter.fresh(p) for p in ("loop", "work", "after", "end"))
        self._line(f"br label %{loop}")
        self._open(loop)
        index, following = "%" + self.emitter.fresh("i"), "%" + self.emitter.fresh("i")
        self._line(f"{index} = phi i64 [ 0, %entry ], [ {following}, %{after} ]")
        source, target = (
            self.raw(f"getelementptr inbounds {element}, ptr {slot}, i64 {index}") for slot in slots
        )
        value = lane.emit("f", f"load {element}, ptr {source}")
        self._line(f"br i1 {needed(value).text}, label %{work}, label %{after}")
        self._open(work)
        self._line(f"store {element} {compute(value).text}, ptr {target}")
        self._line(f"br label %{after}")
        self._open(after)
        self._line(f"{following} = add i64 {index}, 1")
        more = self.raw(f"icmp ult i64 {following}, {self.lanes}")
        self._line(f"br i1 {more}, label %{loop}, label %{end}")
        self._open(end)
        return self.emit("f", f"load {vector}, ptr {slots[1]}")

    def raw(self, text: str) -> str:
        """An instruction of a type no builder has; returns the name of its result."""
        return self.emit("i", text).text

    def wrap(self, kind: str, text: str) -> Value:
        """A raw instruction whose result is one of this builder's values."""
        return self.emit(kind, text)

    def widened(self, x: Value) -> Value:
        """A float32 value of the same lanes, in this float64 builder."""
        return self.emit("f", f"fpext {x.builder.type('f')} {x.text} to {self.type('f')}")

    def narrowed(self, x: Value) -> Value:
        """A float64 value of the same lanes, rounded in this float32 builder."""
        return self.emit("f", f"fptrunc {x.builder.type('f')} {x.text} to {self.type('f')}")

    def _any(self, mask: Value) -> Value:
        if self.lanes == 1:
            return mask
        typ, name = self.type("m"), f"@llvm.vector.reduce.or.v{self.lanes}i1"
        self.emitter.declarations.add(f"declare i1 {name}({typ})")
        return self.emit("m", f"call i1 {name}({typ} {mask.text})")

    def _line(self, text: str) -> None:
        self.emitter.lines.append(f"  {text}")

    def _open(self, label: str) -> str:
        before, self.block = self.block, label
        self.emitter.lines.append(f"{label}:")
        return before
