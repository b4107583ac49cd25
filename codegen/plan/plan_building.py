"""From a fused graph to a compiled schedule, those of its sub-graphs included."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import Any

from fusec import config
from fusec.ir import Graph
from fusec.ir.sizes.dims import is_static, symbols_of
from fusec.ops.calls.host_calls import host_objects
from fusec.ops.calls.recursion import is_repeated
from fusec.passes.pipeline import run_passes, step_by_step

from .. import backends
from ..backend import Backend, DeviceArrays
from ..kernels.complex_pairs import buffer_strides
from ..machine_code.native_nest import CompileStats
from ..structured.not_native import NotNativeError
from .schedule import ControlRun, Divide, Schedule, Strides, SubPlan, contiguous_strides
from .scheduler import Scheduler


def make_schedule(
    graph: Graph, input_strides: Sequence[Strides], output_strides: Sequence[Strides],
    traced: Graph | None = None, backend: Backend | None = None,
) -> Schedule:
    """Places and steps of an optimised, fused graph, that was once ``traced``."""
    return Scheduler(graph, input_strides, output_strides).run(
        backend or backends.current(), traced)


def compile_schedule(schedule: Schedule, stats: CompileStats) -> None:
    """Specialise and compile every kernel of the schedule, new nests as one module."""
    for part in schedule.by_backend():
        _compile(part, stats)


def _compile(schedule: Schedule, stats: CompileStats) -> None:
    backend = schedule.backend
    forms: list[Any] = []
    made: dict[Hashable, list[Any]] = {}  # those of nests that several kernels share
    steps = [step for step in schedule.kernels if not step.code]
    for step in steps:
        strides = tuple(buffer_strides(p.dtype, p.strides) for p in step.places)
        key = id(step.kernel.nests), strides
        if key not in made:
            made[key] = backend.specialise(step.kernel, strides)
        step.forms = made[key]
        forms.extend(step.forms)
    codes = backend.compile(forms, stats)
    for extern in schedule.externs:
        if extern.run is not None:
            if schedule.arrays is not None:
                _plan_on_device(extern.run, backend, schedule.arrays)
            else:
                _compile_control(extern.run, backend, stats, schedule.divide)
    for step in steps:
        step.code, codes = codes[: len(step.forms)], codes[len(step.forms):]


def _compile_control(
    run: ControlRun, backend: Backend, stats: CompileStats, divide: Divide | None
) -> None:
    """Make the machine code, or find out why there cannot be any."""
    if run.program is not None or run.reason:
        return
    is_divided = divide is not None and run.is_divided
    try:
        if is_repeated(run.node):
            raise NotNativeError("calls of one function share its plan")
        if not _sizes_are_passed(run):
            raise NotNativeError("sizes that only the run knows")
        if not is_divided:
            run.program = backend.compile_control(run.node, run.strides, stats)
            if run.may_outgrow:
                run.plans = _sub_plans(run, partial(_sub_plan, backend=backend, divide=divide))
            return
        backend.check_control(run.node, run.strides)
        make = partial(_sub_plan, backend=backend, divide=divide, as_native=True)
        run.reason = "several devices have a part in it"
    except NotNativeError as error:
        make = partial(_sub_plan, backend=backend, divide=divide)
        run.reason = str(error)
    run.plans = _sub_plans(run, make)


def _sub_plans(run: ControlRun, make: Callable[[Graph], SubPlan]) -> dict[str, SubPlan]:
    return {name: make(value)
            for name, value in run.node.attrs.items() if isinstance(value, Graph)}


def _plan_on_device(run: ControlRun, backend: Backend, arrays: DeviceArrays) -> None:
    """Step by step on arrays of a device: each of its kernels is launched by itself."""
    run.reason = "each of its kernels is launched by itself"
    for name, value in run.node.attrs.items():
        if isinstance(value, Graph):
            plans: dict[str, SubPlan] = value.__dict__.setdefault("plans", {})
            run.plans[name] = plans.setdefault(f"{backend.name}, its arrays", SubPlan(
                value, partial(_sub_schedule, backend=backend, arrays=arrays)))


def _sub_plan(
    graph: Graph, backend: Backend, divide: Divide | None, as_native: bool = False
) -> SubPlan:
    """The plan of a sub-graph; calls that share a graph share it.

    ``as_native``: the loop is native on one device, and has its bits over several.
    """
    make = partial(_sub_schedule, backend=backend, divide=divide, as_native=as_native)
    if divide is not None:  # by functions with devices of their own
        return SubPlan(graph, make)
    plans: dict[str, SubPlan] = graph.__dict__.setdefault("plans", {})
    return plans.setdefault(backend.name, SubPlan(graph, make))


def _sizes_are_passed(run: ControlRun) -> bool:
    """Whether operands have strides known now, and results at least those: of a size that only the
    run knows, a first axis that an operand has, too."""
    outer = symbols_of(tuple(v.shape for v in run.node.inputs))
    fit = all(is_static(t.shape[1:]) and symbols_of(t.shape) <= outer for t in run.node.types)
    return fit and is_static(tuple(step for row in run.strides for step in row))


def _sub_schedule(
    graph: Graph, backend: Backend, divide: Divide | None = None, as_native: bool = False,
    arrays: DeviceArrays | None = None,
) -> Schedule:
    """A sub-graph that runs as a plan of its own: its operands and results lie in C order."""
    fused = run_passes(step_by_step(as_native), graph, verified=config.verify)
    inputs, outputs = (
        [contiguous_strides(v.shape, v.dtype.itemsize) for v in values]
        for values in (fused.inputs, fused.outputs))
    schedule = None if divide is None else divide(fused, inputs, outputs)
    schedule = schedule or make_schedule(fused, inputs, outputs, backend=backend)
    schedule.divide, schedule.arrays = divide, arrays
    if host_objects(graph) is None:  # a failed call is repeated in the program's own order
        schedule.traced = graph
    compile_schedule(schedule, CompileStats())
    return schedule
