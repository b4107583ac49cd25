"""Uses of values: the nodes that read one, and how often.

A node that names an operand twice reads it twice.  Roots are results and updates of a graph.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from operator import attrgetter

from .graph import Node, Value
from .walks import nodes_behind

_inputs = attrgetter("inputs")


def readers(nodes: Iterable[Node]) -> dict[Value, list[Node]]:
    """For each value that is read the nodes that read it, in order, once per operand."""
    table: dict[Value, list[Node]] = {}
    for node in nodes:
        for value in node.inputs:
            table.setdefault(value, []).append(node)
    return table


def readers_of_memory(
    nodes: Sequence[Node], shows_memory: Callable[[Node], bool]
) -> dict[Value, list[Node]]:
    """As `readers`, with those that read a value through nodes that show its memory; latest
    first."""
    table: dict[Value, list[Node]] = {}
    for node in reversed(nodes):
        found = [node]
        if shows_memory(node):
            found += [r for out in node.outputs for r in table.get(out, ())]
        for value in node.inputs:
            table.setdefault(value, []).extend(found)
    return table


def use_counts(nodes: Iterable[Node], roots: Iterable[Value] = ()) -> Counter[Value]:
    """How many operands are each value; each time that it is a root counts as well."""
    return Counter(chain(roots, chain.from_iterable(map(_inputs, nodes))))


def values_read(
    roots: Sequence[Value], is_known: Callable[[Value], bool] = lambda value: False
) -> set[Value]:
    """The roots, and what the nodes that compute them read; values that are known end the walk."""
    return set(chain(roots, chain.from_iterable(map(_inputs, nodes_behind(roots, is_known)))))
