"""The reference interpreter of the plans of calls: one statement after the other, through NumPy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fusec.ir import TensorType
from fusec.ir.sizes.bindings import bind, resolve
from fusec.ir.sizes.dims import symbols_of
from fusec.ops.graphs.evaluate import apply

from ..interpreter import RUN, Interpretation, Rule, array_at
from ..kernel_statements import RunKernel
from ..memory import ConstantView, Memory, View
from .call_statements import NodeCall, Return

if TYPE_CHECKING:
    from ...plan.call_plan import CallPlan


def interpret_call(plan: CallPlan, inputs: Sequence[Any]) -> list[Any]:
    """The outputs of the plan's graph for these inputs, of which arrays are written as it says.

    Raises what kernels and libraries raise; a check that fails is an `IndexError` or a
    `FailedCheckError`.
    """
    sizes: dict[str, int] = {}
    for value, given in zip(plan.graph.inputs, inputs, strict=True):
        bind(value.shape, np.shape(given), sizes)
    run = _CallRun(plan, inputs, sizes)
    run.run(plan.body)
    return run.results


class _CallRun(Interpretation):
    """``whole``: how the array lies that was written to a memory, for views of it."""

    def __init__(self, plan: CallPlan, inputs: Sequence[Any], sizes: dict[str, int]) -> None:
        super().__init__(plan.graph.name, (), inputs, [], sizes, RUN | _OF_CALLS)
        self.types = [v.type for v in plan.graph.outputs]
        self.whole: dict[Memory, View] = {}

    def declare(self, memory: Memory) -> None:
        """Memory of a size that a call tells is there when it is used."""
        if symbols_of((memory.nbytes,)) <= self.symbols.keys():
            super().declare(memory)

    def _made(self, memory: Memory) -> int:
        if memory.origin != "target":
            return super()._made(memory)
        return super()._made(Memory(memory.number, memory.nbytes, memory.dtype, "temp"))

    def array(self, view: View) -> np.ndarray:
        super().declare(view.memory)
        if not view.views:
            return super().array(view)
        array = self.operands[view.memory.position] if view.memory.origin == "operand" else (
            super().array(self.whole[view.memory]))
        for shown in view.views:
            array = shown(array, self.symbols)
        if not isinstance(array, np.ndarray):
            return np.asarray(array)
        return array_at(array.ctypes.data, array.shape, array.strides, array.dtype)

    def operand(self, x: Any, type_: TensorType) -> Any:
        """An operand of a library, or a result, in NumPy's kind."""
        if isinstance(x, ConstantView):
            x = x.at_sizes(lambda data: resolve(data, self.symbols))
        array = self.array(x) if isinstance(x, View) else np.asarray(x)
        if type_.kind == "array":
            return array
        return array[()].item() if type_.is_weak else array[()]

    def wrote(self, views: Sequence[View]) -> None:
        self.whole.update((view.memory, view) for view in views if not view.views)


def _run_kernel(run: Any, x: RunKernel) -> None:
    RUN[RunKernel](run, x)
    run.wrote(x.results)


def _node_call(run: Any, x: NodeCall) -> None:
    """Through the node's reference, in fresh arrays."""
    operands = [run.operand(o, v.type) for o, v in zip(x.operands, x.node.inputs, strict=True)]
    results = apply(x.node, operands, run.symbols)
    for view, result in zip(x.results, results, strict=True):
        bind(view.shape, np.shape(result), run.symbols)
        run.array(view)[...] = result
    run.wrote(x.results)


def _return(run: Any, x: Return) -> None:
    run.results += [np.array(run.operand(r, t)) for r, t in zip(x.results, run.types, strict=True)]


_OF_CALLS: dict[type, Rule] = {
    RunKernel: _run_kernel, NodeCall: _node_call, Return: _return}

__all__ = ["interpret_call"]
