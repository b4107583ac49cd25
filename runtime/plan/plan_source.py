"""A plan as the source text of one Python function: straight-line code, its steps written out.

Nothing is looked up in a call that is known when the plan is made: memory is local variables,
constants are the function's globals.  What the text does not decide (a result that does not lie as
planned, a check that failed) it leaves to the objects it names.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any

import numpy as np

from fusec.codegen.plan.call_plan import CallPlan
from fusec.codegen.structured.calls.call_statements import CallStatement, NodeCall
from fusec.codegen.structured.memory import View
from fusec.codegen.structured.text_writer import code_of, indented
from fusec.ir import TensorType
from fusec.ir.sizes.bindings import size_source
from fusec.ir.sizes.dims import Dim

from ..call_spec import ResultSpec, cells_of
from ..failed_checks import check_error, numpy_error
from .host_call_text import host_call_text
from .library_calls import (
    HostCopies,
    LibraryRun,
    call_expression,
    check_result,
    is_unshared,
    nothing,
)
from .plan_text import Plan, PlanText
from .segments import Segment, SizedSegment, runs_of
from .sub_programs import copy_maker, on_host

# Of arrays a method does the same, without the microsecond that the function's dispatch takes.
_METHODS = {"Nonzero": ".nonzero()", "Flatnonzero": ".ravel().nonzero()"}


class PlanSource(PlanText):
    """The text and what its names are for each plan.

    The function takes a call's leaves, the sizes known already and, for a ``timed`` plan, the list
    of times; it returns the list of result leaves.
    """

    def __init__(self, plan: Plan, timed: bool = False) -> None:
        super().__init__(plan.call_plan.open, plan.spec, plan.call_plan.at)
        self.timed = timed
        # Whether host calls may ask what the call's leaves are, or what others have done.
        self.needs_context = plan.objects is not None
        self.first_step = 0  # where the lines of the steps begin
        self.calls: dict[int, int] = {}  # numbers of library calls' segments, by line of the text
        self.inputs: list[str] = []  # an expression for each of the graph's inputs
        self._write(plan)
        self._finish()
        self.code = code_of(self.text, f"<plan of {plan.spec.name}>")
        del self.spec, self.at  # which are of the one plan

    @property
    def text(self) -> str:
        return self.source_text("def run(leaves, sizes, times=None):")

    def _finish(self) -> None:
        """One ``try`` around all steps: one for each would double the time to compile the text."""
        first = self.first_step
        self.lines = [
            *self.lines[:first], "try:", *indented(self.lines[first:]),
            "except Exception as error:",
            "    found = plan.failure_at(error, leaves, held)", "    if found is None:",
            "        raise",
            "    try:", "        raise found from None",
            "    finally:",  # its traceback holds this call: not that the call, too, holds it
            "        del found"]

    def call_at(self, line: int) -> int | None:
        """The segment that is the library call which this line of the text belongs to, or None."""
        return self.calls.get(line - self.first_step - 3)

    def function(self, plan: Plan) -> Callable[..., list[Any]]:
        """The compiled text with the names of a plan."""
        names = self.names | {name: make(plan) for name, make in self.made.items()}
        return FunctionType(self.code, names, "run", (None,))

    # -- writing

    def _write(self, plan: Plan) -> None:
        if plan.objects is not None:
            self.line("plan.begin()")
        self.saves = any(step.saved for step in self.call_plan.externs)
        if self.saves:
            self.line("plan.saved = ()")
        self._load()
        for place in _fresh(self.call_plan):
            key = place.key
            self._assign(key, self._new(place))
        self.first_step = len(self.lines)
        steps = self.call_plan.steps
        groups = [[step] for step in steps] if self.timed else runs_of(steps)
        waits = self._bind_made("wait", lambda plan: plan.call_plan.backend.wait) if (
            self.timed) else ""
        for number, (segment, group) in enumerate(zip(plan.segments, groups, strict=True)):
            if self.timed:
                self.line("start = perf_counter()")
            self._step(number, segment, group[0])
            if self.timed:
                self.line(f"{waits}()")
                self.line(f"times.append(({group[0].name!r}, 1e6 * (perf_counter() - start)))")
        self._results()

    def _step(
        self, number: int, segment: Segment | SizedSegment | NodeCall,
        step: CallStatement,
    ) -> None:
        if isinstance(step, NodeCall):
            self._library(number, step)
        elif isinstance(segment, Segment):
            self._kernels(number, segment)
        elif isinstance(segment, SizedSegment):
            self._sized_kernels(number, segment)

    # -- a call's leaves

    def _load(self) -> None:
        """Take the leaves as the graph's inputs and put them in their places."""
        spec = self.spec
        leaf_of = {leaf.input: i for i, leaf in enumerate(spec.leaves) if leaf.input >= 0}
        first = spec.first_captured
        self.inputs = [f"leaves[{leaf_of[i]}]" if i in leaf_of else "None" for i in range(first)]
        names = [self._bind_made("captured", _captured(number))
                 for number in range(len(spec.captured))]
        if any(map(callable, spec.captured)):
            objects = (f"{name}()" if callable(c) else name
                       for name, c in zip(names, spec.captured, strict=True))
            self.line(f"held = [{', '.join(objects)}]")
            names = [f"held[{number}]" for number in range(len(names))]
        else:
            self._once_made("held", lambda plan: plan.spec.captured)
        self.inputs += names
        for index, type_ in enumerate(spec.input_types):
            if type_.kind == "array":
                self._assign(("operand", index), self.inputs[index])
        for index, type_ in enumerate(spec.input_types):
            if type_.kind == "array" and not type_.is_static:
                shape = self.bind("shape", type_.shape)
                self.line(f"bind({shape}, arg{index}.shape, sizes)")
        scalars = cells_of(spec.input_types)
        for index, type_ in enumerate(spec.input_types):
            if type_.kind != "array":
                self._write_cell(scalars[index], type_.dtype, self.inputs[index])

    # -- kernels

    def _kernels(self, number: int, segment: Segment) -> None:
        name = self._segment(number)
        arrays = "".join(f", {self.assigned[key]}" for key in segment.keys)
        self.line(f"if (outcome := {name}.call({arrays[2:]})) is not None and not "
                  f"{name}.finish(outcome{arrays}): raise {self._failure()}")

    def _segment(self, number: int) -> str:
        return self._bind_made("kernels", lambda plan: plan.segments[number])

    def _sized_kernels(self, number: int, segment: SizedSegment) -> None:
        name = self._segment(number)
        for key, place in segment.fresh.items():
            if key not in self.assigned:
                self._assign(key, self._new(place))
        memory = ", ".join(f"{key!r}: {self.assigned[key]}" for key in segment.keys
                           if key in self.assigned)
        error = "None"
        if segment.not_empty:
            find = self.bind("find", numpy_error)
            error = f"partial(plan.repeated, {find}, leaves, held)"
        self.line(f"memory = {{{memory}}}",
                  f"if not {name}.run(memory, sizes, {error}):",
                  f"    raise {self._failure()}")
        for key in segment.keys:
            if key not in self.assigned:
                self._assign(key, f"memory[{key!r}]")

    def _failure(self) -> str:
        return f"plan.repeated({self.once('check_error', check_error)}, leaves, held)"

    # -- library calls

    def _library(self, number: int, step: NodeCall) -> None:
        types = [v.type for v in step.kinds.inputs]
        mark = len(self.lines)
        if step.run is None:
            operands = [self._operand(p, t) for p, t in zip(step.operands, types, strict=True)]
            is_of_numbers = all(t.kind != "array" for t in (*types, *step.kinds.types))
            if self.call_plan.arrays is not None and not is_of_numbers:
                self._device_call(step, operands)
            elif step.kinds.op == "MatMul":
                self._product(step, operands)
            elif step.kinds.op == "HostCall":
                self._host_call(number, step, operands)
            else:
                self._call(number, step, operands)
        else:
            self._run(number, step, [
                self._contents(p, t) for p, t in zip(step.operands, types, strict=True)])
        first = mark - self.first_step
        self.calls.update(dict.fromkeys(range(first, len(self.lines) - self.first_step), number))

    def _device_call(self, step: NodeCall, operands: list[str]) -> None:
        """A call whose arrays are a device's; numbers are in cells, as ever."""
        function = self.call_plan.backend.library_call(step.node)
        memory = ", ".join(self._device_memory(place) if place.is_static else (
            self.once("nothing", nothing)) for place in step.results)
        if function is None:
            self._call_of_copies(step, operands, memory)
        else:
            call = self.bind("call", function)
            self.line(f"results = {call}([{', '.join(operands)}], [{memory}])")
        for number, place in enumerate(step.results):
            if not place.is_static:
                check = self.bind("check", functools.partial(check_result, step.node))
                self.line(f"{check}(results[{number}], {self.bind('place', place)}, sizes)")
            if not place.is_cell:
                self._assign(place.key, f"results[{number}]")

    def _call_of_copies(self, step: NodeCall, operands: list[str], memory: str) -> None:
        """NumPy's call, of the operands on the host."""
        assert self.call_plan.arrays is not None
        copies = self.bind("copies", HostCopies(self.call_plan.arrays))
        given = [f"{copies}.fetched({operand})" for operand in operands]
        call = call_expression(step.node, given, self.bind, self._bind_data)
        self.line(f"results = {copies}.brought({call}, [{memory}])")

    def _product(self, step: NodeCall, operands: list[str]) -> None:
        target = step.results[0]
        product = f"matmul({operands[0]}, {operands[1]}, out={self._target(target)})"
        if target.is_cell:
            self.line(product)
        else:
            self._assign(target.key, product)

    def _host_call(self, number: int, step: NodeCall, operands: list[str]) -> None:
        """The call is one line, and another for the order, which is what it was."""
        attrs, calls_host = step.node.attrs, self.spec.calls_host
        called = None if len(step.results) > 2 else host_call_text(
            attrs, operands[1:], self.bind, self.decoded, calls_host)
        self.needs_context |= called is None or attrs["action"] != "draw"
        if called is None:
            self._call(number, step, operands)
            return
        *drawn, order = step.results
        self.line(f"result0 = {called}")
        self._settle(number, drawn, [])  # what is drawn is never an operand
        if not order.is_cell:
            self._assign(order.key, self._target(order))
        self.line(f"{self._target(order)}[...] = {operands[0]}")

    def _call(self, number: int, step: NodeCall, operands: list[str]) -> None:
        results = [f"result{i}" for i in range(len(step.results))]
        method = _METHODS.get(step.node.op)
        if method is not None and len(operands) == 1:
            self.line(f"{', '.join(results)}, = {operands[0]}{method}")
            self._settle(number, step.results, operands)
            return
        call = call_expression(step.node, operands, self.bind, self._bind_data)
        if len(results) == 1:
            self.line(f"result0 = {call}")
        else:
            self.line(f"{', '.join(results)} = leaves_of({call})")
        self._settle(number, step.results, operands)

    def _settle(self, call: int, targets: Sequence[View], operands: list[str]) -> None:
        """The results where they are planned."""
        settle = self._bind_made("settle", lambda plan: LibraryRun(plan.segments[call]).settle)
        for number, place in enumerate(targets):
            result = f"result{number}"
            settled = (f"{settle}({number}, {result}, [{', '.join(operands)}], "
                       f"{self._target_maker(place)}, sizes)")
            if place.is_cell:
                kind = self.bind("kind", place.dtype.type)
                also = f" or type({result}) is float" if place.dtype == np.float64 else ""
                self.line(f"if type({result}) is {kind}{also}:",
                          f"    {self._cell(place.memory.position, place.dtype)}[0] = {result}",
                          "else:", f"    {self._cell_array(place)}[...] = {settled}")
            else:
                alone = len(targets) == 1
                lies = self._lies_as_planned(result, place, operands, alone)
                self.line(f"if not ({lies}):", f"    {result} = {settled}")
                self._assign(place.key, result)

    def _lies_as_planned(
        self, result: str, place: View, operands: list[str], alone: bool
    ) -> str:
        """Whether the library's own fresh array can stand where its result is planned."""
        shape = f"{result}.shape == {self._sizes(place.shape)}" if place.is_static else (
            " and ".join([
                f"{result}.ndim == {len(place.shape)}",
                *(_has_size(f"{result}.shape[{i}]", size) for i, size in enumerate(place.shape))]))
        own = "".join(f" and {result} is not {o}" for o in operands if o.isidentifier())
        return (f"type({result}) is ndarray and {shape} and "
                f"{result}.dtype is {self.bind('dtype', place.dtype)} and "
                f"{result}.strides == {self._sizes(place.strides)} and "
                f"{self._is_owned(result, place, operands, alone)} and flags.writeable{own}")

    def _is_owned(self, result: str, place: View, operands: list[str], alone: bool) -> str:
        """A view of what nothing else shows will do where no other result may show it, too."""
        owned = f"(flags := {result}.flags).owndata"
        if place.memory.origin != "temp" and not alone:
            return owned
        arrays = "".join(f", {o}" for o in operands)
        return f"({owned} or {self.once('is_unshared', is_unshared)}({result}{arrays}))"

    def _run(self, number: int, step: NodeCall, operands: list[str]) -> None:
        """A step that takes the memory of its results and returns all of them at once."""
        from ..lanes.lane_runs import run_of  # few plans have branches or loops

        self.needs_context |= self.spec.calls_host
        arrays = self.call_plan.arrays
        name = self._bind_made("step", lambda plan: run_of(
            plan.segments[number].run, plan.of_graph, arrays))
        maker = self._target_maker if arrays is None else self._device_memory
        memory = ", ".join(map(maker, step.results))
        saved = [self.assigned[place.key] for place in step.saved]
        for array in saved:
            copied = self.once("copied", copy_maker(self.call_plan.arrays))
            self.line(f"plan.saved = (*plan.saved, ({array}, {copied}({array})))")
        self.line(f"results = {name}([{', '.join(operands)}], [{memory}], sizes)")
        for index, place in enumerate(step.results):
            if not place.is_cell:
                self._assign(place.key, f"results[{index}]")
                continue
            cell, result = self._cell_array(place), f"results[{index}]"
            value, is_array = result, step.kinds.types[index].kind == "array"
            if arrays is not None and is_array:
                value = f"{self.bind('on_host', functools.partial(on_host, arrays))}({result})"
            self.line(f"if {result} is not {cell}:", f"    {cell}[...] = {value}")

    # -- results

    def _results(self) -> None:
        spec = self.spec
        if self.saves:
            self.line("plan.saved = ()")
        outputs = [self._output(p, t) for p, t in zip(
            self.call_plan.outputs, spec.output_types, strict=True)]
        plain = [self._plain_result(number, r, outputs) for number, r in enumerate(spec.results)]
        if all(text is not None for text in plain):
            self.line(f"return [{', '.join(map(str, plain))}]")
            return
        results = self._bind_made("results_of", lambda plan: plan.results_of)
        self.line(f"return {results}([{', '.join(outputs)}], leaves, held, sizes)")

    def _plain_result(self, number: int, result: ResultSpec, outputs: list[str]) -> str | None:
        """The expression of a result that is neither a view nor a copy of a constant."""
        if result.views or result.kind == "fresh":
            return None
        if result.kind == "const":
            return self._bind_made("constant", lambda plan: plan.spec.results[number].value)
        return outputs[result.index] if result.kind == "graph" else self.inputs[result.index]

    def _output(self, place: Any, type_: TensorType) -> str:
        if type_.kind != "weak":
            return self._read(place, type_)
        return self._operand(place, type_)


