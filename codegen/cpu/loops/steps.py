"""Emits the steps of a sub-graph, and of those in its loops and branches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fusec.codegen.backend import NotNativeError
from fusec.codegen.cpu.emitter import I64
from fusec.ir import Graph, Node, Value
from fusec.ir.dims import is_static
from fusec.ops import get
from fusec.records import dataclass

from . import callbacks, kernels, picks, recursive_functions, selections, slices
from .arrays import ArrayRef, Location, Token
from .copying import copy
from .frame import Frame
from .graph_emitter import GraphEmitter
from .polls import Counted, enter, in_chunks, poll_each
from .views import viewed


def emit(emitter: GraphEmitter) -> None:
    """Emit every step."""
    for position, node in enumerate(emitter.nodes):
        emitter.position = position
        step = _STEPS.get(node.op)
        if step is not None:
            step(emitter, node)
        elif get(node.op).kind == "view":
            source = node.inputs[0]
            location = emitter.array(source) if node.types[0].shape else emitter.location(source)
            emitter.env[node.out()] = viewed(emitter.frame, node, location)
        else:
            callbacks.library_call(emitter, node)


# ------------------------------------------------------------------------------------------- loops


def _loop(emitter: GraphEmitter, node: Node) -> None:
    frame = emitter.frame
    carried = node.attrs["carried"]
    homes: list[Any] = []
    for value in node.inputs[:carried]:
        homes.append(_home(emitter, value))
    others = [emitter.location(v) for v in node.inputs[carried:]]
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
    emitter: GraphEmitter, node: Node, homes: Sequence[Any], others: Sequence[Location]
) -> None:
    frame = emitter.frame
    with frame.em.while_loop() as (_, done):
        now = [_present(frame, home) for home in homes]
        test = GraphEmitter.of(frame, node.attrs["test"], [*now, *others])
        emit(test)
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
    variable = _Variable(emitter.frame.variable(value.dtype), value.dtype)
    emitter.frame.em.store(variable.slot, emitter.scalar(value))
    return variable


def _present(frame: Frame, home: _Variable | ArrayRef) -> Location:
    if isinstance(home, ArrayRef):
        return home
    return frame.em.load(home.slot, home.dtype, 1)


def _iteration(
    emitter: GraphEmitter, body: Graph, homes: Sequence[_Variable | ArrayRef],
    operands: Sequence[Location],
) -> None:
    frame, em = emitter.frame, emitter.frame.em
    tokens = [h.token for h in homes if isinstance(h, ArrayRef)]
    inner = GraphEmitter.of(frame, body, operands, tokens, len(homes))
    emit(inner)
    scalars = [inner.scalar(v) for v in inner.graph.outputs]
    finals = {i: inner.array(v) for i, v in inner.graph.updates}
    _settle(inner, homes, finals)
    variables = [h for h in homes if isinstance(h, _Variable)]
    for home, value in zip(variables, scalars, strict=True):
        em.store(home.slot, value)


def _settle(
    inner: GraphEmitter, homes: Sequence[_Variable | ArrayRef], finals: dict[int, ArrayRef]
) -> None:
    """Give every carried array its new contents, by swapping addresses where that is enough.

    Copies are made of all that lies in memory which is written, before anything is.
    """
    moves: list[tuple[ArrayRef, ArrayRef]] = []
    written: list[tuple[ArrayRef, ArrayRef]] = []  # arrays of sizes that only the run knows
    staying = {h.token for i, h in enumerate(homes) if isinstance(h, ArrayRef) and i not in finals}
    moved: set[Token] = set(staying)
    for i, final in finals.items():
        home: Any = homes[i]
        if not is_static(home.shape):
            written.append((home, _aside(inner, final, homes) if final != home else home))
            continue
        whole = final.is_whole and final.token in inner.owned and final.token not in moved and (
            final.token.nbytes == home.token.nbytes)
        if not whole:  # aliased, or not in C order: a copy of it is moved
            own = inner.temporary(final.shape, final.dtype)
            copy(inner.frame, own, final)
            final = own
        moved.add(final.token)
        moves.append((home, final))
    for home, final in written:
        if final != home:
            copy(inner.frame, home, final)
    _exchange(inner.frame, [(h.token, f.token) for h, f in moves])


def _aside(inner: GraphEmitter, final: ArrayRef, homes: Sequence[Any]) -> ArrayRef:
    """New contents, not in memory that others' are written to."""
    if not any(isinstance(h, ArrayRef) and h.token is final.token for h in homes):
        return final
    own = inner.temporary(final.shape, final.dtype)
    copy(inner.frame, own, final)
    return own


