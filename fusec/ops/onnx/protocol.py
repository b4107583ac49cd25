"""The parameters and results of rules of ONNX, and helpers that many of them share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, Protocol

import numpy as np

from fusec.ir import Graph, Node, TensorType
from fusec.ir.sizes.dims import Dim
from fusec.ir.sizes.polynomials import Size

OPSET = 21
I64, I32, U64, BOOL = (np.dtype(d) for d in ("i8", "i4", "u8", "?"))
Number = Any  # an int, a `Dim`, or the name of an int64 of rank 0


class NotExportedError(ValueError):
    """A node that ONNX has no operators for."""


class OnnxNodes(Protocol):
    """The collaborator that makes nodes of ONNX.  Values are names."""

    def node(self, op: str, *inputs: str, **attrs: Any) -> str:
        """A new node's output."""
    def node_of(self, op: str, inputs: Sequence[str], outputs: int, **attrs: Any) -> list[str]:
        """The outputs of a new node that has several."""
    def constant(self, value: Any) -> str: ...
    def cast(self, name: str, dtype: np.dtype) -> str: ...
    def size(self, size: Size) -> str:
        """A size as an int64 of rank 0."""
    def define(self, symbol: str, name: str) -> None:
        """That the symbol is this int64 of rank 0."""
    def require(self, holds: str, what: str) -> None:
        """Runs end with an error of the runtime, which names ``what``, where it is false."""
    def inlined(self, graph: Graph, operands: Sequence[str]) -> tuple[list[str], dict[int, str]]:
        """The outputs of a graph for these operands, and its updates, as nodes here."""
    def body(
        self, name: str, given: Sequence[TensorType], fill: Callable[..., Sequence[str]],
        types: Sequence[TensorType], checks: Literal["", "made", "carried"] = "",
    ) -> tuple[Any, bool]:
        """A graph of ONNX whose inputs ``given`` are handed to ``fill``, which says its outputs of
        these types; and whether anything is checked in it.  With ``checks`` ("made" or "carried")
        it has a last output more, which is there where its checks hold."""
    def checked_by(self, name: str) -> None:
        """That checks were made in a graph, which gave this value."""


Rule = Callable[[OnnxNodes, Node, Sequence[str]], Any]  # the name of the result, or of each
RULES: dict[str, Rule] = {}


def rule(*names: str) -> Callable[[Rule], Rule]:
    """Above the rule of these rows."""
    def add(function: Rule) -> Rule:
        RULES.update(dict.fromkeys(names, function))
        return function
    return add


def dtype_of(node: Node) -> Any:
    """The dtype of its first operand."""
    return node.inputs[0].dtype


def ints(nodes: OnnxNodes, numbers: Sequence[int]) -> str:
    """A constant vector of int64."""
    return nodes.constant(np.array(numbers, I64))


def number(nodes: OnnxNodes, value: Number) -> str:
    """The name of an int64 of rank 0."""
    return value if isinstance(value, str) else nodes.size(value)


def vector(nodes: OnnxNodes, numbers: Sequence[Number]) -> str:
    """A vector of numbers, of which some are known when the model runs."""
    if not any(isinstance(n, (str, Dim)) for n in numbers):
        return ints(nodes, numbers)
    zero = ints(nodes, [0])
    parts = [nodes.node("Unsqueeze", number(nodes, n), zero) if isinstance(n, (str, Dim))
             else ints(nodes, [n]) for n in numbers]
    return nodes.node("Concat", *parts, axis=0) if len(parts) > 1 else parts[0]


def plus(nodes: OnnxNodes, a: Number, b: Number) -> Number:
    """Their sum."""
    if isinstance(a, str) or isinstance(b, str):
        return nodes.node("Add", number(nodes, a), number(nodes, b))
    return a + b


def times(nodes: OnnxNodes, a: Number, factor: int) -> Number:
    """A number by a constant."""
    if factor == 1 or not isinstance(a, str):
        return a if factor == 1 else a * factor
    return nodes.node("Mul", a, nodes.constant(np.int64(factor)))


_LACK_WHERE = {"i2": I32, "u2": I32, "u8": I64, "f2": np.dtype("f4")}


def where(nodes: OnnxNodes, dtype: Any, condition: str, a: str, b: str) -> str:
    """ONNX Runtime 1.32 has no Where of booleans, 16 bits, and uint64."""
    if dtype == BOOL:
        return nodes.node("Or", nodes.node("And", condition, a),
                          nodes.node("And", nodes.node("Not", condition), b))
    wide = _LACK_WHERE.get(dtype.str[1:])
    if wide is None:
        return nodes.node("Where", condition, a, b)
    return nodes.cast(nodes.node("Where", condition, nodes.cast(a, wide), nodes.cast(b, wide)),
                      dtype)


def is_any(nodes: OnnxNodes, x: str, axes: str | None = None) -> str:
    """Whether any of the booleans is true; of none, False."""
    numbers = nodes.cast(x, I64)
    counts = nodes.node("ReduceSum", numbers, *([axes] if axes else ()), keepdims=0)
    return nodes.node("Greater", counts, nodes.constant(np.int64(0)))
