"""Plans of calls as statements: the interpreter agrees with the graph, the verifier finds mistakes
of a planner."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fusec
from fusec.codegen.plan.call_plan import CallPlan
from fusec.codegen.structured.calls.call_interpreter import interpret_call
from fusec.codegen.structured.calls.call_statements import NodeCall
from fusec.codegen.structured.calls.verify_call import StructureError, verify_call
from fusec.codegen.structured.kernel_statements import RunKernel
from fusec.codegen.structured.memory import View
from fusec.compiled.concrete_function import ConcreteFunction
from fusec.ops.graphs.evaluate import evaluate_all
from tests.programs.corpus import programs

PROGRAMS = {program.name: program for program in programs()}


def plan_and_inputs(concrete: ConcreteFunction, args: Any) -> tuple[CallPlan, list[Any]]:
    """The plan of a call, and the inputs of its graph as they are for these arguments."""
    spec = concrete.executable.spec
    leaves = concrete.call_of(tuple(args), {}).leaves
    leaf_of = {leaf.input: x for leaf, x in zip(spec.leaves, leaves, strict=True)}
    inputs = [leaf_of.get(i) for i in range(spec.first_captured)]
    inputs += [c() if callable(c) else c for c in spec.captured]
    return concrete.build.call_plan, inputs


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_interpreter_agrees_with_the_graph(name: str) -> None:
    program = PROGRAMS[name]
    jitted = fusec.jit(program.function)
    jitted(*program.inputs(program.small))
    for concrete in jitted.traces:
        args = program.inputs(program.small)
        try:
            plan, inputs = plan_and_inputs(concrete, args)
        except Exception:  # a trace of other arguments
            continue
        if plan.is_partitioned or any(op in plan.graph.ops for op in ("HostCall",)):
            continue
        verify_call(plan)
        outputs, updates = evaluate_all(plan.graph, inputs)
        found = interpret_call(plan, inputs)
        for want, got in zip(outputs, found, strict=True):
            np.testing.assert_allclose(got, want, 1e-5, 1e-7)
        for position, want in updates:
            np.testing.assert_allclose(inputs[position], want, 1e-5, 1e-7)


def smooth(x: Any, y: Any) -> Any:
    z = np.cumsum(x * y) + 1
    x[1:] = z[1:] * 2
    return np.sort(z)[::-1], x @ y


def a_plan() -> CallPlan:
    return fusec.jit(smooth).concrete(np.arange(9.0), np.ones(9)).build.call_plan


def test_a_plan_reads_as_statements() -> None:
    lines = str(a_plan()).splitlines()
    assert lines[0] == "plan smooth:" and lines[-1].startswith("  return (m")
    assert any(line.startswith("  library Sort Sort((m") for line in lines)
    assert any(line.startswith("  run fused((m0: f64[9 by 8]), (m1: f64[9 by 8]))")
               for line in lines)


def test_memory_is_written_before_it_is_read() -> None:
    plan = a_plan()
    plan.steps.reverse()
    with pytest.raises(StructureError, match="holds nothing yet"):
        verify_call(plan)


def test_an_argument_that_nothing_updates_is_left_alone() -> None:
    plan = a_plan()
    call = next(step for step in plan.steps if isinstance(step, NodeCall))
    other = next(p for step in plan.steps if isinstance(step, RunKernel) for p in step.operands
                 if isinstance(p, View) and p.key == ("operand", 1))
    call.results = [other]
    with pytest.raises(StructureError, match="an argument that nothing updates"):
        verify_call(plan)


def test_no_check_comes_after_a_write_to_an_argument() -> None:
    def picked(x: Any, i: Any) -> Any:
        y = x[i] * 2
        x[:] = 3 * x
        return y

    plan = fusec.jit(picked).concrete(np.arange(9.0), np.arange(4)).build.call_plan
    verify_call(plan)
    plan.steps.append(plan.steps.pop(0))
    with pytest.raises(StructureError, match="a check after an argument was written"):
        verify_call(plan)


def test_temporaries_lie_in_place_of_what_nothing_reads_any_more() -> None:
    def chain(x: Any) -> Any:
        y = np.cumsum(x)
        z = y / y.max()
        w = z - z.mean()
        return np.sort(w)

    x = np.arange(1.0, 9.0)
    plan = fusec.jit(chain).concrete(x).build.call_plan
    assert len(plan.temps) == 1
    np.testing.assert_array_equal(interpret_call(plan, [x])[0], chain(x))


def test_what_a_library_has_seen_is_not_overwritten() -> None:
    """It may keep the array."""
    def seen(x: Any) -> Any:
        y = np.cumsum(x)
        s = np.sort(y)
        z = y / y.max()
        return np.cumsum(z - z.mean()).sum() + s[0]

    steps = fusec.jit(seen).concrete(np.arange(1.0, 9.0)).build.call_plan.steps
    call = next(i for i, step in enumerate(steps) if isinstance(step, NodeCall))
    given = {x.memory for x in steps[call].operands if isinstance(x, View)}
    written = {r.memory for step in steps[call:] for r in step.results}
    assert given and given.isdisjoint(written)
