"""Sub-graphs that run from Python, each as a plan of its own; arrays of branches and loops."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from fusec.codegen.backend import DeviceArrays
from fusec.codegen.plan.call_plan import CallPlan
from fusec.codegen.plan.control_program import ControlCode, ControlProgram
from fusec.codegen.plan.control_runs import BodyPlan
from fusec.ir import TensorType

from ..launching.cells import idle_or_new

Memory = Callable[[], np.ndarray]


class GraphPlan(Protocol):
    """The plan of a sub-graph, for one call at a time."""

    def run(self, leaves: Sequence[Any], *, sizes: Mapping[str, int]) -> list[Any]: ...


Planner = Callable[[CallPlan], GraphPlan]


class SubProgram:
    """Runs a sub-graph: its updates change the arrays passed in, its outputs are returned."""

    def __init__(self, plan: BodyPlan, planner: Planner) -> None:
        self.plan, self.planner = plan, planner
        self._idle: list[GraphPlan] = []  # a call in another thread takes another one

    def _new(self) -> GraphPlan:
        return self.planner(self.plan.call_plan)

    def run(self, operands: Sequence[Any], sizes: Mapping[str, int]) -> list[Any]:
        stepper = idle_or_new(self._idle, self._new)
        try:
            return stepper.run(operands, sizes=sizes)
        finally:
            self._idle.append(stepper)


def shared(plan: BodyPlan, planner: Planner) -> SubProgram:
    """The program of a plan that many steps run."""
    program: SubProgram = plan.__dict__.setdefault("program", SubProgram(plan, planner))
    return program


def own(
    operand: Any, type_: TensorType, memory: Memory | None, arrays: DeviceArrays | None = None
) -> Any:
    """An operand as a sub-plan takes it; with ``memory`` a copy there, which it may change.

    ``arrays``: of the device in whose memory operands are.
    """
    if type_.kind != "array":
        return operand.item() if type_.is_weak and isinstance(operand, np.generic) else operand
    if arrays is not None:
        return _on_device(operand, memory, arrays)
    if memory is None:
        return np.ascontiguousarray(operand).reshape(np.shape(operand))
    out = memory()
    np.copyto(out, operand)
    return out


def _on_device(operand: np.ndarray, memory: Memory | None, arrays: DeviceArrays) -> np.ndarray:
    if memory is None and operand.flags.c_contiguous:
        return operand
    out = arrays.empty(operand.shape, operand.dtype, "C") if memory is None else memory()
    if out.ndim or arrays.is_there(out):
        arrays.write(out, operand)
    else:  # a cell, which kernels read and write on the host
        np.copyto(out, on_host(arrays, operand))
    return out


def on_host(arrays: DeviceArrays, value: Any) -> Any:
    """A result of rank 0 as cells have it."""
    is_there = isinstance(value, np.ndarray) and arrays.is_there(value)
    return arrays.fetch(value) if is_there else value


def copy_maker(arrays: DeviceArrays | None) -> Callable[[np.ndarray], np.ndarray]:
    """A function that copies an array, in the memory where it is."""
    if arrays is None:
        return np.copy

    def copied(array: np.ndarray) -> np.ndarray:
        made: np.ndarray = arrays.empty(array.shape, array.dtype, "C")
        arrays.write(made, array)
        return made

    return copied


def as_array(value: Any, type_: TensorType) -> np.ndarray:
    return value if type_.kind == "array" else np.asarray(value, type_.dtype)


def lying_as(
    operand: np.ndarray, strides: tuple[int, ...], arrays: DeviceArrays | None = None
) -> np.ndarray:
    """The operand, copied unless it has the memory layout that the code is compiled for."""
    if operand.strides == strides:
        return operand
    same = all(n == 1 or a == b for n, a, b in zip(
        operand.shape, operand.strides, strides, strict=True))
    if same:
        return operand
    if arrays is None:
        return np.array(operand, order="C")
    out: np.ndarray = arrays.empty(operand.shape, operand.dtype, "C")
    arrays.write(out, operand)
    return out


def results_for(
    program: ControlProgram | ControlCode, reused: Collection[int], operands: Sequence[Any],
    memory: Sequence[Memory], arrays: DeviceArrays | None = None,
) -> list[Any]:
    """The arrays of the results: operands' own memory, or memory that may begin as their copy.

    ``arrays``: of the device in whose memory they are.
    """
    types = (program.kinds if isinstance(program, ControlProgram) else program.node).types
    results: list[Any] = [None] * len(types)
    for number, source in enumerate(program.copied):
        if number in reused:
            results[number] = operands[source]
        elif types[number].kind == "array":
            results[number] = memory[number]()
            if source >= 0:
                _copy(results[number], operands[source], arrays)
    return results


def _copy(target: np.ndarray, source: np.ndarray, arrays: DeviceArrays | None) -> None:
    """Copy elements; arrays of rank 0 may be cells of the plan, which are the host's."""
    if arrays is None:
        np.copyto(target, source)
    elif arrays.is_there(target):
        arrays.write(target, source)
    else:
        np.copyto(target, arrays.fetch(source) if arrays.is_there(source) else source)
