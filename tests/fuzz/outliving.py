"""Random programs that change state that outlives the call: attributes, dicts, lists and arrays of
two objects, globals.  Each call leaves them as Python does; one that is refused leaves them alone.
``python tests/fuzz/outliving.py -n 400 --seed 0``.
"""

from __future__ import annotations

from random import Random
from typing import Any

import by_seed
import numpy as np

import fusec
from fusec.errors import FusecError, InternalError

# Of the object, `x`, `y`, and how often loops run.
CALLS = ((0, 1.0, 2.5, 2, 1), (1, 0.25, 1.0, 0, 2), (0, 3.0, -1.0, 3, 0), (1, 1.5, 2.0, 1, 1),
         (0, 0.5, 0.75, 0, 0), (1, 2.0, 2.0, 2, 3))
_WORLD = """\
class Inner:
    def __init__(self, value):
        self.value = value
        self.things = {"k": 1.0}

    def add(self, number):
        self.value += number
        self.things["k"] = self.things.get("k", 0.0) + number

class Model:
    total = 1.0

    def __init__(self, value):
        self.count = value
        self.m = {"a": value, "b": 2.0}
        self.items = [1.0, value]
        self.array = np.array([value, 2.0])
        self.inner = Inner(value)
        self.rows = [[1.0, value], [2.0, 3.0]]

    def note(self, key, number):
        if key not in self.m:
            self.m[key] = 0.0
        self.m[key] += number

    def record(self, number):
        self.items.append(number)
        return self.items[-1] + len(self.items)

G = {"k": 1.0}
L = [1.0, 2.0]
N = 0.5
models = [Model(1.0), Model(2.5)]

def program(s, x, y, n, m):
    global N
    o, q, d = models[1], s.items, s.m
"""
_END = "    return s.count + x, y\n"
_KEYS = ('"a"', '"b"', '"c"', '"d"')


