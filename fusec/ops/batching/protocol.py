"""Rules of batching: their arguments, and how rows get theirs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from fusec.core.records import dataclass
from fusec.errors import unsupported
from fusec.ir import Node, Value
from fusec.ir.sizes.dims import Size

from .. import registry
from ..build import Builder
from ..calls.library import LIBRARY, called_name


@dataclass(frozen=True, slots=True)
class Alone:
    """There is no node that does it for all lanes: it is done in a loop over lanes, and why."""

    reason: str


@dataclass(frozen=True, slots=True)
class NoLanes:
    """It has no meaning in lanes, and why; a program that needs it is refused with ``cure``."""

    reason: str
    cure: str = "do it outside of the function, and pass the result"


@dataclass(frozen=True, slots=True)
class InGraph:
    """It holds a graph that is batched too: the pass does it."""


class AloneError(Exception):
    """A rule has no node for these attributes: the node is done in a loop over lanes."""


@dataclass(frozen=True, slots=True)
class LaneSite:
    """The node of one lane, as a rule sees it; nodes that it makes go to ``builder``.

    ``given`` are the operands for all lanes: where ``has_lanes`` is true with the lanes as their
    first axis, else the node's own, which are the same in each lane.  ``diagonals`` are the numbers
    of operands whose lanes are unit vectors times a number each, and None for others.
    """

    builder: Builder
    node: Node
    lanes: Size
    given: tuple[Value, ...]
    has_lanes: tuple[bool, ...]
    diagonals: tuple[Value | None, ...] = ()

    @property
    def attrs(self) -> Mapping[str, Any]:
        return self.node.attrs

    @property
    def rank(self) -> int:
        """Of the first result in one lane."""
        return self.node.types[0].rank

    def emit(self, op: str, *operands: Value, **attrs: Any) -> Value:
        return self.builder.emit(op, *operands, **attrs)

    def lane_shape(self, k: int) -> tuple[Size, ...]:
        """The shape of operand ``k`` in one lane."""
        return tuple(self.node.inputs[k].shape)

    def aligned(self, k: int, rank: int) -> Value:
        """Operand ``k``, which broadcasts as one of this rank in each lane would."""
        value, own = self.given[k], self.node.inputs[k].type.rank
        if not self.has_lanes[k] or own >= rank:
            return value
        return self.emit("ExpandDims", value, axes=tuple(range(1, 1 + rank - own)))

    def whole(self, k: int) -> Value:
        """Operand ``k`` with its lanes, of which all are equal where it has none."""
        value = self.given[k]
        if self.has_lanes[k]:
            return value
        return self.emit("BroadcastTo", value, shape=(self.lanes, *value.shape))

    def again(self, *operands: Value, **attrs: Any) -> list[Value]:
        """The results of the node's op for these operands, attributes replaced by ``attrs``."""
        first = self.emit(self.node.op, *operands, **{**self.attrs, **attrs})
        return [first.node.out(k) for k in range(len(self.node.types))]


BatchRule = Callable[[LaneSite], Sequence[Value]]
LaneRule = BatchRule | Alone | NoLanes | InGraph


def declare(rule: LaneRule, *names: str) -> None:
    """Give rows their rule.  Raises ``ValueError`` for a row that has one already."""
    for name in names:
        row = registry.get(name)
        if row.batching is not None:
            raise ValueError(f"internal error: the rule of {name} is declared twice")
        object.__setattr__(row, "batching", rule)


def refusal(node: Node, reason: str, cure: str) -> Exception:
    """The error for a node that has no meaning in lanes."""
    return unsupported(f"{described(node)} in a function that fusec.vmap calls", loc=node.loc,
                       notes=(reason,), cure=cure)


def described(node: Node) -> str:
    """A node in the user's words."""
    row = registry.get(node.op)
    if node.op == "HostCall":
        return f"a call of {node.attrs.get('method') or node.attrs['action']}"
    if row.called or row.is_control:
        return row.called or _CONTROL[node.op]
    if "form" in node.attrs and node.op in LIBRARY:
        return called_name(node.op, node.attrs["form"])
    function = row.numpy[0] if row.numpy else row.ufunc
    return node.op if function is None else f"np.{function.__name__}"


_CONTROL = {"Cond": "a branch", "Loop": "a loop"}

__all__ = ["Alone", "AloneError", "BatchRule", "InGraph", "LaneRule", "LaneSite", "NoLanes",
           "declare", "described", "refusal"]
