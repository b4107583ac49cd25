"""Writes programs that use more of Python: exceptions, slots, dataclasses, context managers,
iterators and closures with a state, lists of lists, ``match``.

They are stateful programs, of the grammar in `stateful`, in a module that has these as well.
"""

from __future__ import annotations

from .grammar import NUMBERS
from .program import StatefulProgram
from .stateful import TOUCHES, StatefulWriter, written

MODULE = """
import collections, dataclasses, functools


class Limit(Exception):
    def __init__(self, level):
        super().__init__(level)
        self.level = level


@dataclasses.dataclass
class Point:
    u: float
    w: float = 0.5
    count: int = 0

    def norm(self):
        return abs(self.u) + abs(self.w)

    def __add__(self, other):
        return Point(self.u + other.u, self.w + other.w)

    def __lt__(self, other):
        return self.norm() < other.norm()

    @classmethod
    def of(cls, c):
        return cls(c, c * 0.5)

    @staticmethod
    def half(c):
        return c * 0.5


class Slot:
    __slots__ = ("level", "row")

    def __init__(self, level, row):
        self.level, self.row = level, row

    def raised(self, c):
        if c > self.level:
            self.level = c
        return self.level


class Scope:
    def __init__(self, owner, c):
        self.owner, self.c = owner, c

    def __enter__(self):
        self.before, self.owner.total = self.owner.total, self.c
        return self.owner

    def __exit__(self, kind, error, trace):
        self.owner.total = self.before
        self.owner.hits += 1
        return kind is Limit


class Halving:
    def __init__(self, first, count):
        self.at, self.count = first, count

    def __iter__(self):
        return self

    def __next__(self):
        if self.count == 0:
            raise StopIteration
        self.count -= 1
        self.at = self.at * 0.5
        return self.at


class Bounded:
    def __init__(self, c):
        self._c = c

    @property
    def c(self):
        return self._c

    @c.setter
    def c(self, value):
        self._c = min(max(value, -2.0), 2.0)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.c = self._c + 0.25


Span = collections.namedtuple("Span", "low high")


def checked(c, top):
    if c > top:
        raise Limit(top)
    return c * 0.5


def made(c):
    total = c

    def add(d, weight=1.0, *more):
        nonlocal total
        total += d * weight + len(more)
        return total

    return add


def spread(w, *rest, scale=0.5, **named):
    return w * scale + sum(rest) + len(named)


def running(w):
    total = 0.0
    for c in w:
        total += c
        got = yield total
        if got is not None:
            total = got


GRID = [[0.5, 1.0], [2.0, -1.0], [0.0, 0.25]]
POINTS = [Point(1.0, 2.0), Point(-0.5)]
NAMED = {"p": Point(0.5, 1.0), "q": Point(-1.0)}
SLOT = Slot(0.5, np.ones(8))
SPAN = Span(-1.0, 2.0)
LAYERS = {"rows": [np.ones(8), np.arange(8.0) / 4], "gain": 0.5}
bounded = Bounded(0.5)
adder = made(1.0)
halved = functools.partial(spread, scale=0.25)
"""
MORE_TOUCHES = (
    "GRID[0][1] = 3.0", "GRID.append([1.0, 1.0])", "POINTS[0].u = -4.0", "POINTS.reverse()",
    "POINTS.append(Point(0.25))", 'NAMED["p"] = POINTS[0]', 'NAMED["q"].w = 2.0',
    "SLOT.level = 3.0", "SLOT.row[2] = -1.0", "SLOT.row = BUFFER", "SPAN = Span(0.0, 1.0)",
    'LAYERS["rows"][0] = np.zeros(8)', 'LAYERS["rows"][1][3] = 2.0', 'LAYERS["gain"] = 2.0',
    "bounded.c = 1.5", "adder(2.0)", "Point.half = staticmethod(lambda c: c * 0.25)",
    "GRID[1] = GRID[0]", "POINTS[1].count = 3", 'NAMED.pop("q", None)',
    "SLOT = Slot(-1.0, np.ones(8))",
    "halved = functools.partial(spread, scale=2.0)", "bounded = Bounded(-1.0)",
)


