"""Calls of functions, step by step: the body is a plan, run again for each call.

One that calls itself runs at a depth that is counted; repeated calls of others share a plan.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fusec.codegen.plan.control_runs import ControlRun
from fusec.core.process import stack
from fusec.core.records import dataclass
from fusec.errors import located
from fusec.ops.calls.recursion import TOO_DEEP, innermost, running

from .sub_programs import Memory, Planner, SubProgram, as_array, own, shared

FRAMES = 16  # of Python's, about, for a call


@dataclass
class _Activation:
    """A call in progress: what the function reads besides its arguments, and how deep it is."""

    body: SubProgram
    others: Sequence[Any]
    most: int
    depth: int = 0

    def run(self, run: ControlRun, arguments: Sequence[Any], sizes: dict[str, int]) -> list[Any]:
        if self.depth >= self.most:
            raise located(RecursionError(TOO_DEEP), run.node.loc)
        self.depth += 1
        try:
            outputs = self.body.run([*arguments, *self.others], sizes)
        finally:
            self.depth -= 1
        return [as_array(x, t) for x, t in zip(outputs, run.node.types, strict=True)]


class CallRun:
    """The first call of a function."""

    def __init__(self, run: ControlRun, planner: Planner) -> None:
        self.control = run
        self.body = SubProgram(run.plans["body"], planner)

    def __call__(
        self, operands: Sequence[Any], memory: Sequence[Memory], sizes: dict[str, int]
    ) -> list[np.ndarray]:
        node = self.control.node
        values = _values(self.control, operands)
        count, most = node.attrs["own"], stack.limit()
        activation = _Activation(self.body, values[count:], most)
        with stack.deeper(FRAMES), running(node.attrs["function"], activation):
            return activation.run(self.control, values[:count], sizes)


class RepeatedRun:
    """One of the calls that share a body."""

    def __init__(self, run: ControlRun, planner: Planner) -> None:
        self.control = run
        self.body = shared(run.plans["body"], planner)

    def __call__(
        self, operands: Sequence[Any], memory: Sequence[Memory], sizes: dict[str, int]
    ) -> list[np.ndarray]:
        outputs = self.body.run(_values(self.control, operands), sizes)
        return [as_array(x, t) for x, t in zip(outputs, self.control.node.types, strict=True)]


class RecursionRun:
    """A call of the function from itself."""

    def __init__(self, run: ControlRun, planner: Planner) -> None:
        self.control = run

    def __call__(
        self, operands: Sequence[Any], memory: Sequence[Memory], sizes: dict[str, int]
    ) -> list[np.ndarray]:
        activation: _Activation = innermost(self.control.node.attrs["function"])
        return activation.run(self.control, _values(self.control, operands), sizes)


def _values(run: ControlRun, operands: Sequence[Any]) -> list[Any]:
    return [own(x, v.type, None) for x, v in zip(operands, run.node.inputs, strict=True)]

