"""The equality of results: exact kinds and patterns, floats within NumPy's own error."""

from __future__ import annotations

import numpy as np
import pytest

from fusec.bench.measuring import equality


def judge(got, want, wide=None):
    return equality.compare([got], [want], None if wide is None else [wide], "longdouble")


def test_integers_and_booleans_are_exact():
    a = np.arange(6)
    assert judge(a.copy(), a) is equality.EXACT
    b = a.copy()
    b[4] += 1
    verdict = judge(b, a)
    assert not verdict.equal and "index 4: 5 for 4" in verdict.reason


@pytest.mark.parametrize("got", [
    np.zeros(3, np.float32), np.zeros((3, 1)), np.float64(0.0), [0.0, 0.0, 0.0],
])
def test_kind_shape_and_dtype_count(got):
    assert not judge(got, np.zeros(3)).equal


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_pattern_of_nan_and_infinity_is_exact(bad):
    want = np.array([1.0, bad, 2.0])
    assert judge(want.copy(), want, want.astype(np.longdouble)).equal
    verdict = judge(np.array([1.0, 1.5, 2.0]), want, want.astype(np.longdouble))
    assert not verdict.equal and "flat index 1" in verdict.reason
    assert not judge(np.array([1.0, -bad, 2.0]), want).equal or np.isnan(bad)


def test_four_ulp_pass_and_five_do_not_where_numpy_is_right():
    exact = np.linspace(1.0, 1.5, 50)
    wide = exact.astype(np.longdouble)
    ulp = np.spacing(1.0)
    assert judge(exact + 4 * ulp, exact, wide).equal
    verdict = judge(exact + 5 * ulp, exact, wide)
    assert not verdict.equal and "5 ulp" in verdict.reason and "4 are allowed" in verdict.reason


def test_numpys_own_error_widens_the_bound():
    wide = np.linspace(1.0, 1.5, 50).astype(np.longdouble)
    ulp = np.spacing(1.0)
    eager = wide.astype(np.float64)
    eager[7] += 3 * ulp
    good, bad = wide.astype(np.float64) + 15 * ulp, wide.astype(np.float64) + 18 * ulp
    assert judge(good, eager, wide).equal
    assert not judge(bad, eager, wide).equal
    assert judge(good, eager, wide).numpy_ulp == pytest.approx(3.0)


def test_cancellation_in_some_elements_does_not_excuse_the_others():
    """Large elements stay at 4 ulp although elements near zero have no correct digit."""
    large = np.linspace(1.0, 2.0, equality.CLASS)
    small = np.linspace(1e-16, 2e-16, equality.CLASS)
    wide = np.concatenate([large, small]).astype(np.longdouble)
    eager = wide.astype(np.float64)
    eager[equality.CLASS:] += 1e-16
    got = eager.copy()
    got[equality.CLASS:] += 2e-16
    assert judge(got, eager, wide).equal
    got[0] += 9 * np.spacing(1.0)
    assert not judge(got, eager, wide).equal


def test_without_reference_eight_ulp_stand_in():
    exact = np.full(10, 1.0)
    assert judge(exact + 30 * np.spacing(1.0), exact).equal
    assert not judge(exact + 40 * np.spacing(1.0), exact).equal


def test_subnormal_and_zero_and_empty():
    tiny = np.array([0.0, 5e-324, 1e-310])
    assert judge(tiny + 4 * 5e-324, tiny, tiny.astype(np.longdouble)).equal
    assert not judge(tiny + 9 * 5e-324, tiny, tiny.astype(np.longdouble)).equal
    assert judge(np.zeros(0), np.zeros(0), np.zeros(0, np.longdouble)).equal
    assert judge(np.array(np.nan), np.array(np.nan), np.array(np.nan, np.longdouble)).equal


def test_number_of_results_counts():
    assert not equality.compare([1, 2], [1], None, "").equal


def test_reference_run_follows_dtypes_and_writes_to_its_own_arrays():
    def f(x, n):
        x[0] = 1.0
        return x / 3.0

    x = np.ones(4)
    x[0] = 5.0
    reference, name = equality.reference_run(f, (x, 3), [f(x.copy(), 3)], 1000)
    assert name == "longdouble"
    assert reference is not None and reference[0].dtype == np.longdouble
    assert len(reference) == 2 and x[0] == 5.0


def test_large_float32_programs_use_float64():
    x = np.ones(100, np.float32)
    reference, name = equality.reference_run(np.sqrt, (x,), [np.sqrt(x)], 10)
    assert name == "float64" and reference[0].dtype == np.float64


def test_a_program_that_cannot_widen_says_so():
    def f(x):
        return np.linalg.inv(x)  # LAPACK has no extended precision

    x = np.eye(3)
    reference, name = equality.reference_run(f, (x,), [f(x)], 1000)
    assert reference is None and "cannot run in" in name


def test_a_program_of_numbers_alone_is_compared_with_numpy() -> None:
    """Constants of a program have float64's precision in every run."""
    result, why = equality.reference_run(lambda n: np.linspace(0, 1, n), (5,), [np.zeros(5)], 100)
    assert result is None and "no argument has a precision" in why
