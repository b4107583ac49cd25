"""Constant folding on demand: values that depend on no argument, for plain NumPy to use."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Any

import numpy as np

from fusec.ir import Graph, Node, TensorType, Value
from fusec.ir.sizes.symbolic_numbers import Symbolic
from fusec.ir.sizes.symbolic_sizes import is_symbolic, plain
from fusec.ops.calls.checks import has_effects
from fusec.ops.calls.numbers_of_sizes import holds_sizes, of_sizes, plain_result
from fusec.ops.graphs.evaluate import apply

_MOST_NODES = 1_000
_MOST_ELEMENTS = 1 << 20
_MOST_KEPT = 1 << 24  # bytes


class _Results(threading.local):
    """The latest results by node id: a program that looks at an array after each of many changes
    has one change computed, not all of them again."""

    def __init__(self) -> None:
        self.results: OrderedDict[int, list[Any]] = OrderedDict()
        self.nbytes = 0

    def add(self, node: Node, results: list[Any]) -> None:
        self.results[node.id] = results
        self.nbytes += _nbytes(results)
        while self.nbytes > _MOST_KEPT:
            _, dropped = self.results.popitem(last=False)
            self.nbytes -= _nbytes(dropped)


_RESULTS = _Results()


def _nbytes(results: list[Any]) -> int:
    return sum(200 + getattr(r, "nbytes", 0) for r in results)


def constant_value(value: Value) -> Any:
    """The ndarray, NumPy scalar or Python number that a value is in every call; None if it varies.

    Only small values that few nodes lead to are computed; arrays are read-only.  Where it follows
    from sizes of arguments, the trace serves calls with these sizes alone from then on.
    """
    order = _nodes_behind(value)
    return None if order is None else plain_result(_computed(value, order), value.type)


def number_of_sizes(value: Value) -> Symbolic | None:
    """The number that sizes of arguments give in every call; None where it is none of those."""
    order = _nodes_behind(value) if not value.shape else None
    number = None if order is None else _computed(value, order)
    return number if type(number) is Symbolic else None


def is_constant(value: Value) -> bool:
    """Whether `constant_value` has one; to ask limits nothing where it follows from sizes."""
    order = _nodes_behind(value)
    if order is not None and not any(map(_has_sizes, order)):
        _computed(value, order)  # kept: the next question walks no further than here
    return order is not None


def _computed(value: Value, order: list[Node]) -> Any:
    table: dict[int, list[Any]] = {}
    for node in order:
        results = _RESULTS.results.get(node.id)
        if results is None:
            results = _results(node, [table[v.node.id][v.index] for v in node.inputs])
            _RESULTS.add(node, results)
        table[node.id] = results
    result = table[value.node.id][value.index]
    if isinstance(result, np.ndarray) and not holds_sizes(result):
        result = result.copy()
        result.flags.writeable = False
    return result


def _results(node: Node, operands: list[Any]) -> list[Any]:
    symbolic = of_sizes(node, operands) if len(node.types) == 1 else None
    if symbolic is not None:
        return [symbolic]
    _pin_sizes(node)
    return apply(node, [plain_result(x, v.type)
                        for x, v in zip(operands, node.inputs, strict=True)])


def _is_large(type_: TensorType) -> bool:
    """Whether it is too large to be computed while tracing, or may be in other calls."""
    return not type_.is_static or is_symbolic(type_.shape) or type_.size > _MOST_ELEMENTS


def _has_sizes(node: Node) -> bool:
    """Whether sizes of arguments are in it; those of sub-graphs may be."""
    return bool(node.graphs) or is_symbolic(tuple(node.attrs.values()))


def _pin_sizes(node: Node) -> None:
    """Limit the trace to calls in which the sizes that the node reads are the same."""
    for data in (*node.attrs.values(), *(t.shape for t in node.types)):
        plain(data)
        for inner in data.nodes if type(data) is Graph else ():
            _pin_sizes(inner)


def note_constant(node: Node, array: np.ndarray) -> None:
    """A guard ensures that this input is ``array`` in every call that uses the trace."""
    if array.size <= _MOST_ELEMENTS:
        _RESULTS.add(node, [array.copy()])


def _nodes_behind(value: Value) -> list[Node] | None:
    """The nodes a value is computed by, operands first; None where an input, an effect or
    something large is among them."""
    order: list[Node] = []
    done: set[int] = set()
    todo = [value.node]
    while todo:
        node = todo[-1]
        waiting = [v.node for v in node.inputs if v.node.id not in done]
        if node.id in _RESULTS.results:
            waiting = []
        elif node.op == "Input" or has_effects(node) or len(done) > _MOST_NODES or any(
                _is_large(t) for t in node.types):
            return None
        if waiting:
            todo += waiting
            continue
        todo.pop()
        if node.id not in done:
            done.add(node.id)
            order.append(node)
    return order
