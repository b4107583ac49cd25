"""Random programs of lists and dicts that loops fill, read, change and go over: as Python runs
them, or refused.  ``python tests/fuzz/growing.py -n 400 --seed 0``.
"""

from __future__ import annotations

from random import Random
from typing import Any

import by_seed
import numpy as np

import fusec
from fusec.errors import FusecError, InternalError

LISTS, ITEMS, ARRAYS, NUMBERS = ("p", "q"), ("s", "t"), ("a", "b"), ("y", "z")
CALLS = ((np.array([1.0, -2.0, 3.0]), 4), (np.array([-1.0, -0.5, 2.0]), 1),
         (np.array([-1.0, 2.0, -3.0]), 6), (np.array([0.5, 0.25, 0.125]), 0))
_BEGIN = """\
def program(x, n):
    a, b = x * 1.0, x + 1.0
    y, z = x[0] * 1.0, 2.0
    s, t = [x[1] * 1.0, 3.0], [4.0, x[2] * 2.0]
    d = {{"k": [1.0], "v": 0.5}}
    p, q = {first}, {second}
"""
_END = """\
    return flat([p, q, s, t, a, b, y, z, d["k"], d["v"], len(p), len(q)])
"""
# Items that lists begin with.
_FIRST = {"number": "x[0] * 1.0", "array": "x * 2.0", "pair": "(x + 1.0, 0.5)",
          "row": "[x[1] * 1.0, 2.0]"}


def flat(tree: Any) -> Any:
    """The numbers and arrays of a tree, and how its containers nest."""
    if isinstance(tree, (list, tuple)):
        return [type(tree).__name__, len(tree), *(leaf for item in tree for leaf in flat(item))]
    if isinstance(tree, dict):
        return [*sorted(tree), *(leaf for key in sorted(tree) for leaf in flat(tree[key]))]
    return [tree * 1]


