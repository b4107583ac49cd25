"""Updates that overwrite all of an array, and those that change nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from test_small_passes import graph_of

import fusec
from fusec.passes.prune import prune
from fusec.passes.rules.simplify import simplify

COMPUTED = """
        %t = Mul(%x, %y) : f64[3]
        %one = Slice(%x) {starts=(0,), steps=(1,), sizes=(1,)} : f64[1]
        %two = Slice(%y) {starts=(1,), steps=(1,), sizes=(2,)} : f64[2]
        %a = SliceUpdate(%t, %one) {starts=(0,), steps=(1,), sizes=(1,)} : f64[3]"""


@pytest.mark.parametrize("at, gone", [(1, True), (0, False)])
def test_what_is_overwritten_as_a_whole_is_not_computed(at: int, gone: bool) -> None:
    graph = graph_of(COMPUTED + f"""
        %b = SliceUpdate(%a, %two) {{starts=({at},), steps=(1,), sizes=(2,)}} : f64[3]
        return %b""")
    assert ("Mul" not in prune(simplify(graph)).ops) is gone


def test_an_argument_that_is_overwritten_is_updated_in_place() -> None:
    graph = graph_of(COMPUTED.replace("%t, %one", "%x, %one") + """
        %b = SliceUpdate(%a, %two) {starts=(1,), steps=(1,), sizes=(2,)} : f64[3]
        return %b""")
    assert "BroadcastTo" not in simplify(graph).ops


def test_a_part_of_an_older_version_is_put_back() -> None:
    graph = prune(simplify(graph_of(COMPUTED + """
        %last = Slice(%t) {starts=(2,), steps=(1,), sizes=(1,)} : f64[1]
        %b = SliceUpdate(%a, %last) {starts=(2,), steps=(1,), sizes=(1,)} : f64[3]
        %c = Neg(%b) : f64[3]
        return %c""")))
    assert [node.op for node in graph.nodes].count("SliceUpdate") == 1


def random_updates(seed: int, shape: tuple[int, ...]) -> Any:
    """A function that updates boxes of an array that it computes, and reads others between."""
    rng = np.random.default_rng(seed)
    boxes = []
    for _ in range(5):
        edges = [sorted(rng.integers(0, n + 1, 2).tolist()) for n in shape]
        boxes.append(tuple(slice(*edge) if rng.random() < 0.6 else slice(None) for edge in edges))
    kinds = rng.integers(0, 4, 5).tolist()

    def updates(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, ...]:
        t, read = x * y - 1, []
        for box, kind in zip(boxes, kinds, strict=True):
            before = t[box]
            if kind == 0:
                t[box] = y[box]
            elif kind == 1:
                t[box] = -0.0
            elif kind == 2:
                t[box] = before.copy()
            else:
                read.append(before * 2)
        return (t, *read)

    return updates


@pytest.mark.parametrize("shape", [(6,), (4, 5)])
def test_random_updates_have_numpys_bits(shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    for seed in range(60):
        updates = random_updates(seed, shape)
        x, y = rng.random(shape), rng.random(shape)
        for got, want in zip(fusec.jit(updates, fp="strict")(x, y), updates(x, y), strict=True):
            assert got.tobytes() == np.ascontiguousarray(want).tobytes(), seed
