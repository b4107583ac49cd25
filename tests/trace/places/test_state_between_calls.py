"""A program's reads of objects, containers and classes are made, or checked, at each call.

Each program is a module that is run twice, eagerly and with `fusec.jit` for ``J``; the steps are
calls and changes of state.  Their results must be equal, and the state after them.
"""

from __future__ import annotations

import itertools
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import fusec
from fusec.errors import UnsupportedError

HEAD = """
import array, collections, dataclasses, functools, itertools, operator, types
import numpy as np
from collections import deque, namedtuple
"""
_number = itertools.count()


def module(text: str, folder: Path, j: Any) -> ModuleType:
    """The program's module, with its source in a file."""
    file = folder / f"program_{next(_number)}.py"
    file.write_text(HEAD + text)
    made = ModuleType(file.stem)
    vars(made)["J"] = j
    exec(compile(file.read_text(), str(file), "exec"), vars(made))
    return made


def outcome(made: ModuleType, step: str) -> Any:
    try:
        code = compile(step, "<step>", "eval")
    except SyntaxError:
        exec(step, vars(made))
        return None
    return repr(np.asarray(eval(code, vars(made)))).replace("np.float64", "")


def agree(text: str, steps: list[str], folder: Path) -> None:
    eager, own = module(text, folder, lambda f: f), module(text, folder, fusec.jit)
    for step in steps:
        assert outcome(own, step) == outcome(eager, step), step


ITERATES = """
class R:
    def __init__(self): self.i = 0; self.cells = [np.ones(2), np.zeros(2)]
    def __iter__(self):
        yield self.i
        yield self.i + 1
class Cells(R):
    def __iter__(self): return iter(self.cells)
class Old:
    def __init__(self): self.l = [np.ones(2), np.zeros(2)]
    def __getitem__(self, k): return self.l[k]
r, cells, old = R(), Cells(), Old()
@J
def loop(x):
    r.i += 1
    t = 0
    for v in r: t = t + v
    return t * x
@J
def summed(x):
    r.i = x
    return sum(r) + max(r) + len(list(r))
@J
def arrays(x): return sum(cells) * x
@J
def taken_apart(x):
    a, b = cells
    return a * x + b + [*cells][1]
@J
def written(x):
    for a in old: a += x
    return old.l[0] + 0
"""
HOLDS = """
P = namedtuple('P', 'a b')
class L(list): pass
p, d, l = P(np.ones(2), np.zeros(2)), deque([np.ones(2), np.zeros(2)]), L([np.ones(2)])
o = collections.OrderedDict(a=np.ones(2), b=np.zeros(2))
def each():
    for w in d: yield w
@J
def stacked(x): return np.stack(p) * x + np.stack(d) + np.concatenate(l).sum()
@J
def added(x): return sum(d) * x + sum(o.values())
@J
def generated(x): return sum(each()) * x + sum(itertools.chain.from_iterable([d, p]))
"""
CLASSES = """
class A:
    def __init__(self): self.a, self.m = 1.0, 2.0
    @property
    def v(self): return self.a * 2
    @classmethod
    def make(cls, c): return c * 3
    @staticmethod
    def act(c): return c
    def __call__(self, c): return c * 2
    def __add__(self, c): return self.a + c
    def __lt__(self, other): return self.a < other.a
    def __str__(self): return f"{self.m:.1f}"
class B(A):
    @property
    def v(self): return super().v + 1
    @classmethod
    def make(cls, c): return super().make(c) + 1
a, b = A(), B()
@J
def inherited(x):
    b.a = x
    return b.v + B.make(x)
@J
def special(x): return a(x) + (a + x) + a.act(x)
@J
def least(x): return min([a, b]).m * x + min([a, b], key=operator.attrgetter('m')).m
@J
def shown(x): return float(f"{a}") * x
@J
def listed(x): return vars(a)['a'] * x + a.__dict__['m']
@J
def matched(x):
    match a:
        case A(a=q): return q * x
    return x
"""
VIEWS = """
c = collections.ChainMap({'k': 1.0}, {'q': 2.0})
m = types.MappingProxyType(inner := {'k': 1.0})
u, n = collections.UserList([1.0]), array.array('d', [1.0, 2.0])
@J
def f(x): return c['k'] * x + m['k'] + u[0] + len(u) + n[0]
"""


