"""Loops over items of Python's iterators: in the graph where they are long, and Python's items."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from harness import check

import fusec
from fusec.errors import UnsupportedError

TABLE = np.linspace(0.0, 1.0, 40)
WEIGHTS = [0.5, 0.25, -0.125] * 14
PLACES = list(range(1, 39))
EDGES = [(k, ((k * 7) % 40, 0.5 / (k + 1))) for k in range(40)]
ODD = tuple(int(k) for k in (np.arange(40) * 7) % 40)


def backwards(x: np.ndarray) -> Any:
    s = 0.0
    for i in reversed(range(len(x))):
        s = s * 0.5 + x[i]
    return s


def backwards_over_elements(x: np.ndarray) -> Any:
    s = 0.0
    for v in reversed(x):
        s = s * 0.5 + v
    return s


def numbered_pairs(x: np.ndarray) -> Any:
    s = 0.0
    for i, (u, v) in enumerate(zip(x, x[::-1], strict=True), 3):
        s = s * 0.5 + u * v * i
    return s


def numbered_range(x: np.ndarray) -> Any:
    s = 0.0
    for k, i in enumerate(range(0, len(x), 2)):
        s = s * 0.5 + k * x[i]
    return s, k, i


def places_of_a_grid(x: np.ndarray) -> Any:
    y = np.zeros((5, 8))
    s = 0.0
    for i, j in np.ndindex(5, 8):
        s = s * 0.5 + x[8 * i + j]
        y[i, j] = s
    return y


def a_product(x: np.ndarray) -> Any:
    s = 0.0
    for i, j, w in itertools.product(range(2, 6), range(5), (0.5, 2.0)):
        s = s * 0.5 + x[i] * w - x[j]
    return s


def a_repeated_product(x: np.ndarray) -> Any:
    s = 0.0
    for i, j in itertools.product(range(6), repeat=2):
        s = s * 0.5 + x[i] * x[j]
    return s


def places_and_elements(x: np.ndarray) -> Any:
    y = x.reshape(5, 8).T
    s = 0.0
    for (i, j), v in np.ndenumerate(y):
        s = s * 0.5 + i * v - j
        y[(i + 3) % 8, j] += 0.25
    return s


def an_array_of_numpys(x: np.ndarray) -> Any:
    s = 0.0
    for i in np.arange(len(x)):
        s = s * 0.5 + x[i]
    return s, i


def an_array_from_outside(x: np.ndarray) -> Any:
    s = x[0]
    for w in TABLE:
        s = s * w + 0.5
    return s, w


def a_list_of_floats(x: np.ndarray) -> Any:
    s = np.float32(x[0])
    for w in WEIGHTS:
        x[2:7] = x[1:6] * w + s
        s = np.float32(s * w)
    return x, s


def a_list_of_places(x: np.ndarray) -> Any:
    for _ in range(2):
        for i in PLACES:
            x[i] = x[i - 1] * 0.5 + x[i]
    return x


def places_in_any_order(x: np.ndarray) -> Any:
    s = 0.0
    for i in ODD:
        s = s * 0.5 + x[i]
    return s


def pairs_from_outside(x: np.ndarray) -> Any:
    for i, (j, w) in EDGES:
        x[i] += x[j] * w
    return x


def places_and_weights(x: np.ndarray) -> Any:
    s = 0.0
    for i, w in zip(PLACES, WEIGHTS):  # noqa: B905 (the shorter one ends it)
        s = s * w + x[i]
    return s, i, w


LONG = [
    backwards, backwards_over_elements, numbered_pairs, numbered_range, places_of_a_grid,
    a_product, a_repeated_product, places_and_elements, an_array_of_numpys, an_array_from_outside,
    a_list_of_floats, a_list_of_places, places_in_any_order, pairs_from_outside,
    places_and_weights,
]


@pytest.mark.parametrize("program", LONG)
def test_a_long_loop_is_one_of_the_graph(program: Callable[..., Any]) -> None:
    x = np.random.default_rng(0).random(40)
    compiled = check(program, x, fp="strict")
    assert "Loop" in compiled.traces[0].graph.ops
    assert len(compiled.traces[0].graph.nodes) < 40


def over_places(x: np.ndarray) -> Any:
    s = np.int64(0)
    for i in np.flatnonzero(x):
        s = s * 2 + i
    return s


def numbered_places(x: np.ndarray) -> Any:
    s = np.float64(0)
    for k, i in enumerate(np.flatnonzero(x), 1):
        s = s * 0.5 + i * k
    return s


def pairs_of_places(x: np.ndarray) -> Any:
    s = np.float64(0)
    for i, j in zip(*np.nonzero(x.reshape(4, -1)), strict=True):
        s = s * 0.5 + i - j
    return s


def rows_of_places(x: np.ndarray) -> Any:
    s = np.int64(0)
    for row in np.argwhere(x.reshape(4, -1)):
        s = s * 2 + row[0] - row[1]
    return s


def as_many_as_selected(x: np.ndarray) -> Any:
    s = np.float64(0)
    for v, w in zip(x[x > 0.5], x):  # noqa: B905 (the shorter one ends it)
        s = s * 0.5 + v * w
    return s


def selected_backwards(x: np.ndarray) -> Any:
    s = np.float64(0)
    for v in reversed(x[x > 0.5]):
        s = s * 0.5 + v
    return s


@pytest.mark.parametrize("program", [
    over_places, numbered_places, pairs_of_places, rows_of_places, as_many_as_selected,
    selected_backwards,
])
def test_a_length_that_data_decides(program: Callable[..., Any]) -> None:
    for x in (np.array([3.0, 0, 2, 0.1] * 3), np.zeros(4), np.ones(8)):
        check(program, x, fp="strict")


def ends_early(x: np.ndarray) -> Any:
    for i, v in enumerate(reversed(x)):
        if v > 0.9 and i:
            break
    return i, v


def two_loops_over_one_iterator(x: np.ndarray) -> Any:
    pairs = zip(x, x[::-1], strict=True)
    s = 0.0
    for u, v in pairs:
        s = s * 0.5 + u * v
        if s > 1.0:
            break
    for u, _ in pairs:
        s -= u
    return s


def one_item_first(x: np.ndarray) -> Any:
    pairs = enumerate(x)
    s = next(pairs)[1]
    for i, v in pairs:
        s = s * 0.5 + i * v
    return s


def a_list_that_grows(x: np.ndarray) -> Any:
    places = [0]
    for i in places:
        if len(places) < 30:
            places.append(i + 1)
        x[i] += 1.0
    return x, len(places)


def a_list_that_changes(x: np.ndarray) -> Any:
    places = list(range(30))
    for i in places:
        places[29] = 3
        x[i] += 1.0
    return x


def lists_where_python_needs_the_numbers(x: np.ndarray) -> Any:
    parts = []
    for n in [1, 2, 3] * 7:
        parts.append(x[:n].sum())
    return parts


def an_array_that_changes(x: np.ndarray) -> Any:
    places = np.arange(30)
    for i in places:
        places[29] = 3
        x[i] += 1.0
    return x


@pytest.mark.parametrize("program", [
    ends_early, one_item_first, a_list_that_grows, a_list_that_changes,
    lists_where_python_needs_the_numbers, an_array_that_changes,
])
def test_the_items_are_pythons(program: Callable[..., Any]) -> None:
    check(program, np.random.default_rng(1).random(40), fp="strict")


def test_going_on_with_what_a_loop_went_over() -> None:
    with pytest.raises(UnsupportedError, match="going on with a zip that a loop went over"):
        fusec.jit(two_loops_over_one_iterator)(np.ones(40))


def test_nditer_names_what_to_use() -> None:
    with pytest.raises(UnsupportedError, match=r"loop over x\.flat, np\.ndenumerate"):
        fusec.jit(lambda x: list(np.nditer(x)))(np.ones(3))


def flipped_often(x: np.ndarray) -> Any:
    for k in range(60):
        x = x[::-1]
        x[k % 3] += 1.0
    return x


def test_slices_of_slices_are_one_step() -> None:
    """Control seed 1457585: each slice of a slice was a node more at every read."""
    compiled = check(flipped_often, np.arange(4.0))
    check(lambda x: (x[1:][::2][::-1], x[::-1][::-1], x[2:][:0]), np.arange(9.0))
    assert len(compiled.traces[0].graph.nodes) < 500
