"""Programs that once went wrong, as the fuzzer or a person found them, smallest form first."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from arrays import ordinary
from harness import check
from tolerance import EXACT, NEAR

import fusec
from fusec.trace.facts.this_numpy import POWER_TAKES_ROOTS

pytestmark = pytest.mark.every_case
X = ordinary("f8", 6, 8)
TABLE = np.arange(6.0)


def strided_update_of_a_split_value(x: Any) -> Any:
    """The override nest of a strided update met a piecewise value and was not split."""
    y = x + 1
    y[0] = 0
    x = x[::-1]
    x[0] = 3
    return x, y


def whole_value_read_while_written_in_part(x: Any) -> Any:
    """Stores of unchanged elements were dropped though a sum read all of the temporary."""
    x[0] = x[-1]
    return x.max(), x.argmin()


def one_result_returned_twice(x: Any) -> Any:
    """The native launcher made two arrays and filled one."""
    y = np.empty(x.shape)
    r = np.add(x, 1, out=y)
    return r, y


def constant_arrays(x: Any) -> Any:
    """A constant of rank 0 came back as a scalar."""
    return np.ones(()), np.zeros((), "i4"), np.full((), 2.5)


def scalar_indexed_by_new_axes(x: Any) -> Any:
    s = x[0, 0]
    return s[..., None], s[None], s[...], s[()], s[None, ..., None]


def reductions_of_rank_0(x: Any) -> Any:
    y = x[0, 0, ...]
    return y.sum(), y.max(0), y.any(axis=-1), np.sum(y, keepdims=True), x[0, 0].min(0)


def scalar_methods(x: Any) -> Any:
    s = x[1, 1]
    s.fill(5)
    array = np.where(s, s, 0)
    return s, s.copy(), np.copy(s), np.squeeze(s), np.nan_to_num(s), np.nan_to_num(array)


def memory_order_of_joined(x: Any) -> Any:
    y = x.T
    return np.concatenate([y, y]), np.stack([y, y]), np.roll(y, 1, 0), np.vstack([y] * 2)


def memory_order_of_copies(x: Any) -> Any:
    b = np.broadcast_to(x[0], (4, 8))
    return b.astype("f4"), np.zeros_like(b), np.copy(b), np.ascontiguousarray(x.T), b + 1


def order_of_index_reductions(x: Any) -> Any:
    y = x.reshape(2, 3, 8).transpose(2, 0, 1)
    return y.argmax(0), y.argmin(1), y.argmax(axis=2, keepdims=True), y.min(0), y.max(1)


def ravel_copies_what_is_not_contiguous(x: Any) -> Any:
    return x[0, ::-1].ravel(), x[:, 0].ravel(), x[0].ravel(), x[0, ::-1].reshape(-1)


def differences_of_booleans(x: Any) -> Any:
    return np.diff(x > 0), np.diff(x > 0, axis=0)


def captured_arrays_are_read_anew(x: Any) -> Any:
    """Results of NumPy alone for arrays from outside were frozen into the trace."""
    total = sum(t for t in TABLE[:2])
    return (x[:, 0] * (TABLE * 2) + np.exp(TABLE) * 0 + TABLE.max() + TABLE[1], total,
            -TABLE, TABLE > 2, TABLE.T, [t + 0 for t in TABLE[:3]])


PROGRAMS = [
    strided_update_of_a_split_value, whole_value_read_while_written_in_part,
    one_result_returned_twice, constant_arrays, scalar_indexed_by_new_axes, reductions_of_rank_0,
    scalar_methods, memory_order_of_joined, memory_order_of_copies, order_of_index_reductions,
    ravel_copies_what_is_not_contiguous, differences_of_booleans,
]


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_programs(f: Callable[..., Any]) -> None:
    check(f, X.copy(), fp="strict")
    check(f, np.asfortranarray(X), fp="strict")
    check(f, np.repeat(X, 2, 0)[::-2], fp="strict")


def test_captured_arrays_change_between_calls() -> None:
    function = fusec.jit(captured_arrays_are_read_anew, fp="strict")
    kept = TABLE.copy()
    try:
        for value in (0.0, 5.0, -2.0):
            TABLE[1] = value
            check(captured_arrays_are_read_anew, X, jitted=function, engines=False)
    finally:
        TABLE[:] = kept
    assert function.trace_count == 1


def test_captured_arrays_are_written_at_each_call() -> None:
    counts = np.zeros(3)

    def f(x: Any) -> Any:
        nonlocal counts
        counts[1] += 1
        return x + counts

    function = fusec.jit(f)
    for call in range(1, 4):
        np.testing.assert_array_equal(function(np.ones(3)), [1, 1 + call, 1])
    np.testing.assert_array_equal(counts, [0, 3, 0])


def test_uint64_is_compared_with_smaller_signed_integers() -> None:
    """-1 was equal to 2**64 - 1."""
    big, small = np.array([2**64 - 1, 0, 2**63], "u8"), np.array([-1, 0, -128], "i1")
    check(lambda x, y: (x == y, x < y, y < x, x >= y, y != x), big, small)


@pytest.mark.parametrize("n", [300, -1, 2**63, -(2**70)])
def test_comparisons_with_ints_no_element_can_hold(n: int) -> None:
    x = np.array([0, 1, 255], "u1")
    check(lambda x: (x < n, x <= n, n < x, x == n, x != n, x >= n), x)


def test_where_wraps_python_ints() -> None:
    check(lambda x: (np.where(x > 0, x, 300), np.where(x > 0, -1, x)), np.array([0, 5], "u1"))


def test_clip_with_bounds_no_element_exceeds() -> None:
    x = np.array([0, 200], "u1")
    check(lambda x: (np.clip(x, -3, 100), x.clip(0, 255), x.clip(-5, 1000)), x)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_run_time_exponents_take_numpys_shortcuts(dtype: str) -> None:
    """-inf ** 0.5 is NaN in an array and inf in a scalar."""
    function = fusec.jit(lambda x, a: x**a)
    x = np.array([-np.inf, -0.0, 4.0, -1.0, np.inf], dtype)
    for a in (0.5, 2.0, -1.0, 0.5):
        check(function.python_function, x, a, jitted=function)


def test_int_powers_of_run_time_ints() -> None:
    function = fusec.jit(lambda x, n: x**n)
    for n in (2, 3, 0, 5, -1):
        check(function.python_function, np.arange(4), n, jitted=function)


@pytest.mark.parametrize("first", ["fusec.Function", "fusec.no_retrace", "fusec.TensorSpec"])
def test_modules_do_not_hide_the_function(first: str) -> None:
    code = (f"import fusec; {first}; import fusec.dispatch.jit, fusec.random; "
            "assert fusec.jit(lambda x: x + 1)(1.0) == 2.0")
    subprocess.run([sys.executable, "-c", code], check=True)


def test_joining_with_nothing_keeps_c_order() -> None:
    """A zero-size part has strides of 0, which decide the order of the axes."""
    columns, nothing = ordinary("f8", 2, 3).T, np.zeros((0, 2))
    check(lambda x, y: (np.concatenate([x, y]), np.concatenate([x, np.zeros((0, 2))])),
          columns, nothing)


def overlapping_updates_in_place(x: Any) -> Any:
    """A reversed update read elements that the nest before it had written to the same argument."""
    x += 3
    x[::-1] += 3
    return x


def view_of_a_scalar_twice(x: Any) -> Any:
    s = x.any()
    y = s.reshape(-1)
    return y, y, s[None]


def rounding_to_digits(x: Any) -> Any:
    out = np.zeros(x.shape)
    np.round(x, 1, out=out)
    return np.round(x[::-1], 1), np.round(x, 2), x.T.round(1), out, np.round(x)


def negation_of_an_updated_rank_0_array(x: Any) -> Any:
    y = np.zeros(())
    y += x[0, 0]
    return np.logical_not(y), y


@pytest.mark.parametrize("f", [
    overlapping_updates_in_place, view_of_a_scalar_twice, rounding_to_digits,
    negation_of_an_updated_rank_0_array,
], ids=lambda f: f.__name__)
def test_more_programs(f: Callable[..., Any]) -> None:
    test_programs(f)


def test_a_row_read_again_after_an_early_update() -> None:
    """The update is stored in the first pass over a row; a later pass reads the old value."""
    def program(x, u):
        t = np.abs(x) + u
        u += u
        return t - t.max(0, keepdims=True)

    x, u = np.array([-1.0, 0.0, 0.001]), np.array([[63, 0, 255], [100, 255, 7]], "u1")
    check(program, x, u)
    check(program, x, u.astype("f8"))
    check(lambda x, u: program(x, u.T), x[:2], np.ascontiguousarray(u.T).astype("f8"))


def test_copyto_drops_leading_axes_of_length_1() -> None:
    def program(x, y):
        np.copyto(x, y)
        np.copyto(x[...], y[0], where=x > 0)
        return x + 1

    check(program, np.array(2.0), np.array([[3.0]]))
    check(program, np.arange(3.0), np.arange(3.0)[None, None] - 1)


@pytest.mark.parametrize("dtype", ["i1", "u8", "f4"])
@pytest.mark.parametrize("number", [3, 300, -129, 1.5, 2**63])
def test_a_number_given_to_ufunc_at_has_a_dtype_of_its_own(dtype: str, number: Any) -> None:
    def f(x: np.ndarray) -> np.ndarray:
        np.maximum.at(x, np.array([0, 2, 0]), number)
        np.add.at(x, np.array([1]), number)
        return x

    x = np.array([1, 2, 3], dtype)
    check(f, x, engines=False)


def test_the_matrix_transpose_of_an_array_made_in_the_function_can_be_written() -> None:
    def f(a: float) -> tuple[np.ndarray, np.ndarray]:
        y = np.ones((2, 3))
        z = y.mT
        z[0] = a
        return y, z

    check(f, 2.0)
    check(lambda x: x.mT, np.ones((2, 3, 4)))


def test_a_view_of_known_contents_is_not_taken_for_a_constant() -> None:
    def f(x: np.ndarray) -> np.ndarray:
        x[:] = 1
        return np.trim_zeros(x)

    with pytest.raises(fusec.UnsupportedError, match="trim_zeros"):
        fusec.jit(f)(np.zeros(2))


def test_a_branch_reads_a_view_of_what_it_changes() -> None:
    """The view was taken before the branch; its memory must not change under it."""
    def f(a: np.ndarray, c: float) -> None:
        w = a[1]
        if w[1] > c:
            w[1], w[2] = 1.0, w[1]

    check(f, np.arange(1.0, 9.0).reshape(2, 4), 0.0, engines=False)


def test_run_time_ints_compare_with_narrow_arrays_as_integers():
    @fusec.jit
    def above(image, x):
        threshold = 0
        for t in range(300):
            if x[0] > t:
                threshold = t
        return image > threshold, threshold <= image, image == threshold

    image = np.arange(0, 256, 5, dtype=np.uint8)
    for dtype in (np.uint8, np.int8, np.uint64):
        for limit in (20.0, 270.0):
            args = (image.astype(dtype), np.array([limit]))
            for got, want in zip(above(*args), above.__wrapped__(*args), strict=True):
                assert got.dtype == want.dtype and got.tolist() == want.tolist()


def test_run_time_ints_that_do_not_fit_a_narrow_array_raise_in_loops():
    @fusec.jit
    def add(table, x):
        step = 0
        for i in range(40):
            if x[i % 2] > 0:
                step = 10 * i
            table[i] = table[i] + step
        return table

    small = np.zeros(40, np.int16)
    assert add(small, np.ones(2)).tolist() == list(range(0, 400, 10))
    with pytest.raises(OverflowError, match="int8"):
        add(np.zeros(40, np.int8), np.ones(2))


def test_traced_values_that_numpys_dispatch_does_not_look_at():
    @fusec.jit
    def within(x, counts):
        largest = np.argmax([x[0], x[1], x[2]])
        return largest, np.repeat(np.arange(3), counts), bool(x[0] > x[1]), list(x[:2].T.flat)

    args = (np.array([1.0, 7.0, 3.0]), np.array([2, 0, 3]))
    got, want = within(*args), within.__wrapped__(*args)
    assert type(got[0]) is type(want[0]) and got[0] == want[0]
    assert got[1].tolist() == want[1].tolist() and got[2] is want[2] and got[3] == want[3]


def test_a_side_of_a_branch_may_be_an_array_of_plain_numbers():
    @fusec.jit
    def identity_or(x):
        if x[0] == 0.0:
            return np.eye(2)
        return np.outer(x, x)

    for x in (np.zeros(2), np.ones(2)):
        assert identity_or(x).tolist() == identity_or.__wrapped__(x).tolist()


def test_defects_of_the_tracer_in_a_branch_are_not_taken_for_the_programs_exceptions(monkeypatch):
    from fusec.trace.values.operations import OPERATIONS

    def broken(*args, **kwargs):
        raise KeyError("a defect")

    @fusec.jit
    def select(x):
        if x.sum() > 0:
            return x[1:]
        return x[:2]

    monkeypatch.setattr(OPERATIONS, "getitem", broken)
    with pytest.raises(KeyError, match="a defect"):
        select(np.ones(3))
    monkeypatch.undo()

    @fusec.jit
    def look_up(x):
        if x.sum() > 0:
            return x * [1.0, 2.0][5]
        return x

    assert look_up(-np.ones(3)).tolist() == [-1.0] * 3
    with pytest.raises(IndexError, match="list index"):
        look_up(np.ones(3))


COUNTS = np.array([2, 0, 1, 3, 0], "i4")
WIDE = np.broadcast_to(np.array([1.0, -2.0, np.nan]), (2, 3))


@pytest.mark.parametrize("program", [
    lambda x: np.size(x[x > 0]),
    lambda x: np.array_equal(x.nonzero()[0], x.nonzero()[0]),
    lambda x: np.array_equal(x.nonzero()[0], x[x > 1]),
    lambda x: np.array_equiv(x.nonzero(), x.nonzero()),
    lambda x: np.inner(x[:3], x[x != 0]),
    lambda x: np.inner(x, x[x != 0]),
    lambda x: np.dot(x[x > 0], x[:3]),
    lambda x: x[:3] @ x[x > 0],
    lambda x: np.vdot(x[x > 0], x[:2]),
    lambda x: x.compress(x, out=x[:3]),
    lambda x: x.compress(x, out=x),
    lambda x: np.compress(x > 1, x, out=np.zeros(2)),
    lambda x: np.extract(x, x).clip(1, 2, np.zeros(3, "i4")),
    lambda x: np.roll(x.nonzero()[0], (1, 2)),
    lambda x: np.poly(x[x > 0]),
    lambda x: np.setxor1d(x, x) == 2**31,
    lambda x: np.polymul(x - x, 0),
    lambda x: x[:2].T.compress(x[1:2]),
])
def test_run_time_sizes_are_compared_at_run_time(program: Any) -> None:
    check(program, COUNTS, engines=False)


@pytest.mark.parametrize("program", [
    lambda x: np.argwhere(x), lambda x: np.argwhere(x[0]), lambda x: (np.argwhere(x[0, 0]) + 1,),
    lambda x: x.nonzero()[0][2::-1], lambda x: np.nan_to_num(x), lambda x: np.round(x > 0),
    lambda x: (x > 0).any(-1), lambda x: np.add.reduce(np.broadcast_to(x, (2, 2, 3)), 0),
    lambda x: np.delete(np.ones((3, 2, 3)).transpose(1, 2, 0), np.array([-2, -1]), axis=1),
    lambda x: np.unstack(x), lambda x: np.lexsort([x[0], x[1]]), lambda x: np.lexsort(x),
])
def test_results_lie_in_memory_as_numpys_do(program: Any) -> None:
    check(program, WIDE, engines=False)
    check(program, np.arange(6.0).reshape(2, 3), engines=False)


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
def test_which_powers_are_square_roots_depends_on_who_computes(dtype: str) -> None:
    def powers(x: Any) -> Any:
        half = x.dtype.type(0.5)
        number = x[()] if not x.ndim else x[0]
        return (x**0.5, x**half, np.power(x, 0.5), np.power(x, half), number**0.5, number**half,
                np.power(number, 0.5), np.float_power(x, 0.5), np.float_power(number, 0.5))

    for values in (-0.0, -np.inf, [-0.0, -np.inf], [-np.inf, -0.0, 0.0]):
        check(powers, np.array(values, dtype), engines=False)
    check(lambda x: x**0.5, -0.0)


def test_a_mask_of_rank_0_selects_one_or_none() -> None:
    check(lambda x: np.hypot.reduceat(x[x > 1], [0]), np.array(2.0), engines=False)


@pytest.mark.parametrize("program", [
    lambda x: np.nanpercentile(x, 0, keepdims=True, out=np.zeros(1, "i8")),
    lambda x: np.percentile(x, 30, out=np.zeros((), "i8")),
    lambda x: np.percentile(x, 30, out=np.zeros((), "f4")),
    lambda x: np.median(x, out=np.zeros((), "i8")),
    lambda x: np.concatenate([x], out=x),
    lambda x: x.cumsum(out=np.zeros(3, "f2")),
    lambda x: x.var(dtype="f2"),
    lambda x: (x * 1e300).std(dtype="f4"),
    lambda x: x.dot(-0.0), lambda x: x[:1].dot(-0.0), lambda x: x[:1].cumsum()[0],
    lambda x: np.logical_or.reduce(x > 9, initial=np.int8(3)),
    lambda x: np.logical_and.reduce(x, initial=0.0),
    lambda x: np.nanmin(x[:1] == 1, initial=x[:1] == 1),
    lambda x: np.min(x, initial=x[:1]),
    lambda x: np.min(x[0], where=x.shape[0] > 2),
    lambda x: np.apply_along_axis(np.sum, -1, x, np.array(-1)),
])
def test_numpys_own_rules_of_out_and_dtypes(program: Any) -> None:
    check(program, np.array([1.0, 2.5, -3.0]), engines=False)
    read_only = np.broadcast_to(np.array([1.0]), (3,))
    check(program, read_only, engines=False)


def test_a_matrix_product_of_python_numbers_is_refused_as_python_does() -> None:
    def program(x: Any, y: Any) -> Any:
        x @= y
        return x

    check(program, 2.0, 3.0)
    x = np.ones((1, 2), "u4")
    check(program, x, np.ones((1, 2), "i8"))  # NumPy asks for the cast before it looks at shapes


Z = np.array([[1 + 1j, 2 - 1j], [complex(np.nan, 7), complex(np.inf, 2)]])


@pytest.mark.parametrize("program", [
    lambda z: np.power(z, 0.5), lambda z: z**0.5, lambda z: np.power(z, 2),
    lambda z: np.power(z, -1),
    lambda z: z ** np.complex128(2), lambda z: z.ravel()[0].round(),
    lambda z: np.round(z[0, 0]), lambda z: np.nan_to_num(z[0, 1]), lambda z: np.fmin.reduce(z),
    lambda z: np.fmax.reduce(z, axis=None),
    lambda z: np.fft.irfft2(z[:1], out=np.zeros((1, 2))),
])
def test_complex_numbers_in_shortcuts_and_reductions(program: Any) -> None:
    check(program, Z, engines=False)


def test_a_power_of_a_half() -> None:
    """A root, or in older NumPys a power, whose last bit is our own."""
    check(lambda z: z.real[0] ** np.array([0.5]), Z, engines=False,
          tolerance=EXACT if POWER_TAKES_ROOTS else NEAR)


def test_python_complex_numbers_take_float64_as_their_own() -> None:
    def program(z: complex, x: Any) -> Any:
        return z != np.float64(), z + x, x + z, z * np.float64(2), np.nan_to_num(z)

    check(program, 1 + 2j, np.float64(3.0))
    check(lambda x, half: x**half, np.array([1.0, -0.0]).reshape(2, 1, 1), np.array([0.5]),
          engines=False)
    check(lambda z: np.round(z), np.array(1 + 2j))


@pytest.mark.parametrize("program", [
    lambda z: np.nancumprod(z), lambda z: np.fft.ifft2(z, out=np.zeros((2, 2), "u1")),
    lambda z: np.array(z, dtype="c8", order="F"), lambda z: z.ravel()[:1].reshape(()) ** 1,
    lambda z: np.array(3)[...] ** 1,
])
def test_complex_scans_transforms_and_copies(program: Any) -> None:
    check(program, Z, engines=False)


def test_an_array_of_one_element_is_updated_by_as_many_as_data_selects() -> None:
    def program(x: Any) -> Any:
        x *= np.extract(x > 1, x)
        return x

    check(program, np.array([2]), engines=False)
    with pytest.raises(ValueError, match="broadcast"):
        fusec.jit(program)(np.array([0, 2, 2]))


def test_a_product_with_the_number_zero_is_zero_in_blas() -> None:
    """Fuzzer seed 5010973: BLAS does nothing for a factor of zero, so infinities and NaN vanish."""
    x = np.array([1.0, -np.inf, np.nan])
    check(lambda x, a: (np.dot(x, 0), np.dot(a, x), np.inner(x, 0.0), np.dot(x, 2)), x, 0.0)
    check(lambda x: np.dot(x, 0), x.astype("f4"))
    check(lambda x: (np.dot(x, 0), np.dot(0j, x)), x + 1j)


def test_a_variance_in_a_narrower_dtype_keeps_the_elements() -> None:
    """Fuzzer seed 5001446: NumPy's distances from the mean have the dtype of both."""
    x = np.array([1.0, 1e300])
    check(lambda x: (np.var(x, dtype="f2"), x.std(dtype="f4"), x.var(0, "f8")), x)
    check(lambda x: x.var(dtype="f4"), np.arange(9), tolerance=NEAR)


