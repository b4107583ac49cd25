"""Parts of arrays whose lengths only the run knows, where they meet: checked to be equal.

NumPy would broadcast a length of 1, or raise.  Graphs have one shape, so the lengths are compared
when the code runs, and all is cut to the smaller one: nothing is read or written beyond an end
before the check has raised.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from fusec.core.records import dataclass, field
from fusec.errors import UnsupportedError, unsupported
from fusec.ir import Node, Value
from fusec.ir.sizes.dims import Dim, Size, minimum, symbols_of

from ..operands.operands import as_traced, spread
from ..operands.sizes import SizeTable, number
from ..values.array import TracedArray, from_value
from ..values.trace import Trace
from .windows import linear

_ONE_ELEMENT = ("one element beside more is not supported inside a fusec.jit function where only "
                "the run knows that it is one: write x[0] for it")
_ASSIGNED = ("could not broadcast input array into the slice: their lengths, which the run "
             "decides, differ")
_OPERANDS = ("operands could not be broadcast together: their lengths, which the run decides, "
             "differ")


def assigned(source: Value, target: TracedArray) -> tuple[Value, TracedArray]:
    """Value and target of an assignment, cut to the smaller sizes."""
    trace, lead = target.trace, target.ndim - len(source.shape)
    if lead < 0:
        raise unsupported(
            "assigning an array whose size data decides to a slice of a lower rank",
            loc=trace.loc, values=[("value", source.type), ("slice", target.type)],
            cure="give both the same rank")
    source_cut, target_cut = _Cut(), _Cut()
    for axis, (s, t) in enumerate(zip(source.shape, target.shape[lead:], strict=True)):
        if s not in (1, t):
            size = _checked(trace, s, t, _ASSIGNED)
            source_cut.add(trace, axis, size)
            target_cut.add(trace, lead + axis, size)
    if not source_cut.axes:
        return source, target
    return trace.emit("Window", source, *source_cut.places(trace), **source_cut.attrs), (
        target_cut.of(target))


def operands(arrays: Sequence[TracedArray]) -> list[TracedArray] | None:
    """The operands of an elementwise operation, cut; None where NumPy has to look at them."""
    trace, rank = arrays[0].trace, max(a.ndim for a in arrays)
    cuts = [_Cut() for _ in arrays]
    for axis in range(-rank, 0):
        sizes = {k: a.shape[axis] for k, a in enumerate(arrays)
                 if a.ndim >= -axis and a.shape[axis] != 1}
        first, *others = dict.fromkeys(sizes.values())
        if not others:
            continue
        if not all(_may_be_cut(trace, size) for size in (first, *others)):
            return None
        if symbols_of(first) & symbols_of(tuple(others)) & trace.part(SizeTable).carried:
            return None  # of one array: one element beside more, in some iteration
        least = first
        for other in others:
            least = minimum(least, _checked(trace, first, other, _OPERANDS, both=True))
        for k in sizes:
            cuts[k].add(trace, arrays[k].ndim + axis, least)
    return [cut.of(a) for cut, a in zip(cuts, arrays, strict=True)]


def of_length(x: TracedArray, length: Size, text: str) -> TracedArray:
    """A copy of the array, whose first size the run decides, as one of a known length.

    The check of the length raises ``ValueError`` of the text; nothing is read beyond the end
    before it has.
    """
    trace, cut = x.trace, _Cut()
    cut.add(trace, 0, minimum(x.shape[0], length))
    one, other = (as_traced(trace, number(trace, size)).value for size in (x.shape[0], length))
    trace.check(trace.emit("Equal", one, other), ValueError(text))
    zero = trace.builder.const(x.dtype.type(0))
    empty = spread(trace, zero, (length, *x.shape[1:]))
    return from_value(trace, trace.emit(
        "WindowUpdate", empty, cut.of(x).value, *cut.places(trace), **cut.attrs))


def is_decided_by_the_run(trace: Trace, size: Size) -> bool:
    """Whether operations of the graph define all of its symbols."""
    symbols = symbols_of(size)
    return bool(symbols) and symbols <= trace.part(SizeTable).definers.keys()


def _may_be_cut(trace: Trace, size: Size) -> bool:
    """Whether it is no length of 1 on purpose: of a slice, and not of ``x[i:i + 1]``."""
    if not isinstance(size, Dim):
        return True
    definers = trace.part(SizeTable).definers
    return all(_is_of_slice(trace, definers[name].node) for name in size.symbols)


def _is_of_slice(trace: Trace, node: Node) -> bool:
    if node.op != "Extent":
        return False
    if not all(node.attrs["given"]):
        return True
    terms: Counter[object] = Counter(linear(trace, node.inputs[1]))
    terms.subtract(linear(trace, node.inputs[0]))
    length = terms.pop("", 0)
    return length != 1 or any(terms.values())


def _checked(trace: Trace, given: Size, wanted: Size, text: str, both: bool = False) -> Size:
    """The smaller size, after checks; ``both``: NumPy would stretch either of them."""
    one, other = (as_traced(trace, number(trace, size)).value for size in (given, wanted))
    same = trace.emit("Equal", one, other)
    is_many = trace.emit("NotEqual", one, trace.builder.const(1))
    if both:
        is_many = trace.emit("LogicalAnd", is_many, trace.emit(
            "NotEqual", other, trace.builder.const(1)))
    trace.check(trace.emit("LogicalOr", same, is_many), UnsupportedError(_ONE_ELEMENT))
    trace.check(same, ValueError(text))
    return minimum(given, wanted)


@dataclass
class _Cut:
    """Windows from the first element on: their axes and sizes, and these as numbers."""

    axes: list[int] = field(default_factory=list)
    sizes: list[Size] = field(default_factory=list)
    counts: list[Value] = field(default_factory=list)

    def add(self, trace: Trace, axis: int, size: Size) -> None:
        self.axes.append(axis)
        self.sizes.append(size)
        self.counts.append(as_traced(trace, number(trace, size)).value)

    def of(self, array: TracedArray) -> TracedArray:
        if not self.axes:
            return array
        return array.view_through("Window", array.strides, *self.places(array.trace), **self.attrs)

    def places(self, trace: Trace) -> list[Value]:
        return [*(trace.builder.const(0) for _ in self.axes), *self.counts]

    @property
    def attrs(self) -> dict[str, tuple[Size, ...]]:
        return {"axes": tuple(self.axes), "steps": (1,) * len(self.axes),
                "sizes": tuple(self.sizes)}
