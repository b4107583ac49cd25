"""From a fused graph to a compiled plan, those of its sub-graphs included."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import partial
from typing import Any

from fusec import config
from fusec.core.records import replace
from fusec.ir import Graph
from fusec.ir.sizes.dims import is_static, symbols_of
from fusec.ops.calls.host_calls import host_objects
from fusec.ops.calls.recursion import is_repeated
from fusec.ops.regions.loop_numbers import WAY_BACK
from fusec.passes.pipeline import Pass, body_passes, run_passes

from .. import backends
from ..backend import Backend, DeviceArrays
from ..kernels.complex_pairs import buffer_strides
from ..machine_code.native_nest import CompileStats
from ..structured.kernel_statements import RunKernel, uses_of
from ..structured.not_native import NotNativeError
from .call_plan import CallPlan, Divide, Strides, contiguous_strides
from .call_planner import CallPlanner
from .control_runs import BodyPlan, ControlRun


def make_plan(
    graph: Graph, input_strides: Sequence[Strides], output_strides: Sequence[Strides],
    traced: Graph | None = None, backend: Backend | None = None,
) -> CallPlan:
    """Places and steps of an optimised, fused graph, that was once ``traced``."""
    return CallPlanner(graph, input_strides, output_strides).run(
        backend or backends.current(), traced)


def compile_plan(call_plan: CallPlan, stats: CompileStats) -> None:
    """Specialise and compile every kernel of the plan, new nests as one module."""
    for part in call_plan.by_backend():
        _compile(part, stats)


def _compile(call_plan: CallPlan, stats: CompileStats) -> None:
    backend = call_plan.backend
    forms: list[Any] = []
    made: dict[Hashable, list[Any]] = {}  # those of nests that several kernels share
    steps = [step for step in call_plan.kernels if not step.code]
    for step in steps:
        strides = tuple(buffer_strides(p.dtype, p.strides) for p in step.places)
        key = id(step.kernel.nests), strides
        if key not in made:
            made[key] = backend.specialise(step.kernel, strides)
        step.nests = uses_of(made[key], step.params)
        forms.extend(step.forms)
    codes = backend.compile(forms, stats)
    for extern in call_plan.externs:
        if extern.run is not None:
            _compile_control(extern.run, call_plan, stats)
    for step in steps:
        step.code, codes = codes[: len(step.forms)], codes[len(step.forms):]
    if call_plan.arrays is not None and any(extern.run is not None for extern in call_plan.externs):
        _compile_numbers(steps, stats)


def _compile_numbers(steps: Sequence[RunKernel], stats: CompileStats) -> None:
    """Kernels of numbers alone as the CPU's, beside branches and loops of a device: what those are
    given is the host's, which had to wait for the device otherwise."""
    host = backends.backend("cpu")
    for step in steps:
        if all(place.is_cell for place in step.places):
            strides = [buffer_strides(p.dtype, p.strides) for p in step.places]
            forms = host.specialise(step.kernel, strides)
            step.on_host = replace(
                step, nests=uses_of(forms, step.params), code=host.compile(forms, stats))


def _compile_control(run: ControlRun, call_plan: CallPlan, stats: CompileStats) -> None:
    """Make one function of a branch or loop, or find out why there cannot be any: then its
    sub-graphs are plans, run step by step."""
    if run.program is not None or run.reason:
        return
    try:
        if call_plan.divide is not None and run.is_divided:
            raise NotNativeError("several devices have a part in it")
        if is_repeated(run.node):
            raise NotNativeError("calls of one function share its plan")
        if not _sizes_are_passed(run):
            raise NotNativeError("sizes that only the run knows")
        run.program = call_plan.backend.compile_control(run.node, run.strides, stats)
    except NotNativeError as error:
        run.reason = str(error)
    if run.program is None or run.may_outgrow:
        run.plans = {name: _lazy_body(value, call_plan)
                     for name, value in run.node.attrs.items() if isinstance(value, Graph)}


def _lazy_body(graph: Graph, call_plan: CallPlan) -> BodyPlan:
    """The plan of a sub-graph, where a plan has it; calls that share a graph share it."""
    backend, divide, arrays = call_plan.backend, call_plan.divide, call_plan.arrays
    passes = body_passes(graph.name == WAY_BACK, kernels_alone=arrays is not None)
    made = BodyPlan(graph, passes, partial(_body_plan, backend, divide, arrays))
    if divide is not None:  # by functions with devices of their own
        return made
    plans: dict[Any, BodyPlan] = graph.__dict__.setdefault("plans", {})
    return plans.setdefault((backend.name, arrays is not None), made)


def _sizes_are_passed(run: ControlRun) -> bool:
    """Whether operands have strides known now, and results at least those: of a size that only the
    run knows, a first axis that an operand has, too."""
    outer = symbols_of(tuple(v.shape for v in run.node.inputs))
    fit = all(is_static(t.shape[1:]) and symbols_of(t.shape) <= outer for t in run.node.types)
    return fit and is_static(tuple(step for row in run.strides for step in row))


def _body_plan(
    backend: Backend, divide: Divide | None, arrays: DeviceArrays | None, graph: Graph,
    passes: Sequence[Pass],
) -> CallPlan:
    """A sub-graph that runs as a plan of its own: its operands and results lie in C order."""
    fused = run_passes(passes, graph, verified=config.verify)
    inputs, outputs = (
        [contiguous_strides(v.shape, v.dtype.itemsize) for v in values]
        for values in (fused.inputs, fused.outputs))
    call_plan = None if divide is None else divide(fused, inputs, outputs)
    call_plan = call_plan or make_plan(fused, inputs, outputs, backend=backend)
    call_plan.divide, call_plan.arrays = divide, arrays
    if host_objects(graph) is None:  # a failed call is repeated in the program's own order
        call_plan.traced = graph
    compile_plan(call_plan, CompileStats())
    return call_plan
