"""Numbers that a call knows before it runs: its plain arguments, constants, and what follows.

Only such arithmetic is done as has one result wherever it is done: of integers and truths, and of
floats where each operation is rounded by itself and correctly.  A sum of a product may be rounded
once where the program runs, so it is not known here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fusec.ir import Graph, Node, Value
from fusec.ops import registry
from fusec.ops.graphs.evaluate import apply, as_type
from fusec.ops.regions.loop_numbers import PASSING, ROUNDED_ONCE, is_and, is_or


class KnownNumbers:
    """``numbers``: by value what is known; arrays of the call are there to be picked from."""

    def __init__(self, numbers: Mapping[Value, Any]) -> None:
        self.numbers = {}
        for value, number in numbers.items():
            self.numbers[value] = number if value.shape else as_type(
                number, value.type, value.node)

    def get(self, value: Value) -> Any:
        """The number; None where it is not known, or is an array."""
        if value.shape:
            return None
        if value.node.op == "Const":
            return value.node.attrs["value"]
        return self.numbers.get(value)

    def note(self, node: Node) -> None:
        """Note a node's result, where it is known."""
        found = self._of(node, [self._any(v) for v in node.inputs])
        if found is not None:
            self.numbers[node.out()] = found

    def of_graph(self, graph: Graph, given: Mapping[Value, Value]) -> bool | None:
        """The one output of a graph, a truth; ``given``: what its parameters are."""
        inner = KnownNumbers({})
        for value, outer in given.items():
            found = self._any(outer)
            if found is not None:
                inner.numbers[value] = found
        for node in graph.nodes:
            if node.op != "Input":
                inner.note(node)
        found = inner.get(graph.outputs[0])
        return None if found is None else bool(found)

    def _any(self, value: Value) -> Any:
        """What is known of a value, be it an array."""
        return self.numbers.get(value) if value.shape else self.get(value)

    def _of(self, node: Node, operands: Sequence[Any]) -> Any:
        if len(node.types) != 1 or node.types[0].shape or not operands:
            return None
        truths = [None if x is None or np.ndim(x) else bool(x) for x in operands]
        if node.types[0].dtype.kind == "b" and node.op != "Where":
            if is_and(node) and False in truths:
                return as_type(False, node.types[0], node)
            if is_or(node) and True in truths:
                return as_type(True, node.types[0], node)
        if node.op == "Where" and truths[0] is not None:
            chosen = operands[1] if truths[0] else operands[2]
            return None if chosen is None else as_type(chosen, node.types[0], node)
        if node.op == "Where" and None not in operands[1:] and _are_same(*operands[1:]):
            return as_type(operands[1], node.types[0], node)
        if any(x is None for x in operands) or not _is_exact(node):
            return None
        try:
            return apply(node, operands)[0]
        except (ArithmeticError, LookupError, ValueError):
            return None  # the program raises where it runs


def _are_same(one: Any, other: Any) -> bool:
    """Whether two numbers of one type have the same bits: zeros may have two signs."""
    return np.asarray(one).tobytes() == np.asarray(other).tobytes()


def _is_exact(node: Node) -> bool:
    """Whether the result is the same wherever it is computed."""
    kinds = {v.dtype.kind for v in node.inputs} | {node.types[0].dtype.kind}
    if "c" in kinds or (registry.get(node.op).kind != "elementwise"
                        and node.op not in ROUNDED_ONCE):
        return False
    if "f" not in kinds or node.types[0].dtype.kind == "b":
        return True
    return node.op in ROUNDED_ONCE and not (
        registry.get(node.op).is_sum and any(map(_is_of_product, node.inputs)))


def _is_of_product(value: Value) -> bool:
    while value.node.op in PASSING:
        value = value.node.inputs[0]
    return registry.get(value.node.op).is_product
