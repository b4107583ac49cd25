"""The builder of the functions: arithmetic on values, emitted as text of some language.

Every function is written once and emitted for any format, number of lanes and language (LLVM IR in
`llvm_builder`; others beside their back ends).  A lane does the same IEEE operations in the same
order whatever the lane count and language, so a scalar tail and a vector body give the same bits,
and so do two devices.  Fused multiply-adds are explicit; no fast-math flag is used.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

from .formats import F32, F64, FORMATS, Format, format_of

__all__ = [
    "F32", "F64", "FORMATS", "Format", "MathBuilder", "MathEmitter", "MathValue", "Operand",
    "format_of",
]


class MathValue:
    """A value in the text: ``kind`` is ``f`` (float), ``i`` (integer of that width), ``m`` (mask),
    ``w`` (integer of twice that width, one lane)."""

    __slots__ = ("builder", "kind", "text")

    def __init__(self, builder: MathBuilder, kind: str, text: str):
        self.builder, self.kind, self.text = builder, kind, text

    def _binary(self, float_op: str, int_op: str, other: Operand, swap: bool = False) -> MathValue:
        right = self.builder.operand(other, self.kind)
        left = self
        if swap:
            left, right = right, left
        op = float_op if self.kind == "f" else int_op
        if not op:
            raise TypeError(f"internal error: no such operation on kind {self.kind!r}")
        return self.builder.binary(op, self.kind, left.text, right.text)

    def __add__(self, other: Operand) -> MathValue:
        return self._binary("fadd", "add", other)

    def __radd__(self, other: Operand) -> MathValue:
        return self._binary("fadd", "add", other, swap=True)

    def __sub__(self, other: Operand) -> MathValue:
        return self._binary("fsub", "sub", other)

    def __rsub__(self, other: Operand) -> MathValue:
        return self._binary("fsub", "sub", other, swap=True)

    def __mul__(self, other: Operand) -> MathValue:
        return self._binary("fmul", "mul" if self.kind == "w" else "", other)

    def __rmul__(self, other: Operand) -> MathValue:
        return self._binary("fmul", "", other, swap=True)

    def __truediv__(self, other: Operand) -> MathValue:
        return self._binary("fdiv", "", other)

    def __rtruediv__(self, other: Operand) -> MathValue:
        return self._binary("fdiv", "", other, swap=True)

    def __and__(self, other: Operand) -> MathValue:
        return self._binary("", "and", other)

    def __or__(self, other: Operand) -> MathValue:
        return self._binary("", "or", other)

    def __xor__(self, other: Operand) -> MathValue:
        return self._binary("", "xor", other)

    def __invert__(self) -> MathValue:
        return self ^ (True if self.kind == "m" else -1)

    def __lshift__(self, count: Operand) -> MathValue:
        return self._binary("", "shl", count)

    def __rshift__(self, count: int) -> MathValue:
        """Logical: AVX2 has no packed 64-bit arithmetic shift."""
        return self._binary("", "lshr", count)

    def __neg__(self) -> MathValue:
        return self.builder.negative(self)

    def _compare(self, predicate: str, other: Operand) -> MathValue:
        right = self.builder.operand(other, self.kind)
        return self.builder.compare(predicate, self, right)

    def __lt__(self, other: Operand) -> MathValue:
        return self._compare("olt" if self.kind == "f" else "slt", other)

    def __le__(self, other: Operand) -> MathValue:
        return self._compare("ole" if self.kind == "f" else "sle", other)

    def __gt__(self, other: Operand) -> MathValue:
        return self._compare("ogt" if self.kind == "f" else "sgt", other)

    def __ge__(self, other: Operand) -> MathValue:
        return self._compare("oge" if self.kind == "f" else "sge", other)

    def equals(self, other: Operand) -> MathValue:
        """Ordered: false where either is NaN."""
        return self._compare("oeq" if self.kind == "f" else "eq", other)

    def differs(self, other: Operand) -> MathValue:
        """Unordered: true where either is NaN."""
        return self._compare("une" if self.kind == "f" else "ne", other)

    def unordered(self, other: Operand) -> MathValue:
        """True where either is NaN."""
        return self._compare("uno", other)


Operand = MathValue | float | int


class MathEmitter:
    """The lines, fresh names and declarations of one function, shared by its builders."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.declarations: set[str] = set()
        self.needs: dict[str, None] = {}
        self._count = 0

    def fresh(self, prefix: str = "v") -> str:
        self._count += 1
        return f"{prefix}{self._count}"


