"""The graph evaluator: every node through its op's NumPy reference, nothing fused.

It defines the meaning of a graph: tests compare passes and back ends with it, constant folding uses
`apply` on single nodes.  Like the verifier it knows the registry, so `fusec.ir` does not import it.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fusec.errors import InternalError, UnsupportedError, located
from fusec.ir.graph import Graph, Node, Value
from fusec.ir.sizes.bindings import bind, resolve
from fusec.ir.sizes.symbolic_numbers import Symbolic, applied
from fusec.ir.types import BEYOND_64_BITS, TensorType
from fusec.ops import registry
from fusec.ops.python_operators import PYTHON_OPERATORS

# Attributes of elementwise nodes that permit other roundings: no reference knows them.
PERMISSIONS = frozenset({"contracts", "estimated"})


class ForeignResultError(UnsupportedError):
    """A library's result of another type than the code was compiled for."""


def evaluate(graph: Graph, arrays: Sequence[Any]) -> list[Any]:
    """The graph's outputs for these arguments, one per parameter; arguments are not changed.

    Raises NumPy's or Python's exceptions, `UnsupportedError` where a library's result is not of its
    type, and `InternalError` where another one is not.
    """
    return evaluate_all(graph, arrays)[0]


def evaluate_all(
    graph: Graph, arrays: Sequence[Any], sizes: dict[str, int] | None = None
) -> tuple[list[Any], list[tuple[int, Any]]]:
    """Outputs, and (parameter position, new content) for every update.

    ``sizes`` holds the symbols that the graphs around this one have bound; those that results
    define are added.
    """
    if len(arrays) != len(graph.inputs):
        raise InternalError(
            f"{graph.name!r} has {len(graph.inputs)} parameters, got {len(arrays)} arguments"
        )
    sizes = {} if sizes is None else sizes
    table: dict[Value, Any] = {
        v: as_type(a, v.type, v.node, sizes) for v, a in zip(graph.inputs, arrays, strict=True)
    }
    for node in graph.nodes:
        if node.op != "Input":
            results = _located(node, [table[v] for v in node.inputs], sizes)
            table.update(zip(node.outputs, results, strict=True))
    outputs = [table[v] for v in graph.outputs]
    return outputs, [(position, table[v]) for position, v in graph.updates]


def _located(node: Node, operands: Sequence[Any], sizes: dict[str, int]) -> list[Any]:
    """The node's results; of its exceptions the line is noted: inside of branches and loops nobody
    else knows it."""
    try:
        return apply(node, operands, sizes)
    except Exception as error:
        found = located(error, node.loc)
        if found is error:
            raise
        raise found from error


def apply(
    node: Node, operands: Sequence[Any], sizes: dict[str, int] | None = None
) -> list[Any]:
    """The node's results, each of the type and kind the node states.

    Operands are ndarrays, NumPy scalars or (weak) Python numbers.  ``sizes`` holds the symbols of
    sizes; those that the results define are added.
    """
    sizes = {} if sizes is None else sizes
    if node.op == "Fused":
        return evaluate_all(node.attrs["body"], operands, sizes)[0]
    with np.errstate(all="ignore"):
        result = function_of(node, sizes)(*operands)
    results = result if isinstance(result, tuple) else (result,)
    return [as_type(r, t, node, sizes) for r, t in zip(results, node.types, strict=True)]


def function_of(node: Node, sizes: dict[str, int]) -> Callable[..., Any]:
    """NumPy's reference of the node, as a function of its operands."""
    weak = bool(node.inputs) and all(v.type.is_weak for v in node.inputs)
    if weak and node.op in PYTHON_OPERATORS:
        return PYTHON_OPERATORS[node.op]
    if node.op == "Mul" and node.types[0].dtype.kind == "c" and all(
            v.type.kind != "array" for v in node.inputs):
        return operator.mul  # NumPy's scalars round each product; its vector loops may fuse them
    row = registry.get(node.op)
    reference = row.reference
    attrs = {k: resolve(v, sizes) for k, v in node.attrs.items() if k not in PERMISSIONS}
    if row.is_control:  # sub-graphs see the symbols of the graphs around them
        attrs["sizes"] = sizes
    called = registry.get(node.attrs["of"]) if node.op == "NumPy" else row
    reduces = called.kind in ("reduce", "fold") or (called.kind == "composite" and "axes" in attrs)
    # NumPy adds up in the order of memory, so a sum's last bits depend on the layout, which is no
    # part of a value: the reference is always asked of C order.
    if reduces:
        return lambda *operands: reference(*(np.asarray(x, order="C") for x in operands), **attrs)
    return lambda *operands: reference(*operands, **attrs)


def as_type(
    value: Any, kind: TensorType, node: Node, sizes: dict[str, int] | None = None
) -> Any:
    """``value`` as an ndarray, NumPy scalar or Python number; raises when dtype or shape differ."""
    if type(value) is Symbolic:
        value = _number_of_sizes(value, kind)
        if type(value) is Symbolic:
            return value
    array = np.asarray(value)
    if type(value) is int and kind.dtype.kind == "i":
        array = _int64(value)
    if array.dtype != kind.dtype or not bind(kind.shape, array.shape, {} if sizes is None
                                             else sizes):
        raise _misfit(array, kind, node)
    if kind.kind == "array":
        return array
    return array[()] if kind.kind == "scalar" else array.item()


def _misfit(array: np.ndarray, kind: TensorType, node: Node) -> Exception:
    """For a result that is not of the node's type, which of a call of a library is a claim."""
    if registry.get(node.op).kind == "extern":
        return ForeignResultError(
            f"a result of {node.op} whose type data decides, {array.dtype}{list(array.shape)} for "
            f"{kind}, is not supported inside a fusec.jit function",
            loc=node.loc, cure="call it before or after the compiled function")
    return InternalError(
        f"{node.name!r} ({node.op}) gave {array.dtype}{list(array.shape)} where its type is {kind}",
        loc=node.loc)


def _number_of_sizes(value: Symbolic, kind: TensorType) -> Any:
    """The number of that type; for the sizes of the call alone where it cannot be symbolic."""
    wanted = type(kind.dtype.type().item()) if kind.is_weak else kind.dtype.type
    if type(value.hint) is not wanted:
        if {type(value.hint), wanted} not in _ALIKE:
            return value.pinned()
        value = applied(wanted, value)
    return _within_int64(value) if wanted is int else value


_ALIKE = ({int, np.int64}, {float, np.float64})


def _int64(value: int) -> np.ndarray:
    """A Python int as int64; raises ``OverflowError`` where Python's is larger."""
    return np.asarray(_within_int64(value), np.int64)


def _within_int64(value: Any) -> Any:
    if not -(2**63) <= value < 2**63:
        raise OverflowError(f"the Python int {value} {BEYOND_64_BITS}")
    return value
