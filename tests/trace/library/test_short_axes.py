"""NumPy is asked on short arrays while tracing, and its answer is that for long ones."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.fft
import scipy.ndimage
import scipy.signal
import scipy.spatial.distance
from numpy.lib.stride_tricks import sliding_window_view

import fusec
from fusec.trace.library import calls, result_sizes, stand_ins
from fusec.trace.library.short_axes import in_short, short_lengths, told_length

RNG = np.random.default_rng(0)
V, W = RNG.uniform(1, 2, 5003), RNG.uniform(1, 2, 7001)
I, M = RNG.integers(0, 50, 5003), RNG.uniform(0, 1, 5003) > 0.5  # noqa: E741
A, B = RNG.uniform(1, 2, (97, 61)), RNG.uniform(1, 2, (61, 130))
T = RNG.uniform(1, 2, (17, 25, 31))
S = RNG.uniform(0, 1, (75, 75)) + 75 * np.eye(75)
F = np.asfortranarray(A)

Call = tuple[Callable[..., Any], tuple[Any, ...]]
CALLS: dict[str, Call] = {
    "sort": (np.sort, (V,)), "sort columns": (lambda a: np.sort(a, axis=0), (F,)),
    "argsort flat": (lambda a: np.argsort(a, axis=None), (T,)),
    "lexsort": (lambda a, b: np.lexsort((a, b)), (V, I)),
    "partition": (lambda a: np.partition(a, 2500), (V,)),
    "partition at the end": (lambda a: np.partition(a, 5002), (V,)),
    "searchsorted": (np.searchsorted, (V, W)),
    "isin": (np.isin, (I, np.arange(7001))), "interp": (np.interp, (V, W, W)),
    "digitize": (np.digitize, (V, np.sort(W))), "median": (lambda a: np.median(a, axis=1), (T,)),
    "quantiles": (lambda a: np.quantile(a, [0.1, 0.5, 0.9], axis=-1), (A,)),
    "quantiles of data": (np.quantile, (V, W - 1)),
    "convolve": (np.convolve, (V, W)),
    "convolve same": (lambda a, b: np.convolve(a, b, "same"), (V, W)),
    "correlate valid": (np.correlate, (W, V)), "vander": (lambda a: np.vander(a, 4), (V,)),
    "histogram": (lambda a: np.histogram(a, 200), (V,)),
    "histogram at edges": (lambda a, b: np.histogram(a, b)[0], (V, np.sort(W))),
    "histogram2d": (lambda a: np.histogram2d(a, a, (30, 20)), (V,)),
    "fft": (np.fft.fft, (V,)), "rfft": (np.fft.rfft, (V,)), "irfft": (np.fft.irfft, (V + 0j,)),
    "rfft even": (np.fft.rfft, (V[:5000],)),
    "rfft to": (lambda a: np.fft.rfft(a, 999), (V,)),
    "fft longer": (lambda a: np.fft.fft(a, 8192), (V,)),
    "rfft2": (np.fft.rfft2, (A,)), "irfftn": (np.fft.irfftn, (T + 0j,)),
    "hfft": (np.fft.hfft, (V + 0j,)),
    "packbits": (np.packbits, (M,)),
    "unpackbits": (np.unpackbits, (I.astype(np.uint8),)),
    "einsum": (lambda a, b: np.einsum("ij,jk->ki", a, b), (A, B)),
    "svd": (np.linalg.svd, (A,)),
    "thin svd": (lambda a: np.linalg.svd(a, full_matrices=False), (A,)),
    "svd of wide": (lambda a: np.linalg.svd(a, full_matrices=False), (B,)),
    "qr": (np.linalg.qr, (A,)), "complete qr": (lambda a: np.linalg.qr(a, "complete"), (A,)),
    "solve": (lambda a: np.linalg.solve(a, a[:, 0]), (S,)), "inv": (np.linalg.inv, (S,)),
    "lstsq": (lambda a, b: np.linalg.lstsq(a, b, rcond=None), (A, A)),
    "pinv": (np.linalg.pinv, (A,)), "norm": (lambda a: np.linalg.norm(a, 2, axis=(0, 2)), (T,)),
    "eigh": (np.linalg.eigh, (S + S.T,)),
    "unravel": (lambda i: np.unravel_index(i, (60, 70)), (I,)),
    "polyfit": (lambda a, b: np.polyfit(a, b, 3), (V, V)),
    "geomspace": (lambda a: np.geomspace(a, 2 * a, 5), (V,)),
    "choose": (lambda i, a: np.choose(i, [a, a + 1], mode="clip"), (I, V)),
    "take along": (lambda a, i: np.take_along_axis(a, i, 0), (V, I)),
    "gather": (lambda a, i: a[i], (V, I)), "gather rows": (lambda a, i: a[i % 60, 3:], (A, I)),
    "gather columns": (lambda a, i: a[5:90, i], (A, I)),
    "take clipped": (lambda a, i: np.take(a, i, mode="clip"), (A, I)),
    "cumsum": (np.cumsum, (V,)), "cumsum of columns": (lambda a: np.cumsum(a, axis=0), (F,)),
    "scipy dct": (scipy.fft.dct, (V,)), "scipy rfft": (scipy.fft.rfft, (V,)),
    "fftconvolve": (scipy.signal.fftconvolve, (V, W)),
    "convolve2d valid": (lambda a: scipy.signal.convolve2d(a, np.ones((3, 5)), "valid"), (A,)),
    "resample": (lambda a: scipy.signal.resample(a, 3000), (V,)),
    "upfirdn": (lambda a: scipy.signal.upfirdn(np.ones(5), a, 3, 2), (V,)),
    "zoom": (lambda a: scipy.ndimage.zoom(a, 1.5), (A,)),
    "gaussian": (lambda a: scipy.ndimage.gaussian_filter(a, 2.0), (A,)),
    "cdist": (scipy.spatial.distance.cdist, (A[:, :3], B.T[:, :3])),
    "cdist of many": (scipy.spatial.distance.cdist, (V.reshape(-1, 1), W.reshape(-1, 1)[:50])),
    "pdist": (scipy.spatial.distance.pdist, (A,)),
}


@pytest.mark.parametrize("name", CALLS)
def test_types_are_those_of_long_arrays(name: str) -> None:
    function, arguments = CALLS[name]
    traced = fusec.jit(lambda *args: function(*args)).trace(*arguments)
    expected = stand_ins.leaves_of(function(*arguments))
    found = [(o.shape, o.dtype) for o in traced.graph.outputs]
    assert found == [(np.shape(x), np.asarray(x).dtype) for x in expected]


OF_ANY_SIZE: dict[str, tuple[Call, list[Any]]] = {
    "unique": ((np.unique, (I,)), [None]),
    "unique rows": ((lambda a: np.unique(a, axis=0), (A.round(),)), [None, 61]),
    "unique with all": ((lambda a: np.unique(
        a, return_index=True, return_inverse=True, return_counts=True), (I,)),
        [None, None, 5003, None]),
    "bincount": ((np.bincount, (I,)), [None]),
    "bincount of two": ((lambda i, w: np.bincount(i, w), (I, V)), [None]),
    "nonzero": ((lambda a: np.nonzero(a > 1.5), (A,)), [None, None]),
    "argwhere": ((lambda a: np.argwhere(a > 1.5), (T,)), [None, 3]),
    "setdiff1d": ((np.setdiff1d, (I, I[:4001])), [None]),
    "setdiff1d without a large number": (
        (lambda i: np.setdiff1d(i, 2**40, assume_unique=True), (I,)), [None]),
    "intersect1d": ((np.intersect1d, (I, I[:4001])), [None]),
    "union1d": ((np.union1d, (V, W)), [None]),
    "compress columns": ((lambda m, a: np.compress(m, a, axis=1), (M[:61], A)), [97, None]),
    "extract": ((np.extract, (M, V)), [None]),
    "mask of rows": ((lambda a: a[a[:, 0] > 1.5], (A,)), [None, 61]),
    "histogram_bin_edges": ((lambda a: np.histogram_bin_edges(a, 25), (V,)), [26]),
}


@pytest.mark.parametrize("name", OF_ANY_SIZE)
def test_sizes_of_data_are_the_runs(name: str) -> None:
    (function, arguments), sizes = OF_ANY_SIZE[name]
    compiled = fusec.jit(lambda *args: function(*args))
    outputs = compiled.trace(*arguments).graph.outputs
    assert [n if isinstance(n, int) else None for o in outputs for n in o.shape] == sizes
    expected, found = function(*arguments), compiled(*arguments)
    for a, b in zip(stand_ins.leaves_of(expected), stand_ins.leaves_of(found), strict=True):
        np.testing.assert_array_equal(a, b)
        assert a.dtype == b.dtype and (a.ndim < 2 or a.strides == b.strides)


_NAME_SIZES = {  # as large as their arrays are long
    "histogram2d", "partition at the end", "fft longer", "resample", "partition", "zoom"}


@pytest.mark.parametrize("name", [*sorted(CALLS.keys() - _NAME_SIZES), *OF_ANY_SIZE])
def test_few_elements_are_asked_about(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of each function on a million elements, or matrices of a thousand rows."""
    function, arguments = CALLS.get(name) or OF_ANY_SIZE[name][0]
    asked: list[int] = []

    def recorded(run: Callable[..., Any]) -> Callable[..., Any]:
        def wrapper(call: Any, arrays: Any, form: Any, named: Any) -> Any:
            asked.append(sum(np.size(a) for a in arrays))
            return run(call, arrays, form, named)
        return wrapper

    for module in (calls, result_sizes, stand_ins):
        monkeypatch.setattr(module, "run_call", recorded(module.run_call))
    fusec.jit(lambda *args: function(*args)).trace(*map(_longer, arguments))
    assert len(asked) <= 40 and max(asked, default=0) <= 200_000


