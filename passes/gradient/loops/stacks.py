"""Memory for values that loops keep: stacks to which iterations add entries for the backward pass.

The stack of a loop in another loop goes through all iterations of both, so that it holds as many
entries as there are, however often each of them ran.  It belongs to the outermost loop: the graph
around an inner one has placeholders for it, which the loop there carries.  How large it must be is
known before the outermost loop runs: where counters do not say it, from a loop that does nothing
but count.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from fusec.core.records import dataclass, field
from fusec.errors import InternalError
from fusec.ir import TensorType, Value
from fusec.ir.graph import new_id
from fusec.ir.sizes.dims import Dim, symbol
from fusec.ops import Builder
from fusec.ops.admission.integer_ranges import Around
from fusec.ops.rows.windows import UNLIMITED

from ..bodies import placeholder
from .nests import Nested, entries_of

STATIC = 1 << 30  # bytes of memory for a stack up to which a limit of its entries will do
# The same where a `break` is the limit, which is often far more than a loop ever runs: memory that
# is never touched costs nothing, but not every system lends it.
STATIC_OF_BREAKS = 1 << 27


@dataclass
class Stack:
    """A stack in the graph around a loop: ``arrays`` with as many entries of ``entries`` types as
    are before ``pointer``.

    ``arrays_after`` and ``pointer_after`` are those after the loop, ``counted`` says how many
    entries it adds, by the least that must be computed.
    """

    entries: Sequence[TensorType]
    counted: Callable[[], Value]
    arrays: list[Value] = field(default_factory=list)
    pointer: Value | None = None
    arrays_after: list[Value] = field(default_factory=list)
    pointer_after: Value | None = None

    @property
    def first(self) -> Value:
        if self.pointer is None:
            raise InternalError("a stack that begins nowhere")
        return self.pointer

    @property
    def last(self) -> Value:
        if self.pointer_after is None:
            raise InternalError("a stack that ends nowhere")
        return self.pointer_after


@dataclass
class LoopContext:
    """Facts in the body of a loop, or in a branch in one: bounds of numbers, and the stacks that
    loops in it add to.

    ``again``: of an iteration that runs again to go back, the stacks that each fills anew;
    ``budget``: the bytes that they may have; ``lengths``: of a segment, the lengths of segments in
    it, see `segments.SegmentPlan`.
    """

    around: Around
    nest: tuple[Nested, ...] = ()  # the loops around, the outermost first
    stacks: list[Stack] = field(default_factory=list)
    again: list[Stack] | None = None
    budget: int = 0
    lengths: tuple[int, ...] | None = None

    @property
    def placeholders(self) -> set[Value]:
        """The arrays of its stacks, which the way back has in the end."""
        return {array for stack in self.stacks for array in stack.arrays}


def is_beside(inside: LoopContext | None) -> bool:
    """Whether the backward pass of nodes there is in the same graph as their forward pass."""
    return inside is None or inside.again is not None


def begin(
    builder: Builder, stack: Stack, inside: LoopContext | None, own: Nested
) -> None:
    """Give the stack its arrays: placeholders in a loop's body, else memory."""
    nest = () if inside is None else inside.nest
    size = _static_size((*nest, own), stack.entries)
    if inside is None or inside.again is not None:
        stack.pointer = builder.const(0)
        if size is None:
            stack.arrays = allocated(builder, stack.entries, stack.counted(), None)
        else:
            use(builder, stack, size, inside)
        return
    first = symbol(f"n{new_id()}") if size is None else size
    stack.arrays = [placeholder(builder, TensorType(e.dtype, (first, *e.shape)), "stack")
                    for e in stack.entries]
    stack.pointer = placeholder(builder, builder.const(0).type, "pointer")
    inside.stacks.append(stack)


def use(builder: Builder, stack: Stack, size: Any, inside: LoopContext | None) -> None:
    """Give the stack arrays of so many entries: memory, or in an iteration that runs again a
    stand-in for memory that they all use."""
    if inside is None or inside.again is None:
        stack.arrays = [_memory(builder, entry, size) for entry in stack.entries]
        return
    stack.arrays = [placeholder(builder, TensorType(e.dtype, (size, *e.shape)), "again")
                    for e in stack.entries]
    inside.again.append(stack)


def _static_size(nest: Sequence[Nested], entries: Sequence[TensorType]) -> Any:
    """A number of entries that is enough and known now; None where there is none, or memory for as
    many would be too large."""
    count = entries_of(nest)
    if count is None:
        return None
    bytes_each = sum(math.prod(map(int, e.shape)) * e.dtype.itemsize for e in entries)
    is_generous = any(loop.trips is not None and loop.trips.is_broken_off for loop in nest)
    most = STATIC_OF_BREAKS if is_generous else STATIC
    return count if int(getattr(count, "hint", count)) * bytes_each <= most else None


def _memory(builder: Builder, entry: TensorType, count: Any) -> Value:
    """An array for so many entries, of which none is set where sizes are numbers."""
    zero, shape = builder.const(entry.dtype.type(0)), (count, *entry.shape)
    if not all(type(n) is int for n in shape):
        return builder.emit("BroadcastTo", zero, shape=shape)
    nothing = builder.emit("BroadcastTo", zero, shape=(0,) * len(shape))
    return builder.emit("Reserve", nothing, shape=shape)


def allocated(
    builder: Builder, entries: Sequence[TensorType], count: Value, size: Dim | None
) -> list[Value]:
    """Arrays of as many entries as the number says, which is then the size ``size``."""
    size = symbol(f"n{new_id()}") if size is None else size
    extent = builder.emit("Extent", count, given=(False, True), step=1, limit=UNLIMITED,
                          length=str(size)).node
    length = builder.emit("Size", extent.out(1), size=size)
    arrays = []
    for entry in entries:
        zero = builder.const(entry.dtype.type(0))
        rest = [builder.const(int(n)) for n in entry.shape]
        arrays.append(builder.emit("Fill", zero, length, *rest, shape=(size, *entry.shape)))
    return arrays


def continued(
    builder: Builder, inner: Stack, inside: LoopContext | None, counted: Callable[[], Value],
) -> Stack:
    """The stack of a loop inside, as it is in the graph around the loop whose body it is in."""
    stack = Stack(inner.entries, counted)
    if inside is not None and inside.again is None:
        stack.arrays = [placeholder(builder, a.type, "stack") for a in inner.arrays]
        stack.pointer = placeholder(builder, inner.first.type, "pointer")
        inside.stacks.append(stack)
        return stack
    stack.pointer = builder.const(0)
    size = inner.arrays[0].shape[0]
    if isinstance(size, Dim) and size.symbols:
        stack.arrays = allocated(builder, inner.entries, counted(), size)
    else:
        use(builder, stack, size, inside)
    return stack
