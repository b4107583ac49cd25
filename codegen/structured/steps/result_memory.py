"""Where a kernel's results lie: in the memory of an operand, where that is safe, or in new memory.

The one place that decides it, for the kernels of calls as for those of branches and loops.
"""

from __future__ import annotations

from collections.abc import Sequence

from fusec.ir import Node

from ...kernels.in_place_updates import (
    Pair,
    drop_unchanged,
    may_run_in_place,
    read_first,
    written_boxes,
)
from ...kernels.loop_ir import Kernel
from ..loops.frames import part_of_frame, shifted, starts_in_frame
from ..loops.graph_builder import GraphBuilder, Slot
from ..loops.order import updated_operands
from ..memory import Memory, Register, View


def results_of(
    graph: GraphBuilder, node: Node, kernel: Kernel
) -> tuple[Kernel, list[Register | View]]:
    """Where each output is stored: in the operand that it updates, if that is safe, else in new
    memory.  The kernel stores there what is not there already."""
    results: list[Register | View] = []
    first = len(node.inputs)
    pairs = updated_operands(node)
    last = {source: out for out, source in pairs.items()}  # one output for an operand's memory
    done: list[Pair] = []  # buffers that are one memory
    for out, value in enumerate(graph.outputs_of(node)):
        if not value.shape and value not in graph.homes:
            results.append(graph.number_for(value))
            continue
        taken = {r.memory for r in results if isinstance(r, View)}
        updated = _in_framed_operand(graph, node, kernel, out, taken)
        for source in _sources(graph, node, out, pairs, last):
            view = graph.location(node.inputs[source])
            if not isinstance(view, View) or view.memory in taken:
                continue
            more = [*done, *_same_memory(graph, node, first + out, source)]
            changed = read_first(drop_unchanged(kernel, first + out, source), more)
            updated = _in_place(graph, node, changed, more)
            if updated is not None:
                kernel, done = changed, more
                break
        results.append(updated or graph.home_of(node, kernel, out) or graph.memory_for(value))
    return kernel, results


def _in_framed_operand(
    graph: GraphBuilder, node: Node, kernel: Kernel, out: int, taken: set[Memory]
) -> View | None:
    """The part of an operand that becomes the frame of the result: what the kernel reads at the
    places where it writes, and nothing reads after it."""
    value = graph.outputs_of(node)[out]
    if not graph.is_framed(value) or graph.position <= graph.last_exit:
        return None
    frame, written = graph.frames[value], len(node.inputs) + out
    starts = starts_in_frame(frame)
    if not starts:
        return None
    for k, operand in enumerate(node.inputs):
        view = graph.location(operand)
        if operand.type != frame.types[0] or not isinstance(view, View) or not view.is_whole or (
                view.memory in taken or view.memory not in graph.owned):
            continue
        moved = shifted(kernel, written, starts)
        if may_run_in_place(moved, [(written, k)]) and graph.may_change(view, [operand]):
            graph.slots[frame.out()] = Slot(view)
            return part_of_frame(frame, view)
    return None


def _sources(
    graph: GraphBuilder, node: Node, out: int, pairs: dict[int, int], last: dict[int, int]
) -> list[int]:
    """The operands in whose memory an output may lie: that of its home; the one that it updates; of
    others that are computed anew each that looks like it, where no memory waits for the value."""
    value = graph.outputs_of(node)[out]
    home = graph.homes.get(value)
    if home is not None:
        return [node.inputs.index(home)] if home in node.inputs else []
    if graph.is_placed(value):
        return []
    if out in pairs:
        return [pairs[out]] if last[pairs[out]] == out else []
    if value in graph.places or value in graph.reserved or graph.has_slot(value) or (
            graph.is_framed(value)) or graph.shows_exits:
        return []
    return [k for k, v in enumerate(node.inputs) if k not in last and graph.may_become(v, value)]


def _same_memory(graph: GraphBuilder, node: Node, out: int, source: int) -> list[Pair]:
    """The output with the operand that it updates, the last of them, and with others that lie where
    that lies (of which it was made in place)."""
    view = graph.location(node.inputs[source])
    others = [k for k, value in enumerate(node.inputs) if k != source and isinstance(view, View)
              and graph.location(value) == view]
    return [(out, k) for k in (*others, source)]


def _in_place(
    graph: GraphBuilder, node: Node, kernel: Kernel, pairs: Sequence[Pair]
) -> View | None:
    """The operand's memory if this kernel may write the last of the results there, and the others
    where they are."""
    written, source = pairs[-1]
    view = graph.location(node.inputs[source])
    if not isinstance(view, View) or view.memory not in graph.owned:
        return None
    if not may_run_in_place(kernel, pairs) or not graph.may_write(view, kernel, written):
        return None
    read = [node.inputs[k] for out, k in pairs if out == written]
    return view if graph.may_change(view, read, written_boxes(kernel, written)) else None


__all__ = ["results_of"]
