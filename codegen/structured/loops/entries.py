"""Loops that keep an entry of an array for each iteration: values are computed where they are kept.

``kept[i] = f(x)``, as the loops have it that gradients read backwards, and programs that record
their results, needs no memory for ``f(x)`` and no copy of it.  Nor does ``kept[i] = u`` of an
array that the loop carries: the next iteration's ``u`` is computed in the next entry, and lies
there while it is the loop's state.  (That is known to have an iteration: the entry after the last
is the program's, but on the tapes of gradients.)  An entry is memory of its own here, an alias that
points into the larger array, since nothing else in the iteration reads or writes that.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from fusec.core.records import dataclass, field
from fusec.ir import Node, Value
from fusec.ir.sizes.dims import is_static
from fusec.ir.sizes.symbolic_numbers import applied
from fusec.ops import get
from fusec.ops.regions.loop_numbers import TAPE, writes_part

from ..builder import Builder
from ..memory import BOOL, I64, Constant, Memory, Operand, Strides, Variable, View, contiguous
from ..statements import If, IsAt, Point, PointInto
from ..steps.picks import part
from .counted import Counted, grows
from .graph_builder import GraphBuilder, Slot
from .order import updated_operands

_NO, _YES = Constant(False, BOOL), Constant(True, BOOL)


@dataclass
class _State:
    """A carried array, ``number``, of which each iteration keeps the value at its beginning.

    Its ``home`` memory points to an entry from the first iteration on; ``own`` to its first memory.
    ``lies``: whether the entry of this iteration is there already.
    """

    number: int
    node: Node  # the `PickUpdate` that keeps it
    home: View
    own: Memory
    spare: View
    lies: Variable
    slot: Slot  # of the next iteration
    counted: Counted | None  # what says whether there is one; None: the entry is nobody's else
    has_next: Operand = _NO


@dataclass
class Entries:
    """What a loop's body keeps, see the module docstring."""

    inner: GraphBuilder
    states: list[_State] = field(default_factory=list)
    computed: list[tuple[Node, Slot]] = field(default_factory=list)
    before: list[Any] = field(default_factory=list)  # what comes before the loop

    @property
    def builder(self) -> Builder:
        return self.inner.builder

    def enter(self) -> None:
        """The beginning of an iteration: aliases point to its entries."""
        for node, slot in self.computed:
            entry = self._entry(node, node.inputs[2])
            self.builder.add(PointInto(slot.view.memory, entry, _YES, slot.view.memory))
            self.inner.kept[node] = slot
        for state in self.states:
            self._enter(state)
            self.inner.kept[state.node] = None

    def _enter(self, state: _State) -> None:
        builder, node = self.builder, state.node
        entry, lies = self._entry(node, node.inputs[2]), builder.get(state.lies)
        with builder.block() as keep:
            builder.copy(entry, state.home)
            builder.add(PointInto(state.home.memory, entry, _YES, state.home.memory))
        builder.add(If(lies, (), tuple(keep)))
        whole = self.inner.array(node.inputs[0])
        place = builder.let("add", I64, self.inner.index(node.inputs[2]), Constant(1, I64))
        state.has_next = builder.let("lt", BOOL, place, builder.number(whole.shape[0]))
        if state.counted is not None:
            state.has_next = builder.let(
                "select", BOOL, self._goes_on(state.counted), state.has_next, _NO)
        following = View(whole.memory, entry.shape, entry.strides, entry.dtype, builder.moved(
            whole.offset, place, builder.stride(whole.strides[0], whole.dtype)))
        builder.add(PointInto(
            state.slot.view.memory, following, state.has_next, state.spare.memory))

    def _goes_on(self, counted: Counted) -> Operand:
        """Whether there is one more iteration."""
        builder, inputs, limit = self.builder, self.inner.graph.inputs, counted.limit
        count = builder.let("add", I64, self.inner.scalar(inputs[counted.number]), Constant(1, I64))
        end = builder.constant(I64, limit.node.attrs["value"]) if limit.node.op == "Const" else (
            self.inner.scalar(inputs[counted.place]))
        return builder.let("lt", BOOL, count, end)

    def _entry(self, node: Node, index: Value) -> View:
        return part(self.inner, node, self.inner.array(node.inputs[0]), [index])

    def settle(self, finals: dict[int, View]) -> None:
        """What the states are in the end lies in the next entries, and nothing else does."""
        for state in self.states:
            final, target = finals.pop(state.number), state.slot.view
            if final != target:
                finals |= {i: self.inner.copied(f) for i, f in finals.items()
                           if f.memory is target.memory}
                aside = final.memory is target.memory
                self.builder.copy(target, self.inner.copied(final) if aside else final)
            self.inner.owned.discard(target.memory)

    def leave(self) -> None:
        """The end of an iteration: the next one finds its states in their entries."""
        for state in self.states:
            self.builder.add(Point(state.home.memory, state.slot.view.memory))
            self.builder.set(state.lies, state.has_next)

    def finish(self) -> None:
        """After the loop: states lie in memory of their own again."""
        builder = self.builder
        for state in self.states:
            moved = builder.register(BOOL)
            builder.add(IsAt(moved, state.home.memory, (state.own,), elsewhere=True))
            with builder.block() as back:
                home = state.home
                builder.copy(View(state.own, home.shape, home.strides, home.dtype), home)
                builder.add(Point(home.memory, state.own))
            builder.add(If(moved, tuple(back)))


