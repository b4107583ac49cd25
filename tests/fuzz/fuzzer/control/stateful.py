"""Writes programs that use Python's state: globals, closures, objects, containers, sentinels.

They are control programs, of the grammar in `grammar`, in a module that has more: a class with a
subclass, two objects of it, global numbers, arrays and containers, local functions that rebind
outer names.  The module's ``touch(trial)`` changes some of it between the calls.
"""

from __future__ import annotations

from .grammar import HELPERS, LAYOUTS, NUMBERS, VIEWS, Writer
from .program import StatefulProgram

MODULE = """GAIN = 0.5
COUNT = 3
MODE = "up"
BUFFER = np.arange(8) / 4
TABLE = {"a": 0.5, "b": -2.0}
FIELDS = {"u": np.ones(8), "half": BUFFER[::-1]}
ROWS = [np.arange(8) / 8, np.zeros(8)]
STEPS = [0.5, -1.0, 2.0]
PAIR = (2, 0.25)


class Gauge:
    scale = 0.5

    def __init__(self, total, data, best=None):
        self.total, self.data, self.best, self.hits = total, data, best, 0

    def add(self, c):
        self.total += c * self.scale
        self.hits += 1
        return self.total

    def push(self, c):
        self.data[self.hits % 8] = c
        self.hits = (self.hits + 1) % 8

    def keep(self, c):
        if self.best is None or c > self.best:
            self.best = c
        return self.best

    @property
    def mean(self):
        return (self.data[0] + self.data[-1]) * 0.5

    def __getitem__(self, i):
        return self.data[i] + self.total

    def __setitem__(self, i, c):
        self.data[i] = c
        self.hits += 1

    def __call__(self, c):
        return c * self.scale - self.total

    def __len__(self):
        return 8


class Wide(Gauge):
    scale = 2.0

    def add(self, c):
        return super().add(c) + 1.0


def halves(w):
    for c in w:
        yield c * 0.5


def folded(c, m):
    return c if m == 0 else folded(c * 0.5 + GAIN, m - 1)


one = Gauge(1.0, np.linspace(0, 1.75, 8), 0.5)
two = Wide(-0.5, BUFFER)
"""
TOUCHES = (
    "GAIN = 0.75", "GAIN = 2", "COUNT = 5", 'MODE = "down"', "BUFFER[2] = 3.0",
    "BUFFER = np.ones(8)", 'TABLE["a"] = 4.0', 'TABLE["c"] = 1.5', "STEPS.append(-0.5)",
    "STEPS[0] = 4.0", "PAIR = (3, 0.75)", "one.total = -2.0", "one.data[3] = 5.0",
    "one.data = np.zeros(8)", "one.best = None", "two.hits = 3", "Gauge.scale = 0.25",
    "one, two = two, one", "one = Gauge(0.25, np.ones(8))", "one.data = two.data", "del STEPS[-1]",
    'FIELDS["u"] = np.full(8, 0.25)', 'FIELDS["u"] = BUFFER', 'FIELDS["w"] = np.ones(8)',
    "ROWS.reverse()", "ROWS[0] = BUFFER", "ROWS[1][0] = 2.0", "one.data = BUFFER[::-1]",
    "two.data = one.data[:]", "one.total = 3", "two.best = 2.0", "Wide.scale = 1.0",
    "two.scale = 4.0",
)
LOCALS = {
    "bump": "def bump(c):\n    nonlocal s\n    s += c\n    return s * 0.5",
    "both": "def both(c):\n    nonlocal t, k\n    t, k = c, (k + 1) % 20\n    return t",
    "tune": "def tune(c):\n    global GAIN\n    GAIN = c\n    return c",
    "late": "late = lambda c: c * s + GAIN",
    "preset": "def preset(c, g=GAIN):\n    return c * g",
    "choose": "def choose(c):\n    if c > t:\n        return c\n    return t",
    "mine": "mine = Wide(s, x[:8] * 0.5, q)",
    "items": "items = [0.5, s, 1.0]",
    "notes": 'notes = {"p": s, "n": 0}',
    "best": "best = {0}",
    "found": "found = False",
}
CONTENTS = {"items": ("items[0]", "items[-1]", "sum(items)"), "notes": ('notes["p"]', 'notes["n"]')}
OBJECTS = ("one", "one", "two")
BOUND = ("GAIN", "COUNT", "MODE", "BUFFER", "PAIR", "one", "two", "SPAN", "SLOT", "bounded",
         "halved")  # by touches


