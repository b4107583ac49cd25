"""fusec's own math functions: error bounds, special cases, scalar and vector lanes bit by bit."""

from __future__ import annotations

import itertools

import mpmath
import numpy as np
import pytest

from fusec.codegen import vecmath
from fusec.codegen.vecmath import generate_coefficients as generator
from fusec.codegen.vecmath.builder import format_of
from fusec.codegen.vecmath.coefficients import TABLES, TWO_OVER_PI
from fusec.codegen.vecmath.harness import WIDTH, compiled
from fusec.codegen.vecmath.reference import errors, expected, operands, random_bits

DTYPES = [np.dtype(np.float64), np.dtype(np.float32)]
NAMES = sorted(vecmath.FUNCTIONS)
each_function = pytest.mark.parametrize("name", NAMES)
each_dtype = pytest.mark.parametrize("dtype", DTYPES, ids=str)


def special_values(dtype: np.dtype) -> np.ndarray:
    """Zeros, infinities, NaN, subnormals, the extremes, small and large integers, halves."""
    info = np.finfo(dtype)
    positive = [
        0.0, np.inf, info.tiny, info.smallest_subnormal, info.max, info.tiny / 4, 0.5, 1.0,
        1.0 + info.eps, 1.0 - info.epsneg, 1.5, 2.0, 2.5, 3.0, 4.0, 1e5, 2.0**31, 1e30,
        2.0 / info.eps, 1 / info.eps + 1, 1 / info.eps,
    ]
    return np.array([*positive, *(-v for v in positive), np.nan], dtype)


def assert_same_values(got: np.ndarray, want: np.ndarray, ulps: float, args: object) -> None:
    """NaN, infinities and zeros with their signs exact; other values to some ulp."""
    exact = ~np.isfinite(want) | (want == 0)
    same = (got == want) | (np.isnan(got) & np.isnan(want))
    same &= (np.signbit(got) == np.signbit(want)) | np.isnan(want)
    with np.errstate(all="ignore"):
        near = np.abs(got - want) <= ulps * np.spacing(np.abs(want))
    bad = np.flatnonzero(~np.where(exact, same, near))
    assert bad.size == 0, [(np.asarray(args)[..., i], got[i], want[i]) for i in bad[:5]]


@each_dtype
@each_function
def test_error_is_within_the_stated_bound(name: str, dtype: np.dtype) -> None:
    args = operands(name, dtype, vecmath.ARITY[name], 900)
    got = compiled(dtype, WIDTH[dtype.name], name)(*args)
    found = errors(name, got, args, format_of(dtype))
    worst = int(np.argmax(found))
    assert found[worst] <= vecmath.BOUNDS[name, dtype.name], (
        [float(a[worst]) for a in args], float(got[worst])
    )


@each_dtype
@each_function
def test_special_values_are_numpys(name: str, dtype: np.dtype) -> None:
    values = special_values(dtype)
    grid = np.array(list(itertools.product(values, repeat=vecmath.ARITY[name])), dtype).T
    if name == "gammaln":  # between its poles: test_log_gamma_below_zero
        grid = grid[:, (grid[0] >= 0) | ~np.isfinite(grid[0]) | (grid[0] == np.floor(grid[0]))]
    want = expected(name, grid)
    assert_same_values(compiled(dtype, WIDTH[dtype.name], name)(*grid), want, 4.0, grid)


@each_dtype
@each_function
def test_scalar_and_vector_lanes_give_the_same_bits(name: str, dtype: np.dtype) -> None:
    rng = np.random.default_rng(7)
    near = (rng.standard_normal(50_000) * np.exp2(rng.integers(-8, 8, 50_000))).astype(dtype)
    x = np.concatenate([random_bits(50_000, dtype, rng), near])
    y = rng.permutation(x)
    vector, scalar = (compiled(dtype, n, name)(x, y) for n in (WIDTH[dtype.name], 1))
    same = (vector.view(f"u{dtype.itemsize}") == scalar.view(f"u{dtype.itemsize}"))
    assert np.all(same | (np.isnan(vector) & np.isnan(scalar)))


