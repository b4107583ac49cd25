"""Estimates of a kernel that runs lanes: in instructions of a thread, hence in ns on an H200.

Counts are those of NVRTC's code of the operations (`python -m fusec bench --suite gpu`), rounded: a
multiprocessor issues 128 instructions of threads a cycle, 64 of float64, and a quarter of that of
other functions of the hardware.  Nothing here has been measured in whole kernels.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fusec.codegen.structured import statements as s
from fusec.codegen.vecmath import FUNCTIONS
from fusec.core.records import dataclass

MULTIPROCESSORS, GHZ, ISSUED, DOUBLES = 132, 1.755, 128, 64
TRIPS = 10  # that a loop of the lane is taken to have, as on the CPU
UNEVEN = 1.3  # what lanes add that wait for others of their warp
LOCAL = 4  # instructions that an access to memory counts as
_OF_FUNCTION = {8: 55, 4: 35}  # instructions, by bytes of the number
_DIVISION = {8: 12, 4: 9}
_BY_INTEGERS = 70  # a division of 64 bits, for which there is no instruction


@dataclass(frozen=True)
class Instructions:
    """Of a thread: of float64, and all."""

    doubles: float = 0.0
    all: float = 0.0

    def __add__(self, other: Instructions) -> Instructions:
        return Instructions(self.doubles + other.doubles, self.all + other.all)

    def times(self, count: float) -> Instructions:
        return Instructions(count * self.doubles, count * self.all)

    @property
    def lane_ns(self) -> float:
        """Of one lane of many, all multiprocessors together."""
        cycles = max(self.doubles / DOUBLES, self.all / ISSUED)
        return UNEVEN * cycles / (MULTIPROCESSORS * GHZ)


def instructions(block: s.Block) -> Instructions:
    """Of a lane's statements, its loops of `TRIPS` iterations; of a branch the mean of its sides.
    """
    return sum(map(_of, block), Instructions())


def _of(x: Any) -> Instructions:
    match x:
        case s.Let(op=op, result=result, args=args):
            return _operation(op, args[0].dtype if args else result.dtype)
        case s.Load() | s.Store():
            return Instructions(0, LOCAL)
        case s.Check():
            return Instructions(0, 2)
        case s.Copy(target=target):
            return Instructions(0, 2 * LOCAL * _points(target.shape))
        case s.RunKernel(kernel=kernel):
            return Instructions(0, (1 + LOCAL) * _points((kernel.work,)))
        case s.If(then=then, orelse=orelse):
            return (instructions(then) + instructions(orelse or ())).times(0.5) + Instructions(0, 2)
        case s.While(test=test, body=body):
            return (instructions(test) + instructions(body) + Instructions(0, 3)).times(TRIPS)
        case s.CountedLoop(body=body):
            return (instructions(body) + Instructions(0, 3)).times(TRIPS)
    return Instructions()


def core_ns(block: s.Block) -> float:
    """Of a lane on a core of a CPU, by what loops count as their iterations' work."""
    total = 0.0
    for x in block:
        if isinstance(x, s.Poll):
            total += x.cost
        elif isinstance(x, (s.While, s.CountedLoop)):
            own = x.cost if isinstance(x, s.CountedLoop) else 0
            total += TRIPS * (own + core_ns(x.body))
        elif isinstance(x, s.If):
            total += core_ns((*x.then, *(x.orelse or ()))) / 2
    return total


def _points(shape: Any) -> float:
    return float(np.prod([n if isinstance(n, int) else TRIPS for n in shape]))


def _operation(op: str, dtype: np.dtype) -> Instructions:
    size = max(dtype.itemsize, 4)
    if op in FUNCTIONS and op != "sqrt":
        count: float = _OF_FUNCTION.get(size, 55)
    elif op in ("div", "sqrt"):
        count = _DIVISION.get(size, 12)
    elif op in ("mod", "floor_div", "fmod", "quotient") and dtype.kind != "f":
        count = _BY_INTEGERS
    else:
        count = 1 if dtype.kind in "fb" or size == 4 else 2
    return Instructions(count if dtype.kind == "f" and size == 8 else 0, count)