class StatefulWriter(Writer):
    """Writes the lines of one program; ``known`` are its local functions and containers."""

    module = ""  # what its module has besides
    touches: tuple[str, ...] = TOUCHES

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.known = self.random.sample(sorted(LOCALS), self.random.randint(1, 4))
        self.returned += {"items": ", items[-1]", "notes": ', notes["p"]', "best": ", best",
                          "found": ", found", "mine": ", mine.total"}.get(self.known[0], "")

    # -- expressions

    def leaf(self) -> str:
        if self.chance(0.6):
            return super().leaf()
        shared = self.pick(
            "GAIN", "COUNT", f"BUFFER[{self.small()}]", 'TABLE["a"]', "STEPS[0]", "STEPS[-1]",
            "PAIR[1]", "len(STEPS)", 'TABLE.get("c", 0.0)', "sum(STEPS)",
            "(1.0 if MODE == 'up' else -1.0)", f'FIELDS["u"][{self.small()}]',
            f'FIELDS["half"][{self.small()}]', f"ROWS[{self.pick('0', '-1')}][{self.small()}]")
        thing = self.object()
        held = self.pick(f"{thing}.total", f"{thing}.hits", f"{thing}.mean", f"{thing}.scale",
                         f"{thing}.data[{self.small()}]", f"{thing}[{self.small()}]",
                         f"{thing}.data.sum()", f"len({thing})")
        return self.pick(shared, held, held, self.local())

    def object(self) -> str:
        return self.pick(*OBJECTS, *(["mine", "mine"] if "mine" in self.known else []))

    def local(self) -> str:
        """The program's own functions and containers."""
        inner = super().leaf()
        calls = {"bump": f"bump({inner})", "both": f"both({inner})", "tune": f"tune({inner})",
                 "late": f"late({inner})", "preset": f"preset({inner})",
                 "choose": f"choose({inner})", "mine": f"mine({inner})",
                 "items": self.pick("items[-1]", "items[0]", "sum(items)", "len(items)"),
                 "notes": self.pick('notes["p"]', 'notes["n"]'), "best": "best", "found": "found"}
        return self.pick(*(calls[name] for name in self.known))

    def number(self, level: int = 0) -> str:
        if level or self.chance(0.85):
            return super().number(level)
        thing, leaf = self.object(), super().leaf()
        over = self.pick("v", "x[:5]", "BUFFER", f"{thing}.data", "STEPS", "y[1:4]",
                         'FIELDS["u"]', "ROWS[0]")
        return self.pick(
            f"sum([c * 0.5 for c in {over}])", f"sum(c * 0.5 for c in {over})",
            f"max(c + 0.5 for c in {over})", f"min([abs(c) for c in {over}])", f"max({over})",
            f"sum(c * 0.5 for c in {over} if c > 0)", f"{thing}.add({leaf})", f"{thing}({leaf})",
            f"{thing}.keep({leaf})", f"folded({leaf}, {self.pick('2', 'COUNT', 'n % 4')})",
            f"sorted([s, t, {leaf}])[1]", f"next(iter({over}))", f"divmod({leaf}, 0.75)[0]",
            f"list({over})[1]", f"max(*{over})", f"sum(list({over}))", f"[*{over}, s][-1]",
            'sum(FIELDS.values())[0]', "sum(ROWS + ROWS)[1]", "sum(map(sum, ROWS))",
            f"(h := {leaf}) + h", f"[s, {leaf}][k % 2]", f"float(np.dot({thing}.data, BUFFER))")

    def test(self, level: int = 0) -> str:
        if level > 1 or self.chance(0.8):
            return super().test(level)
        thing = self.object()
        return self.pick(
            f"{thing}.hits > {self.pick('2', 'k', 'COUNT')}", f"{thing}.best is None",
            'MODE == "up"', "COUNT > k", f"any(c > s for c in {thing}.data)",
            "all(c < 4.0 for c in v)", "(h := s * 0.5) > t", "s in STEPS", '"c" in TABLE',
            f"isinstance({thing}, Wide)", "found" if "found" in self.known else "k in (2, 5)",
            "items[-1] > s" if "items" in self.known else "bool(STEPS)", f"{thing} is one",
            "k in PAIR", f"callable({thing})")

    # -- statements

    def assignment(self) -> None:
        if self.chance(0.45):
            super().assignment()
            return
        thing, number = self.object(), self.number(1)
        self.line(self.pick(
            f"{thing}.total {self.pick('=', '+=', '-=')} {number}", f"{thing}.hits += 1",
            f"{thing}.hits = (k + 1) % 8", f"{thing}.data[{self.small()}] = {number}",
            f"{thing}[{self.small()}] = {number}", f"{thing}.push({number})",
            f"{thing}.add({number})", f"{thing}.keep({number})", f"{thing}.data *= 0.5",
            f'FIELDS["u"][{self.small()}] = {number}', 'FIELDS["half"] *= 0.5',
            f"ROWS[{self.pick('0', '1', '-1')}][{self.small()}] += {number}",
            f"ROWS[0][:] = {self.array()}", f"{thing}.data[:] = {self.array()}",
            f"BUFFER[{self.small()}] += {number}",
            f"GAIN = {number}", "COUNT = (COUNT + 1) % 9", "COUNT = k",
            f"{self.pick(*NUMBERS)}, k = {number}, COUNT", f"s, *_ = {self.pick('STEPS', 'PAIR')}",
            f"s, t = (t, s) if {self.test(1)} else (s, {number})", self.of_locals(thing, number),
            self.of_locals(thing, number), self.of_locals(thing, number), self.rare(thing, number)))

    def of_locals(self, thing: str, number: str) -> str:
        """A statement about a function or container of the program's own."""
        variable = self.pick(*NUMBERS)
        said = {
            "items": self.pick(f"items[-1] = {number}", f"items[k % 3] = {number}",
                               f"items = [{number}, *items[:2]]", "items.reverse()",
                               f"items[0], items[1] = items[1], {number}", "items.sort()"),
            "notes": self.pick(f'notes["p"] = {number}', 'notes["n"] += 1',
                               f'notes["p"] += {number}', f'notes.update(p={number})'),
            "best": self.pick(f"if best is None or {variable} > best:\n    best = {variable}",
                              f"best = {variable}", f"if {variable} < t:\n    best = {variable}",
                              f"{variable} = {number} if best is None else best",
                              "if best is not None and best > s:\n    best = None",
                              f"{variable} = best or {number}", f"{thing}.best = best",
                              f"if best is None:\n    {variable} = t\nelse:\n    best *= 0.5",
                              f"{variable} += best", "best = t if s > 0 else None"),
            "found": self.pick("found = True", f"found = {self.test(1)}", "found = not found",
                               "if found:\n    k = (k + 1) % 20"),
            "mine": self.pick(f"mine.total = {number}", f"mine.push({number})",
                              "one.data[:] = mine.data"),
        }
        name = self.random.choice(self.known)
        return said.get(name) or f"{variable} = {self.local()}"

    def rare(self, thing: str, number: str) -> str:
        """Statements that may be refused."""
        return self.pick(
            f"{thing}.data = v * 0.5", f"{thing}.data = BUFFER", f"{thing}.data = x[:8]",
            f"one.total, two.total = two.total, {number}", "BUFFER = BUFFER * 0.5",
            f"{thing}.best = None", f"{thing}.best = {number}", 'TABLE["a"] = 0.25',
            "STEPS[1] = 1.5", f"(one if {self.test(1)} else two).add({number})",
            f"try:\n    s = x[k]\nexcept IndexError:\n    s = {number}", "one, two = two, one",
            f"{thing}.extra = {number}", f"setattr({thing}, 'total', {number})",
            f"t = getattr({thing}, 'extra', {number})", f"v = {thing}.data",
            f"Gauge.scale = {number}",
            f"g = {thing}.add\nq = g({number})", 'MODE = "down"', "v = BUFFER if s > t else v")

    def effect(self) -> str:
        if self.chance(0.3):
            return super().effect()
        thing, leaf = self.object(), super().leaf()
        own = [f"{self.local()} < 9.0" for _ in range(3)
               if {"bump", "both", "tune", "mine"} & {*self.known}]
        return self.pick(f"{thing}.add({leaf}) < 9.0", f"{thing}.keep({leaf}) > -9.0",
                         f"{thing}.push({leaf}) is None", *own)

    def branch(self) -> None:
        """One side may write to a container, the other bind its name to another one."""
        own = [name for name in CONTENTS if name in self.known]
        if not own or self.chance(0.7):
            super().branch()
            return
        name = self.random.choice(own)
        writes = {"items": (f"items[0] = {self.number(1)}", f"items[-1] = {self.number(1)}",
                            f"items[1], items[2] = {self.leaf()}, items[0]"),
                  "notes": (f'notes["p"] = {self.number(1)}', f"notes.update(p={self.leaf()})",
                            'notes["n"] += 1')}[name]
        made = {"items": f"items = [{self.leaf()}, {self.leaf()}, 2.0]",
                "notes": f'notes = {{"p": {self.leaf()}, "n": 3}}'}[name]
        sides = [self.pick(*writes), made]
        self.random.shuffle(sides)
        self.line(f"if {self.test()}:\n    {sides[0]}\nelse:\n    {sides[1]}")
        self.line(f"{self.pick(*NUMBERS)} = {self.pick(*CONTENTS[name])}")

    def for_loop(self) -> None:
        unused = [c for c in ("i0", "i1", "i2") if c not in self.loops]
        if not unused or self.chance(0.5):
            super().for_loop()
            return
        counter, element, thing = unused[0], f"e{len(self.loops)}", self.object()
        over = self.pick(
            f"{element} in {thing}.data", f"{counter} in reversed(range(n % 9))",
            f"{counter}, ({element}, f{element}) in enumerate(zip(x, v))", f"{element} in STEPS",
            f"{counter} in np.flatnonzero(v > s)", f"{counter} in np.argsort(v)",
            f"{counter}, row in enumerate(A)", f"{element} in halves({self.pick('v', 'STEPS')})",
            f"{element} in [c + GAIN for c in v]", f"{element} in (c * s for c in x[:4])",
            f"{element} in list({thing}.data)", f"{element} in ROWS[1]",
            f"{counter} in range(COUNT)", f"{element} in sorted((s, t, q))",
            f"{element} in TABLE.values()", f"{counter} in range({thing}.hits % 8)")
        self.line(f"for {over}:")
        self.loops.append(counter if counter in over else "")
        if element in over:
            self.line(f"    {self.pick(*NUMBERS)} {self.pick('=', '+=')} {element}")
        if "row" in over:
            self.line(self.pick("    t = row[1]", "    row[2] = s", "    row *= 0.5"))
        self.block(3)
        self.loops.pop()


