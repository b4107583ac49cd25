"""A text that says all of a traced graph: equal texts are graphs of which the same is compiled."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from fusec.core.locations import Loc
from fusec.ir.graph import Graph, Node, Value
from fusec.ir.types import TensorType

_THEMSELVES = frozenset({type(None), bool, int, str, bytes})


class NoIdentityError(Exception):
    """A graph holds an object of this process, or sizes that are not known."""


def identity(graph: Graph) -> str:
    """The text; raises `NoIdentityError`."""
    return repr(_graph(graph))


def _graph(graph: Graph) -> tuple[Any, ...]:
    numbers: dict[int, int] = {}
    types: dict[int, Any] = {}
    rows = []
    for number, node in enumerate(graph.nodes):
        numbers[node.id] = number
        rows.append(_node(node, numbers, types))

    def places(values: tuple[Value, ...]) -> list[tuple[int, int]]:
        return [(numbers[value.node.id], value.index) for value in values]

    return (graph.name, rows, places(graph.inputs), places(graph.outputs),
            [(number, *places((value,))) for number, value in graph.updates], len(graph.assumed))


def _node(node: Node, numbers: dict[int, int], types: dict[int, Any]) -> tuple[Any, ...]:
    return (
        node.op, node.name, [(numbers[v.node.id], v.index) for v in node.inputs],
        [types.get(id(t)) or types.setdefault(id(t), _type(t)) for t in node.types],
        [(name, _data(value)) for name, value in node.attrs.items()] if node.attrs else (),
        _data(node.loc), [numbers[n.id] for n in node.control_inputs], node.device)


def _type(type_: TensorType) -> tuple[Any, ...]:
    return "type", type_.kind, _data(type_.dtype), _data(type_.shape)


def _data(value: Any) -> Any:
    """An attribute, of which `repr` says all: no two have the same."""
    kind = type(value)
    if kind in _THEMSELVES:
        return value
    if kind is float or kind is complex:  # NaNs of any sign and payload have one `repr`
        return value if value == value else (kind.__name__, np.array(value).tobytes())
    if kind is tuple:
        return "tuple", *map(_data, value)
    if kind is Loc:
        return "place", *map(_data, value)
    if kind is TensorType:
        return _type(value)
    if isinstance(value, Graph):
        return "graph", _graph(value)
    if isinstance(value, np.dtype) and value.isbuiltin == 1 and not value.hasobject:
        return "dtype", value.str
    if isinstance(value, (np.ndarray, np.generic)) and kind.__module__ == "numpy" and (
            value.dtype.isbuiltin == 1 and not value.dtype.hasobject):
        digest = hashlib.sha256(value.tobytes()).hexdigest()
        return "array", kind.__name__, value.dtype.str, value.shape, value.strides, digest
    raise NoIdentityError(f"{kind.__name__} is no plain data")