class MathBuilder(ABC):
    """Emits operations on values of one float format and lane count.

    Names of operations are LLVM's: ``fadd``, ``lshr``; ``olt`` (ordered), ``une`` (unordered).
    """

    def __init__(self, fmt: Format, lanes: int, emitter: MathEmitter | None = None):
        self.fmt, self.lanes = fmt, lanes
        self.emitter = emitter or MathEmitter()

    # -- what a language says

    @abstractmethod
    def parameters(self, count: int) -> list[MathValue]:
        """The float operands of the function being built."""

    @abstractmethod
    def binary(self, op: str, kind: str, left: str, right: str) -> MathValue:
        """An operation on two texts of one kind."""

    @abstractmethod
    def compare(self, predicate: str, left: MathValue, right: MathValue) -> MathValue:
        """A mask."""

    @abstractmethod
    def negative(self, x: MathValue) -> MathValue:
        """A float with its sign flipped."""

    @abstractmethod
    def const_mask(self, value: bool) -> MathValue:
        """A mask that is the same in all lanes."""

    @abstractmethod
    def const(self, value: float) -> MathValue:
        """A float constant, rounded to the format."""

    @abstractmethod
    def const_int(self, value: int) -> MathValue:
        """An integer constant, modulo two to the format's bits."""

    @abstractmethod
    def intrinsic(self, name: str, *args: Operand) -> MathValue:
        """``fma``, ``sqrt``, ``fabs``, ``trunc``, ``rint``, ``copysign`` of floats."""

    @abstractmethod
    def select(self, mask: MathValue, yes: Operand, no: Operand, kind: str = "f") -> MathValue:
        """``yes`` where the mask holds; both are computed."""

    @abstractmethod
    def to_bits(self, x: MathValue) -> MathValue:
        """A float's bits."""

    @abstractmethod
    def from_bits(self, x: MathValue) -> MathValue:
        """The float of these bits."""

    @abstractmethod
    def from_int(self, x: MathValue) -> MathValue:
        """A signed integer as a float."""

    @abstractmethod
    def from_mask(self, mask: MathValue, kind: str = "i") -> MathValue:
        """1 where the mask holds, else 0."""

    @abstractmethod
    def widened(self, x: MathValue) -> MathValue:
        """A float32 value of the same lanes, in this float64 builder."""

    @abstractmethod
    def narrowed(self, x: MathValue) -> MathValue:
        """A float64 value of the same lanes, rounded in this float32 builder."""

    @abstractmethod
    def special(self, mask: MathValue, helper: str, x: MathValue, y: MathValue) -> MathValue:
        """``y``, with the lanes under ``mask`` recomputed by the out-of-line ``helper(x, y)``.

        The helper runs only when some lane asks for it, and touches only such lanes.
        """

    @abstractmethod
    def rarely(
        self, mask: MathValue, y: MathValue, compute: Callable[[], MathValue]
    ) -> MathValue:
        """``y``, with what ``compute`` emits in the lanes under ``mask``.

        It runs only when some lane asks for it.
        """

    @abstractmethod
    def call(self, helper: str, *args: MathValue) -> MathValue:
        """Call another function of this package, of this type, on float operands."""

    @abstractmethod
    def each_lane(
        self, lane: MathBuilder, x: MathValue, y: MathValue,
        needed: Callable[[MathValue], MathValue], compute: Callable[[MathValue], MathValue],
    ) -> MathValue:
        """``y`` with ``compute(x)`` in the lanes where ``needed(x)``: a scalar loop (or none)."""

    # -- integers of twice the format's bits, for one lane

    @abstractmethod
    def wide_from_bits(self, x: MathValue) -> MathValue:
        """An unsigned integer, extended."""

    @abstractmethod
    def low_bits(self, x: MathValue) -> MathValue:
        """The lower half."""

    @abstractmethod
    def leading_zeros(self, x: MathValue) -> MathValue:
        """How many there are of such an integer, as one; of 0 none."""

    @abstractmethod
    def funnel(self, table: str, word: MathValue, start: MathValue) -> MathValue:
        """A word of a table of words of the format's bits: from bit ``start`` of that word on
        (modulo its bits), highest first."""

    # -- what follows from these

    def of_format(self, fmt: Format, lanes: int | None = None) -> MathBuilder:
        """A builder of another format, or lane count, in the same function."""
        return type(self)(fmt, self.lanes if lanes is None else lanes, self.emitter)

    def operand(self, value: Operand, kind: str) -> MathValue:
        """A value of this kind; numbers become constants."""
        if isinstance(value, MathValue):
            if value.kind != kind:
                raise TypeError(f"internal error: a {value.kind!r} operand where {kind!r} is due")
            return value
        if kind == "w":
            return MathValue(self, "w", str(int(value)))
        if kind == "m":
            return self.const_mask(bool(value))
        return self.const(value) if kind == "f" else self.const_int(int(value))

    def fma(self, a: Operand, b: Operand, c: Operand) -> MathValue:
        """``a*b + c``, rounded once."""
        return self.intrinsic("fma", a, b, c)

    def divided(self, a: Operand, b: Operand) -> MathValue:
        """``a / b``, where exponents of both and of the quotient are far from the format's limits,
        or the result is not used; of a zero ``a`` perhaps the other zero."""
        return self.operand(a, "f") / b

    def sqrt(self, a: Operand) -> MathValue:
        return self.intrinsic("sqrt", a)

    def fabs(self, a: Operand) -> MathValue:
        return self.intrinsic("fabs", a)

    def trunc(self, a: Operand) -> MathValue:
        return self.intrinsic("trunc", a)

    def copysign(self, magnitude: Operand, sign: Operand) -> MathValue:
        return self.intrinsic("copysign", magnitude, sign)

    def minimum(self, bound: float, x: MathValue) -> MathValue:
        """The smaller of the two; a NaN in ``x`` stays."""
        return self.select(x > bound, bound, x)

    def maximum(self, bound: float, x: MathValue) -> MathValue:
        """The larger of the two; a NaN in ``x`` stays."""
        return self.select(x < bound, bound, x)

    def rounded(self, x: MathValue, scale: Operand = 1.0) -> tuple[MathValue, MathValue]:
        """``round(x*scale)`` to even as (float, bits whose low part is that integer).

        Needs ``|x*scale| < 2**(mantissa - 1)``.  AVX2 cannot convert packed doubles to 64-bit
        integers; the magic constant does it in one addition (Dekker 1971).
        """
        shifted = self.fma(x, scale, self.fmt.magic)
        return shifted - self.fmt.magic, self.to_bits(shifted)

    def power_of_two(self, k: MathValue) -> MathValue:
        """``2**k`` for integral float ``k`` with a normal result."""
        biased = k + (self.fmt.magic + self.fmt.bias)
        return self.from_bits(self.to_bits(biased) << self.fmt.mantissa)

    def halves(self, k: MathValue) -> tuple[MathValue, MathValue]:
        """Two factors whose product is ``2**k``, for results beyond the normal range."""
        offset = self.fmt.magic + self.fmt.bias
        biased = self.fma(k, 0.5, offset)
        rest = k - (biased - offset)
        half = self.from_bits(self.to_bits(biased) << self.fmt.mantissa)
        return half, self.power_of_two(rest)

    def scale(self, x: MathValue, k: MathValue) -> MathValue:
        """``x * 2**k``: the first step is exact, so that a subnormal result rounds once."""
        first, second = self.halves(k)
        return (x * first) * second

    def scale_by(self, x: MathValue, bits: MathValue) -> MathValue:
        """The same, for the bits of ``k`` that `rounded` gives."""
        half, one = bits >> 1, self.fmt.encode(1.0)  # what is magic of it is shifted out
        first, second = (self.from_bits((n << self.fmt.mantissa) + one)
                         for n in (half, bits - half))
        return (x * first) * second

    def polynomial(self, x: MathValue, coefficients: tuple[float, ...]) -> MathValue:
        """``sum c[i]*x**i`` by Estrin's scheme: depth log2(n), one extra product per level.

        Of three terms on one level the last two go first: as deep, and a product less.
        """
        terms: list[Operand] = list(coefficients)
        power = x
        while len(terms) > 1:
            if len(terms) == 3:
                terms = [terms[0], self.fma(power, terms[2], terms[1])]
            pairs = [self.fma(power, terms[i + 1], terms[i]) for i in range(0, len(terms) - 1, 2)]
            terms = [*pairs, *terms[len(pairs) * 2:]]
            if len(terms) > 1:
                power = power * power
        return self.operand(terms[0], "f")