def find_entries(
    inner: GraphBuilder, loop: Node, homes: Sequence[object], tested: Collection[int]
) -> Entries:
    """What the body of a loop keeps; ``homes``: where carried values live, ``tested``: the numbers
    of those that the loop's test reads."""
    found, graph = Entries(inner), inner.graph
    if inner.builder.function is not None or inner.last_exit >= 0:
        return found
    for number, value in graph.updates:
        home = homes[number]
        if number not in tested and isinstance(home, View) and _keeps(inner, value, number, home):
            _note(found, value.node, loop, homes, tested)
    return found


def _keeps(inner: GraphBuilder, value: Value, number: int, home: View) -> bool:
    """Whether the value is a carried array with one entry set, and nothing else uses the array."""
    node = value.node
    if node.op != "PickUpdate" or len(node.inputs) != 3:
        return False
    whole, entry, index = node.inputs
    return whole == inner.graph.inputs[number] and len(inner.readers[whole]) == 1 and (
        node.attrs["axes"] == node.attrs["safe"] == (0,) and get(index.node.op).is_given
        and bool(entry.shape) and is_static(entry.shape) and entry.dtype == whole.dtype
        and entry.shape == whole.shape[1:] and home.strides[1:] == _dense(entry))


def _dense(value: Value) -> Strides:
    return contiguous(value.shape, value.dtype.itemsize)


def _note(
    found: Entries, node: Node, loop: Node, homes: Sequence[object], tested: Collection[int]
) -> None:
    inner, (_, value, index) = found.inner, node.inputs
    inputs = list(inner.graph.inputs)
    if value.node.op != "Input":
        chain = _chain(value)
        if len(chain) > 1 or value.node.op == "Fused":
            found.computed.append((node, _slot(found, value, chain)))
        return
    number, finals = inputs.index(value), dict(inner.graph.updates)
    home = homes[number] if number < len(homes) else None
    is_next = index in inputs and inputs.index(index) < len(homes) and grows(
        loop, inputs.index(index))
    is_tape = _is_tape(loop, {v: i for i, v in inner.graph.updates}[node.out()])
    counted = None if is_tape else Counted.in_any(loop)
    if number in finals and is_next and number not in tested and isinstance(home, View) and (
            home.is_whole and all(state.number != number for state in found.states)) and (
            is_tape or counted is not None):
        _note_state(found, node, number, home, finals[number], counted)


def _is_tape(loop: Node, number: int) -> bool:
    """Whether a carried array is a tape of gradients, whose unwritten entries nobody reads."""
    return loop.attrs["names"][number] == TAPE


def _note_state(
    found: Entries, node: Node, number: int, home: View, final: Value, counted: Counted | None
) -> None:
    """The statements before the loop, and the memory that the state goes through."""
    inner, builder = found.inner, found.builder
    slot = _slot(found, final, _chain(final))
    with builder.block() as before:
        spare = builder.temporary(home.shape, home.dtype)
        own = builder.memory(home.memory.nbytes, home.dtype, "alias")
        builder.add(Point(own, home.memory))
        lies = builder.variable(BOOL)
        builder.set(lies, _NO)
    found.before += before
    inner.owned.discard(home.memory)
    found.states.append(_State(number, node, home, own, spare, lies, slot, counted))


def _slot(found: Entries, value: Value, chain: Sequence[Value]) -> Slot:
    """Memory for a value, and for those of which it is made in place."""
    inner, builder = found.inner, found.builder
    with builder.block() as before:
        memory = builder.memory(applied(int, value.type.nbytes), value.dtype, "alias")
    found.before += before
    slot = Slot(View(memory, value.shape, _dense(value), value.dtype))
    inner.slots.update((v, slot) for v in chain if v not in inner.slots)
    inner.owned.add(memory)
    inner.pinned.add(memory)
    return slot


def _chain(value: Value) -> list[Value]:
    """The value, and those of which it may be made in place, the oldest last."""
    chain = [value]
    while (before := _changed(chain[-1])) is not None and before.type == value.type:
        chain.append(before)
    return chain


def _changed(value: Value) -> Value | None:
    """Of which array the value is made, where it is one with parts replaced."""
    node = value.node
    if node.op == "Fused":
        source = updated_operands(node).get(value.index)
        return None if source is None else node.inputs[source]
    return node.inputs[0] if writes_part(node) else None


__all__ = ["Entries", "find_entries"]
