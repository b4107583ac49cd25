"""Graphs that are made when somebody looks at their nodes."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from .graph import Graph, Node, Value


class LaterGraph(Graph):
    """A graph whose name and types are known, and whose nodes are made at first use.

    Most calls run, and nobody ever reads their graphs: a plan needs the types of inputs and
    outputs.
    """

    @property
    @abstractmethod
    def made(self) -> Graph:
        """The graph itself."""

    @property
    def inputs(self) -> tuple[Value, ...]:
        return self.made.inputs

    @property
    def outputs(self) -> tuple[Value, ...]:
        return self.made.outputs

    @property
    def updates(self) -> tuple[tuple[int, Value], ...]:
        return self.made.updates

    @property
    def nodes(self) -> tuple[Node, ...]:
        return self.made.nodes

    def rename(self, name: str) -> Graph:
        return self.made.rename(name)

    def __eq__(self, other: Any) -> bool:
        return self is other or self.made == (
            other.made if isinstance(other, LaterGraph) else other)

    def __hash__(self) -> int:
        return hash(self.made)
