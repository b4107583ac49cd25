"""Bytecode of ``with`` and ``try`` in the form that the decompiler reads.

The exception table says which instructions a handler covers.  Here handlers stand after all other
code, as Python 3.12 and later put them, and in the rest the regions are brackets:
``BEFORE_WITH`` or ``BEGIN_TRY``, the body, ``END_WITH`` or ``END_TRY``.  Calls of ``__exit__`` with
three Nones, at the end of a body and wherever the code leaves it, are dropped.
"""

from __future__ import annotations

import dis
from bisect import bisect_left
from collections.abc import Container, Iterator
from types import CodeType

from fusec.core.records import dataclass, replace

from .bytecode import CodeStep, steps_of

LEAVING = frozenset({"RETURN_VALUE", "RAISE_VARARGS", "RERAISE", "JUMP_FORWARD", "JUMP_BACKWARD"})


Bracket = tuple[str, int]  # the operation, and the handler that it leads to or -1


@dataclass(frozen=True, slots=True)
class Covered:
    """Steps ``start`` to ``stop``, and the first step of the handler of their exceptions."""

    start: int
    stop: int
    handler: int


def readable(code: CodeType) -> tuple[list[CodeStep], int]:
    """The steps of a function as the decompiler reads them, and how many stand before handlers."""
    steps, offsets = steps_of(code)
    covered = coverage(code, offsets)
    if any(step.op in ("BEFORE_WITH", "PUSH_EXC_INFO") for step in steps):
        return arranged(steps, covered)
    return steps, min((row.handler for row in covered), default=len(steps))


def coverage(code: CodeType, offsets: list[int]) -> list[Covered]:
    """The exception table, by numbers of steps."""
    entries = dis.Bytecode(code).exception_entries  # type: ignore[attr-defined]
    rows = (Covered(*(bisect_left(offsets, at) for at in (e.start, e.end, e.target)))
            for e in entries)
    return [row for row in rows if row.start < row.stop]


def arranged(steps: list[CodeStep], covered: list[Covered]) -> tuple[list[CodeStep], int]:
    """The steps with brackets around regions, handlers last, and how many stand before these.

    A ``BEGIN_TRY`` leads (``to``) to its handler.
    """
    steps, covered, end = _handlers_last(steps, covered)
    exits = _exits(steps)
    dropped = {i for exit in exits for i in exit} | {*_left_handlers(steps, end)} | {
        i for i in range(end) if steps[i].op == "JUMP_FORWARD" and steps[i].to == i + 1}
    begins: dict[int, list[Bracket]] = {}
    ends: dict[int, list[Bracket]] = {}
    for handler in sorted({row.handler for row in covered}):  # of inner regions first
        if _is_try(steps, handler):
            start, stop = _extent(steps, covered, handler, end)
            ends.setdefault(stop, []).append(("END_TRY", -1))
            begins.setdefault(start, []).insert(0, ("BEGIN_TRY", handler))
    for at in _normal_exits(steps, exits, end):
        ends.setdefault(at, []).append(("END_WITH", -1))
    brackets = {at: [*ends.get(at, ()), *begins.get(at, ())] for at in {*begins, *ends}}
    return _renumbered(steps, dropped, brackets, end)


def _handlers_last(
    steps: list[CodeStep], covered: list[Covered]
) -> tuple[list[CodeStep], list[Covered], int]:
    """Steps that only handlers reach after all others; those that go on among the others jump."""
    reached = _reached(steps)
    order = sorted(range(len(steps)), key=lambda i: (i not in reached, i))
    end = len(reached)
    moved: list[CodeStep] = []
    number = {}
    for place, i in enumerate(order):
        number[i] = len(moved)
        moved.append(steps[i])
        following = order[place + 1] if place + 1 < len(order) else len(steps)
        if i not in reached and i + 1 != following and steps[i].op not in LEAVING:
            moved.append(CodeStep("JUMP_FORWARD", None, i + 1, steps[i].place))
    number[len(steps)] = len(moved)
    moved = [replace(s, to=number[s.to]) if s.to >= 0 else s for s in moved]
    rows: list[Covered] = []
    for row in covered:  # one for each run of steps that stayed side by side
        inside = sorted(number[i] for i in range(row.start, row.stop))
        for i in inside:
            if rows and rows[-1].handler == number[row.handler] and rows[-1].stop == i:
                rows[-1] = replace(rows[-1], stop=i + 1)
            else:
                rows.append(Covered(i, i + 1, number[row.handler]))
    return moved, rows, end


