"""The programs compute the formulas of their sources, in the dtype they are given."""

from __future__ import annotations

import inspect
import warnings

import numpy as np
import optree
import pytest
from scipy.spatial.distance import cdist
from scipy.special import log_ndtr, ndtr

from fusec.bench.programs import (
    NAMES,
    all_programs,
    black_scholes,
    eos,
    hdiff,
    kmeans,
    layernorm_gelu,
    logreg,
    mandelbrot,
    nbody,
    program,
    softmax,
    tone_map,
    unsharp,
)

SMALL = {"nbody": 20, "hdiff": 1000}


def small(name, dtype="float64", seed=0):
    return program(name).make_args(SMALL.get(name, 100), dtype, seed)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_results_keep_the_dtype_and_raise_no_warning(name, dtype):
    args = small(name, dtype)
    before = [a.copy() for a in args]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        results = optree.tree_leaves(program(name).function(*args))
    for result in results:
        assert result.dtype in (np.dtype(dtype), np.dtype(np.int32), np.dtype(np.int64))
        assert np.isfinite(result).all()
    for a, b in zip(args, before, strict=True):
        assert a.dtype == np.dtype(dtype) and np.array_equal(a, b)


@pytest.mark.parametrize("name", NAMES)
def test_inputs_are_repeatable_and_differ_by_seed(name):
    first, again, other = small(name), small(name), small(name, seed=1)
    assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))
    assert not all(np.array_equal(a, b) for a, b in zip(first, other, strict=True))


