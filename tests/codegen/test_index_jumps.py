"""Indices of native loops: in range as they are, from the end, and out of range on either side."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fusec

SIZE = 7
LOWEST, HIGHEST = np.iinfo(np.int64).min, np.iinfo(np.int64).max


def picked(x: Any, places: Any) -> Any:
    total = np.zeros(len(places))
    for k in range(len(places)):
        total[k] = x[places[k]] + 10 * x[places[k]]  # one index, twice
    return total


def put(x: Any, places: Any) -> Any:
    k = 0
    while k < len(places):
        x[places[k]] = k
        k += 1
    return x


@pytest.mark.parametrize("f", [picked, put])
def test_indices_of_both_signs(f: Any) -> None:
    places = np.array([0, SIZE - 1, -1, -SIZE, 3, -4])
    x = np.arange(float(SIZE))
    np.testing.assert_array_equal(fusec.jit(f)(x.copy(), places), f(x.copy(), places))


@pytest.mark.parametrize("f", [picked, put])
@pytest.mark.parametrize("wrong", [SIZE, -SIZE - 1, LOWEST, HIGHEST, LOWEST + SIZE, HIGHEST - SIZE])
def test_indices_out_of_range(f: Any, wrong: int) -> None:
    jitted, x = fusec.jit(f), np.arange(float(SIZE))
    jitted(x.copy(), np.array([0, -1, 1]))
    with pytest.raises(IndexError, match=f"index {wrong} is out of bounds.* with size {SIZE}"):
        jitted(x.copy(), np.array([0, wrong, 1]))


def test_an_array_without_elements_has_no_index() -> None:
    with pytest.raises(IndexError, match="index 0 is out of bounds"):
        fusec.jit(picked)(np.zeros(0), np.array([0, 0]))


def sliced(x: Any, starts: Any, stops: Any) -> Any:
    found = np.zeros(len(starts))
    k = 0
    while k < len(starts):
        part = x[starts[k]:stops[k]]
        found[k] = part.sum() + 100 * len(part)
        k += 1
    return found


def put_into_slices(x: Any, starts: Any, stops: Any) -> Any:
    k = 0
    while k < len(starts):
        x[starts[k]:stops[k]] = k
        k += 1
    return x


@pytest.mark.parametrize("f", [sliced, put_into_slices])
def test_ends_of_slices_may_be_anywhere(f: Any) -> None:
    ends = [0, 1, SIZE - 1, SIZE, SIZE + 1, 2 * SIZE, 3 * SIZE, -1, -SIZE, -SIZE - 1, -3 * SIZE,
            HIGHEST, HIGHEST - SIZE, HIGHEST - 1, LOWEST, LOWEST + 1, LOWEST + SIZE]
    starts, stops = (x.ravel() for x in np.meshgrid(ends, ends))
    x = np.arange(float(SIZE))
    np.testing.assert_array_equal(fusec.jit(f)(x.copy(), starts, stops), f(x, starts, stops))