def _exchange(frame: Frame, moves: Sequence[tuple[Token, Token]]) -> None:
    """Each first token gets the memory of its second; memory given up goes to tokens left
    without any."""
    moves = [(home, final) for home, final in moves if home is not final]
    homes, finals = [h for h, _ in moves], [f for _, f in moves]
    em = frame.em
    address = {t: em.value(f"load ptr, ptr {t.slot}", "base")
               for t in dict.fromkeys([*homes, *finals])}
    for home, final in moves:
        em.line(f"store ptr {address[final]}, ptr {home.slot}")
    # The two tokens of a pair have one size.  So, of each size, as many memories are given up as
    # tokens are left without one.
    free = sorted((h for h in homes if h not in finals), key=lambda t: t.nbytes)
    emptied = sorted((f for f in finals if f not in homes), key=lambda t: t.nbytes)
    for token, memory in zip(emptied, free, strict=True):
        assert token.nbytes == memory.nbytes
        em.line(f"store ptr {address[memory]}, ptr {token.slot}")


# ----------------------------------------------------------------------------------------- branches


def _cond(emitter: GraphEmitter, node: Node) -> None:
    frame, em = emitter.frame, emitter.frame.em
    test, *values = node.inputs
    changed = node.attrs["changed"]
    homes = [_changed(emitter, v) for v in values[:changed]]
    operands: list[Location] = [*homes, *(emitter.location(v) for v in values[changed:])]
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


def _changed(emitter: GraphEmitter, value: Value) -> ArrayRef:
    """Memory that the sides may change: all of a token's, which they may exchange, or, of a size
    that only the run knows, a part, which they write into."""
    return emitter.whole(value) if value.type.is_static else emitter.changeable(value)


def _result(emitter: GraphEmitter, value: Value) -> _Variable | ArrayRef:
    if value.type.kind == "array":
        return emitter.memory_for(value)
    return _Variable(emitter.frame.variable(value.dtype), value.dtype)


def _side(
    emitter: GraphEmitter, graph: Graph, homes: Sequence[ArrayRef], operands: Sequence[Location],
    results: Sequence[_Variable | ArrayRef],
) -> None:
    frame = emitter.frame
    inner = GraphEmitter.of(frame, graph, operands, [h.token for h in homes], len(homes))
    inner.want(results)
    emit(inner)
    for home, value in zip(results, inner.graph.outputs, strict=True):
        if isinstance(home, ArrayRef):
            if inner.location(value) is not home:
                copy(frame, home, inner.array(value))
        else:
            frame.em.store(home.slot, inner.scalar(value))
    finals = {i: inner.array(v) for i, v in inner.graph.updates}
    _settle(inner, list(homes), finals)


_STEPS: dict[str, Callable[[GraphEmitter, Node], None]] = {
    "Fused": kernels.fused, "Pick": picks.pick, "PickUpdate": picks.pick_update,
    "Check": picks.check, "BoundsCheck": picks.bounds_check, "HostCall": callbacks.host_call,
    "Call": lambda emitter, node: recursive_functions.call(emitter, node, emit),
    "Recursion": recursive_functions.recursion, "CheckedRecursion": recursive_functions.recursion,
    "Loop": _loop, "Cond": _cond, "Reshape": picks.reshape,
    "Extent": slices.extent, "Size": slices.size_number, "Fill": slices.fill,
    "Window": slices.window, "WindowUpdate": slices.window_update,
    "Reserve": slices.reserve, "SliceUpdate": slices.slice_update, "Concat": slices.concat,
    "Nonzero": selections.nonzero,
}

__all__ = ["emit"]