class ObjectWriter(StatefulWriter):
    """Writes the lines of one program."""

    module = MODULE
    touches = (*TOUCHES, *MORE_TOUCHES, *MORE_TOUCHES)

    # -- expressions

    def leaf(self) -> str:
        if self.chance(0.75):
            return super().leaf()
        row = self.pick("0", "1", "-1", "k % 2")
        point = self.point()
        return self.pick(
            f"GRID[{row}][{self.pick('0', '1', '-1')}]", f"{point}.u", f"{point}.w",
            f"{point}.norm()", f"{point}.count", "SLOT.level", f"SLOT.row[{self.small()}]",
            "SPAN.low", "SPAN[1]", f'LAYERS["rows"][{self.pick("0", "1")}][{self.small()}]',
            'LAYERS["gain"]', "bounded.c", "len(GRID)", "len(POINTS)", "sum(GRID[1])")

    def point(self) -> str:
        return self.pick("POINTS[0]", "POINTS[-1]", 'NAMED["p"]', "POINTS[k % 2]")

    def number(self, level: int = 0) -> str:
        if level or self.chance(0.75):
            return super().number(level)
        leaf, point = super().leaf(), self.point()
        return self.pick(
            f"checked({leaf}, {self.pick('8.0', '4.0', 's')})", f"Point({leaf}).norm()",
            f"({point} + Point({leaf}, s)).u", "min(POINTS).u", "max(POINTS, key=Point.norm).w",
            f"Point.of({leaf}).w", f"Point.half({leaf})", f"SLOT.raised({leaf})",
            f"adder({leaf})", f"adder({leaf}, 0.5, 1, 2)", f"made({leaf})(s)",
            f"spread({leaf}, s, t)", f"spread({leaf}, scale=2.0, other=1)", f"halved({leaf}, 1)",
            "sum(sum(row) for row in GRID)", "max(max(row) for row in GRID)",
            "sum(p.u for p in POINTS)", "[p.norm() for p in POINTS][-1]",
            f"sum(Halving({leaf}, 3))", f"next(Halving({leaf}, 3))",
            "sum(NAMED[n].u for n in NAMED)",
            f"SPAN._replace(low={leaf}).low", f"sum(running([{leaf}, s, t]))",
            f"functools.reduce(lambda c, d: c * 0.5 + d, [{leaf}, s, t])",
            f"dict(p={leaf}, q=s)['p']", f"{{'a': {leaf}, 'b': s}}['a' if k % 2 else 'b']",
            f"(lambda c, d=s: c - d)({leaf})", f"[[{leaf}, s], [t, q]][k % 2][0]",
            f"sorted([s, t, {leaf}], reverse=True)[0]", f"list(zip([s, t], [{leaf}, q]))[1][0]",
            f"sum(x_ * y_ for x_, y_ in zip(GRID[0], [{leaf}, s]))", f"sum([*GRID[0], {leaf}])",
            "sum(layer[1] for layer in LAYERS['rows'])", f"float(round({leaf}))",
            f"dataclasses.replace({point}, u={leaf}).norm()")

    # -- statements

    def assignment(self) -> None:
        if self.chance(0.6):
            super().assignment()
            return
        number, leaf, variable = self.number(1), super().leaf(), self.pick(*NUMBERS)
        point, row = self.point(), self.pick("0", "1", "-1", "k % 2")
        self.line(self.pick(
            f"GRID[{row}][{self.pick('0', '1')}] {self.pick('=', '+=')} {number}",
            f"GRID[{row}] = [{number}, s]", f"{point}.u {self.pick('=', '+=')} {number}",
            f"{point}.w = {number}", f"{point}.count += 1", f"SLOT.level = {number}",
            f"SLOT.row[{self.small()}] {self.pick('=', '+=')} {number}", "SLOT.row *= 0.5",
            f"bounded.c = {number}", f"bounded.c += {leaf}",
            f'LAYERS["rows"][{self.pick("0", "1")}][{self.small()}] = {number}',
            f'LAYERS["gain"] = {number}', f"low, high = SPAN\n{variable} = low * {leaf} + high",
            f"{variable}, *rest = [{number}, s, t]\nt = rest[-1]",
            f"p = Point({number}, s)\np.u += t\n{variable} = p.norm()",
            f"p = {point}\np.u = {number}\n{variable} = p.norm()",
            f"p = {point} + Point({number})\n{variable} = p.w",
            f"f = made({number})\nf(s)\n{variable} = f(t)",
            f"{variable} = adder({number})", f"rows = [{leaf}, s, t][1:]\n{variable} = rows[0]",
            f"table = [[0.0] * 3 for _ in range(2)]\ntable[k % 2][1] = {number}\n"
            f"{variable} = table[1][1] + table[0][1]",
            f"flags = {{}}\nflags['a'] = {number}\nflags['b'] = flags['a'] + 1\n"
            f"{variable} = flags['b']",
            f"{variable} = q = {number}", f"g = running([{number}, s, t])\nnext(g)\n"
            f"{variable} = g.send(0.5)", f"slot = Slot({number}, v)\n{variable} = slot.raised(s)",
            f"slot = Slot({number}, v)\nslot.row[0] = t", f"pair = Span({number}, s)\n"
            f"{variable} = pair.low - pair.high", f"del {self.pick('h', 'h')}\nh = {leaf}"))

    def branch(self) -> None:
        if self.chance(0.6):
            super().branch()
            return
        kind, number = self.random.randrange(6), self.number(1)
        variable, thing = self.pick(*NUMBERS), self.object()
        if kind == 0:
            self.line(f"match k % 3:\n    case 0:\n        {variable} = {number}\n"
                      f"    case 1 | 2 if {self.test(1)}:\n        t = {self.leaf()}\n"
                      "    case _:\n        s = 0.5")
        elif kind == 1:
            self.line("try:")
            self.block(2)
            self.line(f"    {variable} = checked({number}, {self.leaf()})")
            self.line(f"except Limit as error:\n    {variable} = error.level")
        elif kind == 2:
            self.line("try:")
            self.block(2)
            self.line(f"finally:\n    {variable} = {number}")
        elif kind == 3:
            self.line(f"with Scope({thing}, {number}) as held:\n    {variable} = held.total + t")
            self.block(2)
        elif kind == 4:
            self.line("with bounded as held:\n    held.c = " + number)
            self.block(2)
        else:
            self.line(f"if isinstance({self.pick(*NUMBERS)}, float):")
            self.block(2)

    def for_loop(self) -> None:
        if self.chance(0.6):
            super().for_loop()
            return
        element, thing = f"e{len(self.loops)}", self.pick(*NUMBERS)
        over, use = self.random.choice((
            (f"{element} in POINTS", f"{element}.u"), (f"{element} in POINTS", f"{element}.norm()"),
            (f"name, {element} in NAMED.items()", f"{element}.w"),
            (f"{element} in Halving(s, {self.pick('3', 'n % 5', 'COUNT')})", element),
            (f"{element} in GRID", f"{element}[1]"), (f"{element} in running(v[:4])", element),
            (f"{element}, other in GRID", f"{element} * other"),
            (f"{element} in LAYERS['rows']", f"{element}[2]"),
            (f"{element}, other in zip(POINTS, GRID)", f"{element}.u * other[0]"),
            (f"{element} in map(abs, [s, t, q])", element),
            (f"{element} in filter(lambda c: c > 0, [s, t, q])", element),
            (f"{element} in [p for p in POINTS if p.count == 0]", f"{element}.u")))
        self.line(f"for {over}:")
        self.loops.append("")
        self.line(f"    {thing} {self.pick('=', '+=')} {use}")
        if over.endswith("in POINTS") and self.chance(0.4):
            self.line(f"    {element}.{self.pick('u', 'w')} = {self.leaf()}")
        if over.endswith("in GRID") and "," not in over and self.chance(0.4):
            self.line(f"    {element}[0] = {self.leaf()}")
        self.block(2)
        self.loops.pop()


def program_of(seed: int) -> StatefulProgram:
    """The program of a seed: half of them use these objects."""
    return written((ObjectWriter if seed % 2 else StatefulWriter)(seed), seed)


__all__ = ["program_of"]