class Author:
    """Writes a program: items of one list are numbers, arrays, pairs or rows of two numbers."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.lines: list[str] = []
        self.kinds = {name: self.random.choice(("number", "array", "pair", "row"))
                      for name in LISTS}

    def program(self) -> str:
        starts = [f"[{', '.join([_FIRST[self.kinds[name]]] * self.random.choice((0, 2, 2, 3)))}]"
                  for name in LISTS]
        for _ in range(self.random.randint(2, 4)):
            self.statement(0)
        begin = _BEGIN.format(first=starts[0], second=starts[1])
        return begin + "\n".join(self.lines) + "\n" + _END

    def number(self) -> str:
        choice, chance = self.random.choice, self.random.random()
        if chance < 0.35:
            return choice(("y", "z", "1.5", "x[0]", 'd["v"]', 'd["k"][-1]'))
        if chance < 0.6:
            return f"{choice((*ITEMS, *ARRAYS))}[{choice((0, 1, -1))}]"
        if chance < 0.75:
            return f"{self.number()} * 0.5 + {choice(('x[1]', '1.0', 'y'))}"
        name = choice(LISTS)
        return choice((f"float(len({name}))", self.of_item(name, f"{name}[-1]"),
                       self.of_item(name, f"{name}[0]"), f"{choice(ARRAYS)}.sum()"))

    def of_item(self, name: str, item: str) -> str:
        """A number of an item."""
        return {"number": item, "array": f"{item}[1]", "pair": f"{item}[1]",
                "row": f"{item}[0]"}[self.kinds[name]]

    def array(self) -> str:
        choice = self.random.choice
        return choice((*ARRAYS, f"{choice(ARRAYS)} * 0.5", f"{choice(ARRAYS)} + {self.number()}",
                       "np.zeros(3)", f"{choice(ARRAYS)}[::-1]", f"{choice(ARRAYS)}.copy()"))

    def item(self, name: str) -> str:
        """What is appended to a list."""
        kind, choice = self.kinds[name], self.random.choice
        if kind == "number":
            return self.number()
        if kind == "array":
            return self.array()
        if kind == "pair":
            return f"({self.array()}, {self.number()})"
        return choice((*ITEMS, f"[{self.number()}, {self.number()}]", f"{choice(ITEMS)}[:]"))

    def statement(self, depth: int) -> None:
        chance, margin = self.random.random(), "    " * (depth + 1)
        if depth and depth < 3 and chance < 0.25:
            self.lines.append(f"{margin}if {self.number()} > {self.random.choice(('z', 0, 1))}:")
            if depth > 1 and chance < 0.04:
                self.lines.append(margin + f"    {self.random.choice(('continue', 'break'))}")
                return
            self.block(depth + 1, 2)
            if chance < 0.1:
                self.lines.append(f"{margin}else:")
                self.block(depth + 1, 2)
        elif depth < 2 and chance < 0.55 - 0.2 * depth:
            self.loop(depth, margin)
        else:
            self.lines.append(margin + self.simple())

    def loop(self, depth: int, margin: str) -> None:
        choice = self.random.choice
        name = choice(LISTS)
        times = choice(("range(n)", "range(n)", "range(3)", "range(len(x))",
                        f"range(len({choice(LISTS)}))"))
        head = f"for i{depth} in {times}:"
        if self.random.random() < 0.25:
            head = choice((f"for i{depth}, e{depth} in enumerate({name}[:]):",
                           f"for e{depth} in list({name}):", f"for e{depth} in {name}[::-1]:",
                           f"for e{depth}, _ in zip({name}[:], range(n)):"))
            self.lines.append(margin + head)
            self.lines.append(f"{margin}    y = y + {self.of_item(name, f'e{depth}')}")
        else:
            self.lines.append(margin + head)
        self.block(depth + 1, 3)

    def block(self, depth: int, most: int) -> None:
        for _ in range(self.random.randint(1, most)):
            self.statement(depth)

    def simple(self) -> str:
        choice, name = self.random.choice, self.random.choice(LISTS)
        position = choice((0, 1, -1))
        changes = {"number": f"{name}[{position}] {choice(('=', '+='))} {self.number()}",
                   "array": f"{name}[{position}][{choice((0, 1))}] {choice(('=', '+='))} "
                            f"{self.number()}",
                   "pair": f"{name}[{position}] = {self.item(name)}",
                   "row": f"{name}[{position}][{choice((0, 1))}] = {self.number()}"}
        return self.random.choices((
            f"{name}.append({self.item(name)})",
            changes[self.kinds[name]],
            f"if len({name}) > 1: {changes[self.kinds[name]]}",
            f"if {name}: {choice(NUMBERS)} = {self.of_item(name, name + '[-1]')}",
            f"{choice(NUMBERS)} = {self.number()}",
            f"{choice(ARRAYS)} = {self.array()}",
            f"{choice(ARRAYS)}[{choice((0, 1))}] {choice(('=', '+='))} {self.number()}",
            f"{choice(ITEMS)} = [{self.number()}, {self.number()}]",
            f"{choice(ITEMS)}[{choice((0, 1))}] {choice(('=', '+='))} {self.number()}",
            f"{name} = {name} + [{self.item(name)}]",
            f"{name}.insert(0, {self.item(name)})",
            f"if len({name}) > 2: {name}.pop()",
            f"{name}.extend([{self.item(name)}, {self.item(name)}])",
            f"{name} = [{self.item(name)}, {self.item(name)}]",
            f"{name} = {name}[-3:]",
            f'd["k"].append({self.number()})',
            f'd["v"] {choice(("=", "+="))} {self.number()}',
            "s, t = t, s",
            f"{choice(ITEMS)} = {choice(ITEMS)}",
            f"y = y + sum({self.of_item(name, 'e')} for e in {name})",
        ), (30, 8, 5, 5, 10, 6, 6, 5, 6, 2, 2, 3, 2, 2, 2, 4, 4, 3, 3, 4))[0]


def failure(seed: int) -> str | None:
    """The program of the seed with the differences; None if there are none."""
    text, name = Author(seed).program(), f"<growing {seed}>"
    names = by_seed.defined(text, name, {"np": np, "flat": flat})
    jitted = fusec.jit(names["program"])
    for x, n in CALLS:
        wanted = _outcome(names["program"], x.copy(), n)
        try:
            found = _outcome(jitted, x.copy(), n)
        except InternalError:
            raise
        except FusecError:
            continue
        if not _agree(found, wanted):
            return f"{text}# {(x, n)}: {found}, Python {wanted}\n"
    return None


def _outcome(program: Any, *args: Any) -> Any:
    """What the program gives, or the class of the error that it raises."""
    try:
        return program(*args)
    except FusecError:
        raise
    except Exception as error:
        return type(error).__name__


def _agree(found: Any, wanted: Any) -> bool:
    if type(found) is not type(wanted) or len(found) != len(wanted):
        return False
    return found == wanted if type(wanted) is str else all(
        a == b if isinstance(b, str) else np.allclose(a, b, rtol=1e-9, equal_nan=True)
        for a, b in zip(found, wanted, strict=True))


if __name__ == "__main__":
    by_seed.main(__doc__, failure)
