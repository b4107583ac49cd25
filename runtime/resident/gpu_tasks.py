"""Plans that one GPU runs alone, whose calls may be straight text."""

from __future__ import annotations

from typing import Any

from fusec.codegen.plan.call_plan import CallPlan
from fusec.runtime.call_spec import CallSpec

from .gpu_library_text import NotPreparedError


def only_task(call_plan: Any, spec: CallSpec) -> CallPlan:
    """The task of a plan that one GPU runs alone."""
    if getattr(call_plan, "residents", None) is None:
        raise NotPreparedError("its arrays are not a GPU's")
    if [a.kind for a in call_plan.actions] != ["task"] or call_plan.actions[0].is_on_caller:
        raise NotPreparedError("the GPU does not do all of it")
    if spec.calls_host:
        raise NotPreparedError("it calls objects of the program")
    if any(t.kind == "array" and 0 in t.shape for t in spec.input_types):
        raise NotPreparedError("an argument has no elements")
    task: CallPlan = call_plan.actions[0].call_plan
    return task
