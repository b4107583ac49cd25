"""Runs graphs and programs through the CUDA back end on the emulated device."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from kernel_harness import build, kernels_of, run_graph, run_on_cpu

import fusec
from fusec.codegen import backends
from fusec.codegen.cuda.backend import CudaBackend
from fusec.codegen.cuda.compiled_nests import NestCall
from fusec.codegen.cuda.emulation.driver import EmulatedDriver
from fusec.codegen.kernels.loop_ir import Kernel
from fusec.codegen.machine_code.native_nest import CompileStats
from fusec.ir import Graph

SEEDED = EmulatedDriver(seed=5)  # blocks and threads take turns in an order of its own
BACKEND = CudaBackend("cuda in tests", lambda: SEEDED)
Case = tuple[Callable[..., Any], Sequence[np.ndarray]]


def run_on_cuda(kernel: Kernel, buffers: Sequence[np.ndarray]) -> None:
    forms = BACKEND.specialise(kernel, [b.strides for b in buffers])
    for code in BACKEND.compile(forms, CompileStats()):
        assert code(list(buffers), {})


def compile_all(graphs: Sequence[tuple[Graph, Sequence[np.ndarray]]]) -> list[NestCall]:
    """All of their kernels in one module, which is quicker than one by one; they stay loaded while
    the result is held."""
    forms = []
    for graph, arrays in graphs:
        strides = {v: a.strides for v, a in zip(graph.inputs, arrays, strict=True)}
        for kernel in kernels_of(graph):
            inputs = {v.node.name: s for v, s in strides.items()}
            forms += BACKEND.specialise(kernel, [
                inputs.get(b.value, np.empty(b.shape, b.dtype).strides) for b in kernel.buffers])
    return BACKEND.compile(forms, CompileStats())


def assert_same_bits(cases: Sequence[Case]) -> None:
    """The CUDA back end's results have the bits of the CPU back end's; any NaN is any NaN."""
    graphs = [(build(function, *arrays), arrays) for function, arrays in cases]
    kept = compile_all(graphs)
    for graph, arrays in graphs:
        wanted = run_graph(graph, arrays, run_on_cpu)
        for got, want in zip(run_graph(graph, arrays, run_on_cuda), wanted, strict=True):
            assert_equal_bits(got, want, f"{[n.op for n in graph.nodes]}")
    del kept


def assert_equal_bits(got: np.ndarray, want: np.ndarray, what: str) -> None:
    assert (got.dtype, got.shape) == (want.dtype, want.shape), what
    bad = ~((got == want) | ((got != got) & (want != want)))
    if got.dtype.kind == "f":
        bad |= (np.signbit(got) != np.signbit(want)) & (got == got)
    assert not bad.any(), (what, np.argwhere(bad)[:3], got[bad][:3], want[bad][:3])


def run_program(f: Callable[..., Any], *args: Any) -> Any:
    """The program with every kernel on the emulated device; it changes copies of the arguments."""
    with backends.using("cudahost"):
        return fusec.jit(f)(*(a.copy() if isinstance(a, np.ndarray) else a for a in args))
