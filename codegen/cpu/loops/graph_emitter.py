"""Emits one sub-graph after the other into a native loop's function."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np

from fusec import config
from fusec.codegen.backend import NotNativeError
from fusec.codegen.cpu.emitter import I64, Operand
from fusec.ir import Graph, Node, Value
from fusec.ops import get
from fusec.passes.pipeline import native_loop, run_passes

from . import host_calls, kernels, picks, sizes
from .frame import ArrayRef, Frame, Held, Token
from .order import ordered
from .polls import Counted, enter, in_chunks, poll_each
from .views import viewed

END = 1 << 60  # the position of what is read after all steps


@dataclass
class GraphEmitter:
    """One sub-graph: what its values are, and which memory it may change."""

    frame: Frame
    graph: Graph
    env: dict[Value, Held]
    owned: set[Token]
    nodes: list[Node] = field(default_factory=list)
    readers: dict[Value, list[int]] = field(default_factory=dict)
    position: int = 0
    put_back: set[Value] = field(default_factory=set)  # parts changed where they belong already
    places: dict[Value, ArrayRef] = field(default_factory=dict)  # where results are wanted

    @classmethod
    def of(
        cls, frame: Frame, graph: Graph, operands: Sequence[Held], owned: Iterable[Token] = (),
        changed: int = 0,
    ) -> GraphEmitter:
        """A graph over these operands; ``owned`` memory may be changed.

        The first ``changed`` inputs live on: those without an update as they are.
        """
        fused = run_passes(native_loop(), graph, verified=config.verify)
        made = cls(frame, fused, dict(zip(fused.inputs, operands, strict=True)), set(owned))
        made.nodes = ordered(fused)
        for position, node in enumerate(made.nodes):
            for value in node.inputs:
                made.readers.setdefault(value, []).append(position)
        updated = {i for i, _ in fused.updates}
        kept = [v for i, v in enumerate(fused.inputs[:changed]) if i not in updated]
        for value in (*fused.roots, *kept):
            made.readers.setdefault(value, []).append(END)
        return made

    def run(self) -> None:
        """Emit every step."""
        for position, node in enumerate(self.nodes):
            self.position = position
            step = _STEPS.get(node.op)
            if step is not None:
                step(self, node)
            elif get(node.op).kind == "view":
                source = node.inputs[0]
                held = self.array(source) if node.types[0].shape else self.held(source)
                self.env[node.out()] = viewed(self.frame, node, held)
            else:
                host_calls.library_call(self, node)

    # -- values

    def held(self, value: Value) -> Held:
        """What a value is here; constants are made on the way."""
        if value.node.op == "Const":
            return self.frame.constant(value.dtype, value.node.attrs["value"])
        return self.env[value]

    def scalar(self, value: Value) -> Operand:
        """A value of rank 0 in a register."""
        found = self.held(value)
        if isinstance(found, Operand):
            return found
        return self.frame.em.load(self.frame.address(found), found.dtype, 1)

    def array(self, value: Value) -> ArrayRef:
        """A value in memory."""
        found = self.held(value)
        if isinstance(found, ArrayRef):
            return found
        ref = self.frame.temporary((), found.dtype)
        self.frame.em.store(self.frame.address(ref), found)
        return ref

    def outputs(self) -> list[Held]:
        return [self.held(v) for v in self.graph.outputs]

    # -- memory

    def temporary(self, shape: Sequence[int], dtype: np.dtype) -> ArrayRef:
        ref = self.frame.temporary(shape, dtype)
        self.owned.add(ref.token)
        return ref

    def memory_for(self, value: Value) -> ArrayRef:
        """Memory of what a step makes: where it is wanted in the end, if that is known."""
        return self.places.get(value) or self.temporary(value.shape, value.dtype)

    def want(self, results: Sequence[Any]) -> None:
        """Let steps make outputs in this memory, which nothing here reads, instead of a copy."""
        updated = {v for _, v in self.graph.updates}
        for place, value in zip(results, self.graph.outputs, strict=True):
            if isinstance(place, ArrayRef) and value.node.op in ("Fused", "Cond") and (
                    value not in updated and value.shape == place.shape):
                self.places.setdefault(value, place)

    def is_read_later(
        self, token: Token, but: Sequence[Value] = (), except_at: int | None = None
    ) -> bool:
        """Whether a later step, but the one at ``except_at``, reads what this memory holds now;
        this step may read ``but``, once each."""
        for value, held in self.env.items():
            if isinstance(held, ArrayRef) and held.token is token and value not in self.put_back:
                uses = self.readers.get(value, ())
                own = 1 if value in but else 0
                here = sum(1 for p in uses if p == self.position)
                if any(p > self.position and p != except_at for p in uses) or here > own:
                    return True
        return False

    def part_to_change(self, node: Node) -> tuple[ArrayRef, bool]:
        """The first operand's memory if the update may change it, else a copy.

        A part of a larger array that the next step puts back changes where it lies; then True.
        What is written may lie in that memory itself: it is copied as a whole.
        """
        later = self._putting_back(node)
        ref = self.array(node.inputs[0])
        if later is not None and ref.token in self.owned and not ref.repeats and (
                not self.is_read_later(ref.token, node.inputs[:2], later)):
            return ref, True
        return self.changeable(node.inputs[0], node.inputs[1:2]), False

    def _putting_back(self, node: Node) -> int | None:
        """The position of the update that writes this one's result back to where it was read."""
        source, uses = node.inputs[0].node, self.readers.get(node.out(), ())
        if source.op not in ("Pick", "Window") or len(uses) != 1 or uses[0] >= END:
            return None
        if 0 in source.attrs.get("steps", ()):  # it was copied
            return None
        later = self.nodes[uses[0]]
        is_same = later.op == f"{source.op}Update" and later.inputs[1] == node.out() and (
            later.inputs[0] == source.inputs[0]) and later.inputs[2:] == source.inputs[1:] and (
            all(later.attrs[k] == source.attrs[k] for k in ("axes", "steps") if k in source.attrs))
        return uses[0] if is_same else None

    def changeable(self, value: Value, written: Sequence[Value] = ()) -> ArrayRef:
        """The array's own memory if it may be changed now, else a copy; ``written`` is read first.
        """
        ref = self.array(value)
        if ref.token in self.owned and not ref.repeats and not self.is_read_later(
                ref.token, (value, *written)):
            return ref
        copy = self.temporary(ref.shape, ref.dtype)
        picks.copy(self.frame, copy, ref)
        return copy

    def whole(self, value: Value) -> ArrayRef:
        """Like `changeable`, and all of its memory in C order."""
        ref = self.changeable(value)
        if ref.is_whole:
            return ref
        copy = self.temporary(ref.shape, ref.dtype)
        picks.copy(self.frame, copy, ref)
        return copy


