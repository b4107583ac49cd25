"""The error of a call in which a check failed.

Kernels only note that one failed.  Nothing the caller owns has been written by then, so the call is
run again node by node through NumPy, which raises its own error at the node that is wrong.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from fusec.errors import located
from fusec.ir import Graph, Node, Value
from fusec.ir.evaluate import apply, as_type


def check_error(graph: Graph, inputs: Sequence[Any]) -> Exception:
    """What NumPy raises on these inputs, with the user's line as a note."""
    return numpy_error(graph, inputs) or _unexplained(graph)


def _unexplained(graph: Graph) -> Exception:
    """The error of a check that failed in compiled code alone."""
    bodies = [n.attrs["body"] for n in graph.nodes if n.op == "Fused"]
    if any(n.attrs.get("raises") for body in bodies for n in body.nodes):
        return ArithmeticError("a function of fusec.vectorize failed in compiled code, though not "
                               "in Python")
    return IndexError("an index is out of bounds")


def numpy_error(graph: Graph, inputs: Sequence[Any]) -> Exception | None:
    """What NumPy raises on these inputs, None: nothing."""
    sizes: dict[str, int] = {}
    table: dict[Value, Any] = {
        v: as_type(a, v.type, v.node, sizes) for v, a in zip(graph.inputs, inputs, strict=True)
    }
    return _first_error(graph.nodes, table, sizes)


def _first_error(
    nodes: Iterable[Node], table: dict[Value, Any], sizes: dict[str, int]
) -> Exception | None:
    for node in nodes:
        if node.op == "Input":
            continue
        operands = [table[v] for v in node.inputs]
        if node.op == "Fused":
            body = node.attrs["body"]
            inner = dict(zip(body.inputs, operands, strict=True))
            error = _first_error(body.nodes, inner, sizes)
            if error is not None:
                return error
            results = [inner[v] for v in body.outputs]
        else:
            try:
                results = apply(node, operands, sizes)
            except Exception as raised:
                return located(raised, node.loc)
        table.update(zip(node.outputs, results, strict=True))
    return None
