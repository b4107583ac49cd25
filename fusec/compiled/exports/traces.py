"""Traces and plans of functions that are exported, without code for this process."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from fusec.codegen import backends
from fusec.codegen.kernels.complex_pairs import buffer_strides
from fusec.codegen.kernels.specialise import structure_key
from fusec.codegen.plan.call_plan import CallPlan, contiguous_strides
from fusec.codegen.plan.plan_building import make_plan
from fusec.codegen.structured.calls.call_statements import NodeCall
from fusec.codegen.structured.kernel_statements import uses_of
from fusec.codegen.structured.memory import View
from fusec.codegen.structured.not_native import NotNativeError
from fusec.codegen.structured.program import StructuredProgram, build_program
from fusec.core.records import dataclass, replace
from fusec.errors import located
from fusec.ir import Graph, Node, Value
from fusec.ir.sizes.dims import symbols_of
from fusec.ir.sizes.instantiate import Instantiation
from fusec.ir.sizes.size_questions import Question
from fusec.ir.sizes.symbolic_numbers import Sizes
from fusec.ops import get
from fusec.ops.calls.checks import make_error
from fusec.passes.pipeline import run_pipeline
from fusec.passes.products.exported_products import exported_products
from fusec.trace.call.flat_call import FlatCall
from fusec.trace.call.symbolic_arguments import LAYOUT
from fusec.trace.tracer import Traced

from ..sizes.symbolic_traces import SymbolicTraces
from ..tracing_compiler import TracingCompiler
from .refusals import RaisesAlwaysError, Refusal, RefusedError
from .results import ExportedResults, with_results
from .states import TraceState, state_of


@dataclass(eq=False)
class PlannedCall:
    """A call of given sizes, traced and planned.

    ``traced`` has the graph that was planned; ``leaves``: by leaf the shape in the trace's symbols,
    None where it is no array; ``outputs``: of each result leaf the graph output, or a text that
    says why there is none; ``counts``: see `ExportedResults`.
    """

    call: FlatCall
    traced: Traced
    call_plan: CallPlan
    programs: dict[NodeCall, StructuredProgram]
    questions: list[Question]
    hints: dict[str, int]
    numbers: dict[str, int]  # of symbols that specs give
    leaves: list[tuple[Any, ...] | None]
    results: ExportedResults
    state: TraceState
    reopened: Callable[[], Any] | None

    def serves(self, sizes: dict[str, int]) -> bool:
        bound = {**self.numbers, **sizes}
        return all(question.holds(bound) for question in self.questions)


OpenAxes = Collection[tuple[int, int]]  # leaf of the arguments, axis


@dataclass(frozen=True)
class ExportTarget:
    """The purpose of plans: the ``backend`` of their kernels, how a graph is ``prepared`` for its
    passes, and a function that gives the programs of steps which are no kernels, and raises
    `RefusedError` for those that cannot leave the process."""

    backend: Callable[[], Any]
    prepared: Callable[[Graph], Graph]
    programs: Callable[[CallPlan], dict[NodeCall, StructuredProgram]]


def planned(
    compiler: TracingCompiler, args: tuple, kwargs: dict[str, Any], open_: OpenAxes,
    target: ExportTarget,
) -> PlannedCall:
    """The plan for these arguments, with symbols for sizes of the open axes, where these can be.

    Raises the program's own errors, `RaisesAlwaysError` and `RefusedError`.
    """
    call = compiler.flatten(args, kwargs)
    found = SymbolicTraces().make(
        compiler.target.name, replace(call, opens_empty=True), compiler._traced,
        compiler.options, at_once=True,
    ) if open_ else None
    if found is not None:
        trace, _ = found
        numbers = _given(trace.traced, open_)
        free = trace.arguments.sizes.hints.keys() - numbers.keys()
        if not set(trace.arguments.sizes.constants()) >= free:
            return _open(compiler, call, trace.traced, numbers, target)
        trace.traced.container_changes.take_back()
    return _of_one_size(compiler, call, target)


def _given(traced: Traced, open_: OpenAxes) -> dict[str, int]:
    """The symbols of sizes that specs give, with their values."""
    assert traced.symbolic is not None
    names = {name for leaf, shape in enumerate(_shapes(traced.symbolic.key[1:]))
             for axis, name in enumerate(shape or ()) if (leaf, axis) not in open_}
    hints = traced.symbolic.sizes.hints
    seen = {name for shape in _shapes(traced.symbolic.key[1:]) for name in shape or ()}
    return {name: n for name, n in hints.items() if name in names or name not in seen}


def _shapes(key: Sequence[Any]) -> Iterator[tuple[Any, ...] | None]:
    """By leaf, the shape in the trace's symbols."""
    for part in key:
        if len(part) > 2 and part[1] is LAYOUT:
            yield part[2]
        else:
            yield part[1] if len(part) > 1 and isinstance(part[1], tuple) else None


def _of_one_size(
    compiler: TracingCompiler, call: FlatCall, target: ExportTarget
) -> PlannedCall:
    traced = compiler._stage_by_itself(call).traced
    traced.container_changes.take_back()
    state = state_of(traced)
    _check_traced(traced)
    made, programs, results = _plan(compiler, traced, state, target)
    shapes = [getattr(leaf, "shape", None) if number >= 0 else None
              for leaf, number in zip(call.leaves, traced.positions, strict=True)]
    return PlannedCall(call, traced, made, programs, [], {}, {}, shapes, results,
                       state, None)


