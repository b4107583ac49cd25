"""Calls of Python from a native loop: random generators and prints.

The function leaves operands, or their addresses, in words of its block and calls a callback, which
Python has put into another word; results come back the same way.  The interpreter's lock is held.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fusec.codegen.cpu.emitter import Operand
from fusec.ir import Node, TensorType, Value

from .frame import ArrayRef, ErrorExit, Held

if TYPE_CHECKING:
    from .graph_emitter import GraphEmitter


@dataclass(frozen=True)
class HostValue:
    """A word: the bits of a number, or with ``strides`` the address of an array."""

    word: int
    type: TensorType
    strides: tuple[int, ...] | None


@dataclass(frozen=True)
class HostSite:
    """A call of Python in a native function; the order is neither operand nor result."""

    node: Node
    operands: tuple[HostValue, ...]
    results: tuple[HostValue, ...]


def host_call(emitter: GraphEmitter, node: Node) -> None:
    frame, em = emitter.frame, emitter.frame.em
    order, *values = node.inputs
    operands = tuple(_passed(emitter, v) for v in values)
    *types, _ = node.types
    places = [emitter.temporary(t.shape, t.dtype) if t.kind == "array" else None for t in types]
    results = tuple(
        _word(emitter, t, place) for t, place in zip(types, places, strict=True))
    number = len(frame.sites)
    frame.sites.append(HostSite(node, operands, results))
    failed = em.value(f"call i64 {frame.word('callback', number, 'ptr')}()")
    frame.fail_unless(em.value(f"icmp eq i64 {failed}, 0"), ErrorExit(node, -1, 0), "0")
    for value, result, place in zip(node.outputs, results, places, strict=False):
        emitter.env[value] = place or em.load(
            frame.word_address("host", result.word), value.dtype, 1)
    emitter.env[node.out(len(types))] = emitter.held(order)


def _passed(emitter: GraphEmitter, value: Value) -> HostValue:
    held: Held = emitter.array(value) if value.type.kind == "array" else emitter.scalar(value)
    found = _word(emitter, value.type, held if isinstance(held, ArrayRef) else None)
    if isinstance(held, Operand):
        emitter.frame.em.store(emitter.frame.word_address("host", found.word), held)
    return found


def _word(emitter: GraphEmitter, type_: TensorType, array: ArrayRef | None) -> HostValue:
    """A word of its own, which holds the array's address if there is one."""
    frame = emitter.frame
    number = frame.host_word()
    at = frame.word_address("host", number)
    if array is None:
        return HostValue(number, type_, None)
    frame.em.line(f"store ptr {frame.address(array)}, ptr {at}")
    return HostValue(number, type_, array.strides)
