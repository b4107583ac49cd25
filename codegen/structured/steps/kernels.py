"""Fused kernels: scalar ones become statements over registers, others are run as nests."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from fusec.codegen.structured.not_native import NotNativeError
from fusec.core.records import dataclass, field
from fusec.ir import Node
from fusec.ir.sizes.bindings import TYPICAL
from fusec.ir.sizes.dims import Dim, symbols_of
from fusec.ops import get
from fusec.ops.calls.scalar_calls import CALLS, CHECKED
from fusec.ops.complex_parts import component

from ...kernels.complex_pairs import buffer_strides
from ...kernels.in_place_updates import (
    Pair,
    checks_come_first,
    drop_unchanged,
    may_run_in_place,
    read_first,
    stores_at_computed,
    written_boxes,
)
from ...kernels.loop_ir import LEAVES, Access, Expr, Kernel, Nest, walk
from ...kernels.specialise import LoopForm, specialise
from ...plan.control_program import OF_NOTHING, ErrorExit
from ..bounds import bound_of
from ..builder import Builder
from ..loops.frames import border_of, part_of_frame, shifted, starts_in_frame
from ..loops.graph_builder import GraphBuilder, Slot
from ..loops.order import updated_operands
from ..memory import BOOL, ZERO, Constant, Location, Memory, Operand, Register, View
from ..statements import CallScalar, NestUse, RunKernel


def fused(graph: GraphBuilder, node: Node) -> None:
    """One kernel."""
    kernel = graph.kernel(node)
    _refuse_nothing(graph, node)
    if all(not nest.extents for nest in kernel.nests) and not _computes_indices(kernel):
        _in_registers(graph, node, kernel)
        return
    if any(e.op == CHECKED for nest in kernel.nests for e in walk(nest.roots)):
        raise NotNativeError("a function of fusec.vectorize may raise", node.loc)
    _by_calls(graph, node, kernel)


def _refuse_nothing(graph: GraphBuilder, node: Node) -> None:
    """Leave where an extremum goes over a run-time size that is 0."""
    build = graph.builder
    for inner in node.attrs["body"].nodes:
        if not get(inner.op).chooses:
            continue
        count = math.prod(inner.inputs[0].shape[axis] for axis in inner.attrs["axes"])
        if isinstance(count, Dim):
            is_positive = build.let("ne", BOOL, build.number(count), ZERO)
            build.check(is_positive, ErrorExit(inner, OF_NOTHING))


def _computes_indices(kernel: Kernel) -> bool:
    """Whether it loads or stores at computed indices, or checks them."""
    return any(
        any(s.index for stage in nest.stages for s in stage.stores)
        or any(e.op == "check_index" or (e.op == "load" and e.args) for e in walk(nest.roots))
        for nest in kernel.nests
    )


# ------------------------------------------------------------------------------- in registers


def _in_registers(graph: GraphBuilder, node: Node, kernel: Kernel) -> None:
    operands: list[Location] = [graph.location(v) for v in node.inputs]
    for nest in kernel.nests:
        results = _Evaluation(graph.builder, node, kernel, nest, operands).results()
        for buffer, result in results.items():
            graph.env[node.out(buffer - len(node.inputs))] = result


@dataclass
class _Evaluation:
    """A nest without loops, one scalar operation after the other."""

    build: Builder
    node: Node
    kernel: Kernel
    nest: Nest
    operands: Sequence[Location]
    memo: dict[int, Operand] = field(default_factory=dict)

    def results(self) -> dict[int, Operand]:
        """What it stores in each buffer."""
        stored: dict[int, list[Operand]] = {}
        for stage in self.nest.stages:
            for e in walk(stage.roots):
                self.memo[id(e)] = self._value(e)
            for store in stage.stores:
                buffer = self.nest.accesses[store.access].buffer
                stored.setdefault(buffer, []).append(self.memo[id(store.value)])
        inputs = len(self.node.inputs)
        return {buffer: self._joined(parts, self.node.types[buffer - inputs].dtype)
                for buffer, parts in stored.items()}

    def _value(self, e: Expr) -> Operand:
        args = [self.memo[id(a)] for a in e.args]
        if e.op in CALLS:
            return self._called(e, args)
        if e.op not in LEAVES:
            return self.build.let(e.op, e.dtype, *args)
        if e.op == "load":
            return self._loaded(self.nest.accesses[e.attr])
        if e.op == "param":
            return self.build.constant(e.dtype, self.kernel.params[e.attr].value)
        assert e.op == "const", f"internal error: {e.op} in a nest without loops"
        return Constant(e.attr, e.dtype)

    def _joined(self, parts: Sequence[Operand], dtype: np.dtype) -> Operand:
        """The number stored; the two parts of a complex number are joined."""
        return parts[-1] if dtype.kind != "c" else self.build.let("complex", dtype, *parts)

    def _called(self, e: Expr, args: Sequence[Operand]) -> Register:
        """A function of ``fusec.vectorize``.  Where it raises, its arguments are kept for the
        error."""
        build, may_raise = self.build, e.op == CHECKED
        words = tuple(build.shared.count("host") for _ in args) if may_raise else ()
        result, holds = build.register(e.dtype), build.register(BOOL)
        build.add(CallScalar(result, holds, e.attr, tuple(args), words))
        if may_raise:
            kept = tuple((word, x.dtype) for word, x in zip(words, args, strict=True))
            build.check(holds, ErrorExit(self.node, call=(e.attr, kept)))
        return result

    def _loaded(self, access: Access) -> Operand:
        location = self.operands[access.buffer]
        strides = _buffer_strides(location)
        start = sum(i.start * s for i, s in zip(access.index, strides, strict=True))
        if isinstance(location, View):
            offset = location.offset
            if isinstance(start, Dim) or start:
                offset = self.build.further(offset, self.build.number(start))
            dtype = location.dtype if location.dtype.kind != "c" else component(location.dtype)
            return self.build.load(replace(location, dtype=dtype, offset=offset))
        if location.dtype.kind != "c":
            return location
        dtype = component(location.dtype)
        return self.build.let("part", dtype, location, attr=start // dtype.itemsize)


def _buffer_strides(location: Location) -> tuple[int, ...]:
    """The strides with which kernels see it; a number has none."""
    strides = location.strides if isinstance(location, View) else ()
    return buffer_strides(location.dtype, strides)


# ----------------------------------------------------------------------------------- by calls


def _by_calls(graph: GraphBuilder, node: Node, kernel: Kernel) -> None:
    kernel, results = _results(graph, node, kernel)
    operands = [graph.location(v) for v in node.inputs]
    if _is_in_its_frame(graph, node, operands, results):
        kernel = border_of(kernel)
    strides = [_buffer_strides(location) for location in (*operands, *results)]
    nests = tuple(_use(graph.builder, node, kernel, specialise(kernel, nest, strides))
                  for nest in kernel.nests)
    graph.builder.add(RunKernel(kernel, nests, tuple(operands), tuple(results)))
    graph.env.update(zip(graph.outputs_of(node), results, strict=True))


def _is_in_its_frame(
    graph: GraphBuilder, node: Node, operands: Sequence[Location],
    results: Sequence[Register | View],
) -> bool:
    """Whether the kernel puts its operand into constants, and that is there."""
    whole, *_ = results
    return isinstance(whole, View) and whole.is_whole and node in graph.frames.values() and (
        operands[0] == part_of_frame(node, whole))


def _results(
    graph: GraphBuilder, node: Node, kernel: Kernel
) -> tuple[Kernel, list[Register | View]]:
    """Where each output is stored: in the operand that it updates, if that is safe, else in new
    memory."""
    results: list[Register | View] = []
    first = len(node.inputs)
    pairs = updated_operands(node)
    last = {source: out for out, source in pairs.items()}  # one output for an operand's memory
    done: list[Pair] = []  # buffers that are one memory
    for out, value in enumerate(graph.outputs_of(node)):
        if not value.shape:
            results.append(graph.builder.register(value.dtype))
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
        results.append(updated or graph.memory_for(value))
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
    """The operands in whose memory an output may lie: the one that it updates; of others that are
    computed anew each that looks like it, where no memory waits for the value."""
    if out in pairs:
        return [pairs[out]] if last[pairs[out]] == out else []
    value = graph.outputs_of(node)[out]
    if value in graph.places or value in graph.reserved or graph.has_slot(value) or (
            graph.is_framed(value)) or (
            graph.position <= graph.last_exit):  # which would show it in the operand
        return []
    return [k for k, v in enumerate(node.inputs)
            if v.type == value.type and k not in last and _is_whole(graph.location(v))]


def _is_whole(location: Location) -> bool:
    return isinstance(location, View) and location.is_whole


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
    if not may_run_in_place(kernel, pairs):
        return None
    if stores_at_computed(kernel, written) and not checks_come_first(kernel, written):
        return None
    read = [node.inputs[k] for out, k in pairs if out == written]
    return view if graph.may_change(view, read, written_boxes(kernel, written)) else None


def _use(build: Builder, node: Node, kernel: Kernel, form: LoopForm) -> NestUse:
    limits = _limits(build, form)
    largest = replace(form.at_sizes(_Limits(limits)), extents=tuple(
        bound_of(size, limits) for size in form.extents))
    build.require(*form.extents, *(size for o in form.operands
                                   for size in (o.offset, *o.strides, *o.gathered)))
    exit_ = build.exit(ErrorExit(node)) if form.nest.has_checks else -1
    return NestUse(form, largest, kernel.params, exit_)


def _limits(build: Builder, form: LoopForm) -> dict[str, int]:
    """The upper bounds of symbols, or what is typical of those that the call brings: no memory
    depends on it but partial results."""
    outer = build.shared.outer
    unbounded = (symbols_of(form.extents) & outer) - build.limits.keys()
    if form.mode == "flat" and unbounded:
        raise NotNativeError(f"a sum over a size that only the run knows, {min(unbounded)}")
    return {**dict.fromkeys(outer, TYPICAL), **build.limits}


class _Limits(dict[str, int]):
    """The upper bounds of symbols; raises `NotNativeError` for a symbol without one."""

    def __missing__(self, name: str) -> int:
        raise NotNativeError(f"the size {name}, which is defined outside of it")