def test_transforms_that_ignore_out() -> None:
    """Fuzzer seed 7000291: NumPy 2 takes ``out`` and makes a new array."""
    z = np.array([1, 2, 1j, 0.5, -1], "c16")
    check(lambda z, out: (np.fft.hfft(z, out=out) + out, out), z, np.ones(8))
    square, out = np.outer(z, z), np.ones((5, 5), complex)
    check(lambda z, out: (np.fft.ifft2(z, out=out) + out, out), square, out)
    check(lambda z, out: np.fft.irfft2(z, (4, 4), (0, 1), None, out) + out, square, np.ones((4, 4)))


def test_complex_numbers_in_nancumsum_and_round_of_rank_0() -> None:
    """Fuzzer seeds 7000620 and 7001262."""
    z = np.array([1, 2j, complex(0.5, np.nan), 3])
    check(lambda z: (np.nancumsum(z), np.nancumprod(z), np.round(z[1], 1)), z)
    check(lambda z: (np.round(z, 1), z.round(), np.round(z[None], 1)), np.array(1.26 - 2.55j))


def test_positions_to_delete_may_be_data() -> None:
    check(lambda x: np.delete(x, x), np.array([1, 1, 0], "u2"), engines=False)
    check(lambda x: np.delete(x, [0, 2]), np.arange(4.0), engines=False)
    check(lambda x, i: np.delete(x, i, axis=1), np.ones((2, 3)), np.array([0, 2]), engines=False)


