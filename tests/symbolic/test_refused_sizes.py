"""Refusals of sizes by NumPy and Python are asked for again at each size: they raise and return
alike whichever size came first."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fusec

SIZES = (6, 5, 3, 4, 7)  # some of which each function refuses
ORDERS = (SIZES, SIZES[::-1])


def written(x: Any, key: Any) -> Any:
    y = x.copy()
    y[key] = 7.0
    return y


def looped(items: Any) -> Any:
    total = 0.0
    for item in items:
        total = total + item
    return total


def looped_range(*ends: Any) -> Any:
    count = 0
    for _ in range(*ends):
        count += 1
    return count


def with_a_diagonal(n: int) -> Any:
    a = np.zeros((n - 4, 2))
    np.fill_diagonal(a, 1.0)
    return a


def unpacked(x: Any) -> Any:
    a, _, _, d = x
    return a + d


def zipped(x: Any) -> Any:
    total = 0.0
    for a, b in zip(x, [1.0, 2.0, 3.0, 4.0], strict=True):
        total = total + a * b
    return total


def generator() -> Any:
    return np.random.default_rng(0)


FORMS: dict[str, Callable[[Any, int], Any]] = {
    "zeros": lambda x, n: np.zeros(n - 5),
    "ones": lambda x, n: np.ones((n - 5, 5 - n)),
    "empty": lambda x, n: np.empty(5 - n).shape,
    "full": lambda x, n: np.full((5 - n, 2), x[0]),
    "full of an array": lambda x, n: np.full((2, 4), x),
    "full_like": lambda x, n: np.full_like(x, 2.0, shape=n - 5),
    "empty_like": lambda x, n: np.empty_like(x, shape=(5 - n,)).shape,
    "eye": lambda x, n: np.eye(5 - n, 3, k=1),
    "tri": lambda x, n: np.tri(3, 4) @ np.tri(n - 2),
    "broadcast_to": lambda x, n: np.broadcast_to(x[0], (5 - n,)).sum(),
    "broadcast_to in a loop": lambda x, n: looped(np.broadcast_to(1.5, (5 - n,))),
    "broadcast_to, shape": lambda x, n: np.broadcast_to(x[0], (n - 5, n - 5)).shape,
    "broadcast_to of a vector": lambda x, n: np.broadcast_to(x, (4,)),
    "reshape": lambda x, n: x.reshape(-1, 2),
    "reshape by a size": lambda x, n: x.reshape(n - 5, -1),
    "reshape to two unknown": lambda x, n: x.reshape(n - 3, n - 4, -1),
    "reshape F": lambda x, n: x.reshape((2, -1), order="F"),
    "resize": lambda x, n: np.resize(x, (5 - n,)),
    "arange": lambda x, n: np.arange(0, 4, n - 5),
    "linspace": lambda x, n: np.linspace(0, 1, 5 - n),
    "geomspace": lambda x, n: np.geomspace(1, 2, n - 5),
    "repeat": lambda x, n: np.repeat(x, n - 5),
    "repeat of nothing": lambda x, n: np.repeat(x[7:], n - 5),
    "repeat each": lambda x, n: np.repeat(x, [1, 2, 1, 1]),
    "repeat each, negative": lambda x, n: np.repeat(x[:2], [n - 5, 1]),
    "tile": lambda x, n: np.tile(x, (2, 5 - n)),
    "tile of nothing": lambda x, n: np.tile(x[7:], n - 5),
    "pad": lambda x, n: np.pad(x, (1, 5 - n)),
    "split": lambda x, n: np.split(x, 2)[0],
    "split by a size": lambda x, n: np.array_split(x, n - 5)[0],
    "take_along_axis": lambda x, n: np.take_along_axis(x, np.array([4, 1]), 0),
    "take": lambda x, n: np.take(x, n - 9),
    "item": lambda x, n: x[n - 9],
    "assignment": lambda x, n: written(x, 4),
    "mask": lambda x, n: x[np.array([True, False, True, True])],
    "insert": lambda x, n: np.insert(x, 5, 1.0),
    "delete": lambda x, n: np.delete(x, 4),
    "expand_dims": lambda x, n: np.expand_dims(x, n - 5),
    "squeeze": lambda x, n: np.squeeze(x[4:].reshape(1, -1), axis=1),
    "moveaxis": lambda x, n: np.moveaxis(x.reshape(1, -1), 0, n - 5),
    "swapaxes": lambda x, n: np.swapaxes(x.reshape(1, -1), 0, n - 6),
    "transpose": lambda x, n: x.reshape(1, -1).transpose(n - 5, 1),
    "axis": lambda x, n: x.reshape(1, -1).sum(axis=n - 5),
    "largest": lambda x, n: x[4:].max(),
    "largest by Python": lambda x, n: max(x[4:]),
    "position": lambda x, n: x[: n - 4].argmin(),
    "diff": lambda x, n: np.diff(x, n=n - 5),
    "gradient": lambda x, n: np.gradient(x[3:]),
    "addition": lambda x, n: x[1:] + x[:3],
    "joined": lambda x, n: np.concatenate([x.reshape(1, -1), np.ones((1, 4))]),
    "unpacked": lambda x, n: unpacked(x),
    "zip": lambda x, n: zipped(x),
    "fft": lambda x, n: np.fft.fft(x, n=n - 5),
    "fftfreq": lambda x, n: np.fft.fftfreq(n - 5),
    "vander": lambda x, n: np.vander(x, n - 5),
    "diagonal": lambda x, n: np.diagonal(x[: n - 3].reshape(2, -1)),
    "fill_diagonal": lambda x, n: with_a_diagonal(n),
    "windows": lambda x, n: np.lib.stride_tricks.sliding_window_view(x, n - 5),
    "long windows": lambda x, n: np.lib.stride_tricks.sliding_window_view(x, 5),
    "ndindex": lambda x, n: looped(i[0] for i in np.ndindex(n - 5, 2)),
    "range": lambda x, n: looped_range(0, 6, n - 5),
    "bincount": lambda x, n: np.bincount(np.arange(n), minlength=n - 5),
    "histogram": lambda x, n: np.histogram(x, bins=n - 5)[0],
    "partition": lambda x, n: np.partition(x, 4),
    "unravel_index": lambda x, n: np.unravel_index(4, (n,))[0],
    "inverse": lambda x, n: np.linalg.inv(np.ones((n, 5)) + np.eye(n, 5)),
    "power": lambda x, n: np.int64(2) ** (n - 5),
    "division": lambda x, n: float(x[0]) / (n - 5),
    "remainder": lambda x, n: 3 % (n - 5),
    "shift": lambda x, n: 1 << (n - 5),
    "root": lambda x, n: math.sqrt(n - 5),
    "factorial": lambda x, n: math.factorial(n - 5),
    "item of a tuple": lambda x, n: (1.0, 2.0)[n - 5],
    "step": lambda x, n: x[:: n - 5],
    "narrow": lambda x, n: np.array([1, 2], np.uint8) + (n - 5),
    "random size": lambda x, n: generator().normal(size=n - 5),
    "random integers": lambda x, n: generator().integers(4, n, size=2),
    "reduceat": lambda x, n: np.add.reduceat(x, [0, 4]),
    "view": lambda x, n: np.frombuffer(bytes(8), np.float64)[n - 5],
}


def of_call(function: Callable[..., Any], *args: Any) -> tuple[Any, Any]:
    try:
        return function(*args), None
    except Exception as error:
        return None, error


def check_equal(got: tuple[Any, Any], want: tuple[Any, Any], n: int) -> None:
    if want[1] is not None:
        assert isinstance(got[1], type(want[1])), (n, got, want)
        assert str(want[1]).partition("\n")[0].rstrip() in str(got[1]), n
        return
    assert got[1] is None, (n, got[1])
    value, wanted = np.asarray(got[0]), np.asarray(want[0])
    assert (value.dtype, value.shape) == (wanted.dtype, wanted.shape), n
    np.testing.assert_allclose(value, wanted, rtol=1e-12)


@pytest.mark.parametrize("name", FORMS)
def test_each_size_is_asked_for(name: str) -> None:
    form = FORMS[name]

    def function(x: Any) -> Any:
        return form(x, len(x))

    refused = set()
    for order in ORDERS:
        compiled = fusec.jit(function)
        for n in order:
            x = np.arange(1.0, n + 1)
            want = of_call(function, x)
            refused.add(want[1] is not None)
            check_equal(of_call(compiled, x), want, n)
    assert len(refused) == 2 or name in ("repeat of nothing", "tile of nothing")


@pytest.mark.parametrize("name", ["broadcast_to", "empty_like", "zeros", "random integers",
                                  "full_like", "range"])
def test_each_int_is_asked_for(name: str) -> None:
    form = FORMS[name]
    for order in ORDERS:
        compiled = fusec.jit(form)
        for n in order:
            x = np.arange(1.0, 9.0)
            if name != "range" or n >= 5:  # steps of the run that are negative are refused
                check_equal(of_call(compiled, x, n), of_call(form, x, n), n)


@pytest.mark.parametrize("name", ["broadcast_to", "zeros", "full_like", "empty_like"])
def test_sizes_of_data_are_checked_by_the_run(name: str) -> None:
    form = FORMS[name]

    def function(x: Any) -> Any:
        return form(x, len(x[x > 0]))

    compiled = fusec.jit(function)
    for n in SIZES:
        x = np.r_[np.arange(1.0, n + 1), -1.0]
        check_equal(of_call(compiled, x), of_call(function, x), n)


def test_arange_of_a_float_and_a_size_of_data() -> None:
    def function(x: Any) -> Any:
        return np.arange(0.0, len(x[x > 0])), np.arange(np.float32(1), len(x[x > 0]) * 2, 2)

    got = fusec.jit(function)(np.array([1.0, -1.0, 2.0]))
    for value, want in zip(got, function(np.array([1.0, -1.0, 2.0])), strict=True):
        assert value.dtype == want.dtype
        np.testing.assert_array_equal(value, want)


@pytest.mark.parametrize("order", [(3, 1, 0, 9, 7), (9, 3, 4, 8)])
def test_the_programs_own_exception_is_told_after_a_refusal_for_varying_ints(
    order: tuple[int, ...]
) -> None:
    """The int is a number of the run first, which is refused; with its value known NumPy raises."""
    def function(x: Any, n: int) -> Any:
        return looped(i[1] for i in np.ndindex(n - 6, 2))

    compiled = fusec.jit(function)
    for n in order:
        check_equal(of_call(compiled, np.ones(4), n), of_call(function, np.ones(4), n), n)


def test_lengths_are_divided_by_sizes_that_may_be_zero() -> None:
    """The step is a size that the trace asked about; the length is part of an operation's text."""
    def function(x: Any, n: int) -> Any:
        padded = np.pad(x, (len(x) - x.shape[0], n - 2), mode="edge")
        steps = np.arange(n % 3, x.shape[0], max(n - 3, 0))
        return padded, steps, np.outer(padded, steps)

    compiled = fusec.jit(function)
    for n in (0, 8, 2, 3, 9):
        got, want = of_call(compiled, np.ones(n), n), of_call(function, np.ones(n), n)
        assert type(got[1]) is type(want[1]) or isinstance(got[1], type(want[1]))
        for value, wanted in zip(got[0] or (), want[0] or (), strict=True):
            np.testing.assert_array_equal(value, wanted)


def less_the_rest(x: Any) -> Any:
    return x - x[x > 1.0][4:]


def test_what_is_cut_off_a_selection_fits_or_does_not() -> None:
    """Stand-ins of a selection had sizes of which none fitted those that are known."""
    jitted = fusec.jit(less_the_rest)
    for n in (9, 0, 5, 2):
        for x in ((np.arange(n) * 7 % 5) - 1.5, np.full(n, 2.0)):
            try:
                wanted = less_the_rest(x)
            except ValueError:
                with pytest.raises(ValueError, match="could not be broadcast"):
                    jitted(x)
            else:
                np.testing.assert_array_equal(jitted(x), wanted)