@pytest.mark.parametrize(("text", "steps"), [
    (ITERATES, ["loop(1.0)", "loop(2.0)", "r.i = 7", "loop(1.0)"]),
    (ITERATES, ["summed(1.5)", "summed(2.5)"]),
    (ITERATES, ["arrays(1.0)", "cells.cells[0] += 1", "arrays(1.0)",
                "cells.cells = [np.ones(2) * 9]", "arrays(1.0)"]),
    (ITERATES, ["taken_apart(1.0)", "cells.cells[0][0] = 5", "taken_apart(1.0)"]),
    (ITERATES, ["written(1.0)", "old.l.append(np.ones(2))", "written(2.0)", "sum(old.l)"]),
    (HOLDS, ["stacked(1.0)", "p.a[0] = 5", "d[1][1] = 7", "l[0][:] = 3", "stacked(1.0)"]),
    (HOLDS, ["added(1.0)", "d[0][0] = 5", "o['a'][1] = 4", "added(1.0)"]),
    (HOLDS, ["generated(1.0)", "d[0][0] = 5", "p.b[1] = 4", "generated(1.0)"]),
    (CLASSES, ["inherited(5.0)", "inherited(6.0)"]),
    (CLASSES, ["special(1.0)", "A.__call__ = lambda s, c: -c", "special(1.0)",
               "A.__add__ = lambda s, c: c * 7", "special(1.0)",
               "A.act = staticmethod(np.tanh)", "special(1.0)"]),
    (CLASSES, ["least(1.0)", "b.a = 0.5; b.m = 9.0", "least(1.0)"]),
    (CLASSES, ["shown(1.0)", "a.m = 5.0", "shown(1.0)"]),
    (CLASSES, ["listed(1.0)", "a.a = 4.0", "a.m = 3.0", "listed(1.0)"]),
    (CLASSES, ["matched(1.0)", "a.a = 4.0", "matched(1.0)"]),
    (VIEWS, ["f(1.0)", "c.maps[0]['k'] = 3.0", "f(1.0)", "inner['k'] = 4.0", "f(1.0)",
             "u.append(2.0)", "f(1.0)", "n[0] = 8.0", "f(1.0)"]),
])
def test_state_is_followed(text: str, steps: list[str], tmp_path: Path) -> None:
    agree(text, steps, tmp_path)


ASSIGNED = """
class A:
    def __init__(self, a): self.a = a
    def __lt__(self, other): return self.a < other.a
bs = [A(1.0), A(2.0)]
@J
def compared(x):
    b = min(bs)
    b.a += x
    return b.a
@J
def matched(x):
    bs[0].a += x
    match bs[0]:
        case A(a=q): return q
"""


@pytest.mark.parametrize(("name", "why"), [
    ("compared", "attribute 'a' of a A that data chooses"),
    ("matched", "whose attribute 'a' the program assigns")])
def test_what_python_reads_itself_must_not_be_assigned(
    name: str, why: str, tmp_path: Path
) -> None:
    made = module(ASSIGNED, tmp_path, fusec.jit)
    with pytest.raises(UnsupportedError, match=why):
        getattr(made, name)(1.0)
    assert made.bs[0].a == 1.0


@fusec.jit
def smallest(a: Any, b: Any) -> Any:
    return min(a[0], b[0])


def test_one_of_two_dtypes_is_refused() -> None:
    """Python gives one of the numbers; a variable of the graph has one dtype."""
    with pytest.raises(TypeError, match="whose dtype data decides"):
        smallest(np.array([5]), np.array([3], np.int32))
