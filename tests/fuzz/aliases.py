"""Random programs of lists, arrays and objects with several names, which branches and loops bind
anew and change: as Python runs them, or refused.  ``python tests/fuzz/aliases.py -n 400 --seed 0``.
"""

from __future__ import annotations

from random import Random
from typing import Any

import by_seed
import numpy as np

import fusec
from fusec.errors import FusecError, InternalError

LISTS, ARRAYS, OBJECTS = ("p", "q", "r"), ("a", "b"), ("o", "u")
# Of `x`, `y`, and how often loops run.
CALLS = ((1.0, 2.5, 2, 1), (0.25, 1.0, 0, 2), (3.0, -1.0, 3, 0), (1.5, 2.0, 1, 1))
_BEGIN = """\
def program(x, y, n, m):
    p = [1.0, 2.0]
    q = [x, 3.0]
    r = p
    a = np.array([1.0, 2.0])
    b = np.array([x, y])
    o = Pair(p, a)
    u = {}
    t = [p, q]
    d = {{"k": r, "v": y}}
    w = (q, b)

    def bump(number):
        p[0] += number
        a[1] += number

    def renew(number):
        nonlocal q
        q = [q[1], number]
        return q

    last = lambda: r  # noqa: E731
"""
_END = """\
    return (*p, *q, *r, a * 1, b * 1, *o.items, *u.items, o.array * 1, u.array * 1, y,
            *t[0], *t[1], *d["k"], d["v"], *w[0], w[1] * 1)
"""


class Pair:
    """A list and an array."""

    def __init__(self, items: Any, array: Any) -> None:
        self.items, self.array = items, array

    def add(self, number: Any) -> None:
        self.items[0] += number
        self.array[1] += number

    def renew(self, number: Any) -> None:
        self.items = [self.items[1], number]


def put(items: Any, number: Any) -> Any:
    items[1] = number
    return items


def turned(items: Any) -> Any:
    return [items[1], items[0]]


class Author:
    """Writes a program: two elements in every list and array, numbers of one kind."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.lines: list[str] = []

    def program(self) -> str:
        other = "o" if self.random.random() < 0.3 else "Pair([0.5, y], b)"
        for _ in range(self.random.randint(3, 6)):
            self.statement(0)
        return _BEGIN.format(other) + "\n".join(self.lines) + "\n" + _END

    def number(self) -> str:
        chance = self.random.random()
        if chance < 0.3:
            return self.random.choice(("x", "1.5", "2.0", "y"))
        if chance < 0.85:
            if chance < 0.33:
                return 'd["v"]'
            name = self.list_() if chance < 0.7 else self.array()
            return f"{name}[{self.random.randrange(2)}]"
        return f"{self.number()} * 0.5 + {self.random.choice(('x', '1.0', 'y'))}"

    def list_(self) -> str:
        if self.random.random() < 0.65:
            return self.random.choice(LISTS)
        return self.random.choice(("o.items", "o.items", "u.items", "t[0]", "t[1]", 'd["k"]'))

    def array(self) -> str:
        if self.random.random() < 0.7:
            return self.random.choice(ARRAYS)
        return f"{self.random.choice(OBJECTS)}.array"

    def new_list(self) -> str:
        chance = self.random.random()
        if chance < 0.45:
            return self.list_() if chance < 0.4 else "w[0]"
        if chance < 0.6:
            return self.random.choice(("list({})", "turned({})", "{}[:]")).format(self.list_())
        return f"[{self.number()}, {self.number()}]"

    def new_array(self) -> str:
        return self.random.choice((
            self.array(), self.array(), f"np.array([{self.number()}, {self.number()}])",
            f"{self.array()} * 0.5 + 1.0", f"{self.array()}[::-1]", "np.ones(2)"))

    def statement(self, depth: int) -> None:
        chance, margin = self.random.random(), "    " * (depth + 1)
        if depth < 3 and chance < 0.14:
            self.lines.append(f"{margin}if {self.number()} > {self.random.choice('xy12')}:")
            self.block(depth + 1)
            if self.random.random() < 0.4:
                self.lines.append(f"{margin}else:")
                self.block(depth + 1)
        elif depth < 2 and chance < 0.28:
            times = self.random.choice(("n", "n", "m", "3"))
            self.lines.append(f"{margin}for i{depth} in range({times}):")
            if times == "m" and self.random.random() < 0.5:
                self.lines[-1] = f"{margin}while {self.list_()}[0] < {self.random.choice('23')}:"
                self.lines.append(f"{margin}    {self.list_()}[0] += 1.0")
                self.lines.append(f"{margin}    n += 1")
                self.lines.append(f"{margin}    if n > 6:")
                self.lines.append(f"{margin}        break")
            self.block(depth + 1)
            if self.random.random() < 0.2:
                self.lines.append(f"{margin}    if {self.number()} > 3:")
                self.lines.append(f"{margin}        break")
        else:
            self.lines.append(margin + self.simple())

    def block(self, depth: int) -> None:
        for _ in range(self.random.randint(1, 3)):
            self.statement(depth)

    def simple(self) -> str:
        choice, position = self.random.choice, self.random.randrange(2)
        pair = choice(OBJECTS)
        return self.random.choices((
            f"{choice(LISTS)} = {self.new_list()}",
            f"{choice(ARRAYS)} = {self.new_array()}",
            f"{pair} = Pair({self.new_list()}, {self.new_array()})",
            f"{pair} = {choice(OBJECTS)}",
            f"{pair}.items = {self.new_list()}",
            f"{pair}.array = {self.new_array()}",
            "p, q = q, p",
            f"{self.list_()}[{position}] {choice(('=', '+='))} {self.number()}",
            f"{self.array()}[{position}] {choice(('=', '+='))} {self.number()}",
            f"y = {self.number()}",
            f"t[{position}] = {self.new_list()}",
            f"t = [{self.new_list()}, {self.new_list()}]",
            f'd["k"] = {self.new_list()}',
            f'd["v"] = {self.number()}',
            f"w = ({self.new_list()}, {self.array()})",
            f"{choice(LISTS)} = put({self.list_()}, {self.number()})",
            f"{pair}.{choice(('add', 'renew'))}({self.number()})",
            f"bump({self.number()})",
            f"{choice(('p', 'r', 'o.items'))} = {choice(('renew(y)', 'last()', 'renew(x)'))}",
            f"last()[{position}] += {self.number()}",
        ), (24, 10, 4, 2, 3, 2, 4, 13, 8, 5, 3, 2, 3, 2, 2, 4, 4, 3, 3, 2))[0]


def failure(seed: int) -> str | None:
    """The program of the seed with the differences; None if there are none."""
    text, name = Author(seed).program(), f"<aliases {seed}>"
    names = by_seed.defined(text, name, {"np": np, "Pair": Pair, "put": put, "turned": turned})
    jitted = fusec.jit(names["program"])
    for x, y, n, m in CALLS:
        wanted = _numbers(names["program"](x, y, n, m))
        try:
            found = _numbers(jitted(x, y, np.int64(n), np.int64(m)))
        except InternalError:
            raise
        except FusecError:
            continue
        if not np.allclose(found, wanted, rtol=1e-9, atol=1e-12, equal_nan=True):
            return f"{text}# {(x, y, n, m)}: {found}, Python {wanted}\n"
    return None


def _numbers(results: Any) -> np.ndarray:
    return np.concatenate([np.ravel(np.asarray(x, dtype=float)) for x in results])


if __name__ == "__main__":
    by_seed.main(__doc__, failure)
