"""Plans of loaded functions that outlive the process: later loads compute with them at once.

An entry of the disk cache (`kept_entries`) holds what one native call needs (`fusec.codegen.kept`),
under a hash of all that decides it: the traced graph, how its arrays lie, and the options.  Where
it is not as it should be it is made anew.  Passes, kernels and texts are made when somebody reads
them.
"""

from __future__ import annotations

import time

from fusec.codegen import backends
from fusec.codegen.kept.kept_plan import KeptPlan
from fusec.codegen.kept.plan_form import plan_form
from fusec.codegen.machine_code.native_nest import CompileStats
from fusec.core import log
from fusec.placement.placers import placer_for

from ..compiled_trace import Build
from ..concrete_function import ConcreteFunction
from ..stages import TracedStage
from . import kept_entries
from .graph_identity import NoIdentityError, identity
from .later_stages import LaterStages

KIND = "plan 1"  # another with each change of the data


def compiled(stage: TracedStage) -> ConcreteFunction:
    """The function of a stage, by the plan that an earlier process has kept if there is one; else
    compiled, and kept."""
    key = _key(stage)
    found = None if key is None else _found(key, stage)
    if found is not None:
        return found
    made = stage.optimize().lower().compile()
    form = plan_form(made.build.call_plan) if key and made.executable.uses_native else None
    if key is not None and form is not None:
        kept_entries.write(key, form)
    return made


def _key(stage: TracedStage) -> str | None:
    """The name of the entry; None where there can be none."""
    placing, traced = stage.call.placing, stage.traced
    residence = "" if placing is None else placing.residence
    if backends.current().name != "cpu" or placer_for(stage.graph, residence) is not None:
        return None
    try:
        graph = identity(stage.graph)
    except NoIdentityError:
        return None
    return kept_entries.key_of(KIND, [
        repr((stage.options.fp, stage.options.check_indices, stage.name)),
        repr((traced.input_strides, traced.output_strides)), graph])


def _found(key: str, stage: TracedStage) -> ConcreteFunction | None:
    start = time.perf_counter()
    form = kept_entries.read(key)
    if form is None:
        return None
    later = LaterStages(stage)
    try:
        plan = KeptPlan(form, backends.current(), later.graph, stage.graph, lambda: later.plan)
    except Exception as error:  # data of another form are none, nor are those without their code
        log.write(log.COMPILE, f"a kept plan of {stage.name} is of no use ({type(error).__name__}:"
                               f" {error}): it is made anew")
        return None
    plan.states, plan.passes = stage.traced.states or None, later.passes
    times = {"trace": stage.traced.ms, "passes": 0.0, "codegen": 0.0,
             "llvm": 1e3 * (time.perf_counter() - start)}
    stats = CompileStats(reused=len(form["nests"]), llvm_ms=times["llvm"])
    return ConcreteFunction(Build(
        stage.name, stage.call, stage.traced, later.graph, later.graph, later.passes, plan, stats,
        times))
