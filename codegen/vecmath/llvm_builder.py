"""The functions as LLVM IR, for one lane or many."""

from __future__ import annotations

from collections.abc import Callable

from .builder import MathBuilder, MathEmitter, MathValue, Operand
from .formats import Format


def suffix(fmt: Format, lanes: int) -> str:
    """The type part of a symbol: ``f64`` for a scalar, ``v8f64`` for eight lanes."""
    return fmt.name if lanes == 1 else f"v{lanes}{fmt.name}"


class LlvmBuilder(MathBuilder):
    """SSA values and basic blocks."""

    def __init__(self, fmt: Format, lanes: int, emitter: MathEmitter | None = None):
        super().__init__(fmt, lanes, emitter)
        self.block = "entry"

    def type(self, kind: str) -> str:
        if kind == "w":
            return f"i{2 * self.fmt.bits}"
        element = {"f": self.fmt.llvm, "i": self.fmt.integer, "m": "i1"}[kind]
        return element if self.lanes == 1 else f"<{self.lanes} x {element}>"

    def parameters(self, count: int) -> list[MathValue]:
        return [MathValue(self, "f", f"%x{i}") for i in range(count)]

    def emit(self, kind: str, text: str) -> MathValue:
        name = "%" + self.emitter.fresh()
        self.emitter.lines.append(f"  {name} = {text}")
        return MathValue(self, kind, name)

    def binary(self, op: str, kind: str, left: str, right: str) -> MathValue:
        return self.emit(kind, f"{op} {self.type(kind)} {left}, {right}")

    def compare(self, predicate: str, left: MathValue, right: MathValue) -> MathValue:
        typ = self.type(left.kind)
        op = f"fcmp {predicate}" if left.kind == "f" else f"icmp {predicate}"
        return self.emit("m", f"{op} {typ} {left.text}, {right.text}")

    def negative(self, x: MathValue) -> MathValue:
        return self.emit("f", f"fneg {self.type('f')} {x.text}")

    def _splat(self, kind: str, element: str, literal: str) -> MathValue:
        return MathValue(self, kind, literal if self.lanes == 1 else f"splat ({element} {literal})")

    def const_mask(self, value: bool) -> MathValue:
        return self._splat("m", "i1", "true" if value else "false")

    def const(self, value: float) -> MathValue:
        return self._splat("f", self.fmt.llvm, self.fmt.literal(value))

    def const_int(self, value: int) -> MathValue:
        half, modulus = 1 << (self.fmt.bits - 1), 1 << self.fmt.bits
        return self._splat("i", self.fmt.integer, str((value + half) % modulus - half))

    def intrinsic(self, name: str, *args: Operand) -> MathValue:
        typ = self.type("f")
        symbol = f"@llvm.{name}.{suffix(self.fmt, self.lanes)}"
        self.emitter.declarations.add(f"declare {typ} {symbol}({', '.join([typ] * len(args))})")
        text = ", ".join(f"{typ} {self.operand(a, 'f').text}" for a in args)
        return self.emit("f", f"call {typ} {symbol}({text})")

    def select(self, mask: MathValue, yes: Operand, no: Operand, kind: str = "f") -> MathValue:
        a, b, typ = self.operand(yes, kind), self.operand(no, kind), self.type(kind)
        return self.emit(
            kind, f"select {self.type('m')} {mask.text}, {typ} {a.text}, {typ} {b.text}"
        )

    def to_bits(self, x: MathValue) -> MathValue:
        return self.emit("i", f"bitcast {self.type('f')} {x.text} to {self.type('i')}")

    def from_bits(self, x: MathValue) -> MathValue:
        return self.emit("f", f"bitcast {self.type('i')} {x.text} to {self.type('f')}")

    def from_int(self, x: MathValue) -> MathValue:
        return self.emit("f", f"sitofp {self.type('i')} {x.text} to {self.type('f')}")

    def from_mask(self, mask: MathValue, kind: str = "i") -> MathValue:
        return self.emit(kind, f"zext {self.type('m')} {mask.text} to {self.type(kind)}")

    def special(self, mask: MathValue, helper: str, x: MathValue, y: MathValue) -> MathValue:
        return self._taken(mask, y, lambda: self.call(helper, x, y))

    def rarely(
        self, mask: MathValue, y: MathValue, compute: Callable[[], MathValue]
    ) -> MathValue:
        return self._taken(mask, y, lambda: self.select(mask, compute(), y))

    def _taken(
        self, mask: MathValue, y: MathValue, compute: Callable[[], MathValue]
    ) -> MathValue:
        """``y``, or what is computed where a lane is under the mask."""
        taken, done = self.emitter.fresh("rare"), self.emitter.fresh("done")
        any_lane = self._any(mask)
        self.emitter.declarations.add("declare i1 @llvm.expect.i1(i1, i1)")
        likely = self.emit("m", f"call i1 @llvm.expect.i1(i1 {any_lane.text}, i1 false)")
        self._line(f"br i1 {likely.text}, label %{taken}, label %{done}")
        before = self._open(taken)
        typ, fixed = self.type("f"), compute()
        self._line(f"br label %{done}")
        after = self._open(done)
        return self.emit("f", f"phi {typ} [ {y.text}, %{before} ], [ {fixed.text}, %{after} ]")

    def call(self, helper: str, *args: MathValue) -> MathValue:
        typ, name = self.type("f"), f"@fusec.{helper}.{suffix(self.fmt, self.lanes)}"
        self.emitter.needs[helper] = None
        operands = ", ".join(f"{typ} {a.text}" for a in args)
        return self.emit("f", f"call fastcc {typ} {name}({operands})")

    def each_lane(
        self, lane: MathBuilder, x: MathValue, y: MathValue,
        needed: Callable[[MathValue], MathValue], compute: Callable[[MathValue], MathValue],
    ) -> MathValue:
        vector, element = self.type("f"), self.fmt.llvm
        slots = [self._raw(f"alloca {vector}") for _ in (x, y)]
        for slot, value in zip(slots, (x, y), strict=True):
            self._line(f"store {vector} {value.text}, ptr {slot}")
        loop, work, after, end = (self.emitter.fresh(p) for p in ("loop", "work", "after", "end"))
        self._line(f"br label %{loop}")
        self._open(loop)
        index, following = "%" + self.emitter.fresh("i"), "%" + self.emitter.fresh("i")
        self._line(f"{index} = phi i64 [ 0, %entry ], [ {following}, %{after} ]")
        source, target = (
            self._raw(f"getelementptr inbounds {element}, ptr {s}, i64 {index}") for s in slots
        )
        value = MathValue(lane, "f", self._raw(f"load {element}, ptr {source}"))
        self._line(f"br i1 {needed(value).text}, label %{work}, label %{after}")
        self._open(work)
        self._line(f"store {element} {compute(value).text}, ptr {target}")
        self._line(f"br label %{after}")
        self._open(after)
        self._line(f"{following} = add i64 {index}, 1")
        more = self._raw(f"icmp ult i64 {following}, {self.lanes}")
        self._line(f"br i1 {more}, label %{loop}, label %{end}")
        self._open(end)
        return self.emit("f", f"load {vector}, ptr {slots[1]}")

    def wide_from_bits(self, x: MathValue) -> MathValue:
        return self.emit("w", f"zext {self.type('i')} {x.text} to {self.type('w')}")

    def low_bits(self, x: MathValue) -> MathValue:
        return self.emit("i", f"trunc {self.type('w')} {x.text} to {self.type('i')}")

    def leading_zeros(self, x: MathValue) -> MathValue:
        wide = self.type("w")
        self.emitter.declarations.add(f"declare {wide} @llvm.ctlz.{wide}({wide}, i1)")
        count = self.emit("w", f"call {wide} @llvm.ctlz.{wide}({wide} {x.text}, i1 false)")
        return count & (2 * self.fmt.bits - 1)

    def funnel(self, table: str, word: MathValue, start: MathValue) -> MathValue:
        kind, loaded = self.fmt.integer, []
        for offset in (0, 1):
            place = word + offset
            address = self._raw(f"getelementptr inbounds {kind}, ptr @{table}, {kind} {place.text}")
            loaded.append(self._raw(f"load {kind}, ptr {address}"))
        self.emitter.declarations.add(f"declare {kind} @llvm.fshl.{kind}({kind}, {kind}, {kind})")
        return self.emit("i", f"call {kind} @llvm.fshl.{kind}({kind} {loaded[0]}, "
                              f"{kind} {loaded[1]}, {kind} {start.text})")

    def widened(self, x: MathValue) -> MathValue:
        return self.emit("f", f"fpext {self._float_type(x)} {x.text} to {self.type('f')}")

    def narrowed(self, x: MathValue) -> MathValue:
        return self.emit("f", f"fptrunc {self._float_type(x)} {x.text} to {self.type('f')}")

    @staticmethod
    def _float_type(x: MathValue) -> str:
        """The float type of the value's own builder."""
        assert isinstance(x.builder, LlvmBuilder)
        return x.builder.type("f")

    def _any(self, mask: MathValue) -> MathValue:
        if self.lanes == 1:
            return mask
        typ, name = self.type("m"), f"@llvm.vector.reduce.or.v{self.lanes}i1"
        self.emitter.declarations.add(f"declare i1 {name}({typ})")
        return self.emit("m", f"call i1 {name}({typ} {mask.text})")

    def _raw(self, text: str) -> str:
        """An instruction of a type no builder has; the name of its result."""
        return self.emit("i", text).text

    def _line(self, text: str) -> None:
        self.emitter.lines.append(f"  {text}")

    def _open(self, label: str) -> str:
        before, self.block = self.block, label
        self.emitter.lines.append(f"{label}:")
        return before
