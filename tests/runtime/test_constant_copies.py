"""Copies of constants that are mostly zeros: their own memory, every bit, the order of memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fusec
from fusec.runtime.launching import constant_copies

SIZE = 300
COUNTS = np.zeros((SIZE, SIZE), np.int32)
COUNTS[7, 11] = -3


def eye(x: Any) -> Any:
    return np.eye(SIZE)


def by_columns(x: Any) -> Any:
    return np.asfortranarray(np.eye(SIZE, k=3, dtype=np.float32)) * np.float32(-2)


def negative_zeros(x: Any) -> Any:
    return -np.zeros((SIZE, SIZE))


def complex_numbers(x: Any) -> Any:
    return np.eye(SIZE) * complex(-0.0, 1.0)


def twice(x: Any) -> Any:
    a = np.eye(SIZE)
    return a, a.T, a[3]


@pytest.mark.parametrize("program", [eye, by_columns, negative_zeros, complex_numbers, twice])
def test_copies_have_every_bit_and_their_own_memory(program: Any) -> None:
    f = fusec.jit(program)
    want = program(0)
    for _ in range(3):
        got = f(np.zeros(3))
        arrays, wanted = (r if type(r) is tuple else (r,) for r in (got, want))
        for a, b in zip(arrays, wanted, strict=True):
            assert a.dtype == b.dtype and a.strides == b.strides
            assert a.tobytes() == b.tobytes()
        arrays[0][...] = 7


@pytest.mark.parametrize("constant", [COUNTS, COUNTS.T, COUNTS[::2], np.ones((SIZE, SIZE))])
def test_any_layout(constant: np.ndarray) -> None:
    copy = constant_copies.copy_of(constant)
    assert copy.strides == constant.copy(order="K").strides
    assert not np.shares_memory(copy, constant)
    np.testing.assert_array_equal(copy, constant)


def test_only_what_is_not_zero_is_written() -> None:
    constant = np.eye(SIZE)
    constant_copies.copy_of(constant)
    key = id(constant)
    _, rest = constant_copies._rests[key]
    assert rest is not None and len(rest.places) == SIZE
    del constant
    assert key not in constant_copies._rests
