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
from ...kernels.loop_ir import LEAVES, Access, Expr, Kernel, Nest, walk
from ...kernels.specialise import LoopForm, specialise
from ...plan.control_program import OF_NOTHING, ErrorExit
from ..analyses.bounds import bound_of
from ..builder import Builder
from ..kernel_statements import NestUse, RunKernel
from ..loops.frames import border_of, part_of_frame
from ..loops.graph_builder import GraphBuilder
from ..memory import BOOL, ZERO, Constant, Location, Operand, Register, View
from ..statements import CallScalar
from .result_memory import results_of


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
        shared = self.build.shared
        for stage in self.nest.stages:
            for e in walk(stage.roots):
                shared.expression = e
                self.memo[id(e)] = self._value(e)
            shared.expression = None
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
    kernel, results = results_of(graph, node, kernel)
    operands = [graph.location(v) for v in node.inputs]
    if _is_in_its_frame(graph, node, operands, results):
        kernel = border_of(kernel)
    strides = [_buffer_strides(location) for location in (*operands, *results)]
    nests = tuple(_use(graph.builder, node, kernel, specialise(kernel, nest, strides))
                  for nest in kernel.nests)
    graph.builder.add(RunKernel(kernel, nests, tuple(operands), tuple(results)))
    graph.env.add(zip(graph.outputs_of(node), results, strict=True))


def _is_in_its_frame(
    graph: GraphBuilder, node: Node, operands: Sequence[Location],
    results: Sequence[Register | View],
) -> bool:
    """Whether the kernel puts its operand into constants, and that is there."""
    whole, *_ = results
    return isinstance(whole, View) and whole.is_whole and node in graph.frames.values() and (
        operands[0] == part_of_frame(node, whole))


def _use(build: Builder, node: Node, kernel: Kernel, form: LoopForm) -> NestUse:
    outer = build.shared.outer
    unbounded = sorted((symbols_of(form.extents) & outer) - build.limits.keys())
    # What is typical of sizes that the call brings: no memory depends on it but partial results.
    limits = {**dict.fromkeys(outer, TYPICAL), **build.limits}
    largest = replace(form.at_sizes(_Limits(limits)), extents=tuple(
        bound_of(size, limits) for size in form.extents))
    build.require(*form.extents, *(size for o in form.operands
                                   for size in (o.offset, *o.strides, *o.gathered)))
    exit_ = build.exit(ErrorExit(node)) if form.nest.has_checks else -1
    return NestUse(form, largest, kernel.params, exit_,
                   unbounded[0] if unbounded and form.mode == "flat" else "")


class _Limits(dict[str, int]):
    """The upper bounds of symbols; raises `NotNativeError` for a symbol without one."""

    def __missing__(self, name: str) -> int:
        raise NotNativeError(f"the size {name}, which is defined outside of it")
