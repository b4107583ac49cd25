"""What NVRTC folds away: the PTX of every scalar op in every dtype, one operand twice, too, gives
the bits of the CPU back end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import ptx_interpreter
import pytest
from cuda_harness import assert_equal_bits
from kernel_harness import build, run_graph, run_on_cpu
from test_cpu_ops import emit_all, operands_of
from test_cuda_elementwise import DTYPES, rows_of

from fusec.codegen.cuda.compiled_nests import fixed_argument, raw_bits
from fusec.codegen.cuda.driver import nvrtc
from fusec.codegen.cuda.kernels.kernel_sources import module_of, write_form
from fusec.codegen.kernels.loop_ir import Kernel
from fusec.codegen.kernels.specialise import specialise
from fusec.codegen.vecmath.functions.trigonometry import PARTS

pytestmark = pytest.mark.skipif(not nvrtc.is_available(), reason="NVRTC: of the extra test-cuda")
HUGE = 2.0**12  # sines of more go through functions of their own, which are not interpreted


def run_on_ptx(kernel: Kernel, buffers: Sequence[np.ndarray]) -> None:
    for nest in kernel.nests:
        form = specialise(kernel, nest, [b.strides for b in buffers])
        (written,) = write_form(form, "i32", "k")
        ptx = nvrtc.compile(module_of([written]), "sm_90").ptx
        layout, params = written.geometry(form), [raw_bits(p, {}) for p in kernel.params]
        arguments = [
            buffers[form.operands[int(slot[1])].buffer].reshape(-1).view(np.uint8)
            if slot[0] == "operand" else fixed_argument(slot, form, params, layout)
            for slot in written.slots]
        ptx_interpreter.run(ptx, arguments, layout.work, layout.threads[0])


def agree(emit: Callable[..., Any], *arrays: np.ndarray) -> None:
    graph = build(emit, *arrays)
    wanted = run_graph(graph, arrays, run_on_cpu)
    for node, got, want in zip(
            graph.outputs, run_graph(graph, arrays, run_on_ptx), wanted, strict=True):
        assert_equal_bits(got, want, f"{node.node.op} of {arrays[0].dtype}")


def values_of(dtype: np.dtype, arity: int) -> list[np.ndarray]:
    arrays = operands_of(dtype, arity)
    if dtype.kind != "f":
        return arrays
    near = np.logical_and.reduce([~(np.abs(a) > HUGE) | np.isinf(a) for a in arrays])
    return [np.ascontiguousarray(a[near]) for a in arrays]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_one_operand(dtype: np.dtype) -> None:
    (x,), rows = values_of(dtype, 1), rows_of(dtype, 1)
    periodic = [row for row in rows if row.scalar in PARTS]
    with np.errstate(all="ignore"):
        agree(emit_all([row for row in rows if row not in periodic]), x)
        if periodic:
            agree(emit_all(periodic), x[~np.isinf(x)])


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_two_operands(dtype: np.dtype) -> None:
    with np.errstate(all="ignore"):
        agree(emit_all(rows_of(dtype, 2)), *values_of(dtype, 2))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_one_operand_twice(dtype: np.dtype) -> None:
    """`copysign` of a half and itself was its absolute value: a fold of NVRTC's."""
    rows = rows_of(dtype, 2)
    with np.errstate(all="ignore"):
        agree(lambda b, x: [b.emit(row.name, x, x) for row in rows], *values_of(dtype, 1))