def _reached(steps: list[CodeStep]) -> set[int]:
    """The steps that run where nothing is raised."""
    reached: set[int] = set()
    waiting = [0]
    while waiting:
        i = waiting.pop()
        while i < len(steps) and i not in reached:
            reached.add(i)
            if steps[i].to >= 0:
                waiting.append(steps[i].to)
            if steps[i].op in LEAVING:
                break
            i += 1
    return reached


def _exits(steps: list[CodeStep]) -> list[range]:
    """The calls of ``__exit__`` with three Nones: the steps of each."""
    ops = ["LOAD_CONST", "LOAD_CONST", "LOAD_CONST", "CALL", "POP_TOP"]
    found = []
    for i in range(len(steps) - 4):
        part = steps[i: i + 5]
        if [s.op for s in part] == ops and len({s.place for s in part}) == 1 and (
                part[3].arg == 2 and all(s.arg is None for s in part[:3])):
            swap = i > 0 and steps[i - 1].op == "SWAP" and steps[i - 1].place == part[0].place
            found.append(range(i - swap, i + 5))
    return found


def _normal_exits(steps: list[CodeStep], exits: list[range], end: int) -> list[int]:
    """Where the body of each ``with`` ends: at the last exits of its place in the source; after the
    last one that leaves it where there is no other."""
    stops = []
    entered: dict[object, int] = {}
    for step in steps[:end]:
        if step.op == "BEFORE_WITH":
            entered[step.place] = entered.get(step.place, 0) + 1
    for place, count in entered.items():
        own = [exit for exit in exits if steps[exit[-1]].place == place and exit[0] < end]
        last = own[-count:]
        for exit in last:
            leaving = len(exit) == 6
            stops.append(_after_leaving(steps, exit.stop, end) if leaving else exit[0])
    return stops


def _after_leaving(steps: list[CodeStep], i: int, end: int) -> int:
    while i < end and steps[i].op not in LEAVING:
        i += 1
    return min(i + 1, end)


def _is_try(steps: list[CodeStep], handler: int) -> bool:
    """Whether a handler is that of a ``try``, not of a ``with`` or of a clean-up after one."""
    return steps[handler].op == "PUSH_EXC_INFO" and steps[handler + 1].op != "WITH_EXCEPT_START"


def _extent(
    steps: list[CodeStep], covered: list[Covered], handler: int, end: int
) -> tuple[int, int]:
    """The first step and the end of the body of a ``try``, among the steps before ``end``.

    Steps in it that have a handler of their own are covered by that; of such a region it is the
    handler's code that this one covers.
    """
    starts = [row.start for row in covered if row.handler == handler and row.start < end]
    stops = [row.stop for row in covered if row.handler == handler and row.start < end]
    inner = {row.handler for row in covered if row.handler != handler
             and handler in _outward(covered, row.handler)}
    starts += [row.start for row in covered if row.handler in inner and row.start < end]
    stops += [row.stop for row in covered if row.handler in inner and row.start < end]
    stop = min(max(stops), end)
    return min(starts), stop + (stop < end and steps[stop].op == "RETURN_VALUE")


def _outward(covered: list[Covered], handler: int) -> set[int]:
    """The handlers of a handler's exceptions, outwards."""
    found: set[int] = set()
    waiting = [handler]
    while waiting:
        at = waiting.pop()
        for row in covered:
            if row.start <= at < row.stop and row.handler not in found:
                found.add(row.handler)
                waiting.append(row.handler)
    return found


def _left_handlers(steps: list[CodeStep], end: int) -> Iterator[int]:
    """Where a handler returns a value: the steps that end the handling before it does."""
    for i in range(end, len(steps) - 1):
        if (steps[i].op, steps[i].arg, steps[i + 1].op) == ("SWAP", 2, "POP_EXCEPT"):
            ops = [s.op for s in steps[i + 2: i + 5]]
            yield from range(i, i + 2 + 3 * (ops == ["LOAD_CONST", "STORE", "DELETE"]))


def _renumbered(
    steps: list[CodeStep], dropped: Container[int], brackets: dict[int, list[Bracket]], end: int
) -> tuple[list[CodeStep], int]:
    """Without the dropped steps, and with the brackets, each before a step; jumps to the step
    go to the first of them."""
    kept: list[CodeStep] = []
    number: list[int] = []
    own: list[int] = []  # where the step itself is
    for i, step in enumerate([*steps, steps[-1]]):
        number.append(len(kept))
        kept += [CodeStep(op, None, handler, step.place) for op, handler in brackets.get(i, ())]
        own.append(len(kept))
        if i < len(steps) and i not in dropped:
            kept.append(step)
    moved = [replace(s, to=(own if s.op == "BEGIN_TRY" else number)[s.to]) if s.to >= 0 else s
             for s in kept]
    return moved, own[end]
