"""The reference interpreter against NumPy and against exact arithmetic."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from kernel_harness import build, kernels_of

from fusec.codegen.kernels.loop_ir import Access, Buffer, Kernel, Nest, Stage, Store, expr
from fusec.codegen.kernels.reference import apply, cast, run_kernel
from fusec.errors import InternalError
from fusec.ops.exact_fma import exact_fma
from fusec.ops.regions.index_maps import AxisIndex

F8 = np.dtype(np.float64)


def rounded_once(a: float, b: float, c: float) -> float:
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    return a * b + c if exact == 0 else float(exact)


def test_fma_of_float64_is_exact() -> None:
    rng = np.random.default_rng(1)
    a, b = rng.standard_normal((2, 3000)) * 2.0 ** rng.integers(-40, 40, (2, 3000))
    c = np.where(rng.random(3000) < 0.5, -a * b, rng.standard_normal(3000))
    c[::5] *= 2.0**-60
    want = [rounded_once(*t) for t in zip(a.tolist(), b.tolist(), c.tolist(), strict=True)]
    np.testing.assert_array_equal(exact_fma(a, b, c), want)


def test_fma_at_the_ends_of_the_range() -> None:
    tiny, huge = 5e-324, 1.7976931348623157e308
    values = [0.0, -0.0, 1.0, -1.0, tiny, -tiny, 2.2e-308, huge, -huge, 2.0**-537, 2.0**512]
    for a, b, c in itertools.product(values, repeat=3):
        got = float(exact_fma(np.float64(a), np.float64(b), np.float64(c)))
        try:
            want = rounded_once(a, b, c)
        except OverflowError:
            want = np.inf if Fraction(a) * Fraction(b) + Fraction(c) > 0 else -np.inf
        assert got == want and np.signbit(got) == np.signbit(want), (a, b, c)


def test_fma_of_infinities_and_nan() -> None:
    inf, nan = np.inf, np.nan
    a = np.array([inf, inf, 1e308, 1e308, nan, 0.0, 1.0])
    b = np.array([1.0, 0.0, 1e308, 1e308, 1.0, inf, 2.0])
    c = np.array([1.0, 1.0, -inf, 1.0, 1.0, nan, inf])
    np.testing.assert_array_equal(exact_fma(a, b, c), [inf, nan, -inf, inf, nan, nan, inf])


def test_fma_of_float32_does_not_round_twice() -> None:
    """Rounding the float64 sum to float32 gives 1 + 2**-22 here; exactly it is above the tie."""
    a = np.float32(1 + 2.0**-12)
    c = np.float32(2.0**-60)
    exact = Fraction(float(a)) ** 2 + Fraction(float(c))
    got = float(exact_fma(a, a, c))
    step = Fraction(1, 2**23)
    assert abs(Fraction(got) - exact) <= step / 2
    near = [Fraction(got) + d * step for d in (-1, 1)]
    assert all(abs(n - exact) > abs(Fraction(got) - exact) for n in near)


def test_casts_out_of_range_are_spelled_out() -> None:
    x = np.array([np.nan, np.inf, -np.inf, 1e10, -5.7, 2.0**63, 3e9])
    assert cast(x, np.dtype(np.int32)).tolist() == [-(2**31)] * 4 + [-5] + [-(2**31)] * 2
    assert cast(x, np.dtype(np.int8)).tolist() == [0, 0, 0, 0, -5, 0, 0]
    assert cast(x, np.dtype(np.uint32))[[4, 6]].tolist() == [2**32 - 5, 3_000_000_000]
    assert cast(x, np.dtype(np.uint64))[[4, 5]].tolist() == [2**64 - 5, 2**63]


def test_strided_buffers_are_written_in_place() -> None:
    x = np.arange(24.0).reshape(4, 6)
    (kernel,) = kernels_of(build(lambda b, v: b.emit("Neg", v), x[::2, ::-2]))
    out = np.zeros((6, 2)).T[:, ::-1][:, ::2]
    run_kernel(kernel, [x[::2, ::-2], out])
    np.testing.assert_array_equal(out, -x[::2, ::-2])


def copy_kernel(index: AxisIndex, extent: int) -> Kernel:
    buffers = (Buffer("x", F8, (5,), "in"), Buffer("y", F8, (5,), "out"))
    accesses = (Access(0, (index,)), Access(1, (AxisIndex(0, 1, 0),)))
    stage = Stage(False, (Store(1, expr("load", F8, attr=0)),))
    return Kernel("copy", buffers, (), (Nest((extent,), 1, accesses, (stage,)),))


@pytest.mark.parametrize("index", [(0, 1, 1), (0, -1, 3), (0, 2, 0)])
def test_accesses_outside_a_buffer_are_refused(index: tuple[int, int, int]) -> None:
    with pytest.raises(InternalError, match="reads or writes x at"):
        run_kernel(copy_kernel(AxisIndex(*index), 5), [np.zeros(5), np.zeros(5)])


def test_wrong_arrays_are_refused() -> None:
    kernel = copy_kernel(AxisIndex(0, 1, 0), 5)
    with pytest.raises(InternalError, match="2 buffers, got 1"):
        run_kernel(kernel, [np.zeros(5)])
    with pytest.raises(InternalError, match="buffer y is float64"):
        run_kernel(kernel, [np.zeros(5), np.zeros(5, np.float32)])


def test_ops_have_exactly_their_dtype() -> None:
    small = np.array([100], np.int8)
    with np.errstate(all="ignore"):
        assert apply("add", small.dtype, [small, small]).tolist() == [-56]
    with pytest.raises(InternalError, match="no scalar op 'frobnicate'"):
        apply("frobnicate", F8, [small])
    with pytest.raises(InternalError, match="gave int8 where its type is float64"):
        apply("add", F8, [small, small])


def test_empty_reductions_give_the_identity() -> None:
    x = np.zeros((3, 0))
    graph = build(lambda b, v: [b.emit("Sum", v, axes=(1,)), b.emit("Prod", v, axes=(1,))], x)
    (kernel,) = kernels_of(graph)
    outs = [np.full(3, 9.0), np.full(3, 9.0)]
    run_kernel(kernel, [x, *outs])
    assert outs[0].tolist() == [0] * 3 and outs[1].tolist() == [1] * 3
