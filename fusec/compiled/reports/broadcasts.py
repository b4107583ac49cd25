"""Silent broadcasts: operations whose result is larger than each of their operands.

A column minus a row is a table, which is often a mistake (TensorFlow Eager, Agrawal et al. 2019,
section 6).  Where the program inserted each axis itself (``x[:, None] - y[None, :]``) it is meant,
and none of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from fusec.core.display.amounts import bytes_text
from fusec.core.locations import GradientLoc
from fusec.ir import Graph, Loc, Node, TensorType, Value
from fusec.ops import get
from fusec.ops.calls.users_names import operand_title, users_name


class SilentBroadcast(NamedTuple):
    """An operation by its name for users and its node, the operands with their types, the type of
    the result, its bytes (None where only the run knows), and the line."""

    operation: str
    node: str
    operands: tuple[tuple[str, str], ...]
    result: str
    nbytes: int | None
    loc: Loc | None

    def __str__(self) -> str:
        operands = ", ".join(f"{title}: {type_}" for title, type_ in self.operands)
        size = "" if self.nbytes is None else f", {bytes_text(self.nbytes)}"
        return f"{self.operation} of {operands} gives {self.result}{size}" + (
            f" at {self.loc}" if self.loc else "")


def silent_broadcasts(graph: Graph) -> list[SilentBroadcast]:
    """Those of the program, of its branches and loops too, in its order; not those of derivatives.
    """
    return list(dict.fromkeys(_described(node) for node in _nodes(graph) if _is_one(node)))


def _nodes(graph: Graph) -> Iterator[Node]:
    for node in graph.nodes:
        yield node
        for inner in node.graphs:
            yield from _nodes(inner)


def _described(node: Node) -> SilentBroadcast:
    type_ = node.types[0]
    nbytes = type_.nbytes if type_.is_static else None
    operands = tuple((operand_title(v, node), str(v.type)) for v in _arrays(node))
    return SilentBroadcast(users_name(node), node.name, operands, str(type_), nbytes, node.loc)


def _is_one(node: Node) -> bool:
    if get(node.op).kind not in ("elementwise", "composite") or "axes" in node.attrs or (
            isinstance(node.loc, GradientLoc)):
        return False
    arrays, result = _arrays(node), node.types[0]
    return len(arrays) > 1 and all(_stretched(v.type, result) for v in arrays) and not all(
        _is_meant(v, result) for v in arrays)


def _arrays(node: Node) -> list[Value]:
    return [v for v in node.inputs if v.type.rank]


def _stretched(operand: TensorType, result: TensorType) -> list[int]:
    """The result's axes that the operand lacks, or has once."""
    missing = result.rank - operand.rank
    return [axis for axis, size in enumerate(result.shape)
            if size != 1 and (axis < missing or operand.shape[axis - missing] == 1)]


def _is_meant(operand: Value, result: TensorType) -> bool:
    """Whether the program has inserted the axes that are stretched."""
    node = operand.node
    return (node.op == "ExpandDims" and operand.type.rank == result.rank
            and set(_stretched(operand.type, result)) <= set(node.attrs["axes"]))
