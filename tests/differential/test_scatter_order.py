"""``x[i] = v`` with an element named twice: NumPy goes through ``i`` and ``v`` as they lie."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fusec


def laid(shape: tuple[int, ...], dtype: str, layout: str, order: list[int]) -> np.ndarray:
    """An empty array: its axes in this order in memory, with gaps or backwards where asked."""
    wide = [2 * n if layout == "gaps" else n for n in shape]
    memory = np.empty([wide[d] for d in order], dtype).transpose(np.argsort(order))
    step = {"gaps": 2, "backwards": -1}.get(layout)
    return memory[(slice(None, None, step),) * len(shape)]


@st.composite
def cases(draw: Any) -> tuple[list[np.ndarray], np.ndarray]:
    """Arrays of indices, and a value that broadcasts to their shape."""
    shape = draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))
    numbers = np.random.default_rng(draw(st.integers(0, 1000)))

    def array(dtypes: list[str], own: tuple[int, ...]) -> np.ndarray:
        layout = draw(st.sampled_from(["dense", "gaps", "backwards"]))
        order = draw(st.permutations(range(len(own))))
        made = laid(own, draw(st.sampled_from(dtypes)), layout, order)
        made[...] = numbers.integers(0, 3, own) if "i8" in dtypes else numbers.random(own)
        return made

    def some(full: Any) -> tuple[int, ...]:
        return tuple(n if draw(st.integers(0, 3)) else 1 for n in full)

    indices = [array(["i8", "u8", "i4"], some(shape)) for _ in range(draw(st.integers(1, 2)))]
    full = np.broadcast_shapes(*(i.shape for i in indices))
    return indices, array(["f8", "f4"], some(full))


def assigned(x: Any, v: Any, *i: Any) -> None:
    x[i] = v


def by_slices(x: Any, v: Any, *i: Any) -> None:
    x[(*i, slice(None))] = np.asarray(v)[..., None]


@settings(max_examples=60, deadline=None)
@given(cases())
def test_the_last_value_is_numpys(case: Any) -> None:
    indices, value = case
    for f, extra in ((assigned, ()), (by_slices, (2,))):
        want = np.zeros((3,) * len(indices) + extra)
        got = want.copy()
        f(want, value, *indices)
        fusec.jit(f)(got, value, *indices)
        np.testing.assert_array_equal(got, want)


def test_a_part_multiplied_in_place() -> None:
    """Seed 132098135."""
    def f(x: Any, i: Any) -> None:
        x[i] *= x

    i = np.array([[2, 1], [1, 3], [3, 1], [0, 3]], "u8").T
    want, got = np.arange(1.0, 5.0), np.arange(1.0, 5.0)
    f(want, i)
    fusec.jit(f)(got, i)
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("turned", [(True, True, True), (True, False, True), (True, True, False)])
def test_vectors_backwards(turned: tuple[bool, ...]) -> None:
    def f(x: Any, i: Any, j: Any, v: Any) -> None:
        x[i, j] = v

    i, j, v = np.array([0, 0, 1, 0, 1]), np.array([1, 1, 0, 1, 0]), np.arange(5.0)
    args = [a[::-1] if t else a for a, t in zip((i, j, v), turned, strict=True)]
    want, got = np.zeros((2, 2)), np.zeros((2, 2))
    f(want, *args)
    fusec.jit(f)(got, *args)
    np.testing.assert_array_equal(got, want)