def written(writer: StatefulWriter, seed: int) -> StatefulProgram:
    """The program of a writer."""
    layout = "\n".join(writer.pick(*choices) for choices in LAYOUTS.values())
    writer.line("global " + writer.pick("GAIN, COUNT, BUFFER, MODE, one, two", "GAIN, COUNT"))
    writer.line(f"s, t, q, k, h = 0.0, a, {writer.pick('1.0', 'x[0]', 'GAIN')}, 2, 0.25")
    writer.line(f"v = {writer.pick(*VIEWS[:9])}")
    for name in writer.known:
        writer.line(LOCALS[name].replace("{0}", writer.pick("None", "-1", "-1.0", "-np.inf", "0")))
    while writer.left > 0:
        writer.statement()
    writer.line(f"return {writer.result()}")
    helper = writer.pick(*HELPERS) + "\n\n" if writer.has_helper else ""
    source = (f"{MODULE}{writer.module}\n\n{helper}def program(x, y, A, u, a, n):\n"
              + "\n".join(writer.lines) + "\n\n\n" + _touch(writer))
    return StatefulProgram(source, layout, seed, same_n=writer.chance(0.7))


def _touch(writer: StatefulWriter) -> str:
    """``touch(trial)``, which changes outer state before every call but the first."""
    lines = ["def touch(trial):", f"    global {', '.join(BOUND)}"]
    for trial in (1, 2):
        lines.append(f"    if trial == {trial}:")
        for _ in range(writer.random.randint(1, 2)):
            lines.append("        " + writer.pick("pass", *writer.touches))
    return "\n".join(lines) + "\n"


__all__ = ["TOUCHES", "StatefulWriter", "written"]
