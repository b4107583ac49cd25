"""Sizes given as numbers, ``np.tile(x, len(x))``: one trace serves every size."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.fft
from scipy import linalg

import fusec
from fusec.ops.calls.library import leaves_of

LENGTHS = (8, 12, 18, 25)
OF_ITS_LENGTH: dict[str, Callable[[Any], Any]] = {
    "tile": lambda x: np.tile(x, len(x)),
    "tile rows": lambda x: np.tile(x, (2, len(x) // 2)),
    "repeat": lambda x: np.repeat(x, len(x)),
    "diag": lambda x: np.diag(x, len(x) // 2),
    "diagflat": lambda x: np.diagflat(x, -len(x)),
    "roll": lambda x: np.roll(x, len(x) // 2) + np.roll(x, -(len(x) // 3), axis=0),
    "roll rows": lambda x: np.roll(np.outer(x, x), (len(x) // 2, 1), (0, 1)),
    "fftshift": lambda x: np.fft.ifftshift(np.fft.fftshift(x) * 2),
    "diagonal": lambda x: np.outer(x, x).diagonal(len(x) // 2),
    "trace": lambda x: np.trace(np.outer(x, x), len(x) // 3),
    "pad": lambda x: np.pad(x, len(x) // 2),
    "pad with the edge": lambda x: np.pad(x, (1, len(x) // 2), mode="edge"),
    "pad with a mirror": lambda x: np.pad(np.outer(x, x), ((1, 2), (0, len(x) // 2)), "reflect"),
    "insert": lambda x: np.insert(x, len(x) // 2, 1.0),
    "delete": lambda x: np.delete(x, len(x) // 2),
    "meshgrid": lambda x: np.stack(np.meshgrid(np.arange(len(x)), x)),
    "index list": lambda x: x[[0, len(x) // 2, -1]],
    "resize": lambda x: np.resize(np.outer(x, x), (3, len(x))),
    "indices": lambda x: np.indices((len(x), 2)),
    "grids": lambda x: np.mgrid[0:len(x), 0:2] * np.add(*np.ogrid[:len(x), : len(x) // 2])[0, 0],
    "linspace": lambda x: np.linspace(0, len(x) / 2, 5) + np.arange(np.max([len(x), 4]))[:5],
    "windows": lambda x: np.lib.stride_tricks.sliding_window_view(np.outer(x, x), (2, len(x) // 2)),
    "strided": lambda x: np.lib.stride_tricks.as_strided(x, (len(x) // 2, 2), (16, 8)),
    "split": lambda x: np.split(np.tile(x, 2), 2)[1] + np.array_split(x, 2)[0].sum(),
    "number of elements": lambda x: np.zeros(np.prod((len(x), 3))) + np.sum((len(x), 1)),
    "range": lambda x: np.array(range(2, len(x), 2)) + np.sum(range(len(x))),
    "nan_to_num": lambda x: np.nan_to_num(x / x, nan=len(x)),
    "places": lambda x: x[np.unravel_index(len(x) // 2, (2, len(x)))[1]] + x[
        np.ravel_multi_index((0, len(x) // 3), (2, len(x)))],
}


@pytest.mark.filterwarnings("ignore:invalid value")
@pytest.mark.parametrize("name", OF_ITS_LENGTH)
def test_one_trace(name: str) -> None:
    f = OF_ITS_LENGTH[name]
    function = fusec.jit(f)
    for n in LENGTHS:
        x = np.arange(float(n))
        np.testing.assert_array_equal(function(x), f(x))
    assert function.trace_count == 1, name


def drawn(x: Any) -> Any:
    rng, old, n = np.random.default_rng(3), np.random.RandomState(3), len(x)
    y = x[rng.permutation(n)]
    rng.shuffle(y)
    total = 0.0
    for _ in range(5):
        total = total + y[rng.integers(n)] + rng.normal(size=n).sum()
    return (
        y, total, rng.normal(size=(2, n // 2)), rng.random(x.shape), rng.normal(x, 1.0, n),
        rng.integers(0, n, size=n, dtype=np.int32), rng.choice(n, n // 2, replace=False),
        rng.choice(x, n // 3), rng.choice(n + 1), rng.binomial(n, 0.5, [n, 2]),
        old.rand(n, 2), old.randint(0, n + 1, n), np.random.default_rng(n).normal(size=3))


def test_draws() -> None:
    function = fusec.jit(drawn)
    for n in (9, 12, 21, 40, 1000):
        x = np.arange(float(n))
        for found, expected in zip(function(x), drawn(x), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-12, strict=True)
    assert function.trace_count == 1


def test_an_odd_length_between() -> None:
    """A length that has a trace of its own leaves the others theirs."""
    function = fusec.jit(OF_ITS_LENGTH["roll"])
    for n in (8, 12, 1, 0, 31, 100, 7):
        np.testing.assert_array_equal(
            function(np.arange(float(n))), OF_ITS_LENGTH["roll"](np.arange(float(n))))
    assert function.trace_count == 3


def test_a_number_of_sizes_fills_what_a_loop_begins_with() -> None:
    """PageRank: the filled array is a view of a number of sizes, which was an internal error."""
    def ranks(links: Any) -> Any:
        n = links.shape[0]
        rank = np.full(n, 1 / n)
        while True:
            new = 0.15 / n + 0.85 * (links @ rank)
            if np.abs(new - rank).sum() < 1e-3:
                break
            rank = new
        return rank

    function = fusec.jit(ranks)
    for n in (3, 5, 8):
        links = np.random.default_rng(n).random((n, n))
        links /= links.sum(0)
        np.testing.assert_allclose(function(links), ranks(links))
    assert function.trace_count == 1


class OneIndex:
    def __index__(self) -> int:
        return 2


@pytest.mark.parametrize(("f", "words"), [
    (lambda x: np.tile(x, OneIndex()), "for *: 'int' and 'OneIndex'"),
    (lambda x: np.diag(x, OneIndex()), "bad operand type for abs(): 'OneIndex'")])
def test_objects_that_are_no_numbers(f: Callable[[Any], Any], words: str) -> None:
    """NumPy computes with them."""
    for function in (f, fusec.jit(f)):
        with pytest.raises(TypeError) as raised:
            function(np.arange(3.0))
        assert words in str(raised.value)


def changed(x: Any, i: Any) -> Any:
    """Calls that write to their first argument."""
    n, y, z, out = len(x), x.copy(), x.copy(), np.zeros(len(x))
    y.partition(n // 2)
    np.put(z, [n // 2, -n], n)
    np.partition(x, n // 3)
    np.fft.ifft(x, n - 1)
    z[i[i < n - 1], ] = n / 3
    np.cumsum(x, out=out)
    np.add.at(out, [0, n // 2], n)
    return y, z, out


def repeated(x: Any, i: Any) -> Any:
    total = 0.0
    for k in range(5):
        x = np.partition(x * 1.5, len(x) // 2)[::-1].copy()
        total = total + np.abs(np.fft.fft(x[x > k], 2 * len(x))).max()
    return x, total


TO_LIBRARIES: dict[str, Callable[[Any, Any], Any]] = {
    "transforms": lambda x, i: (
        np.fft.fft(x, 2 * len(x)), np.fft.rfft(x, n=len(x) // 2), np.fft.rfft(x, n=5),
        np.fft.irfft(np.fft.rfft(x) * 2, n=len(x)), np.fft.irfft(x), np.fft.hfft(x, len(x) + 3),
        np.fft.fft2(np.outer(x[:4], x), (7, len(x) // 2)), scipy.fft.dct(x, n=2 * len(x))),
    "order": lambda x, i: (
        np.partition(x, len(x) // 2), np.partition(x, (1, 1 - len(x))),
        np.argpartition(x, len(x) // 3)[:2], np.searchsorted(np.sort(x), len(x) / 2),
        np.isin(i, len(x) // 2),
        np.digitize(x, [0, len(x) // 2]), np.outer(x[:3], x)[i % 3, 2: len(x) // 2],
        np.setdiff1d(i, [len(x) // 2, 1]), np.union1d(i, len(x) + 3)),
    "statistics": lambda x, i: (
        np.quantile(x, 1 / len(x)), np.quantile(x, [0.1, 0.5, 0.9]), np.percentile(x, 99 / len(x)),
        np.histogram(x, bins=len(x)),
        np.histogram(x, range=(-len(x), len(x) / 3)), np.histogram(x, [0, len(x) // 2, len(x)]),
        np.histogram_bin_edges(x, len(x) // 2),
        np.bincount(i, minlength=2 * len(x)), np.bincount(np.unique(i), minlength=len(x))),
    "others": lambda x, i: (
        np.vander(x / 9, len(x) // 9 + 2), np.interp(len(x) / 3, x, x),
        np.choose(i % 2, [len(x), x]), np.convolve(x, x[: len(x) // 2], "valid"),
        np.add.reduceat(x, [0, len(x) // 2]), np.ravel_multi_index((i, i % 2), (2 * len(x), 2)),
        np.linalg.norm(x / 9, len(x) / 8), np.packbits(x > 0)),
    "changed": changed,
    "repeated": repeated,
}


def numbers(n: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(n)
    return rng.normal(size=n) * 4, rng.integers(0, 6, n)


@pytest.mark.parametrize("name", TO_LIBRARIES)
def test_numbers_of_library_calls(name: str) -> None:
    f = TO_LIBRARIES[name]
    function = fusec.jit(f)
    for n in (9, 12, 21, 25, 10, 40, 33, 5001, 64):
        found, expected = (leaves_of(g(*numbers(n))) for g in (function, f))
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_array_equal(a, b, strict=True)
            assert np.ndim(a) < 2 or a.strides == b.strides
    assert function.trace_count == 1, name


REFUSED: dict[str, Callable[[Any, Any], Any]] = {
    "partition": lambda x, i: np.partition(x, len(x) - 9),
    "argpartition": lambda x, i: np.argpartition(x, 18 - len(x))[0],
    "fft": lambda x, i: np.fft.fft(x, len(x) - 9),
    "vander": lambda x, i: np.vander(x, len(x) - 9),
    "place": lambda x, i: np.unravel_index(len(x) - 5, (2, 4))[1],
    "places": lambda x, i: np.ravel_multi_index((len(x) - 9, 1), (7, len(x) - 7)),
    "percentile": lambda x, i: np.percentile(x, 150 - 10 * len(x)),
    "reduceat": lambda x, i: np.add.reduceat(x, [0, len(x) - 9]),
    "bincount": lambda x, i: np.bincount(i, minlength=len(x) - 9),
    "edges": lambda x, i: np.histogram_bin_edges(x, len(x) - 9),
}


@pytest.mark.parametrize("name", REFUSED)
def test_numbers_that_fit_some_lengths(name: str) -> None:
    f = REFUSED[name]
    for order in ((12, 16, 9, 5, 25, 4, 14, 8), (4, 5, 8, 12, 9, 16, 25)):
        function, refused = fusec.jit(f), set()
        for n in order:
            try:
                expected = f(*numbers(n))
            except Exception as error:
                refused.add(n)
                with pytest.raises(type(error)) as raised:
                    function(*numbers(n))
                assert str(error) in str(raised.value)
            else:
                np.testing.assert_array_equal(function(*numbers(n)), expected, strict=True)
        assert refused and function.trace_count < 5


def differentiated(x: Any) -> Any:
    padded, kept = np.fft.fft(x, 2 * len(x)), np.fft.irfft(np.fft.rfft(x) * 2, n=len(x))
    smooth = np.convolve(x, x[: len(x) // 2], "valid")
    return (np.abs(padded) ** 2).sum() + kept.max() + np.quantile(x, 1 / len(x)) * smooth.sum() + (
        np.partition(x, len(x) // 2)[: len(x) // 2].sum())


def test_derivatives_of_library_calls() -> None:
    gradient = fusec.grad(differentiated)
    for n in (9, 13, 31, 25, 41):  # of even lengths the last coefficient counts once: another trace
        x, step = numbers(n)[0], np.sin(np.arange(n)) * 1e-5
        change = (differentiated(x + step) - differentiated(x - step)) / 2
        assert gradient(x) @ step == pytest.approx(change, rel=1e-6, abs=1e-9)
    assert gradient.trace_count == 1


def test_matrices_for_scipy() -> None:
    """Which are not singular, at any size."""
    def solved(x: Any, b: Any) -> Any:
        a = np.outer(x, x) + 100 * np.eye(len(x))
        return (linalg.solve(a, b), linalg.cholesky(a), linalg.norm(x),
                linalg.solve_banded((1, 1), np.stack([x * 0, x * 0 + 4, x * 0]), b))

    function = fusec.jit(solved)
    for n in (9, 12, 21, 40, 5):
        x = numbers(n)[0]
        for a, b in zip(function(x, x[::-1]), solved(x, x[::-1]), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)
    assert function.trace_count == 1
