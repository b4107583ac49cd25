"""Native loops over arrays whose sizes were decided before, by data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fusec


def over_a_slice(x: Any, n: Any) -> Any:
    part, total = x[: n[0]], 0.0
    for i in range(n[0]):
        total += part[i] * part[n[0] - 1 - i]
    return total


def over_places(x: Any, n: Any) -> Any:
    places, out = np.nonzero(x > n[0])[0], np.zeros(x.shape[0])
    for k in range(len(places)):
        out[places[k]] += x[places[k]] + k
    return out


def over_selected(x: Any, n: Any) -> Any:
    chosen, out = x[x > n[0]], np.zeros(4)
    for i in range(4):
        out[i] = (chosen * i).sum() + chosen.shape[0]
    return out


def until_found(x: Any, n: Any) -> Any:
    chosen, k = x[x >= n[0]], 0
    while k < chosen.size and chosen[k] < 5:
        k += 1
    return k


def rows_of_a_slice(x: Any, n: Any) -> Any:
    table, total = np.outer(x, x)[: n[0]], 0.0
    for i in range(n[0]):
        for j in range(3):
            total += table[i, j] * (i + 1)
    return total


def columns_of_a_slice(x: Any, n: Any) -> Any:
    table, total = np.outer(x, x)[:, : n[0]] * 2, 0.0
    for i in range(3):
        total += table[i].sum()
    return total


def a_slice_of_it(x: Any, n: Any) -> Any:
    part, total = x[: n[0]] * 2, 0.0
    for i in range(1, 4):
        total += part[i:].sum() - part[:i] @ part[:i]
    return total


def in_a_branch(x: Any, n: Any) -> Any:
    part = x[n[0]:]
    if x[0] < 100:
        return part.sum() + part.size
    return x[0]


def written_by_the_loop(x: Any, n: Any) -> Any:
    part = x[: n[0]]
    for i in range(2):
        part[i] = part[i + 1] + 10
    return x


def grown_from_both(x: Any, n: Any) -> Any:
    a, b, out = x[: n[0]], x[x > 2], np.zeros(3)
    for i in range(3):
        out[i] = np.concatenate([a, b])[i] + a.size * b.size
    return out


PROGRAMS = [over_a_slice, over_places, over_selected, until_found, rows_of_a_slice,
            columns_of_a_slice, a_slice_of_it, in_a_branch, written_by_the_loop, grown_from_both]
NATIVE = [over_a_slice, over_places, until_found, rows_of_a_slice]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_as_numpy(program: Callable[..., Any]) -> None:
    compiled = fusec.jit(program)
    for first in (4, 5, 7, 8, 4):
        mine, numpys = np.arange(1.0, 9.0), np.arange(1.0, 9.0)
        found, wanted = compiled(mine, np.array([first])), program(numpys, np.array([first]))
        np.testing.assert_allclose(found, wanted, rtol=1e-14)
        np.testing.assert_array_equal(mine, numpys)
    assert compiled.trace_count == 1


@pytest.mark.parametrize("program", NATIVE, ids=lambda p: p.__name__)
def test_loops_that_only_read_them_are_native(program: Callable[..., Any]) -> None:
    text = str(fusec.explain(program, np.arange(1.0, 9.0), np.array([5])))
    assert "one native function" in text, text


def test_an_index_out_of_range_names_the_size_of_the_call() -> None:
    def last(x: Any, n: Any, k: Any) -> Any:
        part, total = x[: n[0]], 0.0
        for i in range(k[0]):
            total += part[i]
        return total

    compiled = fusec.jit(last)
    for size in (3, 5):
        assert compiled(np.ones(8), np.array([size]), np.array([size])) == size
        with pytest.raises(IndexError, match=f"index {size} is out of bounds for axis 0 with size "
                                             f"{size}"):
            compiled(np.ones(8), np.array([size]), np.array([6]))


@pytest.mark.parametrize("first", [0, 9])
def test_arrays_of_no_elements(first: int) -> None:
    for program in (over_a_slice, over_places, over_selected, until_found):
        if program is over_a_slice and first:
            continue
        x, n = np.arange(1.0, 9.0), np.array([first])
        np.testing.assert_array_equal(fusec.jit(program)(x, n), program(x.copy(), n))
