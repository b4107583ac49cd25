"""Graphs whose parameters have sizes of any value: their symbols, and the graph for some sizes.

A symbol ``s0`` is at least 2; ``Graph.assumed`` are the questions that the trace asked of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from fusec.errors import FusecError

from ..graph import Graph
from ..types import TensorType
from .dims import Dim, argument_size
from .instantiate import Instantiation
from .polynomials import LEAST_ARGUMENT
from .size_questions import Computed, Question, arguments_of


class SizesError(FusecError, ValueError):
    """Sizes that a graph is not for."""


class OpenInstantiation(Instantiation):
    """Leaves some symbols: sizes are `Dim` s, and numbers of them are computed later."""

    def data(self, data: Any) -> Any:
        if type(data) is Computed:
            args = tuple(map(self.data, data.args))
            if any(type(x) in (Dim, Computed) for x in args):
                return Computed(data.fn, args)
        return super().data(data)


def assuming(graph: Graph, questions: Sequence[Question], known: Mapping[str, int]) -> Graph:
    """The graph with the questions about its sizes, of which some have a value."""
    return replace(graph.made, assumed=tuple(Assumption(q, dict(known)) for q in questions))


class Assumption(NamedTuple):
    """A question where some sizes are known."""

    question: Question
    known: dict[str, int]

    def holds(self, sizes: Mapping[str, int]) -> bool:
        return self.question.holds({**self.known, **sizes})

    def __str__(self) -> str:
        return str(self.question)


def open_sizes(graph: Graph) -> frozenset[str]:
    """The symbols in the sizes of its parameters."""
    return frozenset().union(*(
        arguments_of(size) for value in graph.inputs for size in value.shape
        if type(size) is Dim))


def sizes_of(types: Sequence[TensorType], shapes: Sequence[tuple[int, ...]]) -> dict[str, int]:
    """The symbols that are sizes of these parameters, by arrays of these shapes.

    Raises `SizesError` where one would have two values.
    """
    sizes: dict[str, int] = {}
    for type_, shape in zip(types, shapes, strict=True):
        for size, given in zip(type_.shape, shape, strict=True):
            name = size.name if type(size) is Dim else None
            if name is not None and sizes.setdefault(name, given) != given:
                raise SizesError(f"sizes that are equal in the graph differ: {name} is "
                                 f"{sizes[name]} and {given}")
    return sizes


def unbound_sizes(graph: Graph) -> str:
    """A symbol of the graph that no parameter has as a size of its own; empty where none."""
    bound = {str(size) for value in graph.inputs for size in value.shape if type(size) is Dim}
    try:
        sizes = {name: argument_size(name) for name in bound & open_sizes(graph)}
        OpenInstantiation(sizes).graph(graph)
    except KeyError as error:
        return str(error.args[0])
    return ""


def at_sizes(graph: Graph, sizes: Mapping[str, int]) -> Graph:
    """See `Graph.at_sizes`."""
    names = open_sizes(graph)
    if names != sizes.keys():
        raise SizesError(
            f"the graph {graph.name!r} has other symbols", cure="give each symbol one size",
            values=[("symbols", ", ".join(sorted(names)) or "none"),
                    ("given", ", ".join(sizes) or "none")])
    for name, size in sizes.items():
        if not isinstance(size, int) or size < LEAST_ARGUMENT:
            raise SizesError(
                f"{name} is a size of {LEAST_ARGUMENT} or more", values=[("given", repr(size))],
                cure="arrays of size 0 and 1 have graphs of their own: NumPy broadcasts them")
    broken = [str(question) for question in graph.assumed if not question.holds(sizes)]
    if broken:
        raise SizesError(
            f"the graph {graph.name!r} was traced for other sizes", values=[
                ("traced for", "; ".join(broken)),
                ("given", ", ".join(f"{name}={size}" for name, size in sizes.items()))],
            cure="call the jitted function, which traces what it needs")
    return Instantiation(sizes).graph(graph)
