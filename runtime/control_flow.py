"""Branches and loops run from Python: each sub-graph is a plan of its own, run step by step.

This is the general way: any library call may stand in a loop.  What fits is compiled as a whole
instead (``fusec.codegen.cpu.loops``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from fusec.codegen.cpu.compile import CompileStats
from fusec.ir import Graph, Node, TensorType

from .call_spec import CallSpec, LeafSpec, ResultSpec

if TYPE_CHECKING:
    from .step_by_step import StepByStep

Memory = Callable[[], np.ndarray]


class SubProgram:
    """A sub-graph as a plan: its updates change the arrays passed in, its outputs are returned."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph

    @cached_property
    def stepper(self) -> StepByStep:
        from fusec.passes.copies import separate_results
        from fusec.passes.fusion import fuse

        from .plan import compile_schedule, contiguous_strides, make_schedule
        from .step_by_step import StepByStep

        fused = fuse(separate_results(self.graph))
        layouts = [
            [contiguous_strides(v.shape, v.dtype.itemsize) for v in values]
            for values in (fused.inputs, fused.outputs)
        ]
        schedule = make_schedule(fused, *layouts)
        compile_schedule(schedule, CompileStats())
        return StepByStep(schedule, _spec(fused, layouts[0]))

    def run(self, operands: Sequence[Any]) -> list[Any]:
        return self.stepper.run(operands)


def _spec(graph: Graph, strides: Sequence[tuple[int, ...]]) -> CallSpec:
    inputs, outputs = graph.inputs, graph.outputs
    return CallSpec(
        graph.name, tuple(LeafSpec(i) for i in range(len(inputs))),
        tuple(v.node.name for v in inputs), tuple(v.type for v in inputs), tuple(strides),
        tuple(v.type for v in outputs), (),
        tuple(ResultSpec("graph", i) for i in range(len(outputs))),
        tuple(i for i, _ in graph.updates), bare=False,
    )


class LoopRun:
    """A loop over two plans."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.test = SubProgram(node.attrs["test"])
        self.body = SubProgram(node.attrs["body"])
        self.carried: int = node.attrs["carried"]

    def __call__(self, operands: Sequence[Any], memory: Sequence[Memory]) -> list[np.ndarray]:
        now = [_own(x, v.type, memory[i] if i < self.carried else None)
               for i, (x, v) in enumerate(zip(operands, self.node.inputs, strict=True))]
        scalars = [i for i in range(self.carried) if self.node.types[i].kind != "array"]
        while bool(self.test.run(now)[0]):
            for i, value in zip(scalars, self.body.run(now), strict=True):
                now[i] = value
        return [_held(x, t) for x, t in zip(now[: self.carried], self.node.types, strict=True)]


class CondRun:
    """A branch over two plans, of which one is run, and made when it is first needed."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.sides = SubProgram(node.attrs["orelse"]), SubProgram(node.attrs["then"])
        self.changed: int = node.attrs["changed"]

    def __call__(self, operands: Sequence[Any], memory: Sequence[Memory]) -> list[np.ndarray]:
        test, *rest = operands
        first = len(self.node.types) - self.changed
        now = [_own(x, v.type, memory[first + i] if i < self.changed else None)
               for i, (x, v) in enumerate(zip(rest, self.node.inputs[1:], strict=True))]
        outputs = self.sides[bool(test)].run(now)
        return [_held(x, t) for x, t in zip(
            [*outputs, *now[: self.changed]], self.node.types, strict=True)]


def _own(operand: Any, type_: TensorType, memory: Memory | None) -> Any:
    """An operand as a sub-plan takes it; with ``memory`` a copy there, which it may change."""
    if type_.kind != "array":
        return operand.item() if type_.is_weak and isinstance(operand, np.generic) else operand
    if memory is None:
        return np.ascontiguousarray(operand).reshape(type_.shape)
    out = memory()
    np.copyto(out, operand)
    return out


def _held(value: Any, type_: TensorType) -> np.ndarray:
    return value if type_.kind == "array" else np.asarray(value, type_.dtype)


CONTROL_RUNS: dict[str, type[LoopRun | CondRun]] = {"Loop": LoopRun, "Cond": CondRun}