# ------------------------------------------------------------------------------------------- loops


def _loop(emitter: GraphEmitter, node: Node) -> None:
    frame = emitter.frame
    carried = node.attrs["carried"]
    homes: list[Any] = []
    for value in node.inputs[:carried]:
        homes.append(_home(emitter, value))
    others = [emitter.held(v) for v in node.inputs[carried:]]
    counted = Counted.of(node)
    if counted is not None:
        limit = _limit(emitter, node, counted)
        with in_chunks(frame, node, homes[counted.number].slot, limit):
            now = [_present(frame, home) for home in homes]
            _iteration(emitter, node.attrs["body"], homes, [*now, *others])
    else:
        _loop_of_any_kind(emitter, node, homes, others)
    for value, home in zip(node.outputs, homes, strict=True):
        emitter.env[value] = _present(frame, home)


def _limit(emitter: GraphEmitter, node: Node, counted: Counted) -> str:
    value = counted.limit
    if value.node.op == "Const":
        return emitter.frame.constant(I64, value.node.attrs["value"]).text
    return emitter.scalar(node.inputs[node.attrs["test"].inputs.index(value)]).text


def _loop_of_any_kind(
    emitter: GraphEmitter, node: Node, homes: Sequence[Any], others: Sequence[Held]
) -> None:
    frame = emitter.frame
    with frame.em.while_loop() as (_, done):
        now = [_present(frame, home) for home in homes]
        test = GraphEmitter.of(frame, node.attrs["test"], [*now, *others])
        test.run()
        enter(frame, test.scalar(test.graph.outputs[0]).text, done)
        poll_each(frame, node)
        _iteration(emitter, node.attrs["body"], homes, [*now, *others])


@dataclass(frozen=True)
class _Variable:
    """Where a carried scalar lives."""

    slot: str
    dtype: np.dtype


def _home(emitter: GraphEmitter, value: Value) -> _Variable | ArrayRef:
    if value.type.kind == "array":
        if not value.type.is_static:
            raise NotNativeError("a carried array of a size that only the run knows")
        return emitter.whole(value)
    made = _Variable(emitter.frame.variable(value.dtype), value.dtype)
    emitter.frame.em.store(made.slot, emitter.scalar(value))
    return made


def _present(frame: Frame, home: _Variable | ArrayRef) -> Held:
    if isinstance(home, ArrayRef):
        return home
    return frame.em.load(home.slot, home.dtype, 1)


def _iteration(
    emitter: GraphEmitter, body: Graph, homes: Sequence[_Variable | ArrayRef],
    operands: Sequence[Held],
) -> None:
    frame, em = emitter.frame, emitter.frame.em
    tokens = [h.token for h in homes if isinstance(h, ArrayRef)]
    inner = GraphEmitter.of(frame, body, operands, tokens, len(homes))
    inner.run()
    scalars = [inner.scalar(v) for v in inner.graph.outputs]
    finals = {i: inner.array(v) for i, v in inner.graph.updates}
    _settle(inner, homes, finals)
    variables = [h for h in homes if isinstance(h, _Variable)]
    for home, value in zip(variables, scalars, strict=True):
        em.store(home.slot, value)