def test_a_loop_goes_on_from_what_an_argument_has_become() -> None:
    """The argument's new value is still to be written back when the loop runs."""
    def f(x: np.ndarray, y: np.ndarray, s: float) -> np.ndarray:
        x[2] += 1.0
        for i, _ in enumerate(y[1:10]):
            for _ in range(3):
                x = x * 0.5
                x[i] = s
        return x

    check(f, np.arange(12.0), np.arange(12.0), 0.25, engines=False, fp="strict")


def test_a_result_chosen_of_two_reversed_views() -> None:
    """It is a copy, in order; the strides of the views once led before the start of its memory."""
    def f(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        v = x[8:0:-1]
        if x[0] > y[0]:
            return v
        return y[-1:3:-1]

    for first in (1.0, -1.0):
        x, y = np.arange(12.0) + first, np.arange(12.0)
        np.testing.assert_array_equal(fusec.jit(f)(x, y), f(x, y))


@pytest.mark.parametrize("a", [0.5, -0.5])
def test_changing_a_variable_in_place_reads_it(a: float) -> None:
    """Nothing reads ``y`` afterwards, but ``-=`` writes to the array that the branch chose."""
    def f(x: np.ndarray, y: np.ndarray, a: float) -> None:
        if a > 0.0:
            y = x
        y -= 1.0

    check(f, np.arange(4.0), np.arange(4.0) * 10, a, engines=False, fp="strict")


def test_a_loop_that_rebinds_an_array_and_writes_its_memory_under_another_name() -> None:
    """Carried by value it would miss the writes; one by one there are too many iterations."""
    def f(x: np.ndarray) -> np.ndarray:
        v = x[:3]
        for _ in range(30):
            if x.sum() >= 2.0:
                v[...] -= v[::-1]
            else:
                x = x * 0.5
        return x * 1.0

    with pytest.raises(fusec.UnsupportedError, match="may have bound to another one"):
        fusec.jit(f)(np.arange(4.0))


@pytest.mark.parametrize("x", [
    np.zeros((0, 2), "f4"), np.full((2, 2), np.nan), np.array([[1.0, np.nan], [-2.0, np.nan]]),
    np.array([[3, 1]]),
])
def test_nanmax_with_an_initial_value(x: Any) -> None:
    """Fuzzer seed 806087: slices of nothing but NaN, or of nothing, give the initial value."""
    check(lambda x: (np.nanmax(x, initial=2), np.nanmin(x, axis=0, initial=np.uint8(0))), x)
    check(lambda x: np.nanmax(x, 1, keepdims=True, initial=-9, where=x > 0), x)
    check(lambda x: np.fmin.reduce(x, where=x > 0), x, engines=False)  # NumPy's ValueError
    check(lambda x, start: np.fmin.reduce(x, initial=start), x, x.dtype.type(-1))


def test_singular_values_of_hermitian_matrices_lie_backwards() -> None:
    """Fuzzer seed 806758."""
    a = np.array([[2.0, 1.0], [1.0, -3.0]])
    check(lambda a: np.linalg.svd(a, compute_uv=False, hermitian=True), a)
    check(lambda a: np.linalg.svd(a, False, False, True)[:, 1:] * 2, np.stack([a, 3 * a]))
    check(lambda a: np.linalg.svd(a, hermitian=True), a)


def multiplied_in_place(a: Any, b: Any) -> Any:
    a @= b
    return a


@pytest.mark.parametrize(("a", "b"), [
    (2.0, 3.0), (2, np.float64(3)), (np.float32(1), np.int8(2)), (1j, np.float64(2)),
    (np.ones(3), np.ones(3)), (np.ones((3, 3)), np.ones(3)), (np.ones((2, 2)), np.eye(2)),
    (np.ones(2), np.eye(2)), (2.0, np.eye(2)), (np.eye(2), 2.0),
])
def test_matrix_products_in_place(a: Any, b: Any) -> None:
    """Fuzzer seed 5010430: numbers have no ``@``, and a vector on the right no result of rank 2."""
    check(multiplied_in_place, a, b, engines=False)


def test_copyto_a_number_is_an_error_before_shapes_are() -> None:
    """Fuzzer seed 21789."""
    check(lambda x, y: np.copyto(x, y), np.uint8(3), np.ones((0, 1)), engines=False)
    check(lambda x, y: np.copyto(x, y), 3.0, 2.0, engines=False)


def test_an_empty_loop_checks_no_index() -> None:
    """Fuzzer seed 20862: the reference interpreter looked at an index that no element has."""
    def program(x: Any) -> Any:
        x[:] = 2
        return (x * 0)[x]

    check(program, np.array([], "u8"))


def test_insert_before_positions_of_data() -> None:
    """Fuzzer seed 40837."""
    x = np.array([1.0, 2.0, 0.0])
    check(lambda x: np.insert(x, x.astype(int), x), x, engines=False)
    check(lambda x: np.insert(x, x.astype(int)[:1], 5), x, engines=False)
    check(lambda x: np.insert(x, x > 1, 9), x[1:2], engines=False)
    check(lambda x, i: np.insert(x, i, 7, axis=1), np.ones((2, 3)), np.array([0, 0]),
          engines=False)


def test_inner_products_of_complex_stacks_that_overflow() -> None:
    """Fuzzer seed 43866: NumPy's own loop over vectors has other infinities than zgemm."""
    z = np.array([complex(1e300, 3), complex(-9e18, 100)]).reshape(2, 1, 1)
    check(lambda z: np.inner(z, z), z)
    check(lambda z: np.inner(z, z[0]), np.array([1 + 2j, 0.5, 3j, 1]).reshape(2, 1, 2))


@pytest.mark.parametrize("bound", [2**31, 2**63, 2**64])
def test_counts_compared_with_large_integers_give_a_truth_value(bound: int) -> None:
    """Fuzzer seed 5010987: both are Python's, and so is the comparison's result."""
    check(lambda x: (x[x > 1].size < bound, bound <= x[x > 1].size, len(x[x > 1]) == bound),
          np.array([1.0, 2.0]), engines=False)
    check(lambda n: (n < bound, -bound > n, n != bound), 7)


def test_results_that_the_run_sizes() -> None:
    """Fuzzer seeds 5000052 and 5000208."""
    x = np.array([3.0, 0, 2, 5])
    check(lambda x: np.vecdot(x[x > 1], 2 * x[x > 1]), x, engines=False)
    check(lambda x: (np.flatnonzero(x).max(), np.flatnonzero(x).argmax()), x, engines=False)
    check(lambda x: np.flatnonzero(x).max(), np.zeros(3), engines=False)


def test_complex_numbers_ordered_with_numpys_floats() -> None:
    """Fuzzer seed 5817: Python's complex numbers have no order, so NumPy's scalar answers."""
    check(lambda z, x: (z < x, x >= z, z == x, z + x), 2j, np.float64(2), engines=False)


@pytest.mark.parametrize("first", [1.0, 9.0])
def test_arrays_that_change_places_until_an_exit(first: float) -> None:
    """Which array is written depends on how often they changed places."""
    def f(x: np.ndarray, y: np.ndarray) -> None:
        for i in range(3):
            if np.all(y < 6):
                x[i] = 0.0
            else:
                break
            x, y = y, x

    check(f, np.full(4, first), np.ones(4), engines=False)


def test_a_result_that_a_loop_bound_to_an_array_written_since() -> None:
    """Fuzzer seed c7770073: a wrong value, where reading the variable was refused already."""
    def f(x: np.ndarray, y: np.ndarray, a: float) -> np.ndarray:
        for _ in range(10):
            v = y[-8:] if a >= 1.0 and x.sum() > 1.0 else x[:8]
        x[1] += a
        return v

    with pytest.raises(fusec.errors.UnsupportedError, match="which was written since"):
        fusec.jit(f)(-np.ones(12), np.ones(12), 2.5)


def test_library_calls_of_numpy_scalars() -> None:
    """Fuzzer seed 216: a constant was compared with an operand's place, as NumPy compares."""
    check(lambda x: np.polymul(x, np.float32(2)), np.array([True]), engines=False)
    check(lambda x: np.polymul(x, np.float64(2)), np.array([1.0, 2.0]), engines=False)
