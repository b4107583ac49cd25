"""From the fused graph of a call to its plan: where values live, and the statements in order.

A call is planned as the graphs of branches and loops are, by a `GraphBuilder`, in memory that
Python gives.  Values live in an argument's memory, in a fresh result, in a temporary array, or
(rank 0) in a cell of the plan itself.  The new value of an argument is written there at once where
no check comes after it and nothing reads the old elements any more; else it is copied at the end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from fusec import config
from fusec.core.display import progress
from fusec.ir import Graph, Node, Value
from fusec.ir.regions import Reach
from fusec.ir.sizes.dims import is_static
from fusec.ir.sizes.symbolic_sizes import are_the_same, is_symbolic
from fusec.ir.uses import use_counts
from fusec.ops import get
from fusec.ops.calls.subgraph_ops import changed_operands
from fusec.ops.regions.cones import is_copied_whole
from fusec.ops.rows.windows import is_unset

from ..backend import Backend
from ..kernels.in_place_updates import (
    checks_come_first,
    copy_kernel,
    drop_unchanged,
    stores_at_computed,
)
from ..kernels.loop_ir import Kernel
from ..kernels.repeated_kernels import RepeatedKernels
from ..structured.builder import Builder, Shared
from ..structured.calls.call_statements import NodeCall
from ..structured.exits import may_leave
from ..structured.kernel_statements import RunKernel
from ..structured.loops.graph_builder import GraphBuilder
from ..structured.loops.locations import Locations
from ..structured.memory import ConstantView, Memory, Origin, Register, ShownAs, View
from ..structured.statements import Declare, Input, Store
from ..structured.steps.result_memory import results_of
from .call_plan import CallPlan, Strides, sizes_of_extrema, words_of
from .control_runs import ControlRun
from .copies import (
    copy_of,
    dense_strides,
    is_dense,
    operand_strides,
    reshaped,
    seen_as,
    view_of_constant,
)
from .last_fallible import last_fallible


class CallPlanner(GraphBuilder):
    """Plans one graph, see the module docstring.

    ``places``: of results, and of values that a reshape makes results of; ``constants``: views of
    constants, which libraries read; ``copied_results``: those that are copies of a loop's.
    """

    def __init__(
        self, graph: Graph, input_strides: Sequence[Strides], output_strides: Sequence[Strides]
    ) -> None:
        super().__init__(Builder(Shared()), graph, Locations(), set(), [*graph.nodes])
        self.given: list[Any] = []  # statements that put numbers into their cells
        self.late: list[RunKernel] = []  # copies to arguments, at the end
        self.temps: list[View] = []
        self.cells = 0
        self.memories: dict[tuple[str, int], Memory] = {}
        self.constants: dict[Value, Any] = {}
        self.copied_results: dict[Value, View] = {}
        self.lowered = RepeatedKernels()
        self.updated = {v for _, v in graph.updates}
        self.reshaped: set[Value] = set()
        self.updates_by: dict[Node, list[tuple[int, Value]]] = {}
        self.update_counts = Counter(v for _, v in graph.updates)
        self.results = {*graph.outputs}
        self.last_fallible = last_fallible(graph)  # a call that raises leaves its arguments alone
        self.note_readers({*self.results, *self.updated})
        inside = {v for node in self.nodes for v in node.inputs}
        self.read = inside | self.results  # by anything but the copy to an argument
        for number, (value, strides) in enumerate(zip(graph.inputs, input_strides, strict=True)):
            self.env[value] = self._in("operand", number, value, strides) if (
                value.type.kind == "array") else self._given(number, value)
        for number, (value, strides) in enumerate(zip(graph.outputs, output_strides, strict=True)):
            if value.type.kind == "array":
                self.places[value] = self._in("target", number, value, strides)
        self._place_reshaped()
        self._find_homes()

    def _place_reshaped(self) -> None:
        """Values whose only reader is a reshape to a result are computed in its memory."""
        counts = use_counts(self.nodes)
        for value, place in [*self.places.items()]:
            source = value.node.inputs[0] if value.node.op == "Reshape" else None
            if source is None or source in self.graph.roots or counts[source] != 1:
                continue
            if source.node.op == "Fused" and source.type.is_static and is_dense(place) and (
                    source.type.kind == "array"):
                self.reshaped.add(source)
                self.places[source] = seen_as(place, source)

    def _find_homes(self) -> None:
        for argument, value in self.graph.updates:
            self.updates_by.setdefault(value.node, []).append((argument, value))
            source = self.graph.inputs[argument]
            if value not in self.results and isinstance(view := self.env[source], View):
                self.homes.setdefault(value, source)
                self.owned.add(view.memory)

    def run(self, backend: Backend, traced: Graph | None) -> CallPlan:
        self.has_library = backend.is_native
        progress.stage("kernels", 0, len(self.nodes))
        for position, node in enumerate(self.nodes):
            progress.at(position)
            self.position = position
            self._step(node)
        outputs = [self._output(v) for v in self.graph.outputs]
        steps: list[Any] = [*self.builder.statements, *self.late]
        head = [*map(Declare, self.memories.values()), *self.given]
        plan = CallPlan(steps, self.temps, self.cells, outputs, self.graph, backend, traced, head)
        if config.verify:
            from ..structured.calls.verify_call import verify_call  # what loops are made of

            verify_call(plan)
        return plan

    def _step(self, node: Node) -> None:
        if node.op == "Fused":
            self._kernel(node)
        elif node.op == "Reshape":
            self._reshape(node)
        elif get(node.op).kind == "view":
            self._view(node)
        elif get(node.op).is_control:
            self._control(node)
        elif self._is_only_written(node):
            self._unset(node.out())
        elif get(node.op).kind == "extern" or is_copied_whole(node):
            self._library(node)

    def _output(self, value: Value) -> Any:
        if value.node.op == "Const":
            return value.node.attrs["value"]
        return self.copied_results.get(value) or self.env[value]

    # -- memory

    def _in(self, origin: Origin, position: int, value: Value, strides: Strides) -> View:
        """A value as all of that memory."""
        key = origin, position
        if key not in self.memories:
            self.memories[key] = Memory(
                len(self.memories), value.type.nbytes, value.dtype, origin, position)
        return View(self.memories[key], value.shape, strides, value.dtype)

    def _cell(self, value: Value) -> View:
        first = self.cells
        self.cells += words_of(value.dtype)
        return self._in("cell", first, value, ())

    def _given(self, number: int, value: Value) -> View:
        """A cell for a number that the call is given."""
        cell, register = self._cell(value), self.builder.register(value.dtype)
        self.given += [Input(register, number), Store(cell, register)]
        return cell

    def _temp(self, value: Value) -> View:
        place = self._in("temp", len(self.temps), value, dense_strides(value))
        self.temps.append(place)
        return place

    def _new(self, value: Value) -> View:
        """Results of array kind get fresh memory; scalars and rank-0 intermediates a cell."""
        if value in self.places:
            return self.places[value]
        return self._temp(value) if value.shape else self._cell(value)

    # -- the memory of kernels' results

    def kernel(self, node: Node) -> Kernel:
        if node not in self.kernels:
            self.kernels[node] = self.lowered.lower(node)
        return self.kernels[node]

    def memory_for(self, value: Value) -> View:
        place = self._new(value)
        self.owned |= {place.memory} if place.memory.origin == "temp" else set()
        return place

    def number_for(self, value: Value) -> Register | View:
        return self._new(value)

    def is_placed(self, value: Value) -> bool:
        return value in self.places

    def home_of(self, node: Node, kernel: Kernel, out: int) -> View | None:
        value = node.outputs[out]
        home = self.homes.get(value)
        if home is None or home in node.inputs:
            return None
        view = self.env[home]
        assert isinstance(view, View)
        fits = self.may_write(view, kernel, len(node.inputs) + out) and self.may_change(view)
        return view if fits else None

    def may_become(self, operand: Value, result: Value) -> bool:
        view = self.env.get(operand)
        return isinstance(view, View) and view.memory.origin == "temp" and not view.views and (
            view.memory in self.owned and operand not in self.updated
            and operand.dtype == result.dtype and are_the_same(operand.shape, result.shape))

    @property
    def shows_exits(self) -> bool:
        return False  # a call that fails is repeated by the program, which sees arguments alone

    def may_write(self, view: View, kernel: Kernel, out: int) -> bool:
        return view.memory.origin != "operand" or (
            self.position >= self.last_fallible and checks_come_first(kernel, out))

    def may_change(
        self, view: View, but: Sequence[Value] = (), boxes: Sequence[Reach] | None = None
    ) -> bool:
        changed = None if boxes is None else (view, boxes)
        return view.memory in self.owned and not view.repeats and not any(
            True for _ in self._read_later(view.memory, but, changed=changed))

    # -- kernels

    def _kernel(self, node: Node) -> None:
        whole = self.kernel(node)
        kernel, results = results_of(self, node, whole)
        for argument, value in self.updates_by.get(node, ()):
            kernel = self._written_back(node, whole, kernel, argument, value, results)
        operands: list[Any] = [self.env[v] for v in node.inputs]
        self.builder.add(RunKernel(
            kernel, (), operands, results, node.attrs["boundaries"], sizes_of_extrema(node)))
        self.env.add(zip(node.outputs, results, strict=True))

    def _written_back(
        self, node: Node, whole: Kernel, kernel: Kernel, argument: int, value: Value,
        results: Sequence[Any],
    ) -> Kernel:
        """The kernel, where its output is copied to an argument at the end if it is not there.

        Only elements that change are copied, and only these are stored, unless anything else reads
        the output.
        """
        source, place = self.graph.inputs[argument], results[value.index]
        home: Any = self.env[source]
        out = len(node.inputs) + value.index
        stored = whole
        if place == home:
            return kernel
        if source in node.inputs and not stores_at_computed(whole, out):
            stored = drop_unchanged(whole, out, node.inputs.index(source))
            if value not in self.read and self.update_counts[value] == 1:
                kernel = drop_unchanged(kernel, out, node.inputs.index(source))
        self.late.append(RunKernel(copy_kernel(stored, out), (), [place], [home]))
        return kernel

    # -- views, which only libraries read

    def _view(self, node: Node) -> None:
        """A view for a library: the same memory seen differently, no kernel.

        One that takes an element shows it as an array of rank 0: who wants the number reads it, and
        what is seen through it is still memory of the device.
        """
        source, value = node.inputs[0], node.out()
        if source.node.op == "Const":
            constant = get("Const").reference(**source.node.attrs)
            self.constants[value] = view_of_constant(constant, node)
        elif source in self.constants:
            self.constants[value] = view_of_constant(self.constants[source], node)
        else:
            place = self.env[source]
            assert isinstance(place, View)
            attrs = {k: x for k, x in node.attrs.items() if k != "kind"}
            shown = ShownAs(get(node.op).reference, attrs, node.op)
            self.env[value] = View(place.memory, value.shape, (), value.dtype,
                                   views=(*place.views, shown))

    def _is_only_written(self, node: Node) -> bool:
        """Whether nobody reads the node's array before it is written, here or elsewhere: a value
        sent to another device is memory there."""
        return is_unset(node) and is_static(node.types[0].shape) and not (
            node.out() in self.results or node.out() in self.updated)

    def _unset(self, value: Value) -> None:
        """What stands for memory until something writes to it: see `is_unset`."""
        zero, shape = np.zeros((), value.dtype), tuple(value.shape)
        at_shape = ShownAs(np.broadcast_to, {"shape": shape}, "BroadcastTo")
        self.constants[value] = ConstantView(zero, (at_shape,)) if is_symbolic(shape) else (
            np.broadcast_to(zero, shape))

    def _reshape(self, node: Node) -> None:
        operand, value = node.inputs[0], node.out()
        if operand.node.op == "Const" or operand in self.constants:
            self._library(node)
            return
        if operand in self.reshaped:
            self.env[value] = self.places[value]
            return
        source = self.env[operand]
        assert isinstance(source, View)
        is_unknown = source.views and not source.strides  # a view that only libraries can read
        if not is_unknown and value not in self.places and is_dense(source):
            self.env[value] = reshaped(source, value)
        elif self.has_library or is_unknown:
            self._library(node)
        else:  # on a device: a kernel copies the operand in C order
            moved: list[RunKernel] = []
            self.env[value] = place = self._filled(value, moved)
            self.builder.statements += [
                copy_of(operand, source, seen_as(place, operand)), *moved]

    # -- calls

    def _read(self, value: Value) -> Any:
        """What a library reads: a place, or a constant itself."""
        if value.node.op == "Const":
            return value.node.attrs["value"]
        return self.constants[value] if value in self.constants else self.env[value]

    def _library(self, node: Node) -> None:
        """A call, which may keep its operands: from then on they are not ours to change."""
        operands = [self._read(v) for v in node.inputs]
        self.owned -= {x.memory for x in operands if isinstance(x, View) and x.key[0] == "temp"}
        results = [self._new(v) for v in node.outputs]
        self.env.add(zip(node.outputs, results, strict=True))
        self.builder.add(NodeCall(node, operands, results))

    def _control(self, node: Node) -> None:
        """A branch or loop: arrays that it changes change where they lie, if nothing minds."""
        operands = [self._read(v) for v in node.inputs]
        results: list[View] = []
        reused: set[int] = set()
        moved: list[RunKernel] = []
        saved: list[View] = []
        for number, (value, changed) in enumerate(zip(
                node.outputs, changed_operands(node), strict=True)):
            source = operands[changed] if self._dies(node, changed) else None
            if source is not None and self._may_stay(value, node.inputs[changed], source):
                place = source
                reused.add(number)
                saved += [source] * self._may_be_repeated(node)
            else:
                place = self._filled(value, moved)
                if isinstance(source, View) and source.key[0] == "temp" and not source.views and (
                        source.strides == place.strides):  # fresh memory, seen as a whole
                    reused.add(number)
            results.append(place)
            self._copy_back(value, place)
        self.env.add(zip(node.outputs, results, strict=True))
        run = ControlRun(node, operand_strides(node, operands), reused)
        self.builder.add(NodeCall(node, operands, results, run, saved))
        self.builder.statements += moved

    def _may_be_repeated(self, node: Node) -> bool:
        """Whether NumPy may repeat the program after the node has changed an argument."""
        return self.position < self.last_fallible or (
            may_leave(node) and any(value.node is not node for value in self.updated))

    def _filled(self, value: Value, moved: list[RunKernel]) -> View:
        """The place of a result, in C order: one that lies otherwise is a copy of it."""
        place = self._new(value)
        if is_dense(place):
            return place
        dense = self._temp(value)
        moved.append(copy_of(value, dense, place))
        self.copied_results[value] = place
        return dense

    def _copy_back(self, value: Value, place: View) -> None:
        if value in self.updated and place.memory.origin != "operand":
            argument = next(i for i, v in self.graph.updates if v == value)
            home: Any = self.env[self.graph.inputs[argument]]
            self.late.append(copy_of(value, place, home))

    def _dies(self, node: Node, operand: int) -> bool:
        """Whether the node is the last to read an operand, and reads it once, in one way; -1: none.
        """
        if operand < 0:
            return False
        view = self.env.get(value := node.inputs[operand])
        return isinstance(view, View) and node.inputs.count(value) == 1 and (
            not self.is_read_later(view.memory, (value,)))

    def _may_stay(self, value: Value, operand: Value, place: View) -> bool:
        """Whether an argument is updated by changing it directly."""
        return self.homes.get(value) == operand and value not in self.read and is_dense(place)