@pytest.mark.parametrize("name", NAMES)
def test_programs_run_in_extended_precision(name):
    args = small(name)
    wide = optree.tree_leaves(program(name).function(*(a.astype(np.longdouble) for a in args)))
    plain = optree.tree_leaves(program(name).function(*args))
    for a, b in zip(wide, plain, strict=True):
        assert a.dtype == (np.longdouble if b.dtype.kind == "f" else b.dtype)
        np.testing.assert_allclose(a.astype(np.float64), b, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("entry", all_programs(), ids=lambda p: p.name)
def test_entries_are_complete(entry):
    assert entry.description and entry.source and entry.size_unit
    assert set(entry.quick_sizes) and set(entry.dtypes) <= {"float32", "float64"}
    assert tuple(sorted(entry.sizes)) == entry.sizes
    source = inspect.getsource(inspect.getmodule(entry.function))
    assert "jit" not in source and "fusec" not in source.replace("fusec.bench", "")


def test_unknown_program_is_named_with_its_neighbours():
    with pytest.raises(KeyError, match="mandelbrot"):
        program("mandelbrod")


@pytest.mark.parametrize(("S", "T", "bar", "rho"), eos.CHECK_VALUES)
def test_eos_gives_unescos_check_values(S, T, bar, rho):
    assert eos.density(*map(np.float64, (S, T, 10.0 * bar))) == pytest.approx(rho, abs=6e-6)


def test_normal_distribution_over_its_range():
    x = np.linspace(-37.0, 37.0, 20_001)
    assert np.abs(black_scholes.normal_cdf(x) - ndtr(x)).max() < 1e-15
    left = x[x < 0]
    assert np.abs(np.log(black_scholes.normal_cdf(left)) / log_ndtr(left) - 1.0).max() < 1e-8


def test_put_call_parity_and_greeks_by_differences():
    S, K, T, r, sigma = small("black_scholes")
    call, put, dc, dp, gamma, vega, tc, tp, rc, rp = black_scholes.black_scholes(S, K, T, r, sigma)
    np.testing.assert_allclose(call - put, S - K * np.exp(-r * T), atol=1e-11)

    def slope(i, h, out):
        args = [S, K, T, r, sigma]
        up, down = list(args), list(args)
        up[i], down[i] = args[i] + h, args[i] - h
        f = black_scholes.black_scholes
        return (f(*up)[out] - f(*down)[out]) / (2 * h)

    for got, i, out, sign in ((dc, 0, 0, 1), (dp, 0, 1, 1), (gamma, 0, 2, 1), (vega, 4, 0, 1),
                              (tc, 2, 0, -1), (tp, 2, 1, -1), (rc, 3, 0, 1), (rp, 3, 1, 1)):
        np.testing.assert_allclose(sign * got, slope(i, 1e-5, out), rtol=2e-5, atol=2e-5)


def test_tone_map_is_monotone_and_bounded():
    ramp = np.linspace(0.0, 1.0, 1000)
    out = tone_map.tone_map(ramp)
    assert (np.diff(out) > 0).all() and out[0] == pytest.approx(0.0, abs=1e-6) and out[-1] < 1.0
    round_trip = tone_map.linear_to_srgb(tone_map.srgb_to_linear(ramp))
    np.testing.assert_allclose(round_trip, ramp, atol=1e-6)


def test_unsharp_keeps_flat_images_and_steepens_edges():
    assert np.allclose(unsharp.unsharp(np.full((9, 9), 0.5)), 0.5)
    edge = np.repeat([[0.4] * 6 + [0.6] * 6], 12, axis=0)
    out = unsharp.unsharp(edge)
    assert out[6, 5] < 0.4 and out[6, 6] > 0.6


def test_kmeans_against_scipy_and_never_worse():
    X, C = small("kmeans")
    labels, moved = kmeans.kmeans_step(X, C)
    assert np.array_equal(labels, cdist(X, C, "sqeuclidean").argmin(axis=1))
    for k in range(len(C)):
        np.testing.assert_allclose(moved[k], X[labels == k].mean(axis=0))


def test_logreg_gradient_by_differences():
    X, y, w = small("logreg")
    new, _ = logreg.gradient_step(X, y, w)
    for i in (0, 20, 64):
        e = np.zeros_like(w)
        e[i] = 1e-6
        loss = (logreg.gradient_step(X, y, w + e)[1] - logreg.gradient_step(X, y, w - e)[1]) / 2e-6
        assert (w - new)[i] == pytest.approx(logreg.RATE * loss, abs=1e-8)


def test_nbody_conserves_momentum_and_obeys_newton():
    x, y, z, m = small("nbody")
    for a in nbody.accelerations(x, y, z, m):
        assert abs((m * a).sum()) < 1e-12
    two = [np.array(v) for v in ([0.0, 100.0], [0.0, 0.0], [0.0, 0.0], [1.0, 2.0])]
    ax, _, _ = nbody.accelerations(*two)
    assert ax == pytest.approx([2e-4, -1e-4], rel=1e-5)


def test_hdiff_keeps_borders_and_linear_fields_and_smooths():
    field, coefficient = small("hdiff")
    out = hdiff.horizontal_diffusion(field, coefficient)
    assert np.array_equal(out[:, :2], field[:, :2]) and np.array_equal(out[:, :, -2:],
                                                                       field[:, :, -2:])
    assert (out[:, 2:-2, 2:-2] != field[:, 2:-2, 2:-2]).any()
    ramp = np.broadcast_to(np.arange(12.0), (2, 12, 12)).copy()
    np.testing.assert_allclose(hdiff.horizontal_diffusion(ramp, np.full(ramp.shape, 0.1)), ramp)
    inner = (slice(None), slice(2, -2), slice(2, -2))
    assert out[inner].std() < field[inner].std()


def test_softmax_rows_sum_to_one_also_for_huge_logits():
    x = np.array([[1000.0, 1000.0, -1000.0], [0.0, 1.0, 2.0]])
    out = softmax.softmax(x)
    assert out.sum(axis=1) == pytest.approx([1.0, 1.0]) and out[0, 0] == 0.5


def test_layernorm_and_gelu():
    x, gain, bias = small("layernorm_gelu")
    normal = layernorm_gelu.layernorm(x, np.ones_like(gain), np.zeros_like(bias))
    assert normal.mean() == pytest.approx(0.0, abs=1e-12)
    assert normal.var() == pytest.approx(1.0, rel=1e-4)
    points = np.linspace(-4, 4, 50)
    assert np.abs(layernorm_gelu.gelu(points) - points * ndtr(points)).max() < 1e-3


def test_mandelbrot_at_known_points():
    cr, ci = np.array([[0.0, -1.0, 2.0, 0.25, 1.0]]), np.zeros((1, 5))
    assert mandelbrot.mandelbrot(cr, ci).tolist() == [[20, 20, 2, 20, 3]]
