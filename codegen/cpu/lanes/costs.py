"""What statements cost in one lane, and in a vector of lanes: in ns of an x86-64 core at 3 GHz,
roughly, from Agner Fog's instruction tables (2022) and from fusec's own functions as measured.

Numbers of eight bytes count; narrower ones cost no more.  A vector of lanes is some registers.
"""

from __future__ import annotations

from typing import Any

from fusec.codegen.structured import statements as s
from fusec.codegen.vecmath import FUNCTIONS

from .divergence import Divergence, walked

TRIPS = 10  # that a loop of the lane is taken to have
MISPREDICTED = 5.0  # a branch that lanes take in turns
_SIMPLE, _DIVISION, _FUNCTION = 0.3, 2.5, 12.0
_SCALAR = 0.15  # a simple operation of one lane, of which a core does several at the same time
# One lane after the other, whatever the vector: no instruction does it for several.
_ONE_BY_ONE = {"mod": 8.0, "floor_div": 8.0, "fmod": 8.0, "quotient": 8.0}
_LINES, _LINES_ONE_BY_ONE = 3, 100  # of LLVM IR that a statement becomes, in all copies of a body
_FREE = (s.Number, s.Declare, s.Get, s.Set, s.Poll)


class LaneCosts:
    """Estimates of a loop over lanes, for vectors of so many lanes in so many registers."""

    def __init__(self, divergence: Divergence, lanes: int, registers: int) -> None:
        self.divergence, self.lanes, self.registers = divergence, lanes, registers

    def of_one(self, block: s.Block) -> float:
        """Of a lane by itself."""
        return sum(map(self._one, block))

    def of_vector(self, block: s.Block) -> float:
        """Of all lanes of a vector together."""
        return sum(map(self._vector, block))

    def _one(self, x: Any) -> float:
        match x:
            case s.Let(op=op):
                return _of_op(op, _SCALAR)
            case s.Load() | s.Store() | s.Check():
                return _SCALAR
            case s.If(then=then, orelse=orelse):
                return (self.of_one(then) + self.of_one(orelse or ())) / 2 + MISPREDICTED / 2
            case s.While(test=test, body=body):
                return TRIPS * (self.of_one(test) + self.of_one(body)) + MISPREDICTED
            case s.CountedLoop(body=body):
                return TRIPS * self.of_one(body)
        return 0.0

    def _vector(self, x: Any) -> float:
        if isinstance(x, _FREE):
            return _SIMPLE if isinstance(x, s.Set) else 0.0
        match x:
            case s.Let(result=result, op=op):
                if result not in self.divergence.varying:
                    return _of_op(op, _SCALAR)
                if op in _ONE_BY_ONE and result.dtype.kind != "f":
                    return self.lanes * _ONE_BY_ONE[op]
                return self.registers * _of_op(op, _SIMPLE)
            case s.Load(place=place) | s.Store(place=place):
                count = self.lanes if self.divergence.place_varies(place) else 1
                return 2 * count * _SIMPLE
            case s.Check():
                return (self.registers + 1) * _SIMPLE
            case s.If(then=then, orelse=orelse):
                both = self.of_vector(then) + self.of_vector(orelse or ())
                return both + self.registers * _SIMPLE
            case s.While(test=test, body=body):
                each = self.of_vector(test) + self.of_vector(body) + (self.registers + 2) * _SIMPLE
                return TRIPS * each
            case s.CountedLoop(body=body):
                return TRIPS * self.of_vector(body)
        return 0.0


def lines_of(body: s.Block) -> int:
    """About how many lines of LLVM IR vectors of lanes are."""
    return sum(_LINES_ONE_BY_ONE if isinstance(x, s.Let) and x.op in _ONE_BY_ONE else _LINES
               for x in walked(body))


def _of_op(op: str, simple: float) -> float:
    if op in _ONE_BY_ONE:
        return _ONE_BY_ONE[op]
    if op in ("div", "sqrt"):
        return _DIVISION
    return _FUNCTION if op in FUNCTIONS and op != "sqrt" else simple