def _longer(x: np.ndarray) -> np.ndarray:
    """Ten times as long along each axis of many elements."""
    times = [1 if n < 10 else 200 if x.ndim == 1 else 8 if x.ndim == 2 else 3 for n in x.shape]
    tiled = np.tile(x, times)
    return tiled + len(tiled) * np.eye(*tiled.shape) if x.ndim == 2 else tiled


def test_lengths_keep_what_decides() -> None:
    shapes = [(10_007, 5), (20_014,), (10_008, 300)]
    for lengths in short_lengths(shapes, ("tuple", 40)):
        short = [in_short(shape, lengths) for shape in shapes]
        assert short[0][1] == 5 and 80 < short[2][1] < short[0][0]
        assert short[2][0] == short[0][0] + 1 and short[1][0] > short[2][0]
        assert all(n % 12 == lengths.get(n, n) % 12 for shape in shapes for n in shape if n > 80)
    assert short_lengths([(1000,), (3, 4)], ()) == ()
    assert short_lengths([(100_000,)], (60_000,)) == ()  # which may be an index


def test_what_follows_no_rule_is_not_told() -> None:
    shapes = [(10_007,), (20_014,)]
    sets = short_lengths(shapes, ())
    a, b = ([lengths[n] for lengths in sets] for n in (10_007, 20_014))
    assert told_length([x // 2 + 1 for x in a], sets, shapes) == 5004
    assert told_length([8 * x for x in a], sets, shapes) == 8 * 10_007
    assert told_length([x + y - 1 for x, y in zip(a, b, strict=True)], sets, shapes) == 30_020
    assert told_length([y - x + 1 for x, y in zip(a, b, strict=True)], sets, shapes) == 10_008
    assert told_length([x * (x - 1) // 2 for x in a], sets, shapes) == 10_007 * 5003
    assert told_length([x // 7 for x in a], sets, shapes) is None
    assert told_length([3, 3, 4], sets, shapes) is None


def test_what_is_asked_for_long_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stand_ins, "MOST_SECONDS", 0.0)
    with pytest.warns(fusec.FirstCallWarning, match="np.sort was asked for") as found:
        fusec.jit(lambda x: np.sort(x)).trace(V)
    assert found[0].filename == __file__


def test_other_sizes_are_tried_on_short_arrays() -> None:
    """Where windows of a fixed size meet weights of another one NumPy makes nothing of them: arrays
    as long as they are took 1.8 GB."""
    function = fusec.jit(
        lambda x, k: np.einsum("hwij,ijc->hwc", sliding_window_view(x, (31, 31)), k))
    tracemalloc.start()
    try:
        for side in (60, 170):
            function.concrete(fusec.TensorSpec((side, side), np.float64),
                              fusec.TensorSpec((31, 31, 6), np.float64))
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 100e6
