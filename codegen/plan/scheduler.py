"""From a fused graph to a schedule: where every value lives, and the steps in order.

Values live in an argument's memory, in a fresh result, in a temporary block, or (rank 0) in a cell
of the plan itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fusec.core.display import progress
from fusec.ir import Graph, Node, Value
from fusec.ir.sizes.dims import is_static
from fusec.ir.sizes.symbolic_sizes import is_symbolic
from fusec.ir.uses import last_uses, use_counts
from fusec.ops import get
from fusec.ops.calls.subgraph_ops import changed_operands
from fusec.ops.regions.cones import is_copied_whole
from fusec.ops.rows.windows import is_unset

from ..backend import Backend
from ..kernels.in_place_updates import (
    checks_come_first,
    copy_kernel,
    drop_unchanged,
    may_run_in_place,
    read_first,
    stores_at_computed,
)
from ..kernels.loop_ir import Kernel
from ..kernels.lower import lower
from ..kernels.repeated_kernels import RepeatedKernels
from ..structured.call_statements import CallLibrary, CallStatement, RunProgram
from ..structured.kernel_statements import RunKernel
from ..structured.memory import ConstantView, LibraryView, Memory, Origin, View
from .last_fallible import last_fallible
from .schedule import ControlRun, Schedule, Strides, contiguous_strides, sizes_of_extrema, words_of


class Scheduler:
    """Decides where the values of a graph live, and what runs in order."""

    def __init__(
        self, graph: Graph, input_strides: Sequence[Strides], output_strides: Sequence[Strides]
    ) -> None:
        self.graph = graph
        self.steps: list[CallStatement] = []
        self.late: list[RunKernel] = []
        self.temps: list[View] = []
        self.memories: dict[tuple[str, int], Memory] = {}
        self.kernels = RepeatedKernels()
        self.cells = 0
        self.places: dict[Value, View] = {}
        self.updated = {v for _, v in graph.updates}  # may be copied to their arguments at the end
        self.placed: dict[Value, View] = {}  # results that are a copy of what the steps made
        self.views: dict[Value, Any] = {}  # of constants
        self.readers = last_uses(graph, lambda node: get(node.op).kind == "view")
        self.last_fallible = last_fallible(graph)  # a call that raises leaves its arguments alone
        for number, (value, strides) in enumerate(zip(graph.inputs, input_strides, strict=True)):
            if value.type.kind == "array":
                self.places[value] = self._at("operand", number, value, strides)
            else:
                self.places[value] = self._cell(value)
        self.results = {v: (i, s) for i, (v, s) in
                        enumerate(zip(graph.outputs, output_strides, strict=True))}
        self.reshaped = self._reshaped_results()

    def _reshaped_results(self) -> dict[Value, int]:
        """Values whose only reader is a reshape to a result: they are computed in its memory."""
        counts = use_counts(self.graph.nodes)
        reshaped = {}
        for value, (number, strides) in self.results.items():
            source = value.node.inputs[0] if value.node.op == "Reshape" else None
            if source is None or source in self.graph.roots or counts[source] != 1:
                continue
            dense = contiguous_strides(value.shape, value.dtype.itemsize)
            if source.node.op == "Fused" and source.type.is_static and strides == dense and (
                    source.type.kind == "array"):
                reshaped[source] = number
        return reshaped

    def run(self, backend: Backend, traced: Graph | None) -> Schedule:
        progress.stage("kernels", 0, len(self.graph.nodes))
        for position, node in enumerate(self.graph.nodes):
            progress.at(position)
            if node.op == "Fused":
                self._kernel(node, position)
            elif node.op == "Reshape":
                self._reshape(node)
            elif get(node.op).kind == "view":
                self._view(node)
            elif get(node.op).is_control:
                self._control(node, position)
            elif self._is_only_written(node):
                self._unset(node.out())
            elif get(node.op).kind == "extern" or is_copied_whole(node):
                self._extern(node)
        outputs = [
            v.node.attrs["value"] if v.node.op == "Const" else self.placed.get(v, self.places[v])
            for v in self.graph.outputs
        ]
        return Schedule(
            [*self.steps, *self.late], self.temps, self.cells, outputs, self.graph, backend, traced)

    # -- places

    def _cell(self, value: Value) -> View:
        first = self.cells
        self.cells += words_of(value.dtype)
        return self._at("cell", first, value, ())

    def _at(self, origin: Origin, position: int, value: Value, strides: Strides) -> View:
        """A value as all of that memory."""
        key = origin, position
        if key not in self.memories:
            self.memories[key] = Memory(
                len(self.memories), value.type.nbytes, value.dtype, origin, position)
        return View(self.memories[key], value.shape, strides, value.dtype)

    def _temp(self, value: Value) -> View:
        strides = contiguous_strides(value.shape, value.dtype.itemsize)
        place = self._at("temp", len(self.temps), value, strides)
        self.temps.append(place)
        return place

    def _new_place(self, value: Value) -> View:
        """Results of array kind get fresh memory; scalars and rank-0 intermediates a cell."""
        if value in self.results and value.type.kind == "array":
            number, strides = self.results[value]
            return self._at("target", number, value, strides)
        if value in self.reshaped:
            strides = contiguous_strides(value.shape, value.dtype.itemsize)
            return self._at("target", self.reshaped[value], value, strides)
        return self._temp(value) if value.shape else self._cell(value)

    # -- steps

    def _kernel(self, node: Node, position: int) -> None:
        kernel = self.kernels.lower(node)
        targets = [self._new_place(v) for v in node.outputs]
        kernel, copies = self._updates(node, kernel, targets, position)
        kernel = self._reused(node, kernel, targets, position)
        self.places.update(zip(node.outputs, targets, strict=True))
        operands = [self.places[v] for v in node.inputs]
        self.steps.append(RunKernel(
            kernel, (), operands, targets, node.attrs["boundaries"], sizes_of_extrema(node)))
        first = len(node.inputs)
        self.late.extend(RunKernel(copy, (), [targets[out - first]], [self.places[source]])
                         for out, source, copy in copies)

    def _updates(
        self, node: Node, kernel: Kernel, targets: list[View], position: int
    ) -> tuple[Kernel, list[tuple[int, Value, Kernel]]]:
        """Write new values of arguments in place where that is safe, else copy at the end.

        Changes ``targets``; returns the kernel and, for each buffer to copy, argument and kernel.
        """
        first = len(node.inputs)
        sources = {
            first + value.index: self.graph.inputs[argument]
            for argument, value in self.graph.updates if value.node is node
        }
        in_place = {out for out in sources if node.outputs[out - first] not in self.results}
        final = self._without_unchanged(node, kernel, sources, in_place)
        reads = {
            out: node.inputs.index(sources[out]) for out in in_place
            if sources[out] in node.inputs
        }
        pairs = [*reads.items()]
        final = read_first(final, pairs)
        is_early = position < self.last_fallible or not all(
            checks_come_first(final, out) for out in in_place) or any(
            self._reads_another_way(node, sources[out]) for out in in_place)
        if is_early or not may_run_in_place(final, pairs) or any(
                self.readers.get(source, -1) > position for source in sources.values()):
            in_place = set()
            final = self._without_unchanged(node, kernel, sources, in_place)
        copies = []
        for out, source in sources.items():
            if out in in_place:
                targets[out - first] = self.places[source]
            else:
                changed = kernel if stores_at_computed(kernel, out) else (
                    self._without_unchanged(node, kernel, {out: source}, {out}))
                copies.append((out, source, copy_kernel(changed, out)))
        return final, copies

    def _reads_another_way(self, node: Node, value: Value) -> bool:
        """Whether the node reads the memory of ``value`` in another shape too."""
        memory = self.places[value]
        others = (self.places[v] for v in node.inputs if v != value and v in self.places)
        return any(p.key == memory.key for p in others)

    def _reused(
        self, node: Node, kernel: Kernel, targets: list[View], position: int
    ) -> Kernel:
        """Scatters into a temporary that nothing reads any more write to that itself."""
        first = len(node.inputs)
        for out in range(first, first + len(targets)):
            source = _scattered_input(node, out - first)
            if source is None or targets[out - first].memory.origin != "temp":
                continue
            value, place = node.inputs[source], self.places[node.inputs[source]]
            is_free = place.memory.origin == "temp" and value.node.op == "Fused" and (
                self.readers.get(value, -1) <= position and value not in self.results
                and value not in self.updated)
            changed = drop_unchanged(kernel, out, source)
            is_free = is_free and not self._reads_another_way(node, value)
            if is_free and may_run_in_place(changed, [(out, source)]):
                kernel, targets[out - first] = changed, place
        return kernel

    def _without_unchanged(
        self, node: Node, kernel: Kernel, sources: dict[int, Value], in_place: set[int]
    ) -> Kernel:
        """The kernel without stores of what arguments hold already.

        A new value with memory of its own is stored as a whole where anything else reads it.
        """
        for out, source in sources.items():
            is_read = node.outputs[out - len(node.inputs)] in self.readers
            whole = is_read or stores_at_computed(kernel, out)
            if source in node.inputs and (out in in_place or not whole):
                kernel = drop_unchanged(kernel, out, node.inputs.index(source))
        return kernel

    def _view(self, node: Node) -> None:
        """A view for a library: the same memory seen differently, no kernel.

        One that takes an element shows it as an array of rank 0: who wants the number reads it, and
        what is seen through it is still memory of the device.
        """
        source, value = node.inputs[0], node.out()
        if source.node.op == "Const":
            constant = get("Const").reference(**source.node.attrs)
            self.views[value] = _view_of_constant(constant, node)
            return
        if source in self.views:
            self.views[value] = _view_of_constant(self.views[source], node)
            return
        place, reference = self.places[source], get(node.op).reference
        attrs = {k: x for k, x in node.attrs.items() if k != "kind"}
        self.places[value] = View(place.memory, value.shape, (), value.dtype,
                                  views=(*place.views, LibraryView(reference, attrs)))

    def _is_only_written(self, node: Node) -> bool:
        """Whether nobody reads the node's array before it is written, here or elsewhere: a value
        sent to another device is memory there."""
        return is_unset(node) and is_static(node.types[0].shape) and not (
            node.out() in self.results or node.out() in self.updated)

    def _unset(self, value: Value) -> None:
        """What stands for memory until something writes to it: see `is_unset`."""
        zero, shape = np.zeros((), value.dtype), tuple(value.shape)
        at_shape = LibraryView(np.broadcast_to, {"shape": shape})
        self.views[value] = ConstantView(zero, (at_shape,)) if is_symbolic(shape) else (
            np.broadcast_to(zero, shape))

    def _reshape(self, node: Node) -> None:
        if node.inputs[0].node.op == "Const" or node.inputs[0] in self.views:
            self._extern(node)
            return
        source, value = self.places[node.inputs[0]], node.out()
        if node.inputs[0] in self.reshaped:
            self.places[value] = self._new_place(value)
            return
        if source.views and not source.strides:  # a view that only libraries can read
            self._extern(node)
            return
        itemsize = value.dtype.itemsize
        strides = contiguous_strides(value.shape, itemsize)
        is_result = value in self.results
        if source.strides == contiguous_strides(source.shape, itemsize) and not is_result:
            self.places[value] = View(source.memory, value.shape, strides, value.dtype, views=(
                LibraryView(_reshaped, {"shape": value.shape}),))
            return
        self._extern(node)

    def _source(self, value: Value) -> Any:
        """What a library reads: a place, or a constant itself."""
        if value.node.op == "Const":
            return value.node.attrs["value"]
        return self.views[value] if value in self.views else self.places[value]

    def _extern(self, node: Node) -> None:
        sources = [self._source(v) for v in node.inputs]
        targets = [self._new_place(v) for v in node.outputs]
        self.places.update(zip(node.outputs, targets, strict=True))
        self.steps.append(CallLibrary(node, sources, targets))

    def _control(self, node: Node, position: int) -> None:
        """A branch or loop: arrays that it changes change where they lie, if nothing minds."""
        sources = [self._source(v) for v in node.inputs]
        updated = {value: argument for argument, value in self.graph.updates}
        targets: list[View] = []
        reused: set[int] = set()
        moved: list[RunKernel] = []
        for number, (value, operand) in enumerate(zip(
                node.outputs, changed_operands(node), strict=True)):
            place = self._new_place(value)
            if place.strides != contiguous_strides(place.shape, place.dtype.itemsize):
                result, place = place, self._temp(value)  # it fills memory in C order
                moved.append(_copy_step(value, place, result))
                self.placed[value] = result
            if operand >= 0 and self._dies(node, operand, position):
                source = sources[operand]
                if self._may_stay(value, node.inputs[operand], source, updated):
                    place = source
                    reused.add(number)
                elif _is_own(source) and source.strides == place.strides:
                    reused.add(number)
            targets.append(place)
            if value in updated and place.memory.origin != "operand":
                self.late.append(_copy_step(value, place, self.places[
                    self.graph.inputs[updated[value]]]))
        self.places.update(zip(node.outputs, targets, strict=True))
        run = ControlRun(node, _operand_strides(node, sources), reused)
        self.steps += [RunProgram(node, sources, targets, run), *moved]

    def _dies(self, node: Node, operand: int, position: int) -> bool:
        """Whether the node is the last to read an operand, and reads it once, in one way."""
        value = node.inputs[operand]
        if self.readers.get(value, -1) > position or node.inputs.count(value) > 1:
            return False
        if value in self.updated:
            return False
        return value in self.places and not self._reads_another_way(node, value)

    def _may_stay(
        self, value: Value, source_value: Value, source: Any, updated: dict[Value, int]
    ) -> bool:
        """Whether an argument is updated by changing it directly."""
        argument = updated.get(value)
        if argument is None or source_value != self.graph.inputs[argument]:
            return False
        dense = contiguous_strides(value.shape, value.dtype.itemsize)
        return value not in self.results and value not in self.readers and source.strides == dense


def _reshaped(array: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    return array.reshape(shape)


def _view_of_constant(constant: Any, node: Node) -> Any:
    """The constant as a view node shows it; open where that depends on sizes of arguments."""
    attrs, reference = dict(node.attrs), get(node.op).reference
    if type(constant) is ConstantView:
        return ConstantView(constant.constant, (*constant.views, LibraryView(reference, attrs)))
    if is_symbolic(tuple(attrs.values())):
        return ConstantView(constant, (LibraryView(reference, attrs),))
    return reference(constant, **attrs)


def _is_own(place: Any) -> bool:
    """Whether it is fresh memory, seen as a whole."""
    return isinstance(place, View) and place.memory.origin == "temp" and not place.views


def _operand_strides(node: Node, sources: Sequence[Any]) -> list[Strides]:
    """Operands whose strides are not known here are copied before a native call."""
    return [
        p.strides if isinstance(p, View) and not p.views
        else contiguous_strides(v.shape, v.dtype.itemsize)
        for p, v in zip(sources, node.inputs, strict=True)
    ]


def _copy_step(value: Value, source: View, target: View) -> RunKernel:
    """A kernel that copies an array."""
    attrs = {"index": 0, "path": value.node.name, "type": value.type}
    operand = Node("Input", (), (value.type,), attrs, name=value.node.name).out()
    result = Node("Copy", [operand], (value.type,), name="Copy", loc=value.node.loc).out()
    name = f"{value.node.name}_writeback"
    body = Graph.build([operand], [result], name=name)
    fused = {"body": body, "domain": value.shape, "axes": (), "boundaries": ()}
    kernel = lower(Node("Fused", [value], (value.type,), fused, name=name, loc=value.node.loc))
    return RunKernel(kernel, (), [source], [target])


def _scattered_input(node: Node, output: int) -> int | None:
    """The input of a ``Fused`` node that its output is a scatter into."""
    body = node.attrs["body"]
    scatter = body.outputs[output].node
    if scatter.op != "Scatter" or scatter.inputs[0] not in body.inputs:
        return None
    return body.inputs.index(scatter.inputs[0])
