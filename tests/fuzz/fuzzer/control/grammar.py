"""Writes control programs: their statements and expressions, and how often each.

Loops end (ranges are short and ``while`` counts down), indices are nearly always in range, numbers
are small multiples of powers of 2, so that exact results stay so.  Names: floats ``s t q``, an
int ``k``, float arrays ``x y`` of the same length, a view ``v`` of 8 elements of any of the arrays,
a matrix ``A``, an array of ints ``u``, counters ``i0 i1 i2``.
"""

from __future__ import annotations

import random
import re

from .program import ControlProgram

NUMBERS = ("s", "t", "q")
COUNTS = ("i0", "i1", "i2")
LAYOUTS = {
    "x": ("x = r.integers(-40, 40, 12) / 8",
          "x = (r.integers(-40, 40, 24) / 8)[::2]",
          "x = (r.integers(-40, 40, 12) / 8)[::-1]"),
    "y": ("y = r.integers(-40, 40, 12) / 8", "y = r.integers(-40, 40, 12) / 8", "y = x",
          "y = x[::-1]", "z = np.zeros(14, x.dtype)\nz[1:-1] = x\nx = z[2:]\ny = z[:-2]"),
    "A": ("A = r.integers(-40, 40, (4, 8)) / 8",
          "A = np.asfortranarray(r.integers(-40, 40, (4, 8)) / 8)",
          "A = (r.integers(-40, 40, (8, 8)) / 8)[::2]",
          "z = r.integers(-40, 40, 40) / 8\nA = z[:32].reshape(4, 8)\nx = z[16:28]"),
    "u": ("u = r.integers(-9, 50, 8)", "u = r.integers(0, 50, 8).astype(np.int32)",
          "u = r.integers(0, 2, 8)"),
}
VIEWS = ("x[2:10]", "y[4:]", "x[:8]", "y[-8:]", "x[::-1][:8]", "y[8:0:-1]", "A[0]", "A[-1, ::-1]",
         "A.T[:, 2]", "A[k % 4]", "x[3:11].T", "v[::-1]")
HELPERS = (
    "def helper(w, c):\n    if c > 0:\n        w[0] = c\n        return w[1]\n"
    "    w[-1] += 0.5\n    return c\n",
    "def helper(w, c):\n    for j in range(len(w) - 1):\n        if w[j] > c:\n"
    "            w[j], w[j + 1] = w[j + 1], w[j]\n    return w[-1]\n",
    "def helper(w, c=1.0):\n    total = 0.0\n    for e in w:\n        if e < 0:\n"
    "            continue\n        total += e\n    w *= 0.5\n    return total if c else c\n",
)
SWAPPED = {"x": "y", "y": "x", "s": "t", "t": "s"}


