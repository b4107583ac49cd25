"""The math functions of `fusec.codegen.vecmath` as CUDA C++: the same operations, the same bits."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

import numpy as np

from fusec.codegen.vecmath import REGISTRY
from fusec.codegen.vecmath.builder import MathBuilder, MathValue, Operand
from fusec.codegen.vecmath.formats import F64, Format, format_of
from fusec.core.records import dataclass

from ...vecmath.functions.trigonometry import PARTS, huge_body, lane_body, words_of_two_over_pi

_INFIX = {
    "fadd": "+", "fsub": "-", "fmul": "*", "fdiv": "/", "add": "+", "sub": "-", "mul": "*",
    "and": "&", "or": "|", "xor": "^", "shl": "<<", "lshr": ">>",
}
# LLVM's predicates in C++: only != is true of NaN, as `une` is.
_PREDICATES = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}


class CudaBuilder(MathBuilder):
    """Values are constants of a function's body, one a line; one lane."""

    def type(self, kind: str) -> str:
        bits = self.fmt.bits
        return {"f": self.fmt.name, "i": f"u{bits}", "m": "bool", "w": f"u{2 * bits}"}[kind]

    def parameters(self, count: int) -> list[MathValue]:
        return [MathValue(self, "f", f"x{i}") for i in range(count)]

    def emit(self, kind: str, text: str) -> MathValue:
        name = self.emitter.fresh()
        self.emitter.lines.append(f"  const {self.type(kind)} {name} = {text};")
        return MathValue(self, kind, name)

    def binary(self, op: str, kind: str, left: str, right: str) -> MathValue:
        text = f"{left} {_INFIX[op]} {right}"
        return self.emit(kind, f"bool({text})" if kind == "m" else text)

    def compare(self, predicate: str, left: MathValue, right: MathValue) -> MathValue:
        if predicate == "uno":
            return self.emit("m", f"{left.text} != {left.text} || {right.text} != {right.text}")
        sign = _PREDICATES[predicate[-2:]]
        if left.kind == "f" or predicate in ("eq", "ne"):
            return self.emit("m", f"{left.text} {sign} {right.text}")
        signed = f"i{self.fmt.bits * (2 if left.kind == 'w' else 1)}"
        return self.emit("m", f"{signed}({left.text}) {sign} {signed}({right.text})")

    def negative(self, x: MathValue) -> MathValue:
        return self.emit("f", f"-{x.text}")

    def const_mask(self, value: bool) -> MathValue:
        return MathValue(self, "m", "true" if value else "false")

    def const(self, value: float) -> MathValue:
        return MathValue(self, "f", float_literal(self.fmt, value))

    def const_int(self, value: int) -> MathValue:
        suffix = "ull" if self.fmt.bits == 64 else "u"
        return MathValue(self, "i", f"{value % (1 << self.fmt.bits)}{suffix}")

    def intrinsic(self, name: str, *args: Operand) -> MathValue:
        function = name if self.fmt is F64 else f"{name}f"
        texts = ", ".join(self.operand(a, "f").text for a in args)
        return self.emit("f", f"{function}({texts})")

    def select(self, mask: MathValue, yes: Operand, no: Operand, kind: str = "f") -> MathValue:
        a, b = self.operand(yes, kind), self.operand(no, kind)
        return self.emit(kind, f"{mask.text} ? {a.text} : {b.text}")

    def to_bits(self, x: MathValue) -> MathValue:
        return self.emit("i", f"to_bits({x.text})")

    def from_bits(self, x: MathValue) -> MathValue:
        return self.emit("f", f"from_bits({x.text})")

    def from_int(self, x: MathValue) -> MathValue:
        return self.emit("f", f"{self.fmt.name}(i{self.fmt.bits}({x.text}))")

    def from_mask(self, mask: MathValue, kind: str = "i") -> MathValue:
        return self.emit(kind, f"{mask.text} ? 1 : 0")

    def widened(self, x: MathValue) -> MathValue:
        return self.emit("f", f"f64({x.text})")

    def narrowed(self, x: MathValue) -> MathValue:
        return self.emit("f", f"f32({x.text})")

    def special(self, mask: MathValue, helper: str, x: MathValue, y: MathValue) -> MathValue:
        return self._replaced(y, mask, lambda: self.call(helper, x, y))

    def rarely(
        self, mask: MathValue, y: MathValue, compute: Callable[[], MathValue]
    ) -> MathValue:
        return self._replaced(y, mask, compute)

    def call(self, helper: str, *args: MathValue) -> MathValue:
        self.emitter.needs[helper] = None
        operands = ", ".join(a.text for a in args)
        return self.emit("f", f"{function_name(helper, self.fmt)}({operands})")

    def each_lane(
        self, lane: MathBuilder, x: MathValue, y: MathValue,
        needed: Callable[[MathValue], MathValue], compute: Callable[[MathValue], MathValue],
    ) -> MathValue:
        return self._replaced(y, needed(x), lambda: compute(x))

    def _replaced(
        self, y: MathValue, mask: MathValue, compute: Callable[[], MathValue]
    ) -> MathValue:
        """``y``, or where the mask holds a value only computed there."""
        name, lines = self.emitter.fresh(), self.emitter.lines
        lines.append(f"  {self.type('f')} {name} = {y.text};")
        lines.append(f"  if ({mask.text}) {{")
        lines.append(f"  {name} = {compute().text};")
        lines.append("  }")
        return MathValue(self, "f", name)

    def wide_from_bits(self, x: MathValue) -> MathValue:
        return self.emit("w", f"{self.type('w')}({x.text})")

    def low_bits(self, x: MathValue) -> MathValue:
        return self.emit("i", f"{self.type('i')}({x.text})")

    def leading_zeros(self, x: MathValue) -> MathValue:
        return self.emit("w", f"leading_zeros({x.text}) & {2 * self.fmt.bits - 1}")

    def funnel(self, table: str, word: MathValue, start: MathValue) -> MathValue:
        return self.emit("i", f"funnel({table}[{word.text}], {table}[{word.text} + 1], "
                              f"{start.text})")

    # -- the same values by other instructions

    def divided(self, a: Operand, b: Operand) -> MathValue:
        top, bottom = self.operand(a, "f"), self.operand(b, "f")
        if self.fmt is F64:
            return top / bottom
        of_one = top.text == self.const(1.0).text
        return self.emit("f", f"reciprocal_within({bottom.text})" if of_one else
                         f"quotient_within({top.text}, {bottom.text})")

    def minimum(self, bound: float, x: MathValue) -> MathValue:
        return self._limited("lesser", bound, x) or super().minimum(bound, x)

    def maximum(self, bound: float, x: MathValue) -> MathValue:
        return self._limited("greater", bound, x) or super().maximum(bound, x)

    def _limited(self, function: str, bound: float, x: MathValue) -> MathValue | None:
        """One instruction; of two zeros it takes the other one."""
        if self.fmt is F64 or bound == 0:
            return None
        return self.emit("f", f"{function}({x.text}, {self.const(bound).text})")


