"""Boxes of blocks that are those of another one moved: the same as pulled back for each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fusec
from fusec.passes.split import geometries

da = pytest.importorskip("dask.array")

X = np.random.default_rng(2).standard_normal((60, 12))


def scores(x: Any) -> Any:
    return np.tanh((x - x.mean(axis=0)) / x.std(axis=0)), x.sum(axis=1)


def differences(x: Any) -> Any:
    return x[1:] - x[:-1], (x[2:] * x[:-2]).sum()


def ends(x: Any) -> Any:
    y = x.copy()
    y[1:-1] = 0.5 * (x[:-2] + x[2:])
    return y, np.pad(y, 1)


def mixed(x: Any) -> Any:
    return x[:12] + x[:12].T, x * np.arange(len(x))[:, None], x[17], x.argmax(axis=0)


def part_of_scan(x: Any) -> Any:
    return np.cumsum(x, axis=1)[:, 1:3]


def part_of_sorted(x: Any) -> Any:
    return np.sort(x, axis=1)[:, 1:3], np.argsort(x, axis=1)[:, -1]


def part_of_scattered(x: Any) -> Any:
    y = x * 1.0
    y[:, np.array([0, 2])] = 5
    return y[:, 1:3]


def part_of_shifted(x: Any) -> Any:
    y = np.cumsum(x[1:] - x[:-1], axis=1)
    return y[:, 3:][:, ::2], y.sum(axis=0)


@pytest.mark.parametrize(
    "function", [part_of_scan, part_of_sorted, part_of_scattered, part_of_shifted])
def test_parts_of_what_is_made_as_a_whole(function: Callable[[Any], Any]) -> None:
    got = fusec.jit(function)(da.from_array(X, chunks=((2, 17, 41), 12)))
    want = function(X)
    pairs = zip(got, want, strict=True) if isinstance(want, tuple) else [(got, want)]
    for one, other in pairs:
        values = one.compute(scheduler="synchronous")
        assert values.shape == one.shape
        np.testing.assert_allclose(values, other, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("function", [scores, differences, ends, mixed])
def test_moved_boxes_are_those_that_are_pulled_back(
    function: Callable[[Any], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    compared = []

    def checked(self: Any, known: Any, roots: Any, starts: Any) -> Any:
        moved, made = plain(self, known, roots, starts), self._made(roots)
        assert (moved.roots, moved.reads, moved.empty, moved.key) == (
            made.roots, made.reads, made.empty, made.key)
        for value, box in made.boxes.items():
            assert [moved.start(value, axis) for axis in range(len(box))] == [a for a, _ in box]
        compared.append(moved)
        return moved

    plain = geometries.Geometries._moved
    monkeypatch.setattr(geometries.Geometries, "_moved", checked)
    for chunks in ((5, 12), ((7, 7, 7, 9, 9, 9, 12), 4), (6, 3)):
        fusec.jit(function)(da.from_array(X, chunks=chunks))
    assert compared or function is ends  # its pieces lie within the array: nothing moves


def test_blocks_that_look_alike_are_pulled_back_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []

    def counted(self: Any, roots: Any) -> Any:
        made.append(roots)
        return plain(self, roots)

    plain = geometries.Geometries._made
    monkeypatch.setattr(geometries.Geometries, "_made", counted)
    fusec.jit(scores)(da.zeros((6_400, 2), chunks=(10, 2)))
    assert len(made) == 2  # one a stage, for 640 blocks of each
