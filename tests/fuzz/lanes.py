"""Random programs of one lane with branches and loops, in lanes, against the plain loop over lanes.

Numbers are quarters of small size, with which every operation here is exact: all bits are compared,
and no rounding turns a branch.
"""

from __future__ import annotations

import atexit
import random
from collections import Counter

import numpy as np
from by_seed import defined, main

import fusec
from fusec.codegen.cpu.lanes import choice
from fusec.errors import UnsupportedError

LANES = 37
ways: Counter[str] = Counter()
_FLOATS, _INTS = ("x", "y", "z"), ("n", "k")


class LaneWriter:
    """Writes the function of a seed."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.lines: list[str] = []
        self.loops = 0

    def text(self) -> str:
        self.lines = ["def lane(x, n, a):", "    y, z, k = 1.0, -x, 3"]
        self._block(1, 0)
        self._block(1, 0)
        self.lines.append("    return x, y, z, n, k")
        return "\n".join(self.lines) + "\n"

    def _line(self, depth: int, text: str) -> None:
        self.lines.append("    " * depth + text)

    def _block(self, depth: int, loops: int) -> None:
        for _ in range(self.rng.randint(1, 3)):
            self._statement(depth, loops)

    def _statement(self, depth: int, loops: int) -> None:
        kind = self.rng.random()
        if depth < 4 and kind < 0.25:
            self._line(depth, f"if {self._condition()}:")
            self._block(depth + 1, loops)
            if self.rng.random() < 0.5:
                self._line(depth, "else:")
                self._block(depth + 1, loops)
        elif depth < 3 and loops < 2 and kind < 0.5:
            self._loop(depth, loops)
        elif kind < 0.55 and depth > 1:
            ends = ["return x, y, z, n, k"] + ["break", "continue"] * (loops > 0)
            self._line(depth, f"if {self._condition()}:")
            self._line(depth + 1, self.rng.choice(ends))
        elif kind < 0.7:
            name = self.rng.choice(_INTS)
            self._line(depth, f"{name} = ({self._integer()}) % {self.rng.choice((5, 7, 16))}")
        else:
            self._line(depth, f"{self.rng.choice(_FLOATS)} = {self._float()}")

    def _loop(self, depth: int, loops: int) -> None:
        self.loops += 1
        i = f"i{self.loops}"
        if self.rng.random() < 0.4:
            stop = self.rng.choice(("n", "n % 4", "3"))
            self._line(depth, f"for {i} in range({stop}):")
        else:
            self._line(depth, f"{i} = 0")
            limit = self.rng.choice(("9", "n + 2"))
            self._line(depth, f"while {i} < {limit} and {self._condition()}:")
            self._line(depth + 1, f"{i} += 1")
        self._block(depth + 1, loops + 1)

    def _condition(self) -> str:
        kind = self.rng.random()
        if kind < 0.6:
            return f"{self.rng.choice(_FLOATS)} {self.rng.choice('<>')} {self._atom()}"
        if kind < 0.85:
            return f"{self.rng.choice(_INTS)} {self.rng.choice(('<', '>', '!='))} {self._small()}"
        return f"({self._condition()} {self.rng.choice(('and', 'or'))} {self._condition()})"

    def _small(self) -> str:
        return str(self.rng.randint(0, 6))

    def _atom(self) -> str:
        return self.rng.choice((*_FLOATS, f"{self.rng.randint(-8, 8) / 4}", "a[0]"))

    def _integer(self) -> str:
        a, b = self.rng.choice((*_INTS, self._small())), self.rng.choice((*_INTS, self._small()))
        return f"{a} {self.rng.choice('+-*')} {b}"

    def _float(self) -> str:
        a, b = self._atom(), self._atom()
        return self.rng.choice((
            f"({a} + {b}) % 16.0", f"({a} - {b}) % 8.0", f"min({a}, {b})", f"max({a}, {b})",
            f"abs({a})", f"np.floor({a}) * 0.5", "a[n % 5]", f"a[k % 5] + {b} % 4.0",
            f"np.floor(({a} % 8.0) * ({b} % 8.0))", "float(k)"))


def arguments(seed: int) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rng.integers(-20, 20, LANES) / 4, rng.integers(0, 8, LANES),
            rng.integers(-20, 20, (LANES, 5)) / 4]


def failure(seed: int) -> str | None:
    """How lanes differ from the plain loop over them; how they ran is counted."""
    text = LaneWriter(seed).text()
    f = defined(text, f"<lanes {seed}>", {"np": np})["lane"]
    args, lanes = arguments(seed), fusec.vmap(f)
    try:
        got = lanes(*args)
    except UnsupportedError:
        ways["refused"] += 1
        return None
    want = [f(*(x[lane] for x in args)) for lane in range(LANES)]
    for k, x in enumerate(got):
        if not np.array_equal(x, [w[k] for w in want]):
            return f"{text}# result {k}"
    ways.update(way_of(c.reason) for c in lanes.concrete(*args).control)
    return None


def way_of(reason: str) -> str:
    """What `fusec.explain` says of a loop, without figures."""
    return "vectors" if "in vectors with masks" in reason else reason.rpartition("(")[2]


if __name__ == "__main__":
    choice.forced = True
    atexit.register(lambda: print(dict(ways)))
    main(__doc__, failure)
