"""What `states_of` finds of a graph's values: their places, stages and barriers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fusec.core.records import dataclass, field, replace
from fusec.ir import Node, Value

from .barriers import Barrier
from .grids import Lines, Places

Chunks = Mapping[int, Sequence[Sequence[int] | None]]  # by input and axis; None: not in blocks


@dataclass
class SplitStates:
    """What `states_of` finds of a graph."""

    lines: Lines = field(default_factory=Lines)
    places: dict[Value, Places] = field(default_factory=dict)
    stages: dict[Value, int] = field(default_factory=dict)  # those that must have ended before
    barriers: dict[Value, Barrier] = field(default_factory=dict)
    scans: set[Node] = field(default_factory=set)  # along axes in blocks, before `cut_scans`
    regions: set[Node] = field(default_factory=set)  # branches and loops that read blocks

    def is_whole(self, value: Value) -> bool:
        """Whether it is in no blocks."""
        return not any(self.places[value])

    def of(self, value: Value) -> Places:
        """The places of its axes, on lines that are settled."""
        return tuple(p and self.lines.settled(p) for p in self.places[value])

    def copied(self) -> SplitStates:
        """The same, to try something out."""
        lines = Lines([*self.lines.cuts], [*self.lines.parents])
        return replace(
            self, lines=lines, places={**self.places}, stages={**self.stages},
            barriers={**self.barriers}, scans={*self.scans}, regions={*self.regions})

    def adopt(self, other: SplitStates) -> None:
        """Be as a copy that something was tried out on."""
        self.lines.cuts, self.lines.parents = other.lines.cuts, other.lines.parents
        self.places, self.stages, self.barriers = other.places, other.stages, other.barriers
        self.scans, self.regions = other.scans, other.regions


def is_kept(node: Node) -> bool:
    """Whether its result is stored in blocks, whatever it costs to compute again."""
    return node.op == "Fence" and bool(node.attrs["stored"])


def shown_name(value: Value) -> str:
    """Its name for people: that of the value behind fences, which are the compiler's own."""
    while value.node.op == "Fence":
        value = value.node.inputs[0]
    return value.name.removesuffix(":0")


__all__ = ["Chunks", "SplitStates", "is_kept", "shown_name"]