def source_of(plan: Plan, timed: bool) -> PlanSource:
    """The text of a plan; those that differ in sizes alone share one, which their plan with
    symbols keeps."""
    call_plan, spec = plan.call_plan.open, plan.spec
    if call_plan is plan.call_plan:
        return PlanSource(plan, timed)
    form = (timed, plan.objects is None, spec.name, spec.calls_host,
            tuple([leaf.input for leaf in spec.leaves]), tuple(map(callable, spec.captured)),
            tuple([(r.kind, r.index, bool(r.views)) for r in spec.results]))
    texts: dict[Any, PlanSource] = vars(call_plan).setdefault("texts", {})
    return texts.get(form) or texts.setdefault(form, PlanSource(plan, timed))


def _fresh(call_plan: CallPlan) -> list[View]:
    """The places that a call allocates at its start, for kernels; libraries allocate theirs."""
    places = [p for p in call_plan.outputs if isinstance(p, View) and p.memory.origin == "target"]
    called = {p.key for s in call_plan.externs for p in s.results}
    fresh = {p.key: p for p in (*places, *call_plan.temps) if p.is_static}
    return [p for key, p in fresh.items() if key not in called]


def _captured(number: int) -> Callable[[Plan], Any]:
    return lambda plan: plan.spec.captured[number]


def _has_size(size_read: str, size: Any) -> str:
    """The first array to have a symbol in its shape says what it is."""
    if isinstance(size, Dim) and size.name is not None:
        return f"sizes.setdefault({size.name!r}, {size_read}) == {size_read}"
    return f"{size_read} == {size_source(size, 'sizes')}"
