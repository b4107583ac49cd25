"""What makes the graph of one block: parameters, parts of values that were made."""

from __future__ import annotations

from fusec.core.records import dataclass
from fusec.ir import TensorType, Value
from fusec.ops import Builder
from fusec.ops.splitting import Box
from fusec.ops.splitting.protocol import sizes_of

from .geometries import Geometry, operand_boxes
from .stages import BlockFamily


@dataclass(frozen=True)
class BoxStart:
    """A parameter that is a number: where a value's box begins along an axis, or that of an operand
    of a root's barrier."""

    value: Value
    root: int
    operand: int | None
    axis: int

    def of(self, family: BlockFamily, geometry: Geometry) -> int:
        if self.operand is None:
            return geometry.start(self.value, self.axis)
        parts = operand_boxes(family.roots[self.root], geometry.roots[self.root])
        return int(parts[self.operand][1][self.axis][0])


class LocalMaker(Builder):
    """Makes the graph of one block."""

    def __init__(self, family: BlockFamily, geometry: Geometry) -> None:
        super().__init__()
        self.family, self.boxes = family, geometry.boxes
        self.made: dict[Value, Value] = {}
        self.inputs: list[Value] = []
        self.starts: list[BoxStart] = []

    def parameter(self, name: str, type_: TensorType) -> Value:
        index = len(self.inputs)
        value = self.source("Input", name, type=type_, index=index, path=f"{name}_{index}")
        self.inputs.append(value)
        return value

    def fetched(self, value: Value, box: Box) -> Value:
        """A part of a value that was made, in a box of its own."""
        made, own = self.made[value], self.boxes[value]
        if own == box:
            return made
        return self.emit("Slice", made, steps=(1,) * len(box), sizes=sizes_of(box),
                         starts=tuple(a[0] - b[0] for a, b in zip(box, own, strict=True)))


__all__ = ["BoxStart", "LocalMaker"]
