"""The graph IR: types, nodes, values, graphs, their text form and the verifier."""

from .graph import Graph, Loc, Node, Value, topological_order
from .types import TensorType, dtype_from_name, dtype_name, is_supported_dtype, parse_type

__all__ = [
    "Graph",
    "Loc",
    "Node",
    "TensorType",
    "Value",
    "dtype_from_name",
    "dtype_name",
    "is_supported_dtype",
    "parse_type",
    "topological_order",
]
