"""A plan as the source text of one Python function: straight-line code, its steps written out.

Nothing is looked up in a call that is known when the plan is made: memory is local variables,
constants are the function's globals.  What the text does not decide (a result that does not lie as
planned, a check that failed) it leaves to the objects it names.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from types import CodeType
from typing import Any

import numpy as np

from fusec.codegen.schedule import ControlRun, ExternStep, Place
from fusec.ir import Node, TensorType
from fusec.ir.bindings import size_source
from fusec.ir.dims import Dim

from .call_spec import ResultSpec
from .draw_text import draw_text
from .failed_checks import check_error, numpy_error
from .library_calls import LibraryRun, is_unshared
from .plan_text import Plan, PlanText
from .segments import Segment, SizedSegment


class PlanSource(PlanText):
    """The text for one plan and the objects that it names.

    The function takes a call's leaves, the sizes known already and, for a ``timed`` plan, the list
    of times; it returns the list of result leaves.
    """

    def __init__(self, plan: Plan, timed: bool = False) -> None:
        super().__init__(plan)
        self.timed = timed
        # Whether host calls may ask what the call's leaves are, or what others have done.
        self.needs_context = plan.objects is not None
        self.first_step = 0  # where the lines of the steps begin
        self.calls: dict[int, ExternStep] = {}  # of libraries, by line of the text
        self.inputs: list[str] = []  # an expression for each of the graph's inputs
        self._write()

    @property
    def text(self) -> str:
        """One ``try`` around all steps: one for each would double the time to compile the text."""
        lines = [f"    {line}" for line in self.lines[:self.first_step]]
        steps = [f"        {line}" for line in self.lines[self.first_step:]]
        return "\n".join([
            "def run(leaves, sizes, times=None):", *lines, "    try:", *steps,
            "    except Exception as error:",
            "        found = plan.failure_at(error, leaves, held)", "        if found is None:",
            "            raise",
            "        try:", "            raise found from None",
            "        finally:",  # its traceback holds this call: not that the call, too, holds it
            "            del found", ""])

    def node_at(self, line: int) -> Node | None:
        """The node whose library call this line of the text belongs to, or None."""
        step = self.calls.get(line - self.first_step - 3)
        return None if step is None else step.node

    def function(self) -> Callable[..., list[Any]]:
        """The compiled text."""
        exec(_compiled(self.text, f"<plan of {self.plan.spec.name}>"), self.names)
        run: Callable[..., list[Any]] = self.names.pop("run")
        return run

    # -- writing

    def _write(self) -> None:
        plan = self.plan
        if plan.objects is not None:
            self._add("plan.begin()")
        self._load()
        for place in plan.fresh:
            key = (place.kind, place.number)
            self._assign(key, self._new(place))
        self.first_step = len(self.lines)
        for name, segment in zip(plan.names, plan.segments, strict=True):
            if self.timed:
                self._add("start = perf_counter()")
            self._step(segment)
            if self.timed:
                self._add(f"times.append(({name!r}, 1e6 * (perf_counter() - start)))")
        self._results()

    def _step(self, segment: Segment | SizedSegment | ExternStep) -> None:
        if isinstance(segment, Segment):
            self._kernels(segment)
        elif isinstance(segment, SizedSegment):
            self._sized_kernels(segment)
        else:
            self._library(segment)

    # -- a call's leaves

    def _load(self) -> None:
        """Take the leaves as the graph's inputs and put them in their places."""
        spec = self.plan.spec
        leaf_of = {leaf.input: i for i, leaf in enumerate(spec.leaves) if leaf.input >= 0}
        first = spec.first_captured
        self.inputs = [f"leaves[{leaf_of[i]}]" if i in leaf_of else "None" for i in range(first)]
        names = [self._bind("captured", c) for c in spec.captured]
        if any(map(callable, spec.captured)):
            objects = (f"{name}()" if callable(c) else name
                       for name, c in zip(names, spec.captured, strict=True))
            self._add(f"held = [{', '.join(objects)}]")
            names = [f"held[{number}]" for number in range(len(names))]
        else:
            self.names["held"] = spec.captured
        self.inputs += names
        for index, type_ in enumerate(spec.input_types):
            if type_.kind == "array":
                self._assign(("arg", index), self.inputs[index])
        for index, type_ in enumerate(spec.input_types):
            if type_.kind == "array" and not type_.is_static:
                shape = self._bind("shape", type_.shape)
                self._add(f"bind({shape}, arg{index}.shape, sizes)")
        for index, type_ in enumerate(spec.input_types):
            if type_.kind != "array":
                self._write_cell(self.plan.scalars[index], type_.dtype, self.inputs[index])

    # -- kernels

    def _kernels(self, segment: Segment) -> None:
        name = self._bind("kernels", segment)
        arrays = "".join(f", {self.assigned[key]}" for key in segment.keys)
        self._add(f"if (outcome := {name}.call({arrays[2:]})) is not None and not "
                  f"{name}.finish(outcome{arrays}): raise {self._failure()}")

    def _sized_kernels(self, segment: SizedSegment) -> None:
        name = self._bind("kernels", segment)
        for key, place in segment.fresh.items():
            if key not in self.assigned:
                self._assign(key, self._new(place))
        memory = ", ".join(f"{key!r}: {self.assigned[key]}" for key in segment.keys
                           if key in self.assigned)
        error = "None"
        if segment.not_empty:
            find = self._bind("find", numpy_error)
            error = f"partial(plan.repeated, {find}, leaves, held)"
        self._add(f"memory = {{{memory}}}",
                  f"if not {name}.run(memory, sizes, {error}):",
                  f"    raise {self._failure()}")
        for key in segment.keys:
            if key not in self.assigned:
                self._assign(key, f"memory[{key!r}]")

    def _failure(self) -> str:
        return f"plan.repeated({self._once('check_error', check_error)}, leaves, held)"

    # -- library calls

    def _library(self, step: ExternStep) -> None:
        types = [v.type for v in step.kinds.inputs]
        mark = len(self.lines)
        if step.control is None:
            operands = [self._operand(p, t) for p, t in zip(step.sources, types, strict=True)]
            is_of_numbers = all(t.kind != "array" for t in (*types, *step.kinds.types))
            if self.plan.schedule.arrays is not None and not is_of_numbers:
                self._device_call(step, operands)
            elif step.kinds.op == "MatMul":
                self._product(step, operands)
            elif step.kinds.op == "HostCall":
                self._host_call(step, operands)
            else:
                self._call(step, LibraryRun(step.node, step.targets), operands)
        else:
            self._run(step, step.control, [
                self._contents(p, t) for p, t in zip(step.sources, types, strict=True)])
        first = mark - self.first_step
        self.calls.update(dict.fromkeys(range(first, len(self.lines) - self.first_step), step))

    def _device_call(self, step: ExternStep, operands: list[str]) -> None:
        """A call whose arrays are a device's; numbers are in cells, as ever."""
        call = self._bind("call", self.plan.schedule.backend.library_call(step.node))
        memory = ", ".join(self._device_memory(place) for place in step.targets)
        self._add(f"results = {call}([{', '.join(operands)}], [{memory}])")
        for number, place in enumerate(step.targets):
            if place.kind != "cell":
                self._assign((place.kind, place.number), f"results[{number}]")

    def _product(self, step: ExternStep, operands: list[str]) -> None:
        target = step.targets[0]
        product = f"matmul({operands[0]}, {operands[1]}, out={self._target(target)})"
        if target.kind == "cell":
            self._add(product)
        else:
            self._assign((target.kind, target.number), product)

    def _host_call(self, step: ExternStep, operands: list[str]) -> None:
        """A draw is one line, and another for the order, which is what it was."""
        run = LibraryRun(step.node, step.targets)
        draw = draw_text(step.node.attrs, operands[1:], self._bind, self.plan.spec.calls_host)
        if draw is None or len(step.targets) > 2:
            self.needs_context = True
            self._call(step, run, operands)
            return
        *drawn, order = step.targets
        self._add(f"result0 = {draw}")
        self._settle(run, drawn, [])  # what is drawn is never an operand
        if order.kind != "cell":
            self._assign((order.kind, order.number), self._target(order))
        self._add(f"{self._target(order)}[...] = {operands[0]}")

    def _call(self, step: ExternStep, run: LibraryRun, operands: list[str]) -> None:
        call = run.expression(operands, self._bind)
        results = [f"result{i}" for i in range(len(step.targets))]
        if len(results) == 1:
            self._add(f"result0 = {call}")
        else:
            self._add(f"{', '.join(results)} = leaves_of({call})")
        self._settle(run, step.targets, operands)

    def _settle(self, run: LibraryRun, targets: Sequence[Place], operands: list[str]) -> None:
        """The results where they are planned."""
        settle = self._bind("settle", run.settle)
        for number, place in enumerate(targets):
            result = f"result{number}"
            settled = (f"{settle}({number}, {result}, [{', '.join(operands)}], "
                       f"{self._target_maker(place)}, sizes)")
            if place.kind == "cell":
                kind = self._bind("kind", place.dtype.type)
                also = f" or type({result}) is float" if place.dtype == np.float64 else ""
                self._add(f"if type({result}) is {kind}{also}:",
                          f"    {self._cell(place.number, place.dtype)}[0] = {result}",
                          "else:", f"    {self._cell_array(place)}[...] = {settled}")
            else:
                alone = len(targets) == 1
                lies = self._lies_as_planned(result, place, operands, alone)
                self._add(f"if not ({lies}):", f"    {result} = {settled}")
                self._assign((place.kind, place.number), result)

    def _lies_as_planned(
        self, result: str, place: Place, operands: list[str], alone: bool
    ) -> str:
        """Whether the library's own fresh array can stand where its result is planned."""
        shape = " and ".join([
            f"{result}.ndim == {len(place.shape)}",
            *(_has_size(f"{result}.shape[{i}]", size) for i, size in enumerate(place.shape))])
        if place.is_static:
            shape = f"{result}.shape == {self._sizes(place.shape)}"
        own = "".join(f" and {result} is not {o}" for o in operands if o.isidentifier())
        return (f"type({result}) is ndarray and {shape} and "
                f"{result}.dtype is {self._bind('dtype', place.dtype)} and "
                f"{result}.strides == {self._sizes(place.strides)} and "
                f"{self._is_owned(result, place, operands, alone)} and flags.writeable{own}")

    def _is_owned(self, result: str, place: Place, operands: list[str], alone: bool) -> str:
        """A view of what nothing else shows will do where no other result may show it, too."""
        owned = f"(flags := {result}.flags).owndata"
        if place.kind != "temp" and not alone:
            return owned
        arrays = "".join(f", {o}" for o in operands)
        return f"({owned} or {self._once('is_unshared', is_unshared)}({result}{arrays}))"

    def _run(self, step: ExternStep, control: ControlRun, operands: list[str]) -> None:
        """A step that takes the memory of its results and returns all of them at once."""
        from .control_flow import run_of  # few plans have branches or loops

        self.needs_context |= self.plan.spec.calls_host
        arrays = self.plan.schedule.arrays
        name = self._bind("step", run_of(control, self.plan.of_graph, arrays))
        maker = self._target_maker if arrays is None else self._device_memory
        memory = ", ".join(map(maker, step.targets))
        self._add(f"results = {name}([{', '.join(operands)}], [{memory}], sizes)")
        for number, place in enumerate(step.targets):
            if place.kind != "cell":
                self._assign((place.kind, place.number), f"results[{number}]")
                continue
            cell = self._cell_array(place)
            self._add(f"if results[{number}] is not {cell}:",
                      f"    {cell}[...] = results[{number}]")

    # -- results

    def _results(self) -> None:
        spec = self.plan.spec
        outputs = [self._output(p, t) for p, t in zip(
            self.plan.schedule.outputs, spec.output_types, strict=True)]
        plain = [self._plain_result(r, outputs) for r in spec.results]
        if all(text is not None for text in plain):
            self._add(f"return [{', '.join(map(str, plain))}]")
            return
        results = self._bind("results_of", self.plan.results_of)
        self._add(f"return {results}([{', '.join(outputs)}], leaves, held, sizes)")

    def _plain_result(self, result: ResultSpec, outputs: list[str]) -> str | None:
        """The expression of a result that is neither a view nor a copy of a constant."""
        if result.views or result.kind == "fresh":
            return None
        if result.kind == "const":
            return self._bind("constant", result.value)
        return outputs[result.index] if result.kind == "graph" else self.inputs[result.index]

    def _output(self, place: Any, type_: TensorType) -> str:
        if type_.kind != "weak":
            return self._read(place, type_)
        return self._operand(place, type_)


@functools.lru_cache(128)
def _compiled(text: str, name: str) -> CodeType:
    """Plans that differ in sizes alone have one text."""
    return compile(text, name, "exec")


def _has_size(size_read: str, size: Any) -> str:
    """The first array to have a symbol in its shape says what it is."""
    if isinstance(size, Dim) and size.name is not None:
        return f"sizes.setdefault({size.name!r}, {size_read}) == {size_read}"
    return f"{size_read} == {size_source(size, 'sizes')}"
