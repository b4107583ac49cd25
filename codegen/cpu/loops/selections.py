"""Where the elements of an array are that are not 0, in a native loop."""

from __future__ import annotations

from fusec.codegen.cpu.emitter import I64, Operand
from fusec.ir import Node

from .bounds import bound_of
from .callbacks import library_call
from .copying import stepped
from .graph_emitter import GraphEmitter
from .polls import spend


def nonzero(emitter: GraphEmitter, node: Node) -> None:
    """The indices into one axis; NumPy's, by a call of it, into several."""
    value = node.inputs[0]
    symbol = getattr(node.types[0].shape[0], "name", None)
    if len(value.shape) != 1 or symbol is None or value.dtype.str[1:] == "f2" or (
            value.dtype.kind == "c"):
        library_call(emitter, node)
        return
    frame, em, size = emitter.frame, emitter.frame.em, value.shape[0]
    frame.limits[symbol] = bound_of(size, frame.limits)
    source, indices = emitter.array(value), emitter.temporary(node.types[0].shape, I64)
    begin, end, length = frame.address(source), frame.address(indices), frame.number(size)
    taken = em.alloca("i64", "taken", 8)
    em.line(f"store i64 0, ptr {taken}")
    spend(frame, length)
    with em.loop(0, length) as counter:
        place = em.value(f"load i64, ptr {taken}")
        em.store(em.offset(end, em.mul(place, str(I64.itemsize))), Operand(counter, I64, 1))
        element = em.load(stepped(frame, begin, counter, source.strides[0], source),
                          source.dtype, 1)
        kind = "fcmp une" if source.dtype.kind == "f" else "icmp ne"
        zero = em.const(source.dtype, 0)
        is_one = em.value(f"{kind} {element}, {zero.text}")
        more = em.value(f"zext i1 {is_one} to i64")
        em.line(f"store i64 {em.add(place, more)}, ptr {taken}")
    frame.define(symbol, em.value(f"load i64, ptr {taken}"), size)
    emitter.env[node.out()] = indices
