"""Elementwise kernels: every op in every dtype gives the CPU back end's bits, at any layout."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from cuda_harness import Case, assert_same_bits, run_program
from kernel_harness import build, kernels_of
from test_cpu_ops import emit_all, operands_of, takes

import fusec
from fusec.codegen import backends
from fusec.codegen.cuda.compiled_nests import CudaForm
from fusec.codegen.cuda.kernels.kernel_sources import module_of, write_form
from fusec.codegen.cuda.kernels.launch_plan import reciprocal
from fusec.codegen.cuda.kernels.tiles import Tiles, tiles_of
from fusec.codegen.cuda.scalars.emitter import CudaEmitter
from fusec.codegen.cuda.scalars.scalar_ops import supports
from fusec.codegen.kernels.specialise import specialise
from fusec.ops import Builder, all_ops

DTYPES = [np.dtype(c) for c in (
    "?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8")]

OF_EACH_KIND = [np.dtype(c) for c in ("?", "i1", "u2", "i4", "i8", "u8", "f2", "f4", "f8")]


def rows_of(dtype: np.dtype, arity: int) -> list[Any]:
    return [r for r in all_ops() if r.kind == "elementwise" and r.arity == arity
            and takes(r, dtype) and supports(r.scalar or "", dtype)
            and (dtype != np.float16 or r.cost < 14)]


def test_every_op_of_the_cpu_is_there() -> None:
    cpu = backends.backend("cpu")
    missing = {(r.scalar, d.name) for r in all_ops() for d in DTYPES
               if r.scalar and cpu.supports(r.scalar, d) and not supports(r.scalar, d)}
    assert not missing


def test_ops_on_extreme_values_give_the_bits_of_the_cpu() -> None:
    cases: list[Case] = []
    for dtype in OF_EACH_KIND:
        with np.errstate(all="ignore"):
            cases += [(emit_all(rows), operands_of(dtype, arity)) for arity in (1, 2)
                      if (rows := rows_of(dtype, arity))]
    assert sum(len(rows_of(d, a)) for d in OF_EACH_KIND for a in (1, 2)) > 300
    assert_same_bits(cases)


def test_math_functions_give_the_bits_of_the_cpu_on_random_bits() -> None:
    rng = np.random.default_rng(3)
    cases: list[Case] = []
    for kind, bits in (("f4", "u4"), ("f8", "u8")):
        dtype = np.dtype(kind)
        any_bits = rng.integers(0, np.iinfo(bits).max, 3000, bits).view(dtype)
        near = (rng.standard_normal(3000) * 3).astype(dtype)
        for args in ([any_bits], [near], [any_bits, near], [near, near[::-1]]):
            rows = [r for r in rows_of(dtype, len(args)) if r.cost >= 14]
            cases.append((emit_all(rows), args))
    assert_same_bits(cases)


def test_casts_between_all_dtypes() -> None:
    with np.errstate(all="ignore"):
        values = {d: operands_of(d, 1)[0] for d in DTYPES}
        cases: list[Case] = [
            (lambda b, x: [b.emit("Cast", x, dtype=d) for d in DTYPES], [values[s]])
            for s in DTYPES]
        assert_same_bits(cases)


def mixed(b: Builder, x: Any, y: Any) -> Any:
    return b.emit("Add", x, y), b.emit("Less", x, y), b.emit("Cast", x, dtype=np.dtype("f4"))


@pytest.mark.parametrize("size", [0, 1, 2, 3, 4, 5, 255, 256, 257, 1023])
def test_every_length_and_alignment(size: int) -> None:
    x = np.random.default_rng(1).standard_normal(2 * size + 9)
    layouts = [x[:size], x[1: size + 1], x[: 2 * size: 2], x[::-1][:size]]
    assert_same_bits([(mixed, [a, b]) for a in layouts for b in layouts[:2]])


def test_layouts_of_several_axes() -> None:
    x = np.random.default_rng(2).standard_normal((6, 5, 17))
    assert_same_bits([
        (mixed, [x, x[::-1]]), (mixed, [x[..., ::2], x[..., ::2]]), (mixed, [x.T, x.T]),
        (mixed, [x[:, 1:, 3:], x[:, :-1, :-3]]), (mixed, [x[:, :, 1], x[:, :, 2]]),
        (mixed, [np.broadcast_to(x[:1], x.shape), x]),
        (mixed, [x, np.broadcast_to(x[..., :1], x.shape)]),
        (mixed, [x[0, 0, :1].reshape(()), x[1, 1, 1:2].reshape(())]),
    ])


def test_indices_are_narrow_where_all_fit() -> None:
    x = np.zeros((1000, 8))
    (kernel,) = kernels_of(build(mixed, x, x))
    strides = [np.empty(b.shape, b.dtype).strides for b in kernel.buffers]
    form = CudaForm(specialise(kernel, kernel.nests[0], strides), kernel)
    assert form.index == "i32"
    far = CudaForm(specialise(kernel, kernel.nests[0], [(1 << 30, 8), *strides[1:]]), kernel)
    assert far.index == "i64"
    (written,) = write_form(form.loops, form.index, "k")
    assert "int n0" in written.text and "long long" not in written.text
    assert "load_pack<f64, 2>" in written.text, "16 bytes at once"


def test_the_source_is_the_same_for_all_sizes() -> None:
    texts = set()
    for size in (100, 101, 5000):
        x = np.zeros(size)
        (kernel,) = kernels_of(build(mixed, x, x))
        form = specialise(kernel, kernel.nests[0], [(b.dtype.itemsize,) for b in kernel.buffers])
        texts.add(module_of(write_form(form, "i32", "k")).source)
    assert len(texts) == 1


def test_transposed_operands_go_through_tiles() -> None:
    rng = np.random.default_rng(4)
    x, y = rng.standard_normal((70, 45)), rng.standard_normal((3, 40, 33)).astype("f4")
    flags = rng.standard_normal((45, 70)) > 0

    def copied(b: Builder, v: Any) -> Any:
        return b.emit("Add", v, v), b.emit("Transpose", b.emit("Exp", v), perm=(1, 0))

    assert_same_bits([
        (mixed, [x, x.T.copy().T]), (mixed, [x.T.copy().T, x]), (mixed, [x[::-1], x.T.copy().T]),
        (lambda b, a, c: b.emit("Where", c, a, a), [x, flags.T]), (copied, [x]),
        (mixed, [y, y.transpose(0, 2, 1).copy().transpose(0, 2, 1)]),
        (mixed, [y, y.transpose(2, 1, 0).copy().transpose(2, 1, 0)]),
        (mixed, [x[:17, :16], x.T.copy().T[:17, :16]]), (mixed, [x[:15], x.T.copy().T[:15]]),
    ])
    (kernel,) = kernels_of(build(mixed, x, x))
    strides = [x.strides, x.T.copy().T.strides, *(
        np.empty(b.shape, b.dtype).strides for b in kernel.buffers[2:])]
    form = specialise(kernel, kernel.nests[0], strides)
    assert tiles_of(form) == Tiles(0, (0,)), "the operand that is read first"
    (written,) = write_form(form, "i32", "k")
    assert written.kernel.static_shared == 32 * 33 * 8


def test_names_hide_no_types() -> None:
    """A counter that was the eighth name of a kernel was called as the type of its operands."""
    names = [CudaEmitter().fresh("i"), *map(CudaEmitter().fresh, ["i", "f", "u"] * 50)]
    assert not {"i8", "u8", "i16", "f32", "u64", "i64", "f64", "i128"} & {*names}
    grid = np.stack([np.arange(33), np.arange(33)[::-1]]).astype(np.int8)
    got = run_program(lambda x: (x.argmax(0), x.argmin(1), x.T.argmax(0)), grid)
    assert [r.tolist() for r in got] == [
        grid.argmax(0).tolist(), [0, 32], [32, 0]]


def test_numbers_are_divided_by_reciprocals() -> None:
    rng = np.random.default_rng(0)
    divisors = [*range(1, 300), *(1 << k for k in range(31)), *((1 << k) - 1 for k in range(2, 32)),
                *rng.integers(1, 2**31, 300)]
    for d in map(int, divisors):
        magic, shift = reciprocal(d)
        assert 0 <= magic < 2**32
        near = [k * d + e for k in rng.integers(0, 2**31 // d + 1, 50) for e in (-1, 0, 1)]
        for n in (0, 1, d - 1, d, 2**31 - 1, *(int(n) for n in near if 0 <= n < 2**31)):
            assert ((magic * n >> 32) + n) >> shift == n // d, (n, d)
            assert (magic * n >> 32) + n < 2**32


@pytest.mark.parametrize("lanes", [1, 2, 3, 5, 1001])
def test_addresses_that_are_not_aligned(lanes: int) -> None:
    """A pack at an odd address, and the end of a row, go element by element."""
    x, y = (np.arange(4011.0, dtype="float32").reshape(3, -1) * k for k in (1, 2))
    for f in (lambda x, y: x[:, 1:lanes + 1] * 2 + y[:, 2:lanes + 2],
              lambda x, y: x[1:, :lanes] * y[:-1, :lanes] + y[0, :lanes]):
        np.testing.assert_array_equal(
            fusec.jit(f, device="/device:CUDAHOST:0", fp="strict")(x, y), f(x, y))