@pytest.mark.parametrize("lanes", [4, 8, 16])
@each_dtype
def test_other_lane_counts_give_the_same_bits(dtype: np.dtype, lanes: int) -> None:
    x = random_bits(4096, dtype, np.random.default_rng(3))
    for name in ("exp", "log", "sin", "tanh", "cbrt"):
        got, want = compiled(dtype, lanes, name)(x), compiled(dtype, 1, name)(x)
        np.testing.assert_array_equal(got, want)


@each_dtype
def test_log_gamma_below_zero(dtype: np.dtype) -> None:
    """Between the poles, zeros included: an absolute error of a few last places of 1."""
    rng = np.random.default_rng(0)
    ordinary, wide = rng.uniform(0, 50, 600), 2.0 ** rng.uniform(-120, 40, 200)
    small = [np.finfo(dtype).smallest_subnormal]
    x = -np.concatenate([ordinary, wide, small, np.arange(20.0)]).astype(dtype)
    got = compiled(dtype, WIDTH[dtype.name], "gammaln")(x)
    poles = x == np.floor(x)
    assert np.all(np.isposinf(got[poles]))
    want = np.array([float(mpmath.re(mpmath.loggamma(mpmath.mpf(float(v))))) for v in x[~poles]])
    scale = np.maximum(1.0, np.abs(want)) * np.finfo(dtype).eps
    assert np.max(np.abs(got[~poles] - want) / scale) < 3.0


@each_dtype
def test_powers_of_ten_are_exact(dtype: np.dtype) -> None:
    exact = np.arange(23.0 if dtype == np.float64 else 11.0).astype(dtype)
    want = np.array([10.0 ** int(n) for n in exact], dtype)
    np.testing.assert_array_equal(compiled(dtype, WIDTH[dtype.name], "exp10")(exact), want)


@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_a_huge_lane_leaves_its_neighbours_alone(name: str) -> None:
    x = np.linspace(0.1, 3.0, 64)
    mixed = x.copy()
    mixed[::5] = 1e300
    kernel = compiled(x.dtype, 8, name)
    quiet = np.arange(64) % 5 != 0
    np.testing.assert_array_equal(kernel(mixed)[quiet], kernel(x)[quiet])


def test_the_hardest_argument_of_float64_reduction() -> None:
    """6381956970095103 * 2**797 is the double nearest to a multiple of pi/2 (Muller, ch. 11)."""
    x = np.array([6381956970095103.0 * 2.0**797])
    for name in ("sin", "cos", "tan"):
        got = compiled(x.dtype, 8, name)(x)
        assert errors(name, got, (x,), format_of(x.dtype))[0] <= 1.0


def test_symbols_and_text() -> None:
    code = vecmath.define("exp", np.dtype(np.float64), 8)
    assert code.symbol == vecmath.symbol("exp", np.dtype(np.float64), 8) == "fusec.exp.v8f64"
    assert vecmath.symbol("exp", np.dtype(np.float32), 1) == "fusec.exp.f32"
    assert code.text.startswith("define internal fastcc <8 x double> @fusec.exp.v8f64(")
    assert vecmath.define("exp", np.dtype(np.float64), 8) is code
    assert vecmath.define("sin", np.dtype(np.float64), 8).needs == ("sin.huge",)


def test_unknown_names_and_dtypes_are_refused() -> None:
    with pytest.raises(KeyError, match="no math function 'sine'"):
        vecmath.define("sine", np.dtype(np.float64), 8)
    with pytest.raises(TypeError, match="float64 and float32"):
        vecmath.define("exp", np.dtype(np.int64), 8)


@pytest.mark.parametrize("name", ["exp", "cos"])
def test_the_generator_reproduces_its_table(name: str) -> None:
    with mpmath.workdps(60):
        fit = next(f for f in generator.fits() if f.name == name)
        found = tuple(float(c) for c in generator.least(fit, fit.bits64))
        assert found == TABLES["f64"][name]
        assert tuple(generator.two_over_pi(len(TWO_OVER_PI))) == TWO_OVER_PI
