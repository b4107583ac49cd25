"""The loop of a lane that goes on by itself, with what it has so far."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fusec.codegen.structured import statements as s
from fusec.codegen.structured.memory import Variable

from ..emitter import I64, LlvmValue, scalar_type, vector_type
from ..loops.frame import Frame
from .divergence import registers_read, walked
from .vectors import LaneVectors

Print = Callable[[Frame, s.Block], None]


class LastLane:
    """Of a vector's one lane under the mask: it leaves the loop as the vector would."""

    def __init__(self, vectors: LaneVectors, loop: Any, live: LlvmValue) -> None:
        self.vectors, self.loop, em = vectors, loop, vectors.em
        bits = em.value(f"zext i{vectors.lanes} {vectors.bits(live)} to i64")
        em.declare("declare i64 @llvm.cttz.i64(i64, i1)")
        self.place = em.value(f"call i64 @llvm.cttz.i64(i64 {bits}, i1 false)")

    def print(self, print_block: Print) -> None:
        """Its loop, with its own numbers, which then are the vector's again."""
        v, frame = self.vectors, self.vectors.frame
        values, slots = dict(frame.values), dict(frame.slots)
        carried = self._carried()
        for register in registers_read((self.loop,)):
            value = values.get(register)
            if value is not None and value.lanes > 1:
                frame.values[register] = self._of(value)
        for variable in carried:
            frame.slots[variable] = frame.variable(variable.dtype)
            v.em.store(frame.slots[variable], self._of(self._whole(variable, slots[variable])))
        own = frame.slots[v.divergence.lane] = frame.variable(I64)
        v.em.store(own, self._of(v.index))
        print_block(frame, (self.loop,))
        for variable in carried:
            self._put(variable, v.em.load(frame.slots[variable], variable.dtype, 1),
                      slots[variable])
        frame.values, frame.slots = values, slots

    def _carried(self) -> list[Variable]:
        """Variables of before the loop that it gets or sets."""
        inside = list(walked((self.loop,)))
        own = {x.thing for x in inside if isinstance(x, s.Declare)}
        used = dict.fromkeys(x.variable for x in inside
                             if isinstance(x, (s.Get, s.Set, s.CountedLoop)))
        return [x for x in used if x not in own and x in self.vectors.divergence.varying
                and x is not self.vectors.divergence.lane]

    def _type(self, variable: Variable) -> str:
        return vector_type(scalar_type(variable.dtype), self.vectors.lanes)

    def _whole(self, variable: Variable, slot: str) -> LlvmValue:
        v = self.vectors
        text = v.em.value(f"load {self._type(variable)}, ptr {slot}")
        return LlvmValue(text, variable.dtype, v.lanes)

    def _of(self, vector: LlvmValue) -> LlvmValue:
        text = self.vectors.em.value(f"extractelement {vector}, i64 {self.place}")
        return LlvmValue(text, vector.dtype, 1)

    def _put(self, variable: Variable, value: LlvmValue, slot: str) -> None:
        em, whole = self.vectors.em, self._whole(variable, slot)
        text = em.value(f"insertelement {whole}, {value}, i64 {self.place}")
        em.line(f"store {whole.type} {text}, ptr {slot}")


__all__ = ["LastLane", "Print"]
