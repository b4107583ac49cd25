"""Random programs with branches, loops, exits and element updates, as source text.

``make(seed)`` gives the source of a function ``program(x, a, n)`` of a float array, a float and an
int.  Loops end: ranges are short and ``while`` counts down.
"""

from __future__ import annotations

import random

NUMBERS = ("s", "t", "q")
COUNTS = ("i0", "i1", "i2")


class Writer:
    """Writes one program."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.lines: list[str] = []
        self.loops: list[str] = []  # counters of the loops around, "" for ``while``
        self.depth = 0
        self.whiles = 0

    def line(self, text: str) -> None:
        self.lines.append("    " * (self.depth + 1) + text)

    def pick(self, *choices: str) -> str:
        return self.random.choice(choices)

    def number(self, level: int = 0) -> str:
        """A float expression."""
        leaf = self.pick(*NUMBERS, "a", "0.5", "1.0", f"x[{self.index()}]", "-2.0", "x.sum()")
        if level > 1 or self.random.random() < 0.4:
            return leaf
        other = self.number(level + 1)
        kind = self.random.randrange(7)
        if kind == 0:
            return f"abs({other})"
        if kind == 1:
            return f"({leaf} if {self.test(1)} else {other})"
        if kind == 2:
            return f"{self.pick('min', 'max')}({leaf}, {other})"
        return f"({leaf} {self.pick('+', '-', '*')} {other}) * 0.5"

    def index(self) -> str:
        """An index that is always in range: the array has 24 elements."""
        counters = [c for c in self.loops if c]
        if counters and self.random.random() < 0.7:
            counter = self.random.choice(counters)
            return self.pick(counter, f"{counter} - 1", f"{counter} + 1", f"(2 * {counter}) % 24",
                             f"-{counter}")
        return self.pick("0", "-1", "3", "n % 24", "k", "k - 1")

    def test(self, level: int = 0) -> str:
        kind = self.random.randrange(8) if level < 2 else 0
        if kind == 1:
            return f"({self.test(level + 1)} and {self.test(level + 1)})"
        if kind == 2:
            return f"({self.test(level + 1)} or {self.test(level + 1)})"
        if kind == 3:
            return f"not {self.test(level + 1)}"
        if kind == 4:
            return f"-1.0 < {self.pick(*NUMBERS)} < {self.pick(*NUMBERS, 'a')}"
        if kind == 5:
            return f"k {self.pick('<', '>', '==', '!=')} {self.pick('n', '2', '7')}"
        if kind == 6:
            return f"n % {self.pick('2', '3')} == {self.pick('0', '1')}"
        return f"{self.number(2)} {self.pick('<', '>', '<=', '>=')} {self.number(2)}"

    def block(self, size: int) -> None:
        self.depth += 1
        for _ in range(self.random.randint(1, size)):
            self.statement()
        self.depth -= 1

    def statement(self) -> None:
        deep = self.depth >= 4
        kind = self.random.random()
        if kind < 0.34 or (deep and kind < 0.7):
            self.assignment()
        elif kind < 0.58 and not deep:
            self.branch()
        elif kind < 0.74 and not deep:
            self.for_loop()
        elif kind < 0.80 and not deep and self.whiles < 2:
            self.while_loop()
        elif kind < 0.9 and self.loops:
            self.line(f"if {self.test()}:")
            self.line("    " + self.pick("break", "continue", "break", f"return {self.result()}"))
        elif kind < 0.93:
            self.line(f"if {self.test()}:")
            self.line(f"    return {self.result()}")
        else:
            self.assignment()

    def result(self) -> str:
        return self.pick("s, t, q, x, k", "t, s, q, x, k")

    def assignment(self) -> None:
        kind = self.random.randrange(10)
        if kind < 3:
            self.line(f"{self.pick(*NUMBERS)} = {self.number()}")
        elif kind < 5:
            self.line(f"{self.pick(*NUMBERS)} {self.pick('+=', '-=')} {self.number()}")
        elif kind < 7:
            self.line(f"x[{self.index()}] = {self.number()}")
        elif kind == 7:
            self.line(f"x[{self.index()}] += {self.number(1)}")
        elif kind == 8:
            self.line(self.pick("x[1:] = x[:-1] * 0.5", "x = x * 0.5 + s * 0.25", "x *= 0.75",
                                "y = x.copy(); y[2:] += 1.0; x[:] = y[::-1] * 0.5",
                                "s, t = t, s", "k = (k + 1) % 20"))
        else:
            self.line("k = (k * 3 + 1) % 20")

    def branch(self) -> None:
        self.line(f"if {self.test()}:")
        self.block(3)
        if self.random.random() < 0.3:
            self.line(f"elif {self.test()}:")
            self.block(2)
        if self.random.random() < 0.5:
            self.line("else:")
            self.block(2)

    def for_loop(self) -> None:
        unused = [c for c in COUNTS if c not in self.loops]
        if not unused:
            self.assignment()
            return
        counter = unused[0]
        kind = self.random.randrange(4)
        over = ("range(1, 22)", "range(1, 4)", "range(20, 1, -3)", "range(1, 1 + n % 21)")[kind]
        self.line(f"for {counter} in {over}:")
        self.loops.append(counter)
        self.block(3)
        self.loops.pop()
        if self.random.random() < 0.15:
            self.line("else:")
            self.block(1)

    def while_loop(self) -> None:
        self.whiles += 1
        name = f"w{self.whiles}"
        self.line(f"{name} = {self.pick('n % 9', '5', '20')}")
        self.line(f"while {name} > 0{self.pick('', ' and ' + self.test(1))}:")
        self.loops.append("")
        self.depth += 1
        self.line(f"{name} -= 1")
        self.depth -= 1
        self.block(3)
        self.loops.pop()


def make(seed: int) -> str:
    """The source of a random program."""
    writer = Writer(seed)
    writer.depth = -1
    writer.line("def program(x, a, n):")
    writer.depth = 0
    if writer.random.random() < 0.7:
        writer.line("x = x.copy()")
    writer.line("s, t, q, k = 0.0, a, 1.0, 2")
    for _ in range(writer.random.randint(2, 5)):
        writer.statement()
    writer.line(f"return {writer.result()}")
    return "\n".join(writer.lines) + "\n"