def _settle(
    inner: GraphEmitter, homes: Sequence[_Variable | ArrayRef], finals: dict[int, ArrayRef]
) -> None:
    """Bring every carried array's new contents home, by exchanging addresses where that does."""
    moves: list[tuple[ArrayRef, ArrayRef]] = []
    staying = {h.token for i, h in enumerate(homes) if isinstance(h, ArrayRef) and i not in finals}
    taken: set[Token] = set(staying)
    for i, final in finals.items():
        home: Any = homes[i]
        whole = final.is_whole and final.token in inner.owned and final.token not in taken and (
            final.token.nbytes == home.token.nbytes)
        if not whole:  # seen elsewhere too, or in another order: a copy of it can move
            copy = inner.temporary(final.shape, final.dtype)
            picks.copy(inner.frame, copy, final)
            final = copy
        taken.add(final.token)
        moves.append((home, final))
    _exchange(inner.frame, [(h.token, f.token) for h, f in moves])


def _exchange(frame: Frame, moves: Sequence[tuple[Token, Token]]) -> None:
    """Each first token gets the memory of its second; the memory given up goes where it is free."""
    moves = [(home, final) for home, final in moves if home is not final]
    homes, finals = [h for h, _ in moves], [f for _, f in moves]
    em = frame.em
    address = {t: em.value(f"load ptr, ptr {t.slot}", "base")
               for t in dict.fromkeys([*homes, *finals])}
    for home, final in moves:
        em.line(f"store ptr {address[final]}, ptr {home.slot}")
    # A pair is of one size, so of each size as many are given up as are left without memory.
    free = sorted((h for h in homes if h not in finals), key=lambda t: t.nbytes)
    emptied = sorted((f for f in finals if f not in homes), key=lambda t: t.nbytes)
    for token, given in zip(emptied, free, strict=True):
        assert token.nbytes == given.nbytes
        em.line(f"store ptr {address[given]}, ptr {token.slot}")


# ----------------------------------------------------------------------------------------- branches


def _cond(emitter: GraphEmitter, node: Node) -> None:
    frame, em = emitter.frame, emitter.frame.em
    test, *values = node.inputs
    changed = node.attrs["changed"]
    homes = [cast("ArrayRef", _home(emitter, v)) for v in values[:changed]]
    operands: list[Held] = [*homes, *(emitter.held(v) for v in values[changed:])]
    count = len(node.types) - changed
    results = [_result(emitter, v) for v in node.outputs[:count]]
    then, orelse, after = em.fresh("then"), em.fresh("else"), em.fresh("after")
    em.line(f"br i1 {emitter.scalar(test).text}, label %{then}, label %{orelse}")
    for label, graph in ((then, node.attrs["then"]), (orelse, node.attrs["orelse"])):
        em.label(label)
        _side(emitter, graph, homes, operands, results)
        em.line(f"br label %{after}")
    em.label(after)
    for value, home in zip(node.outputs, [*results, *homes], strict=True):
        emitter.env[value] = _present(frame, home)


def _result(emitter: GraphEmitter, value: Value) -> _Variable | ArrayRef:
    if value.type.kind == "array":
        return emitter.memory_for(value)
    return _Variable(emitter.frame.variable(value.dtype), value.dtype)


def _side(
    emitter: GraphEmitter, graph: Graph, homes: Sequence[ArrayRef], operands: Sequence[Held],
    results: Sequence[_Variable | ArrayRef],
) -> None:
    frame = emitter.frame
    inner = GraphEmitter.of(frame, graph, operands, [h.token for h in homes], len(homes))
    inner.want(results)
    inner.run()
    for home, value in zip(results, inner.graph.outputs, strict=True):
        if isinstance(home, ArrayRef):
            if inner.held(value) is not home:
                picks.copy(frame, home, inner.array(value))
        else:
            frame.em.store(home.slot, inner.scalar(value))
    finals = {i: inner.array(v) for i, v in inner.graph.updates}
    _settle(inner, list(homes), finals)


_STEPS: dict[str, Callable[[GraphEmitter, Node], None]] = {
    "Fused": kernels.fused, "Pick": picks.pick, "PickUpdate": picks.pick_update,
    "Check": picks.check, "BoundsCheck": picks.bounds_check, "HostCall": host_calls.host_call,
    "Loop": _loop, "Cond": _cond, "Reshape": picks.reshape,
    "Extent": sizes.extent, "Size": sizes.size_number, "Fill": sizes.fill, "Window": sizes.window,
    "WindowUpdate": sizes.window_update,
}

__all__ = ["GraphEmitter"]
