"""Whether lanes run in vectors, and how: by the form of one lane's statements, and by costs."""

from __future__ import annotations

import math
from typing import Any

from fusec.codegen.structured import statements as s
from fusec.codegen.structured.memory import Operand, Variable
from fusec.core.records import dataclass

from ...machine_code.llvm import has_feature
from .costs import LaneCosts, lines_of
from .divergence import Divergence, registers_defined, registers_read, walked
from .vector_size import lanes_of_vectors

UNEVEN = 1.3  # what lanes that wait for others add, where ended ones are replaced
IN_STEP = 1.8  # and where they wait until the last one of their vector has ended
MOST_LINES, MS_A_LINE = 12_000, 0.17  # of LLVM IR, and what it takes for one
forced: bool | None = None  # by tests: vectors wherever they can be, or nowhere


@dataclass(frozen=True)
class LaneChoice:
    """How a loop over lanes runs; ``told`` in words.

    ``divergence``: None where lanes run one by one.  ``keep_going``: with as many lanes of a vector
    in its inner loop, or fewer, those that ended are replaced.
    """

    told: str
    divergence: Divergence | None = None
    lane: Variable | None = None
    limit: Operand | None = None
    lanes: int = 1
    keep_going: int = 0


def choose_lanes(loop: s.While | s.CountedLoop, count: int) -> LaneChoice:
    """Of a loop over so many lanes; 0: nobody knows how many."""
    lane, limit, body = _parts(loop)
    reason = _refusal(body) or _too_long(body)
    if reason or forced is False:
        return LaneChoice(f"a lane at a time ({reason or 'as asked for'})")
    divergence = Divergence(body, lane, _split(body, lane))
    reason = _mixed(divergence)
    if reason:
        return LaneChoice(f"a lane at a time ({reason})")
    lanes = lanes_of_vectors(body, count)
    registers = lanes // (8 if has_feature("avx512f") else 4)
    costs = LaneCosts(divergence, lanes, registers)
    one = costs.of_one(body)
    wait = _waiting(divergence)
    together = costs.of_vector(body) * wait / lanes
    figures = f"estimated at {together:.2g} ns a lane, {{}} {one:.2g}"
    if together > one and forced is None:
        return LaneChoice(f"a lane at a time (at {one:.2g} ns, in vectors of {lanes} with masks at "
                          f"{together:.2g})")
    told = f"{lanes} lanes at a time in vectors with masks ({figures.format('by itself at')})"
    return LaneChoice(told, divergence, lane, limit, lanes, _keep_going(divergence, costs))


def _parts(loop: s.While | s.CountedLoop) -> tuple[Variable, Operand, s.Block]:
    """The variable that numbers lanes, where it stops, and the statements of a lane."""
    if isinstance(loop, s.CountedLoop):
        return loop.variable, loop.limit, loop.body
    assert loop.lanes is not None
    return loop.lanes.variable, loop.lanes.limit, (*loop.test, *loop.body)


_DONE = (s.Number, s.Let, s.Declare, s.Get, s.Set, s.Load, s.Store, s.Check, s.If, s.While,
         s.CountedLoop, s.Poll)
_NAMES = {s.RunKernel: "kernels of a lane's arrays", s.Copy: "copies of a lane's arrays",
          s.CallScalar: "calls of functions", s.CallFunction: "functions that call themselves",
          s.DefineFunction: "functions that call themselves", s.CallPython: "calls of Python"}


def _refusal(body: s.Block) -> str:
    """Why lanes cannot run in vectors; "" where they can."""
    for x in walked(body):
        if type(x) not in _DONE:
            return _NAMES.get(type(x), "arrays of a lane")
        if isinstance(x, s.Declare) and not isinstance(x.thing, Variable):
            return "arrays of a lane"
        for thing in vars(x).values():
            dtype = getattr(thing, "dtype", None)
            if dtype is not None and (dtype.kind == "c" or dtype.itemsize == 2):
                return "complex numbers" if dtype.kind == "c" else "numbers of 16 bits"
    return ""


def _too_long(body: s.Block) -> str:
    """A first call should not wait for LLVM longer than all its lanes may take."""
    lines = lines_of(body)
    return "" if lines <= MOST_LINES else (
        f"a program of {sum(1 for _ in walked(body)):,} statements, for whose vectors LLVM would "
        f"take over {lines * MS_A_LINE / 1e3:.0f} s")


def _split(body: s.Block, lane: Variable) -> int:
    """The one loop of the body in which lanes part ways, where ended lanes may be replaced."""
    divergence = Divergence(body, lane)
    loops = [k for k, x in enumerate(body)
             if any(isinstance(y, (s.While, s.CountedLoop)) and divergence.parts_ways(y)
                    for y in walked((x,)))]
    if len(loops) != 1 or not isinstance(body[loops[0]], s.While):
        return -1
    loop = body[loops[0]]
    own = {x.thing for x in walked(loop.test) if isinstance(x, s.Declare)}
    changes = any(isinstance(x, s.Store) or (isinstance(x, s.Set) and x.variable not in own)
                  for x in walked(loop.test))  # it is asked once more when lanes have been replaced
    return -1 if changes else loops[0]


def _mixed(divergence: Divergence) -> str:
    """What vectors cannot do with a program in which lanes part ways where they do."""
    for x in walked(divergence.body):
        if isinstance(x, s.Store) and not divergence.place_varies(x.place):
            return "lanes write to one place"
        if isinstance(x, s.While) and divergence.parts_ways(x) and (
                registers_defined((x,)) & registers_read(divergence.body, x)):
            return "numbers of a loop's last iteration"
    return ""


def _waiting(divergence: Divergence) -> float:
    parts = any(isinstance(x, (s.While, s.CountedLoop)) and divergence.parts_ways(x)
                for x in walked(divergence.body))
    return 1.0 if not parts else UNEVEN if divergence.split >= 0 else IN_STEP


def _keep_going(divergence: Divergence, costs: LaneCosts) -> int:
    """Lanes are replaced when it costs no more than the work that those waiting do not do."""
    if divergence.split < 0:
        return 0
    loop: Any = divergence.body[divergence.split]
    around = costs.of_vector(tuple(x for x in divergence.body if x is not loop)) + 2 * costs.lanes
    turn = max(costs.of_vector((*loop.test, *loop.body)), 0.1)
    waiting = math.ceil(math.sqrt(around / turn * costs.lanes / 4))
    return max(costs.lanes - max(waiting, 1), costs.lanes // 4)


__all__ = ["LaneChoice", "choose_lanes"]
