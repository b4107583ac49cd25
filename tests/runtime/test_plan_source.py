"""Plans with library calls as Python text: its lines, and results that do not lie as planned."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fusec
from fusec.runtime.plan.step_by_step import StepByStep

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "differential"))
from harness import check


def plan_of(function: Any, *args: Any) -> StepByStep:
    concrete = fusec.jit(function).concrete(*args)
    return StepByStep(concrete.build.call_plan, concrete.executable.spec)


def test_a_kernel_and_a_call_are_a_few_lines() -> None:
    plan = plan_of(lambda x: np.sort(x * 2, axis=0), np.ones(3))
    text = re.sub(r"_\d+", "", plan.source.text)
    head, _, rest = text.partition("    try:\n")
    assert head == (
        "def run(leaves, sizes, times=None):\n"
        "    arg0 = leaves[0]\n"
        "    temp0 = new()\n")
    assert rest.startswith(
        "        if (outcome := kernels.call(arg0, temp0)) is not None and not "
        "kernels.finish(outcome, arg0, temp0): raise plan.repeated(check_error, leaves, held)\n"
        "        result0 = call(temp0, axis=constant)\n")
    assert rest.endswith(
        "        out0 = result0\n"
        "        return [out0]\n"
        "    except Exception as error:\n"
        "        found = plan.failure_at(error, leaves, held)\n"
        "        if found is None:\n"
        "            raise\n"
        "        try:\n"
        "            raise found from None\n"
        "        finally:\n"
        "            del found\n")
    np.testing.assert_array_equal(plan.run([np.array([3.0, 1, 2])])[0], [2, 4, 6])


def test_a_line_of_the_text_tells_whose_call_failed() -> None:
    def solved(a: np.ndarray, b: np.ndarray) -> Any:
        first = np.linalg.inv(a) * 2
        return first, np.linalg.inv(b) + 1

    good, bad = np.eye(2), np.zeros((2, 2))
    line = solved.__code__.co_firstlineno
    cases = ((good, bad), line + 2), ((bad, good), line + 1), ((bad, bad), line + 1)
    for args, fails_at in cases:
        with pytest.raises(np.linalg.LinAlgError) as raised:
            fusec.jit(solved)(*args)
        assert f"{Path(__file__).name}:{fails_at} in solved" in raised.value.__notes__[0]


def test_an_operand_itself_or_a_view_of_it_is_copied() -> None:
    """Operands that libraries give back belong to the caller."""
    def flat(x: np.ndarray) -> Any:
        once = np.unique(x)
        return once, np.trim_zeros(x) if x.shape[0] > 9 else np.take(once, [0])

    check(flat, np.array([2.0, 1.0, 2.0]))
    check(lambda x: np.linalg.inv(x).T.copy(), np.array([[2.0, 1.0], [0.0, 1.0]]))
    check(lambda x: np.linalg.qr(x), np.array([[2.0, 1.0], [0.0, 1.0]]))


def test_views_of_views_as_operands() -> None:
    def turned(x: np.ndarray) -> np.ndarray:
        for _ in range(40):
            x = x[1:][::-1]
        return np.sort(x.reshape(2, -1), axis=1)

    check(turned, np.arange(60.0) % 7)


def test_scalars_and_python_numbers_of_library_calls() -> None:
    check(lambda x: (np.linalg.det(x), np.linalg.det(x) * 2, float(np.linalg.det(x)) + 1),
          np.array([[2.0, 1.0], [0.5, 1.0]]))
    check(lambda x, k: np.percentile(x, k) + k, np.arange(5.0), 30)


def test_the_times_of_steps() -> None:
    compiled = fusec.jit(lambda x: np.sort(x * 2) + 1)
    _, report = compiled.concrete(np.ones(3)).run(
        np.ones(3), options=fusec.RunOptions(trace=True))
    assert len(report.steps) == 3 and all(us > 0 for _, us in report.steps)
