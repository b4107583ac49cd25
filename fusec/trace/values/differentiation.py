"""Whether the function is going to be differentiated: asked where a program gives a derivative.

A rule is only traced for derivatives; all other calls are those of the function itself.  Which
nodes derivatives made is kept for those who look at the graph.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from fusec.ir.graph import Graph, new_id


class Differentiated:
    """Of a trace: how often, and the function that gives a value partial derivatives."""

    times = 0
    with_partials: Callable[..., Any] | None = None

    def __init__(self) -> None:
        self._spans: list[tuple[int, int]] = []  # ids of nodes between which derivatives made all

    @contextmanager
    def more(self, by: int) -> Iterator[None]:
        """The traced code is differentiated so many times more."""
        self.times += by
        try:
            yield
        finally:
            self.times -= by

    @contextmanager
    def making(self) -> Iterator[None]:
        """Nodes made inside are a derivative's."""
        start = new_id()
        try:
            yield
        finally:
            self._spans.append((start, new_id()))

    def made(self, graph: Graph) -> frozenset[str]:
        """The names of the nodes that derivatives made, but those in sub-graphs."""
        spans = self._spans
        return frozenset(node.name for node in graph.nodes if any(
            start < node.id < end for start, end in spans)) if spans else frozenset()
