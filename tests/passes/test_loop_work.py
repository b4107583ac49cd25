"""How much loops are expected to compute, for placement to compare."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fusec
from fusec.ir import Graph, Node
from fusec.passes.placement.loop_work import control_work, graph_work

X = np.ones(50)


def counting(n: int) -> Callable[..., Any]:
    def f(x: Any, y: float) -> Any:
        for i in range(n):
            y = y * 0.5 + i
        return y
    return f


def every_second(n: int) -> Callable[..., Any]:
    def f(x: Any, y: float) -> Any:
        for i in range(n, 3 * n, 2):
            y = y * 0.5 + i
        return y
    return f


def backwards(n: int) -> Callable[..., Any]:
    def f(x: Any, y: float) -> Any:
        i = n
        while i > 0:
            y = y * 0.5 + i
            i -= 1
        return y
    return f


def with_another_end(n: int) -> Callable[..., Any]:
    def f(x: Any, y: float) -> Any:
        i = 0
        while i < n and y < 1e300:
            y = y * 0.5 + i
            i += 1
        return y
    return f


def square(n: int) -> Callable[..., Any]:
    def f(x: Any, y: float) -> Any:
        for i in range(n):
            for j in range(n):
                y = y * 0.5 + i + j
        return y
    return f


def triangle(n: int) -> Callable[..., Any]:
    def f(x: Any, y: float) -> Any:
        for i in range(n):
            for j in range(i):
                y = y * 0.5 + i + j
        return y
    return f


def upper_triangle(n: int) -> Callable[..., Any]:
    def f(x: Any, y: float) -> Any:
        for i in range(n):
            for j in range(i + 1, n):
                y = y * 0.5 + i + j
        return y
    return f


def until_it_is_small(x: Any, y: float) -> Any:
    while y > 1e-3:
        y = y * 0.5
    return y


def along(x: Any, y: float) -> Any:
    i = 0
    while y > 1e-3:
        y = y * x[i]
        i += 1
    return y


def loop(f: Callable[..., Any]) -> Node:
    graph: Graph = fusec.jit(f).concrete(X, 1.0).optimized_graph
    (node,) = (n for n in graph.nodes if n.op == "Loop")
    return node


def work(f: Callable[..., Any]) -> float:
    return control_work(loop(f), {})


@pytest.mark.parametrize(("f", "power"), [
    (counting, 1), (every_second, 1), (backwards, 1), (with_another_end, 1),
    (square, 2), (triangle, 2), (upper_triangle, 2)])
def test_loops_that_count(f: Callable[[int], Any], power: int) -> None:
    assert work(f(3000)) == pytest.approx(3**power * work(f(1000)), rel=0.02)


def test_a_triangle_is_half_a_square() -> None:
    assert work(triangle(1000)) == pytest.approx(work(upper_triangle(1000)), rel=0.2)
    (inner,) = (n for n in loop(triangle(1000)).attrs["body"].nodes if n.op == "Loop")
    once = sum(graph_work(graph, {}) for graph in (inner.attrs["test"], inner.attrs["body"]))
    assert work(triangle(1000)) == pytest.approx(1000 * 500 * once, rel=0.05)


@pytest.mark.parametrize(("f", "trips"), [(until_it_is_small, 100), (along, 50)])
def test_other_loops_walk_along_what_they_use(f: Any, trips: int) -> None:
    node = loop(f)
    once = sum(graph_work(graph, {}, 25) for graph in (node.attrs["test"], node.attrs["body"]))
    assert control_work(node, {}) == pytest.approx(trips * once)


def test_parts_of_arrays_count_alone() -> None:
    def item(x: Any, y: float) -> Any:
        for i in range(1000):
            x[i % 50] = y
        return x

    def whole(x: Any, y: float) -> Any:
        for i in range(1000):
            x[:] = x * y + i
        return x

    assert work(whole) - work(item) > 1000 * len(X)
