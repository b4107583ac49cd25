"""Which numbers of a loop over lanes differ from lane to lane, and where lanes part ways.

A number is *uniform* where all lanes that are in step have the same: a vector of lanes then has one
of it.  Where a condition differs, lanes are no longer in step: what is set there is uniform only
for those who read it there.  Such a place is a *region*; the body of the loop over lanes is one.
(Karrenberg and Hack, Whole-function vectorization, CGO 2011, call the others varying.)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

from fusec.codegen.structured import statements as s
from fusec.codegen.structured.memory import Memory, Operand, Register, Variable, View

Region = Any  # equal for the statements of one


class Divergence:
    """``varying``: the registers and variables of the lanes' ``body`` that differ.

    ``lane``: the variable that numbers lanes.  ``split``: the position in the body of the loop in
    which lanes are replaced as they end; -1: there is none.  Then what lies before and after it is
    done for some lanes while others are amid their loop, so no variable of the body is uniform.
    """

    def __init__(self, body: s.Block, lane: Variable, split: int = -1) -> None:
        self.body, self.lane, self.split = body, lane, split
        self.varying: set[Any] = {lane}
        self.homes: dict[Any, Region] = {}
        count = -1
        while count != len(self.varying):
            count = len(self.varying)
            self._note_body()

    def is_varying(self, *operands: Any) -> bool:
        return any(x in self.varying for x in operands if isinstance(x, Register | Variable))

    def place_varies(self, view: View) -> bool:
        """Whether the view's first element is another one in each lane."""
        return self.is_varying(view.offset, view.element) or view.memory in self.varying

    def region_of(self, position: int) -> Region:
        """The region of a statement of the body itself."""
        return "body" if self.split < 0 or position == self.split else (
            "first" if position < self.split else "last")

    def _note_body(self) -> None:
        for position, x in enumerate(self.body):
            if self.split >= 0 and isinstance(x, s.Declare):
                self.varying.add(x.thing)
            self._note(x, self.region_of(position))

    def _note_block(self, block: s.Block, region: Region) -> None:
        for x in block:
            self._note(x, region)

    def _note(self, x: Any, region: Region) -> None:
        match x:
            case s.Declare(thing=thing):
                self.homes[thing] = region
                if isinstance(thing, Memory):
                    self.varying.add(thing)
            case s.Set(variable=variable, value=value):
                self._vary(variable, self.is_varying(value) or self.homes.get(variable) != region)
            case s.Get(result=result, variable=variable):
                self._vary(result, variable in self.varying)
            case s.Let(result=result, args=args):
                self._vary(result, self.is_varying(*args))
            case s.Load(result=result, place=place):
                self._vary(result, self.place_varies(place) or place.memory.origin != "operand")
            case s.If(condition=condition, then=then, orelse=orelse):
                parts = self.is_varying(condition)
                self._note_block(then, side(x, "then") if parts else region)
                self._note_block(orelse or (), side(x, "orelse") if parts else region)
            case s.While():
                parts = self.parts_ways(x) or self._is_split(x)
                self._note_block(x.test, side(x, "test") if parts else region)
                self._note_block(x.body, side(x, "body") if parts else region)
            case s.CountedLoop(body=body):
                self._note_block(body, side(x, "body") if self.parts_ways(x) else region)

    def _vary(self, thing: Any, does: bool) -> None:
        if does:
            self.varying.add(thing)

    def _is_split(self, x: Any) -> bool:
        return self.split >= 0 and self.body[self.split] is x

    def parts_ways(self, x: Any) -> bool:
        """Whether lanes leave a branch or loop apart."""
        if isinstance(x, s.CountedLoop):
            return self.is_varying(x.variable, x.limit)
        return self.is_varying(x.condition)


def side(x: Any, name: str) -> Region:
    """The region of a part of a statement at which lanes part ways."""
    return id(x), name


def operands_of(x: Any) -> Iterator[Operand | View]:
    """What a statement reads, those inside of it not included."""
    match x:
        case s.Let(args=args):
            yield from args
        case s.Set(value=value):
            yield value
        case s.Load(place=place):
            yield place
        case s.Store(place=place, value=value):
            yield from (place, value)
        case s.Check():
            yield from (x.condition, x.index, x.size)
        case s.If(condition=condition) | s.While(condition=condition):
            yield condition
        case s.CountedLoop(limit=limit):
            yield limit


def registers_read(block: s.Block, without: Any = None) -> set[Register]:
    """Registers that statements and those inside of them read, but for one with all inside it."""
    found: set[Register] = set()
    for x in walked(block, without):
        for operand in operands_of(x):
            parts = (operand.offset, operand.element) if isinstance(operand, View) else (operand,)
            found |= {p for p in parts if isinstance(p, Register)}
    return found


def registers_defined(block: s.Block) -> set[Register]:
    return {x.result for x in walked(block) if isinstance(x, (s.Let, s.Get, s.Load, s.Number))}


def walked(block: Sequence[Any], without: Any = None) -> Iterator[Any]:
    """Statements, and those inside of them; deep nesting costs no more."""
    begun = [iter(block)]
    while begun:
        x = next(begun[-1], None)
        if x is None:
            begun.pop()
        elif x is not without:
            yield x
            begun.append(chain.from_iterable(s.blocks_of(x)))
