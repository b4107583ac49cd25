"""Arrays that count, 0, 1, 2, ...: constants of a trace that blocks make for themselves.

``np.arange(60)`` is an array of NumPy's while a function is traced, which reads it from outside.
As a node it has blocks like anything else, and what is read at such indices is read row by row
(`fusec.ops.splitting.gathers`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from fusec.ir import Graph, Node, Value
from fusec.trace.tracer import Traced


def with_counters(graph: Graph, constants: Mapping[int, Any]) -> Graph:
    """The graph with a node for each of these inputs that counts; inputs keep their numbers."""
    nodes: list[Node] = []
    counters = {graph.inputs[number]: value for number, value in constants.items()
                if _counts(value) and graph.inputs[number].type.shape == value.shape}
    if not counters:
        return graph
    values: dict[Value, Value] = {}
    for node in graph.nodes:
        copy = node
        if any(v in values for v in node.inputs):
            copy = node.with_inputs([values.get(v, v) for v in node.inputs])
        nodes.append(copy)
        if node.op == "Input" and node.out() in counters:
            array = counters[node.out()]
            made = Node("Iota", (), node.types, {"size": len(array), "dtype": array.dtype},
                        name=f"{node.name}_counted", loc=node.loc)
            nodes.append(made)
            values[node.out()] = made.out()
        elif copy is not node:
            values.update(zip(node.outputs, copy.outputs, strict=True))
    return Graph(graph.inputs, tuple(values.get(v, v) for v in graph.outputs),
                 tuple((n, values.get(v, v)) for n, v in graph.updates), tuple(nodes), graph.name)


def _counts(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.ndim == 1 and value.dtype == np.int64 and (
        bool(np.array_equal(value, np.arange(len(value)))))


def constants_of(traced: Traced, first: int) -> dict[int, Any]:
    """The arrays from outside that nobody can change, because the trace made them, by the number of
    their input, of which ``first`` is the first from outside."""
    made = traced.own_arrays | traced.made_for_sizes
    return {first + k: source for k, source in enumerate(traced.captured) if id(source) in made}


__all__ = ["constants_of", "with_counters"]
