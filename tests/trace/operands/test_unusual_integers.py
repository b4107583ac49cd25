"""Integers beyond those that indices and sizes have, and written arrays that overlap themselves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fusec

BEYOND = np.array([2**64 - 1, 0], np.uint64)
sliding: Any = np.lib.stride_tricks.sliding_window_view


def read(x: Any, n: Any) -> Any:
    return x[n[0]]


def read_in_a_loop(x: Any, n: Any) -> Any:
    s = 0.0
    for i in range(40):
        s += x[n[i % 2]]
    return s


def written_in_a_loop(x: Any, n: Any) -> Any:
    for i in range(40):
        x[n[i % 2]] = i
    return x


def row(x: Any, n: Any) -> Any:
    return x.reshape(2, 3)[0, n[0]]


def of_a_list(x: Any, n: Any) -> Any:
    return [1.0, 2.0][n[0]]


@pytest.mark.parametrize("program", [read, read_in_a_loop, written_in_a_loop, row, of_a_list])
def test_unsigned_indices_beyond_those_with_a_sign(program: Callable[..., Any]) -> None:
    jitted = fusec.jit(program)
    few = np.array([1, 0], np.uint64)
    assert np.array_equal(jitted(np.arange(6.0), few), program(np.arange(6.0), few))
    for n in (BEYOND, np.array([2**63, 1], np.uint64)):
        x = np.arange(6.0)
        with pytest.raises((OverflowError, IndexError)) as wanted:
            program(x.copy(), n)
        with pytest.raises((OverflowError, IndexError)) as raised:  # lists raise the latter
            jitted(x, n)
        assert program is of_a_list or str(raised.value).startswith(str(wanted.value))
        assert np.array_equal(x, np.arange(6.0))


def test_index_arrays_wrap() -> None:
    assert fusec.jit(lambda x, n: x[n])(np.arange(6.0), BEYOND).tolist() == [5.0, 0.0]


def test_ranges_longer_than_31_bits() -> None:
    jitted = fusec.jit(lambda n: np.arange(n[0]))
    assert jitted(np.array([3])).tolist() == [0, 1, 2]
    for n in (2**45, 2**62):  # which no machine has room for
        with pytest.raises((MemoryError, ValueError)):
            jitted(np.array([n]))


def added_to(w: Any) -> None:
    w += 1


def added_to_each(w: Any) -> None:
    for i in range(w.shape[0]):
        w[i, 0] += 1


def masked(w: Any) -> None:
    w[w > 2] += 1


@pytest.mark.parametrize("program", [added_to, added_to_each, masked])
def test_written_arguments_that_overlap_themselves_are_refused(
    program: Callable[..., Any]
) -> None:
    x = np.arange(6.0)
    for windows in (sliding(x, 3, writeable=True),
                    np.lib.stride_tricks.as_strided(x, (4, 3), (0, 8))):
        with pytest.raises(fusec.UnsupportedError, match="several elements share memory"):
            fusec.jit(program)(windows)
        assert np.array_equal(x, np.arange(6.0))


def test_those_that_do_not_are_not() -> None:
    jitted = fusec.jit(added_to)
    for made in (lambda x: x.reshape(4, 6)[::2, ::3], lambda x: x.reshape(4, 6).T[::-1],
                 lambda x: sliding(x, 3, writeable=True)[::3], lambda x: x[:1, None][:, [0] * 1]):
        got, want = np.arange(24.0), np.arange(24.0)
        jitted(made(got))
        added_to(made(want))
        assert np.array_equal(got, want)


def test_those_that_are_read_only() -> None:
    assert fusec.jit(lambda w: (w * 2).sum())(sliding(np.arange(6.0), 3)) == 60.0
