"""One sub-graph: where its values live, and which memory its statements may change."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from fusec import config
from fusec.core.records import dataclass, field
from fusec.ir import Graph, Node, Value
from fusec.ir.lazy_values import lazy
from fusec.ir.regions import Reach
from fusec.ir.sizes.dims import symbols_of
from fusec.ops import get
from fusec.passes.pipeline import BodyPasses, PassRecord, body_passes, run_passes

from ...kernels.in_place_updates import checks_come_first, reads_apart, stores_at_computed
from ...kernels.joined_kernels import joined
from ...kernels.loop_ir import Kernel
from ...kernels.lower import lower
from ..analyses.bounds import bound_of
from ..builder import Builder
from ..exits import may_leave
from ..memory import I64, Location, Memory, Operand, Origin, Register, View
from .frames import frames, part_of_frame
from .locations import Locations
from .order import changed_inputs, ordered

NEAR = 3  # steps before a kernel among which one is looked for to join it
END = 1 << 60  # the position of reads after the last step


@dataclass
class Slot:
    """Memory for one value of several, whichever asks first."""

    view: View
    taken: bool = False

    def take(self) -> View:
        self.taken = True
        return self.view


@dataclass
class GraphBuilder:
    """The state that the nodes of one sub-graph share; `steps.build` goes through them in order."""

    builder: Builder
    graph: Graph
    env: Locations
    owned: set[Memory]
    nodes: list[Node] = field(default_factory=list)
    readers: dict[Value, list[int]] = field(default_factory=dict)
    position: int = 0
    # Carried values that the graph leaves as they are: their memory holds them at the end.
    unchanged: frozenset[Value] = frozenset()
    # Updates that were made in the larger array itself.
    put_back: set[Value] = field(default_factory=set)
    # By value, the memory that it is to be computed into.
    places: dict[Value, View] = field(default_factory=dict)
    # By value, the shape of the array that it is to be the beginning of.
    reserved: dict[Value, tuple[int, ...]] = field(default_factory=dict)
    kernels: dict[Node, Kernel] = field(default_factory=dict)
    # By value, memory for it, or for what it is made of; by `PickUpdate`, the memory that is an
    # entry already, None where that is known: see `entries`.
    slots: dict[Value, Slot] = field(default_factory=dict)
    kept: dict[Node, Slot | None] = field(default_factory=dict)
    pinned: set[Memory] = field(default_factory=set)  # which may not be exchanged
    frames: dict[Value, Node] = field(default_factory=dict)
    joint: dict[Node, tuple[Value, ...]] = field(default_factory=dict)  # see `outputs_of`
    # By value, the argument in whose memory it is in the end.
    homes: dict[Value, Value] = field(default_factory=dict)

    @classmethod
    def of(
        cls, builder: Builder, graph: Graph, operands: Sequence[Location],
        owned: Iterable[Memory] = (), changed: int = 0, is_way_back: bool = False,
    ) -> GraphBuilder:
        """The builder of a graph with these operands; ``owned`` memory may be changed.

        The first ``changed`` inputs are carried: they are live at the end.  One without an update
        must still hold its old value then.  ``is_way_back``: see `body_passes`.
        """
        log: list[PassRecord] = []
        fused = run_passes(body_passes(is_way_back, in_registers=True), graph, config.verify, log)
        builder.shared.passes.append(BodyPasses(graph.name, log))
        made = cls(builder, fused, Locations(zip(fused.inputs, operands, strict=True)), set(owned))
        made.nodes = ordered(fused)
        made.frames = frames(made.nodes)
        made._join_kernels()
        made.reserved = {node.inputs[0]: node.attrs["shape"] for node in made.nodes
                         if node.op == "Reserve"}
        updated = {i for i, _ in fused.updates}
        made.unchanged = frozenset(
            v for i, v in enumerate(fused.inputs[:changed]) if i not in updated)
        made.note_readers((*fused.roots, *made.unchanged))
        return made

    def note_readers(self, live: Iterable[Value]) -> None:
        """The positions of the steps that read each value; those that are live at the end, too."""
        for position, node in enumerate(self.nodes):
            for value in node.inputs:
                self.readers.setdefault(value, []).append(position)
        for value in live:
            self.readers.setdefault(value, []).append(END)

    def _join_kernels(self) -> None:
        """Two kernels become one node where one nest can be of both.

        Nodes between them, such as a step that keeps the first one's result, come after that node.
        """
        nodes: list[Node] = []
        for node in self.nodes:
            for place in range(len(nodes) - 1, max(len(nodes) - 1 - NEAR, -1), -1):
                if self._join(nodes, place, node):
                    break
                if not self._are_apart(nodes[place], node):
                    nodes.append(node)
                    break
            else:
                nodes.append(node)
        self.nodes = nodes

    def _join(self, nodes: list[Node], place: int, node: Node) -> bool:
        first = nodes[place]
        if first in self.joint or not {first, node}.isdisjoint(self.frames.values()):
            return False
        found = joined(first, node, self.kernel)
        if found is None:
            return False
        nodes[place], self.kernels[found[0]] = found
        self.joint[found[0]] = (*first.outputs, *node.outputs)
        return True

    def _are_apart(self, one: Node, other: Node) -> bool:
        """Whether two steps, in this order, may change places."""
        return set(other.inputs).isdisjoint(self.outputs_of(one)) and not (
            one in other.control_inputs or may_leave(one) or may_leave(other)
            or not set(changed_inputs(other)).isdisjoint(one.inputs)
            or not set(changed_inputs(one)).isdisjoint(other.inputs))

    def outputs_of(self, node: Node) -> tuple[Value, ...]:
        """The values that others read: of a node made of two, what those two had."""
        return self.joint.get(node, node.outputs)

    @lazy
    def last_exit(self) -> int:
        """The position of the last step that may leave; -1: none may."""
        return max((p for p, node in enumerate(self.nodes) if may_leave(node)), default=-1)

    # -- values

    def location(self, value: Value) -> Location:
        """Where a value lives: in a register or in memory.  Constants are made when first used."""
        if value.node.op == "Const":
            return self.builder.constant(value.dtype, value.node.attrs["value"])
        return self.env[value]

    def scalar(self, value: Value) -> Operand:
        """A value of rank 0 in a register."""
        location = self.location(value)
        if not isinstance(location, View):
            return location
        return self.builder.load(location)

    def index(self, value: Value) -> Operand:
        """A number of rank 0 as an int64."""
        number = self.scalar(value)
        return number if number.dtype == I64 else self.builder.let("cast", I64, number)

    def array(self, value: Value) -> View:
        """A value in memory."""
        location = self.location(value)
        if isinstance(location, View):
            return location
        view = self.builder.temporary((), location.dtype)
        self.builder.store(view, location)
        return view

    def outputs(self) -> list[Location]:
        return [self.location(v) for v in self.graph.outputs]

    # -- memory

    def temporary(
        self, shape: Sequence[int], dtype: np.dtype, origin: Origin = "temp"
    ) -> View:
        view = self.builder.temporary(shape, dtype, origin)
        self.owned.add(view.memory)
        return view

    def copied(self, view: View) -> View:
        """A copy in memory of its own."""
        own = self.temporary(view.shape, view.dtype)
        self.builder.copy(own, view)
        return own

    def memory_for(self, value: Value) -> View:
        """Memory for a step's result: its final place, where that is known, else a temporary."""
        place, shape = self.places.get(value), self.reserved.get(value)
        if place is None and self.has_slot(value):
            return self.slots[value].take()
        if self.is_framed(value):
            frame = self.frames[value]
            slot = self.slots[frame.out()] = Slot(self.temporary(frame.types[0].shape, value.dtype))
            return part_of_frame(frame, slot.view)
        if place is not None or shape is None:
            return place or self.temporary(value.shape, value.dtype)
        whole = self.temporary(shape, value.dtype, "zeros")
        return View(whole.memory, value.shape, whole.strides, value.dtype)

    def number_for(self, value: Value) -> Register | View:
        """Where a kernel's result of rank 0 comes."""
        return self.builder.register(value.dtype)

    def is_placed(self, value: Value) -> bool:
        """Whether it is to be in memory that nobody else's may be."""
        return False

    def home_of(self, node: Node, kernel: Kernel, out: int) -> View | None:
        """The memory that an output of a kernel has in the end, if it may be written now."""
        return None

    def may_become(self, operand: Value, result: Value) -> bool:
        """Whether an operand's memory is as a result's would be."""
        if operand.type != result.type:
            return False
        view = self.location(operand)
        return isinstance(view, View) and view.is_whole

    @property
    def shows_exits(self) -> bool:
        """Whether a step from here on may leave, and show memory that a kernel has written."""
        return self.position <= self.last_exit

    def may_write(self, view: View, kernel: Kernel, out: int) -> bool:
        """Whether the kernel may store to buffer ``out`` in memory that an early exit shows."""
        return not stores_at_computed(kernel, out) or checks_come_first(kernel, out)

    def has_slot(self, value: Value) -> bool:
        """Whether there is memory that waits for it."""
        return value in self.slots and not self.slots[value].taken

    def is_framed(self, value: Value) -> bool:
        """Whether it is computed where a frame of constants is to hold it."""
        if value not in self.frames:
            return False
        known = (value, self.frames[value].out())
        return not any(v in d for v in known for d in (self.slots, self.places, self.reserved))

    def want(self, results: Sequence[Any]) -> None:
        """Let steps compute outputs directly in this memory, which no step here reads."""
        updated = {v for _, v in self.graph.updates}
        for place, value in zip(results, self.graph.outputs, strict=True):
            if isinstance(place, View) and get(value.node.op).kind == "call" and (
                    value.node.op != "Loop") and (
                    value not in updated and value.shape == place.shape):
                self.places.setdefault(value, place)

    def kernel(self, node: Node) -> Kernel:
        """The kernel of a ``Fused`` node."""
        if node not in self.kernels:
            self.kernels[node] = lower(node)
        return self.kernels[node]

    def is_read_later(
        self, memory: Memory, but: Sequence[Value] = (), except_at: int | None = None
    ) -> bool:
        """Whether a later step reads what this memory holds now.

        The step at ``except_at`` does not count, nor does one read of each of ``but`` by this step.
        """
        return next(self._read_later(memory, but, except_at), None) is not None

    def _read_later(
        self, memory: Memory, but: Sequence[Value] = (), except_at: int | None = None,
        changed: tuple[View, Sequence[Reach]] | None = None,
    ) -> Iterator[Value]:
        """``changed``: the view, and the boxes of it, that this step changes; without it, all."""
        for value, location in self.env.values_in(memory):
            if value not in self.put_back:
                uses = self.readers.get(value, ())
                own = 1 if value in but else 0
                reads_now = sum(1 for p in uses if p == self.position)
                later = {p for p in uses if p > self.position and p != except_at}
                if changed is not None and location == changed[0]:
                    later = {p for p in later if not self._reads_apart(p, value, changed[1])}
                if later or reads_now > own:
                    yield value

    def _reads_apart(self, position: int, value: Value, boxes: Sequence[Reach]) -> bool:
        """Whether the step there reads nothing of the value in these boxes."""
        if position >= len(self.nodes) or self.nodes[position].op != "Fused":
            return False
        node = self.nodes[position]
        return reads_apart(self.kernel(node), node.inputs.index(value), boxes)

    def may_change(
        self, view: View, but: Sequence[Value] = (), boxes: Sequence[Reach] | None = None
    ) -> bool:
        """Whether what the view shows may be changed now, in its own memory; ``boxes``: the part of
        it that is, where that is known.

        Parts of that memory which are read later are copied for it, where they are less than the
        view: a row that is read, replaced, and computed with is a row to copy, not an array.
        """
        if view.memory not in self.owned or view.repeats:
            return False
        changed = None if boxes is None else (view, boxes)
        parts = list(self._read_later(view.memory, but, changed=changed))
        if not self.unchanged.isdisjoint(parts) or (
                parts and not self._are_smaller([self.array(v) for v in parts], view)):
            return False
        for value in parts:
            shown = self.array(value)
            own = self.temporary(shown.shape, shown.dtype)
            self.builder.copy(own, shown)
            self.env[value] = own
        return True

    def _are_smaller(self, parts: Sequence[View], whole: View) -> bool:
        limits = self.builder.limits
        if not symbols_of(tuple(v.shape for v in (*parts, whole))) <= limits.keys():
            return False

        def most(view: View) -> int:
            return math.prod(bound_of(size, limits) for size in view.shape)

        return sum(map(most, parts)) < most(whole)

    def part_to_change(self, node: Node) -> tuple[View, bool]:
        """The first operand's memory if the update may change it, else a copy.

        The operand may be a part of a larger array, and a later update may put the changed part
        back where it was.  Then the part is changed in the larger array itself, and the second
        result is True.  The value that is written may lie in the memory that it is written to; it
        is copied as a whole.
        """
        later = self._putting_back(node)
        view = self.array(node.inputs[0])
        if later is not None and view.memory in self.owned and not view.repeats and (
                not self.is_read_later(view.memory, node.inputs[:2], later)):
            return view, True
        return self.changeable(node.inputs[0], node.inputs[1:2]), False

    def _putting_back(self, node: Node) -> int | None:
        """The position of the update that puts this one's result back where it was read."""
        source, uses = node.inputs[0].node, self.readers.get(node.out(), ())
        if get(source.op).picks != "read" or len(uses) != 1 or uses[0] >= END:
            return None
        if 0 in source.attrs.get("steps", ()):  # it was copied
            return None
        later = self.nodes[uses[0]]
        is_same = later.op == f"{source.op}Update" and later.inputs[1] == node.out() and (
            later.inputs[0] == source.inputs[0]) and later.inputs[2:] == source.inputs[1:] and (
            all(later.attrs[k] == source.attrs[k] for k in ("axes", "steps") if k in source.attrs))
        return uses[0] if is_same else None

    def changeable(self, value: Value, written: Sequence[Value] = ()) -> View:
        """The array's own memory if it may be changed now, else a copy.

        This step reads ``written`` before it changes the array.
        """
        view = self.array(value)
        if self.may_change(view, (value, *written)):
            return view
        own = self.slots[value].take() if self.has_slot(value) else (
            self.temporary(view.shape, view.dtype))
        self.builder.copy(own, view)
        return own

    def whole(self, value: Value) -> View:
        """Like `changeable`; the result covers its memory, in C order."""
        view = self.changeable(value)
        if view.is_whole:
            return view
        own = self.temporary(view.shape, view.dtype)
        self.builder.copy(own, view)
        return own
