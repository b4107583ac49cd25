"""One sub-graph of a native loop: where its values live, and which memory it may change."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from fusec import config
from fusec.codegen.cpu.emitter import Operand
from fusec.ir import Graph, Node, Value
from fusec.ops import get
from fusec.passes.pipeline import native_loop, run_passes
from fusec.records import dataclass, field

from .arrays import ArrayRef, Location, Token
from .copying import copy
from .frame import Frame
from .order import ordered

END = 1 << 60  # the position of reads after the last step


@dataclass
class GraphEmitter:
    """The state that the steps of one sub-graph share; `steps.emit` emits them in order."""

    frame: Frame
    graph: Graph
    env: dict[Value, Location]
    owned: set[Token]
    nodes: list[Node] = field(default_factory=list)
    readers: dict[Value, list[int]] = field(default_factory=dict)
    position: int = 0
    # Updates that were made in the larger array itself.
    put_back: set[Value] = field(default_factory=set)
    # By value, the memory that it is to be computed into.
    places: dict[Value, ArrayRef] = field(default_factory=dict)
    # By value, the shape of the array that it is to be the beginning of.
    reserved: dict[Value, tuple[int, ...]] = field(default_factory=dict)

    @classmethod
    def of(
        cls, frame: Frame, graph: Graph, operands: Sequence[Location], owned: Iterable[Token] = (),
        changed: int = 0,
    ) -> GraphEmitter:
        """The emitter of a graph with these operands; ``owned`` memory may be changed.

        The first ``changed`` inputs are carried: they are live at the end.  One without an update
        must still hold its old value then.
        """
        fused = run_passes(native_loop(), graph, verified=config.verify)
        emitter = cls(frame, fused, dict(zip(fused.inputs, operands, strict=True)), set(owned))
        emitter.nodes = ordered(fused)
        for position, node in enumerate(emitter.nodes):
            for value in node.inputs:
                emitter.readers.setdefault(value, []).append(position)
            if node.op == "Reserve":
                emitter.reserved[node.inputs[0]] = node.attrs["shape"]
        updated = {i for i, _ in fused.updates}
        unchanged = [v for i, v in enumerate(fused.inputs[:changed]) if i not in updated]
        for value in (*fused.roots, *unchanged):
            emitter.readers.setdefault(value, []).append(END)
        return emitter

    # -- values

    def location(self, value: Value) -> Location:
        """Where a value lives: in a register or in memory.  Constants are made when first used."""
        if value.node.op == "Const":
            return self.frame.constant(value.dtype, value.node.attrs["value"])
        return self.env[value]

    def scalar(self, value: Value) -> Operand:
        """A value of rank 0 in a register."""
        location = self.location(value)
        if isinstance(location, Operand):
            return location
        return self.frame.em.load(self.frame.address(location), location.dtype, 1)

    def array(self, value: Value) -> ArrayRef:
        """A value in memory."""
        location = self.location(value)
        if isinstance(location, ArrayRef):
            return location
        ref = self.frame.temporary((), location.dtype)
        self.frame.em.store(self.frame.address(ref), location)
        return ref

    def outputs(self) -> list[Location]:
        return [self.location(v) for v in self.graph.outputs]

    # -- memory

    def temporary(
        self, shape: Sequence[int], dtype: np.dtype, kind: str = "temp"
    ) -> ArrayRef:
        ref = self.frame.temporary(shape, dtype, kind)
        self.owned.add(ref.token)
        return ref

    def memory_for(self, value: Value) -> ArrayRef:
        """Memory for a step's result: its final place, where that is known, else a temporary."""
        place, shape = self.places.get(value), self.reserved.get(value)
        if place is not None or shape is None:
            return place or self.temporary(value.shape, value.dtype)
        whole = self.temporary(shape, value.dtype, "zeros")
        return ArrayRef(whole.token, value.shape, whole.strides, value.dtype)

    def want(self, results: Sequence[Any]) -> None:
        """Let steps compute outputs directly in this memory, which no step here reads."""
        updated = {v for _, v in self.graph.updates}
        for place, value in zip(results, self.graph.outputs, strict=True):
            if isinstance(place, ArrayRef) and get(value.node.op).kind == "call" and (
                    value.node.op != "Loop") and (
                    value not in updated and value.shape == place.shape):
                self.places.setdefault(value, place)

    def is_read_later(
        self, token: Token, but: Sequence[Value] = (), except_at: int | None = None
    ) -> bool:
        """Whether a later step reads what this memory holds now.

        The step at ``except_at`` does not count, nor does one read of each of ``but`` by this step.
        """
        for value, location in self.env.items():
            if isinstance(location, ArrayRef) and location.token is token and (
                    value not in self.put_back):
                uses = self.readers.get(value, ())
                own = 1 if value in but else 0
                reads_now = sum(1 for p in uses if p == self.position)
                if any(p > self.position and p != except_at for p in uses) or reads_now > own:
                    return True
        return False

    def part_to_change(self, node: Node) -> tuple[ArrayRef, bool]:
        """The first operand's memory if the update may change it, else a copy.

        The operand may be a part of a larger array, and a later update may put the changed part
        back where it was.  Then the part is changed in the larger array itself, and the second
        result is True.  The value that is written may lie in the memory that it is written to; it
        is copied as a whole.
        """
        later = self._putting_back(node)
        ref = self.array(node.inputs[0])
        if later is not None and ref.token in self.owned and not ref.repeats and (
                not self.is_read_later(ref.token, node.inputs[:2], later)):
            return ref, True
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

    def changeable(self, value: Value, written: Sequence[Value] = ()) -> ArrayRef:
        """The array's own memory if it may be changed now, else a copy.

        This step reads ``written`` before it changes the array.
        """
        ref = self.array(value)
        if ref.token in self.owned and not ref.repeats and not self.is_read_later(
                ref.token, (value, *written)):
            return ref
        own = self.temporary(ref.shape, ref.dtype)
        copy(self.frame, own, ref)
        return own

    def whole(self, value: Value) -> ArrayRef:
        """Like `changeable`; the result covers its token's memory, in C order."""
        ref = self.changeable(value)
        if ref.is_whole:
            return ref
        own = self.temporary(ref.shape, ref.dtype)
        copy(self.frame, own, ref)
        return own
