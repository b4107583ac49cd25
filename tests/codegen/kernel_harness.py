"""Runs a graph through the CPU back end, the reference interpreter and the readable source."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fusec.codegen.cpu.abi import BlockLayout, fill_block
from fusec.codegen.cpu.compile import compile_forms
from fusec.codegen.kernels.loop_ir import Kernel
from fusec.codegen.kernels.lower import lower
from fusec.codegen.kernels.reference import run_kernel
from fusec.codegen.kernels.specialise import LoopForm, specialise
from fusec.codegen.machine_code.native_nest import NEST_SIGNATURE, CompileStats, NativeNest
from fusec.codegen.python.python_source import kernel_source, load_source
from fusec.ir import Graph, TensorType, Value
from fusec.ops import Builder
from fusec.ops.graphs.evaluate import apply
from fusec.passes.fusion.fusion import fuse

RunKernel = Callable[[Kernel, Sequence[np.ndarray]], None]
PARTIAL_BYTES = 16
POISON = 0xA5
REDUCTIONS = ["Sum", "Prod", "Max", "Min", "ArgMax", "ArgMin"]


def make_inputs(builder: Builder, *arrays: np.ndarray) -> list[Value]:
    """Input values ``x0``, ``x1``, … of the arrays' types."""
    return [
        builder.emit(
            "Input", name=f"x{i}", index=i, path=f"x{i}", type=TensorType(a.dtype, a.shape)
        )
        for i, a in enumerate(arrays)
    ]


def build(function: Callable[..., Any], *arrays: np.ndarray) -> Graph:
    """The graph of ``function(builder, *values)``, whose result is a value or several."""
    builder = Builder()
    inputs = make_inputs(builder, *arrays)
    outputs = function(builder, *inputs)
    is_one = isinstance(outputs, Value)
    return Graph.build(inputs, [outputs] if is_one else list(outputs))


def kernels_of(graph: Graph) -> list[Kernel]:
    return [lower(n) for n in fuse(graph).nodes if n.op == "Fused"]


def run_graph(graph: Graph, arrays: Sequence[np.ndarray], run: RunKernel) -> list[np.ndarray]:
    """The fused graph's outputs, every kernel through ``run``."""
    fused = fuse(graph)
    table: dict[Value, Any] = dict(zip(fused.inputs, arrays, strict=True))
    for node in fused.nodes:
        if node.op == "Input":
            continue
        if node.op != "Fused":
            results = apply(node, [table[v] for v in node.inputs])
            table.update(zip(node.outputs, results, strict=True))
            continue
        outs = [_poisoned(t) for t in node.types]
        run(lower(node), [np.asarray(table[v]) for v in node.inputs] + outs)
        table.update(zip(node.outputs, outs, strict=True))
    return [np.asarray(table[v]) for v in fused.outputs]


def _poisoned(kind: TensorType) -> np.ndarray:
    """Memory that shows elements never written."""
    raw = np.full(max(1, kind.nbytes), POISON, np.uint8)[: kind.nbytes]
    return raw.view(kind.dtype).reshape(kind.shape)


# ----------------------------------------------------------------------------------------- engines


def run_on_cpu(
    kernel: Kernel, buffers: Sequence[np.ndarray], split: Callable[[int], list[int]] | None = None
) -> None:
    """Machine code; ``split(tasks)`` gives the cuts of the task range, in any order of pieces."""
    strides = [b.strides for b in buffers]
    forms = [specialise(kernel, nest, strides) for nest in kernel.nests]
    for form, native in zip(forms, compile_forms(forms, CompileStats()), strict=True):
        run_form(kernel, form, native, buffers, split)


def run_form(
    kernel: Kernel, form: LoopForm, native: NativeNest, buffers: Sequence[np.ndarray],
    split: Callable[[int], list[int]] | None = None,
) -> None:
    block = fill_block(form, kernel.params)
    for slot, operand in enumerate(form.operands):
        block[slot] = buffers[operand.buffer].ctypes.data + operand.offset
    layout = BlockLayout.of(form)
    count = sum(len(s.reductions) for s in form.nest.stages)
    partials = np.zeros(max(1, form.tasks * count * PARTIAL_BYTES), np.uint8)
    if form.mode == "flat":
        block[layout.partial_results] = partials.ctypes.data
    cuts = [0, *(split(form.tasks) if split else ()), form.tasks]
    pieces = list(itertools.pairwise(cuts))
    for low, high in reversed(pieces):
        NEST_SIGNATURE(native.entry)(block.ctypes.data, low, high)
    if native.finish:
        NEST_SIGNATURE(native.finish)(block.ctypes.data, 0, 1)


def run_source(kernel: Kernel, buffers: Sequence[np.ndarray], njit: bool = False) -> None:
    """The readable source, as plain Python or compiled by Numba."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        load_source(kernel_source(kernel), njit=njit)(*buffers)


# -------------------------------------------------------------------------------------- comparison


def assert_same(got: np.ndarray, want: np.ndarray, rtol: float = 0.0, what: str = "") -> None:
    """Equal dtypes, shapes and values (NaN equals NaN); with ``rtol`` > 0 nearly equal."""
    assert got.dtype == want.dtype, f"{what}: {got.dtype} is not {want.dtype}"
    assert got.shape == want.shape, f"{what}: {got.shape} is not {want.shape}"
    if rtol:
        np.testing.assert_allclose(got, want, rtol=rtol, atol=rtol, err_msg=what)
    else:
        np.testing.assert_array_equal(got, want, err_msg=what)


def check(
    graph: Graph, *arrays: np.ndarray, want: Sequence[Any] | None = None, rtol: float = 0.0,
    source: bool = True, njit: bool = False,
) -> list[np.ndarray]:
    """All engines agree with each other and, when given, with ``want``; gives the CPU's results."""
    before = [a.copy() for a in arrays]
    results = {
        "cpu": run_graph(graph, arrays, run_on_cpu),
        "reference": run_graph(graph, arrays, run_kernel),
    }
    if source:
        results["source"] = run_graph(graph, arrays, run_source)
    if njit:
        results["njit"] = run_graph(
            graph, arrays, lambda kernel, buffers: run_source(kernel, buffers, njit=True)
        )
    wanted = results["reference"] if want is None else [np.asarray(w) for w in want]
    for engine, outs in results.items():
        for i, (out, expected) in enumerate(zip(outs, wanted, strict=True)):
            assert_same(out, expected, rtol, f"{engine}, output {i}")
    for array, old in zip(arrays, before, strict=True):
        assert_same(array, old, what="an input was changed")
    return results["cpu"]