def _open(
    compiler: TracingCompiler, call: FlatCall, traced: Traced, numbers: dict[str, int],
    target: ExportTarget,
) -> PlannedCall:
    traced.container_changes.take_back()
    state = state_of(traced)
    _check_traced(traced)
    assert traced.symbolic is not None
    asked_of_trace, shapes = [*traced.symbolic.sizes.questions], [*_shapes(traced.symbolic.key[1:])]
    hints = traced.symbolic.sizes.hints
    sizes = Sizes.of({name: n for name, n in hints.items() if name not in numbers})
    with sizes.asked_by_passes() as asked:
        traced = traced.instantiated(Instantiation({**sizes.symbols(), **numbers}))
        made, programs, results = _plan(compiler, traced, state, target)
    questions = [*asked_of_trace, *asked]
    return PlannedCall(call, traced, made, programs, questions, hints, numbers, shapes, results,
                       state, partial(_reopened, sizes, questions))


@contextmanager
def _reopened(sizes: Sizes, questions: list[Question]) -> Iterator[None]:
    """Printers may ask questions, too, which are then added to those of the plan."""
    with sizes.asked_by_passes() as asked:
        yield
    questions += [question for question in asked if question not in questions]


def _check_traced(traced: Traced) -> None:
    refusals = [Refusal(f"a call of Python: {node.attrs.get('method') or node.op}", node.loc)
                 for node in _all_nodes(traced.graph.made) if node.op == "HostCall"]
    for node in traced.graph.made.nodes:
        if get(node.op).checks and "error" in node.attrs and _is_never(node.inputs[0]):
            raise RaisesAlwaysError(located(make_error(node.attrs["error"]), node.loc))
    if refusals:
        raise RefusedError(refusals)


def _is_never(condition: Value) -> bool:
    return condition.node.op == "Const" and not condition.node.attrs["value"]


def _all_nodes(graph: Graph) -> Iterator[Node]:
    for node in graph.nodes:
        yield node
        for inner in node.graphs:
            yield from _all_nodes(inner)


def _plan(
    compiler: TracingCompiler, traced: Traced, state: TraceState, target: ExportTarget,
) -> tuple[CallPlan, dict[NodeCall, StructuredProgram], ExportedResults]:
    results = with_results(traced, state)
    fused = run_pipeline(target.prepared(results.graph), compiler.options, [])
    strides = [contiguous_strides(v.shape, v.dtype.itemsize) if v.type.kind == "array" else ()
               for v in fused.outputs]
    backend = target.backend()
    call_plan = make_plan(fused, _input_strides(traced), strides, backend=backend)
    for step in call_plan.kernels:
        of_buffers = tuple(buffer_strides(p.dtype, p.strides) for p in step.places)
        step.nests = uses_of(backend.specialise(step.kernel, of_buffers), step.params)
        for form in step.forms if backend.is_native else ():
            structure_key(form)  # which asks whether sizes are part of the code
    return call_plan, target.programs(call_plan), results


def _input_strides(traced: Traced) -> list[tuple[Any, ...]]:
    """Those of arguments; what is read from outside lies in C order in the library."""
    first = len(traced.graph.inputs) - len(traced.captured)
    types = [v.type for v in traced.graph.made.inputs[first:]]
    return [*traced.input_strides[:first], *(
        contiguous_strides(t.shape, t.dtype.itemsize) if t.kind == "array" else ()
        for t in types)]


# -- branches, loops, and what a library would do

def programs_of(call_plan: CallPlan) -> dict[NodeCall, StructuredProgram]:
    """Of all steps that no kernel computes; raises `RefusedError` with those that have none."""
    programs: dict[NodeCall, StructuredProgram] = {}
    refusals: list[Refusal] = []
    lying = _Lying(call_plan)
    for step in call_plan.externs:
        try:
            programs[step] = _program(step, lying)
        except RefusedError as error:
            refusals += error.refusals
    if refusals:
        raise RefusedError(refusals)
    return programs


def _program(step: NodeCall, lying: _Lying) -> StructuredProgram:
    node, name = step.node, name_of(step.node)
    if symbols_of(tuple(t.shape for t in node.types)) or symbols_of(
            tuple(v.shape for v in node.inputs)):
        raise RefusedError([Refusal(f"{name}, whose size the data decides", node.loc)])
    sources = {k: lying.source(v) for k, v in enumerate(node.inputs)
               if isinstance(place := step.operands[k], View) and place.views
               and not place.strides}
    strides = [lying.strides(sources[k]) if k in sources else (
        step.operands[k].strides if isinstance(step.operands[k], View) else
        contiguous_strides(v.shape, v.dtype.itemsize)) for k, v in enumerate(node.inputs)]
    try:
        program = build_program(node, strides, sources)
    except NotNativeError as error:
        raise RefusedError([Refusal(f"{name}: {error}", error.loc or node.loc)]) from None
    refusals = [Refusal(f"a call of {site.name}", site.node.loc) for site in program.sites]
    if program.may_outgrow:
        refusals.append(Refusal(f"{name}, whose results have sizes that the data decides",
                                node.loc))
    if refusals:
        raise RefusedError(refusals)
    return program


def name_of(node: Node) -> str:
    """For people: the library's function, or the op."""
    function = node.attrs.get("function") or node.attrs.get("of")
    return function if isinstance(function, str) else node.op


CPU = ExportTarget(lambda: backends.backend("cpu"), exported_products, programs_of)


class _Lying:
    """Where the arrays of a plan lie that are seen through views."""

    def __init__(self, call_plan: CallPlan) -> None:
        self.graph = call_plan.graph

    def source(self, value: Value) -> Value:
        """The array that the value is a view of."""
        while get(value.node.op).kind == "view":
            value = value.node.inputs[0]
        return value

    def strides(self, value: Value) -> tuple[Any, ...]:
        return contiguous_strides(value.shape, value.dtype.itemsize)