class Author:
    """Writes a program."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.lines: list[str] = []

    def program(self) -> str:
        for _ in range(self.random.randint(2, 5)):
            self.statement(0)
        return _WORLD + "\n".join(self.lines) + "\n" + _END

    def key(self) -> str:
        return self.random.choice(_KEYS)

    def number(self) -> str:
        choice, chance = self.random.choice, self.random.random()
        if chance < 0.3:
            return choice(("x", "y", "1.5", "2.0"))
        if chance < 0.85:
            return choice((
                "s.count", f"s.m.get({self.key()}, 0.5)", 's.m["a"]', "s.items[0]", "s.items[-1]",
                f"s.array[{choice('01')}]", "s.inner.value", 's.inner.things["k"]', 'G["k"]', "N",
                "L[1]", "len(s.items)", "len(s.m)", "s.rows[1][0]", "sum(s.items)",
                "sum(s.m.values())", "s.array.sum()", 'getattr(s, "extra", 1.0)'))
        return f"{self.number()} * 0.5 + {choice(('x', '1.0', 'y'))}"

    def test(self) -> str:
        if self.random.random() < 0.25:
            return self.random.choice((
                f"{self.key()} in s.m", "len(s.items) > 2", 'hasattr(s, "extra")', "N > 1",
                "n > 1", "len(s.m) > 2"))
        return f"{self.number()} > {self.random.choice('xy12')}"

    def statement(self, depth: int) -> None:
        chance, margin = self.random.random(), "    " * (depth + 1)
        if depth < 3 and chance < 0.2:
            self.lines.append(f"{margin}if {self.test()}:")
            self.block(depth + 1)
            if self.random.random() < 0.4:
                self.lines.append(f"{margin}else:")
                self.block(depth + 1)
        elif depth < 2 and chance < 0.36:
            times = self.random.choice(("n", "n", "m", "3"))
            start = len(self.lines)
            self.lines.append(f"{margin}for i{depth} in range({times}):")
            self.block(depth + 1)
            if self.random.random() < 0.3:
                self.lines[start:start + 1] = self.head(margin, depth)
            if self.random.random() < 0.2:
                self.lines.append(f"{margin}    if {self.test()}:")
                self.lines.append(f"{margin}        break")
        else:
            self.lines.append(margin + self.simple())

    def head(self, margin: str, depth: int) -> list[str]:
        """A loop over a container that outlives the call, and its change of an item."""
        return [margin + line for line in self.random.choice((
            (f"for key{depth} in list(s.m):", f"    s.m[key{depth}] += {self.number()}"),
            (f"for k{depth} in range(len(s.items)):", f"    s.items[k{depth}] *= {self.number()}"),
            (f"for v{depth} in s.items[:]:", f"    s.count += v{depth}"),  # which may grow
            (f"for row{depth} in s.rows[:]:", f"    row{depth}[1] += {self.number()}"),
            (f"for each{depth} in models:", f"    each{depth}.count += {self.number()}")))]

    def block(self, depth: int) -> None:
        for _ in range(self.random.randint(1, 3)):
            self.statement(depth)

    def simple(self) -> str:
        choice = self.random.choice
        assigned = f"{choice(('=', '+=', '+='))} {self.number()}"
        return self.random.choices((
            f"s.count {assigned}", f's.m[{choice(_KEYS[:2])}] {assigned}',
            f"s.m[{self.key()}] = {self.number()}",
            f"s.m.setdefault({self.key()}, {self.number()})",
            f"s.m.pop({self.key()}, None)", f"s.items[{choice(('0', '1', '-1'))}] {assigned}",
            f"s.items.append({self.number()})", f"s.items = [{self.number()}, {self.number()}]",
            f"s.array[{choice('01')}] {assigned}", f"s.array = s.array * {self.number()}",
            f"s.array += {self.number()}", f"s.inner.value {assigned}",
            f"s.inner = Inner({self.number()})", f"s.inner.add({self.number()})",
            f's.inner.things["k"] {assigned}', f's.inner.things[{self.key()}] = {self.number()}',
            f's.m = {{"a": {self.number()}, "b": {self.number()}}}', f'G["k"] {assigned}',
            f"G[{self.key()}] = {self.number()}", f"L[{choice('01')}] {assigned}",
            f"L.append({self.number()})", f"N {assigned}", f"y = {self.number()}",
            f"s.extra = {self.number()}", f"s.note({self.key()}, {self.number()})",
            f"y = s.record({self.number()})", f"s.rows[{choice('01')}][{choice('01')}] {assigned}",
            f"s.rows[0] = [{self.number()}, {self.number()}]", f"s.m.update(c={self.number()})",
            f"o.{choice(('count', 'inner.value', 'items[0]'))} {assigned}", f"q[0] {assigned}",
            f"d[{self.key()}] = {self.number()}",
            f"q = {choice(('s.items', 'o.items', 's.rows[0]'))}",
            "s.items, o.items = o.items, s.items", "o.inner = s.inner", f"Model.total {assigned}",
            "s.items.reverse()", f"s.items[:1] = [{self.number()}]", "s.rows.append(q)",
            f"y = sum(v * {self.number()} for v in s.m.values())",
            f"s.m = {{k: v + {self.number()} for k, v in d.items()}}",
        ), (6, 6, 4, 2, 2, 4, 3, 2, 4, 2, 2, 4, 2, 2, 3, 2, 1, 4, 2, 3, 1, 4, 4, 2, 4, 2, 3, 1, 1,
            4, 3, 3, 2, 1, 1, 3, 1, 1, 1, 2, 1))[0]


def failure(seed: int) -> str | None:
    """The program of the seed with the differences; None if there are none."""
    text, name = Author(seed).program(), f"<outliving {seed}>"
    pythons, ours = (by_seed.defined(text, name, {"np": np, "__name__": name}) for _ in range(2))
    jitted = fusec.jit(ours["program"])
    for model, *numbers in CALLS:
        wanted = _outcome(pythons, pythons["program"], model, numbers)
        before = _state(ours)
        found = _outcome(ours, jitted, model, numbers)
        called = f"# {(model, *numbers)}:"
        if isinstance(found, InternalError):
            raise found
        if isinstance(wanted, Exception) and isinstance(found, Exception):
            return None  # what was done before it is another matter
        if isinstance(found, FusecError):
            return None if _state(ours) == before else (
                f"{text}{called} refused by {found!r}, with changes\n")
        if isinstance(wanted, Exception) or isinstance(found, Exception):
            return f"{text}{called} {found!r}, Python {wanted!r}\n"
        for one, other in ((found, wanted), (_state(ours), _state(pythons))):
            if not _equal(one, other):
                return f"{text}{called}\n# fusec  {one}\n# Python {other}\n"
    return None


def _outcome(world: dict[str, Any], function: Any, model: int, numbers: list[Any]) -> Any:
    x, y, n, m = numbers
    try:
        return _plain(function(world["models"][model], x, y, np.int64(n), np.int64(m)))
    except Exception as error:
        return error


def _state(world: dict[str, Any]) -> Any:
    return _plain([world["Model"].total, *(world[name] for name in ("models", "G", "L", "N"))])


def _plain(x: Any) -> Any:
    """Its numbers, with the names and order of where they are."""
    if isinstance(x, (list, tuple)):
        return [_plain(v) for v in x]
    if isinstance(x, dict):
        return [(key, _plain(value)) for key, value in x.items()]
    if isinstance(x, (float, int, np.generic, np.ndarray)):
        return np.asarray(x, dtype=float).tolist()
    return x if x is None else _plain(vars(x))


def _equal(a: Any, b: Any) -> bool:
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(map(_equal, a, b))
    if isinstance(a, float) and isinstance(b, float):
        return bool(np.isclose(a, b, rtol=1e-9, atol=1e-12, equal_nan=True))
    return bool(a == b)


if __name__ == "__main__":
    by_seed.main(__doc__, failure)
