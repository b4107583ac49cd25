"""How often the loops of a structured program run, where it says so itself."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from ..memory import Constant, Operand, Register, Variable
from ..statements import Block, CountedLoop, Get, Let, Number, Set, While, blocks_of


def iterations(body: Block) -> int | None:
    """The iterations of all loops, those inside of others as often as these run; None: unknown."""
    return _Counts().block(body)


class _Counts:
    """What registers are defined as, and variables set to, on the way to a statement."""

    def __init__(self) -> None:
        self._definitions: dict[Register, Any] = {}
        self._values: dict[Variable, int | None] = {}

    def block(self, block: Block) -> int | None:
        total = 0
        for x in block:
            self._note(x)
            count = self._statement(x)
            if count is None:
                return None
            total += count
        return total

    def _note(self, x: Any) -> None:
        if isinstance(x, (Let, Get, Number)):
            self._definitions[x.result] = x
        elif isinstance(x, Set):
            self._values[x.variable] = self._number(x.value)

    def _statement(self, x: Any) -> int | None:
        if not isinstance(x, (While, CountedLoop)):
            counts = [self.block(inner) for inner in blocks_of(x)]
            for variable in _set_in(x):  # in one branch, or another
                self._values[variable] = None
            return None if None in counts else sum(filter(None, counts))
        if isinstance(x, CountedLoop):
            start, limit = self._values.get(x.variable), self._number(x.limit)
            times = None if start is None or limit is None else limit - start
        else:
            for statement in x.test:
                self._note(statement)
            times = self._times(x)
        for variable in _set_in(x):  # what a loop changes is not known inside, nor afterwards
            self._values[variable] = None
        inside = self.block(x.body)
        return None if times is None or inside is None else max(times, 0) * (1 + inside)

    def _times(self, loop: While) -> int | None:
        """Of a loop that counts a variable up or down to a number."""
        test = self._definitions.get(loop.condition) if isinstance(
            loop.condition, Register) else None
        if not isinstance(test, Let) or test.op not in _LIMITS:
            return None
        counter = self._definitions.get(test.args[0]) if isinstance(
            test.args[0], Register) else None
        limit = self._number(test.args[1])
        if not isinstance(counter, Get) or limit is None:
            return None
        start, step = self._values.get(counter.variable), self._step(loop, counter.variable)
        sign, extra = _LIMITS[test.op]
        if start is None or step is None or step * sign <= 0:
            return None
        times = max(-(-((limit - start) * sign + extra) // abs(step)), 0)
        bounds = np.iinfo(counter.variable.dtype)  # beyond which it begins at the other end
        return times if bounds.min <= start + times * step <= bounds.max else None

    def _step(self, loop: While, variable: Variable) -> int | None:
        """What each iteration adds to it, once and unconditionally."""
        sets = [x for x in loop.body if isinstance(x, Set) and x.variable is variable]
        if len(sets) != 1 or sum(v is variable for v in _set_in(loop)) != 1:
            return None
        definitions = {x.result: x for x in (*loop.test, *loop.body) if isinstance(x, (Let, Get))}
        made = definitions.get(sets[0].value) if isinstance(sets[0].value, Register) else None
        if not isinstance(made, Let) or made.op not in ("add", "sub"):
            return None
        base = definitions.get(made.args[0]) if isinstance(made.args[0], Register) else None
        step = made.args[1].value if isinstance(made.args[1], Constant) else None
        if not isinstance(base, Get) or base.variable is not variable or step is None:
            return None
        return int(step) if made.op == "add" else -int(step)

    def _number(self, operand: Operand) -> int | None:
        """An integer that is part of the program."""
        if isinstance(operand, Constant):
            return int(operand.value) if operand.dtype.kind in "iu" else None
        known = self._definitions.get(operand)
        return known.value if isinstance(known, Number) and type(known.value) is int else None


_LIMITS = {"lt": (1, 0), "le": (1, 1), "gt": (-1, 0), "ge": (-1, 1)}


def _set_in(x: Any) -> Iterable[Variable]:
    for block in blocks_of(x):
        for inner in block:
            if isinstance(inner, Set):
                yield inner.variable
            yield from _set_in(inner)
    if isinstance(x, CountedLoop):
        yield x.variable