def float_literal(fmt: Format, value: float) -> str:
    """Exact, in hexadecimal; infinities and NaN from their bits."""
    rounded = float(value) if fmt is F64 else float(np.float32(value))
    suffix, cast = ("", "ull") if fmt is F64 else ("f", "u")
    if math.isfinite(rounded):
        text = f"{rounded.hex()}{suffix}"
        return f"({text})" if text.startswith("-") else text
    return f"from_bits({fmt.encode(rounded):#x}{cast})"


def function_name(name: str, fmt: Format) -> str:
    """``math_exp_f64``, ``math_sin_huge_f32``."""
    return f"math_{name.replace('.', '_')}_{fmt.name}"


@dataclass(frozen=True)
class MathText:
    """A function's definition, and the functions that have to stand before it."""

    text: str
    needs: tuple[str, ...]


@functools.cache
def define(name: str, dtype: np.dtype) -> MathText:
    """The definition of a math function, or of a helper that one needs."""
    fmt = format_of(dtype)
    base, _, part = name.partition(".")
    b = CudaBuilder(fmt, 1)
    if base in PARTS and part == "lane":
        operands = b.parameters(1)
        result = lane_body(b, base, operands[0], f"two_over_pi_{fmt.name}")
    elif base in PARTS and part == "huge":
        operands = b.parameters(2)
        result = huge_body(b, base, *operands)
    else:
        operands = b.parameters(REGISTRY[name].arity)
        result = REGISTRY[name].build(b, *operands)
    kind = "__noinline__" if part else "__forceinline__"
    params = ", ".join(f"{fmt.name} {x.text}" for x in operands)
    head = f"__device__ {kind} {fmt.name} {function_name(name, fmt)}({params}) {{"
    text = "\n".join([head, *b.emitter.lines, f"  return {result.text};", "}"])
    return MathText(_table(fmt) + text if part == "lane" else text, tuple(b.emitter.needs))


def _table(fmt: Format) -> str:
    """The bits of 2/pi; defined once in a module, however many functions read it."""
    name, suffix = f"two_over_pi_{fmt.name}", "ull" if fmt is F64 else "u"
    words = ", ".join(f"{word:#x}{suffix}" for word in words_of_two_over_pi(fmt))
    return (f"#ifndef FUSEC_{name}\n#define FUSEC_{name}\n"
            f"__device__ const u{fmt.bits} {name}[] = {{{words}}};\n#endif\n")


def definitions(requests: list[tuple[str, np.dtype]]) -> list[str]:
    """Texts of all requested functions and of their callees, each after those that it calls."""
    done: dict[tuple[str, np.dtype], str] = {}

    def add(name: str, dtype: np.dtype) -> None:
        if (name, dtype) not in done:
            code = define(name, dtype)
            for need in code.needs:
                add(need, dtype)
            done[name, dtype] = code.text

    for name, dtype in requests:
        add(name, np.dtype(dtype))
    return list(done.values())
