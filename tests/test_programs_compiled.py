"""The code of the bench programs: kernels, library calls, bytes per operand, reuse."""

from __future__ import annotations

import numpy as np
import pytest

import fusec
from fusec.bench.programs import program
from fusec.codegen.cpu.compile import nests_made

SMALL = {"kmeans": 200, "logreg": 150, "eos": 501, "black_scholes": 300}
F64 = np.dtype(np.float64)


def compiled(name: str, size: int, dtype=F64):
    bench = program(name)
    args = bench.make_args(size, np.dtype(dtype), 0)
    function = fusec.jit(bench.function)
    function(*args)
    return function, args


def concrete(name: str, size: int):
    function, args = compiled(name, size)
    return function.concrete(*args), args


@pytest.mark.parametrize(("name", "size", "kernels", "externs"), [
    ("eos", 501, 1, 0), ("black_scholes", 300, 1, 0), ("tone_map", 64, 1, 0),
    ("unsharp", 64, 2, 0), ("nbody", 50, 1, 0), ("hdiff", 64, 1, 0), ("softmax", 1000, 1, 0),
    ("layernorm_gelu", 1536, 1, 0), ("mandelbrot", 1000, 1, 0), ("logreg", 150, 2, 2),
    ("kmeans", 200, 4, 1),
])
def test_kernels_and_library_calls(name, size, kernels, externs):
    found, _ = concrete(name, size)
    assert len(found.kernels) == kernels
    assert len(found.externs) == externs
    assert all(e.name == "np.matmul" for e in found.externs)


def test_black_scholes_reads_each_input_and_writes_each_result_once():
    found, args = concrete("black_scholes", 300)
    (kernel,) = found.kernels
    arrays = [a for a in args if isinstance(a, np.ndarray)]
    loaded = kernel.bytes_loaded
    assert sum(loaded.values()) == sum(a.nbytes for a in arrays) + 8 * (len(loaded) - len(arrays))
    assert all(n == arrays[0].nbytes for n in kernel.bytes_stored.values())


def test_softmax_loads_each_element_from_memory_once():
    found, args = concrete("softmax", 1000)
    (kernel,) = found.kernels
    assert list(kernel.bytes_loaded.values()) == [args[0].nbytes]
    assert list(kernel.bytes_stored.values()) == [args[0].nbytes]
    assert kernel.mode == "row"


def test_diffusion_moves_its_field_once():
    found, args = concrete("hdiff", 64)
    assert len(found.kernels) <= 2
    field = args[0].nbytes
    assert sum(sum(k.bytes_stored.values()) for k in found.kernels) <= 2 * field


def test_kmeans_has_no_temporary_of_all_differences():
    found, args = concrete("kmeans", 200)
    points, centres = args[0], args[1]
    largest = max(b for k in found.kernels for b in k.bytes_stored.values())
    assert largest <= max(points.shape[0] * centres.shape[0] * 8, points.nbytes)
    assert all(
        int(np.prod(p.shape)) <= points.size for p in found.build.call_plan.temps
    )


@pytest.mark.parametrize(("name", "sizes"), [
    ("eos", (501, 777, 4096)), ("black_scholes", (300, 301, 9000)), ("softmax", (5000, 50_000)),
    ("layernorm_gelu", (1536, 7680)), ("hdiff", (64, 96)), ("nbody", (50, 77)),
    ("logreg", (150, 333)), ("mandelbrot", (1000, 5000)),
])
def test_a_new_shape_compiles_nothing(name, sizes):
    bench = program(name)
    function = fusec.jit(bench.function)
    function(*bench.make_args(sizes[0], F64, 0))
    before = nests_made()
    for size in sizes[1:]:
        args = bench.make_args(size, F64, 0)
        function(*args)
        assert function.concrete(*args).times["llvm"] == 0.0
    assert nests_made() == before