class Writer:
    """Writes the lines of one program; ``left`` is how many statements it may still have."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.lines: list[str] = []
        self.loops: list[str] = []  # counters of the loops around, "" for those without
        self.depth, self.whiles = 1, 0
        self.left = self.random.randint(2, 9) if self.chance(0.9) else self.random.randint(10, 18)
        self.has_late = self.chance(0.2)  # a variable ``b`` that only some ways bind
        self.returned = "s, t, q, k" + self.pick(
            "", ", x", ", x, y", ", v", ", v, x", ", A, u", ", A[1:], A", ", u")
        self.has_helper = self.random.random() < 0.15

    def line(self, text: str) -> None:
        self.lines += ["    " * self.depth + part for part in text.split("\n")]

    def pick(self, *choices: str) -> str:
        return self.random.choice(choices)

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    # -- expressions

    def number(self, level: int = 0) -> str:
        """A float expression."""
        leaf = self.leaf()
        if level > 1 or self.chance(0.45):
            return leaf
        other = self.number(level + 1)
        kind = self.random.randrange(8)
        if kind == 0:
            return f"abs({other})"
        if kind == 1:
            return f"({leaf} if {self.test(1)} else {other})"
        if kind == 2:
            return f"{self.pick('min', 'max')}({leaf}, {other})"
        return f"({leaf} {self.pick('+', '-', '*')} {other}) * 0.5"

    def leaf(self) -> str:
        if self.has_late and self.chance(0.1):
            return "b"
        return self.pick(*NUMBERS, *NUMBERS, "a", "0.5", "-2.0", f"x[{self.index()}]",
                         f"y[{self.index()}]", f"v[{self.small()}]", f"A[{self.row()}, 1]",
                         f"A[1, {self.small()}]", "x.sum()", "v.max()", f"u[{self.small()}]")

    def index(self) -> str:
        """An index of 12 elements; rarely one that may be out of range."""
        counters = [c for c in self.loops if c]
        if counters and self.chance(0.7):
            counter = self.random.choice(counters)
            return self.pick(counter, f"{counter} - 1", f"{counter} + 1", f"(2 * {counter}) % 12",
                             f"-{counter}")
        return self.pick("0", "-1", "3", "n % 12", "k % 12", "k % 9 - 1",
                         *(["k"] if self.chance(0.1) else []))

    def small(self) -> str:
        """An index of 8 elements."""
        counters = [c for c in self.loops if c]
        if counters and self.chance(0.6):
            counter = self.random.choice(counters)
            return self.pick(f"{counter} % 8", f"-({counter} % 8)", f"{counter} // 2")
        return self.pick("0", "-1", "5", "n % 8", "k % 8")

    def row(self) -> str:
        counters = [c for c in self.loops if c]
        if counters and self.chance(0.6):
            return self.random.choice(counters) + " % 4"
        return self.pick("0", "-1", "2", "k % 4")

    def array(self) -> str:
        """A float array of 8 elements."""
        return self.pick("v", "v", "x[:8]", "y[4:]", "A[0]", f"A[{self.row()}]", "x[8:0:-1]",
                         "v * 0.5", "v + A[1]", "y[2:10] - v", "np.where(v > s, v, y[:8])",
                         "v[::-1]")

    def test(self, level: int = 0) -> str:
        kind = self.random.randrange(9) if level < 2 else 0
        if kind in (1, 2):
            word = "and" if kind == 1 else "or"
            return f"({self.test(level + 1)} {word} {self.test(level + 1)})"
        if kind == 3:
            return f"not {self.test(level + 1)}"
        if kind == 4:
            return f"-1.0 < {self.pick(*NUMBERS)} < {self.pick(*NUMBERS, 'a')}"
        if kind == 5:
            return f"k {self.pick('<', '>', '==', '!=')} {self.pick('n', '2', '7')}"
        if kind == 6:
            return f"n % {self.pick('2', '3')} == {self.pick('0', '1')}"
        if kind == 7:
            return self.pick("(v > 0).any()", "np.all(y < 6)", "u[k % 8] & 1", "x.any()")
        return f"{self.number(2)} {self.pick('<', '>', '<=', '>=')} {self.number(2)}"

    # -- statements

    def block(self, size: int) -> None:
        self.depth += 1
        start = len(self.lines)
        for _ in range(self.random.randint(1, size)):
            self.statement()
        if len(self.lines) == start:
            self.assignment()
        self.depth -= 1

    def statement(self) -> None:
        if self.left <= 0:
            return
        self.left -= 1
        kind, deep = self.random.random(), self.depth >= 4
        if kind < 0.18 and not deep:
            self.branch()
        elif kind < 0.38 and not deep:
            self.for_loop()
        elif kind < 0.43 and not deep and self.whiles < 2:
            self.while_loop()
        elif kind < 0.5 and self.loops:
            leave = self.pick("break", "continue", "break", f"return {self.result()}")
            self.line(f"if {self.test()}:\n    {leave}")
        elif kind < 0.53:
            self.line(f"if {self.test()}:\n    return {self.result()}")
        elif kind < 0.75:
            self.in_place()
        else:
            self.assignment()

    def result(self) -> str:
        """One structure in all of a program: values that data decides cannot differ in that."""
        return self.returned if self.chance(0.7) else re.sub(
            r"\b[xyst]\b", lambda found: SWAPPED[found[0]], self.returned)

    def assignment(self) -> None:
        kind = self.random.randrange(9)
        if self.has_late and self.chance(0.3):
            self.line(f"b = {self.number()}")
        elif kind < 3:
            self.line(f"{self.pick(*NUMBERS)} = {self.number()}")
        elif kind < 5:
            self.line(f"{self.pick(*NUMBERS)} {self.pick('+=', '-=')} {self.number()}")
        elif kind == 5:
            self.line(self.pick("k = (k + 1) % 20", "k = (k * 3 + 1) % 20", "k += 1; k %= 16",
                                f"k = abs(int(u[{self.small()}])) % 20", "k = n % 7",
                                "k = (k ^ 5) & 15"))
        elif kind == 6:
            self.line(self.pick("s, t = t, s", f"q = float({self.number(1)})",
                                f"s, k = {self.number(1)}, (k + 2) % 20"))
        elif kind == 7 and self.has_helper:
            array = self.pick("v", "x", "A[1]")
            self.line(f"{self.pick(*NUMBERS)} = helper({array}, {self.leaf()})")
        else:
            self.line(f"{self.target()} {self.pick('=', '+=', '=', '*=')} {self.number(1)}")

    def target(self) -> str:
        """An element."""
        return self.pick(f"x[{self.index()}]", f"x[{self.index()}]", f"y[{self.index()}]",
                         f"v[{self.small()}]", f"A[{self.row()}, {self.small()}]",
                         f"A.T[{self.small()}, 0]")

    def in_place(self) -> None:
        kind = self.random.randrange(10)
        if kind == 0:
            self.line(f"v = {self.view()}")
        elif kind == 1:
            self.line(self.pick("x, y = y, x", "x = x * 0.5 + s * 0.25", "y = x.copy()",
                                "x *= 0.75", "y -= x[0]", "x = x[::-1]", "y = x"))
        elif kind == 2:
            self.line(self.pick("x[1:] = x[:-1] * 0.5", "x[:-1] = x[1:]", "x[1:] += x[:-1]",
                                "y[:] = x[::-1]", "A[1:, 2:] = A[:-1, :-2]", "x[4:] = v",
                                "A[:, 0] = A[:, 1] + s", "A += A[::-1]", "x[:7] += s\nx[4:] -= 0.5",
                                "y[2:] = 1.0\ny[:6] *= 0.5", "x[:8] = v\nx[3:] += t"))
        elif kind == 3:
            self.line(f"x[x {self.pick('<', '>')} {self.leaf()}] {self.pick('=', '+=')} "
                      f"{self.leaf()}")
        elif kind == 4:
            self.line(self.pick(f"np.add.at(x, [0, 3, 0], {self.leaf()})",
                                f"x[[1, 2, 1]] = {self.leaf()}", f"x[u % 12] += {self.leaf()}",
                                f"y[[0, 5]] = {self.leaf()}"))
        elif kind == 5:
            self.line(self.pick("x.sort()", f"v.fill({self.leaf()})",
                                f"np.copyto(v, {self.array()})", "np.maximum(x, y, out=x)",
                                f"y.fill({self.leaf()})", "np.subtract(v, s, out=v)"))
        elif kind == 6:
            target = self.pick("v[:]", "v[...]", f"A[{self.row()}]", "x[2:10]", "y[-8:]")
            self.line(f"{target} {self.pick('=', '+=', '-=')} {self.array()}")
        elif kind == 7:
            self.line(f"u[{self.small()}] {self.pick('=', '+=', '^=', '|=')} "
                      f"{self.pick('k', '3', 'n', f'u[{self.small()}]', 'u[0] >> 1')}")
        elif kind == 8:
            start = self.pick("k % 8", *[c for c in self.loops if c])
            self.line(self.pick(f"x[{start}:{start} + 3] {self.pick('=', '+=')} {self.leaf()}",
                                f"{self.pick(*NUMBERS)} = x[{start}:{start} + 4].sum()",
                                f"y[{start}:] {self.pick('=', '*=')} {self.pick('0.5', 's')}",
                                f"t = y[:{start}].sum()"))
        else:
            self.line(f"A[{self.row()}, :] {self.pick('=', '+=')} {self.array()}")

    def view(self) -> str:
        """An expression for ``v``."""
        one, other = self.pick(*VIEWS), self.pick(*VIEWS)
        return f"{one} if {self.test(1)} else {other}" if self.chance(0.3) else one

    # -- compound statements

    def branch(self) -> None:
        self.line(f"if {self.test()}:")
        self.block(3)
        if self.chance(0.25):
            self.line(f"elif {self.test()}:")
            self.block(2)
        if self.chance(0.5):
            self.line("else:")
            self.block(2)

    def for_loop(self) -> None:
        unused = [c for c in COUNTS if c not in self.loops]
        if not unused:
            self.assignment()
            return
        counter, element = unused[0], f"e{len(self.loops)}"
        over = self.pick(*[f"{counter} in range({r})" for r in (
            "1, 11", "10", "3", "10, 1, -3", "n % 11", "1, 1 + n % 10", "k % 9")],
            f"{element} in x", f"{counter}, {element} in enumerate(y[1:10])",
            f"{element}, f{element} in zip(v, x)", f"{element} in (0.5, s, 2.0)")
        self.line(f"for {over}:")
        named = counter in over
        self.loops.append(counter if named else "")
        if element in over:
            self.line(f"    {self.pick(*NUMBERS)} {self.pick('=', '+=')} {element}")
        self.block(3)
        self.loops.pop()
        if self.chance(0.12):
            self.line("else:")
            self.block(1)

    def while_loop(self) -> None:
        self.whiles += 1
        name = f"w{self.whiles}"
        self.line(f"{name} = {self.pick('n % 9', '5', '12')}")
        has_effects = self.chance(0.5)
        test = self.test_with_effects(name) if has_effects else (
            f"{name} > 0{self.pick('', ' and ' + self.test(1))}")
        self.line(f"while {test}:")
        self.loops.append("")
        if "-= 1" not in test and ":= w" not in test:
            self.line(f"    {name} -= 1")
        if has_effects and self.chance(0.5):
            self.line(f"    if {self.test(1)}:\n        {self.pick('break', 'break', 'continue')}")
        self.block(3)
        self.loops.pop()

    def test_with_effects(self, name: str) -> str:
        """A test of a ``while`` that changes variables of the body or of the code after it."""
        effect = self.effect()
        return self.pick(f"{name} > 0 and {effect}", f"{effect} and {name} > 0",
                         f"({name} := {name} - 1) >= 0", f"({name} := {name} - 1) > 0 and {effect}",
                         f"{name} > 0 and ({effect} or {self.test(1)})")

    def effect(self) -> str:
        """An expression with an effect, which is mostly true."""
        return self.pick("(k := (k + 1) % 20) != 9", "(k := (k + 3) % 20) >= 0",
                         f"({self.pick('s', 't')} := {self.number(1)}) < 9.0",
                         *([f"helper({self.pick('v', 'x', 'A[1]')}, {self.leaf()}) < 9.0"] * 2
                           if self.has_helper else []))


def program_of(seed: int) -> ControlProgram:
    """The program of a seed."""
    writer = Writer(seed)
    layout = "\n".join(writer.pick(*choices) for choices in LAYOUTS.values())
    writer.line(f"s, t, q, k = 0.0, a, {writer.pick('1.0', 'x[0]', 'x.max()')}, 2")
    writer.line(f"v = {writer.pick(*VIEWS[:9])}")
    while writer.left > 0:
        writer.statement()
    writer.line(f"return {writer.result()}")
    head = writer.pick(*HELPERS) + "\n\n" if writer.has_helper else ""
    source = head + "def program(x, y, A, u, a, n):\n" + "\n".join(writer.lines) + "\n"
    return ControlProgram(source, layout, seed, same_n=writer.chance(0.7))


__all__ = ["program_of"]
