"""Random programs that read and assign several Variables, compiled against plain Python.

    python tests/variables/random_programs.py 10000 [first seed]

Each program is a module: Variables under global names, in an attribute, a list and a dict, two
names for one of them, helper functions that are jitted too, and a function ``f(x, n)`` with
branches, loops and calls.  It is executed twice, with ``jit`` as fusec's and as nothing; after each
of several calls the results and all Variables are equal.  Values are eighths: nothing is rounded.
"""

from __future__ import annotations

import random
import sys
import time
import traceback
from typing import Any

import numpy as np

import fusec

MODULE = """
def q(e):
    return np.clip(np.round(e * 8) / 8, -32.0, 32.0)

class Model:
    def __init__(self):
        self.w = fusec.Variable(np.array([1.0, -2.0, 0.5, 3.0]), name="m.w")

V = fusec.Variable(1.0, name="V")
U = V
W = fusec.Variable(np.array([0.0, 1.0, 2.0, -1.0]), name="W")
N = fusec.Variable(0, name="N")
m = Model()
L = [fusec.Variable(np.array([2.0, 2.5, -0.5, 1.0]), name="L[0]")]
D = {"s": fusec.Variable(0.5, name="D['s']")}
"""
ALL = ("V", "W", "N", "m.w", "L[0]", "D['s']")
SCALARS, VECTORS = ("V", "U", "D['s']"), ("W", "m.w", "L[0]")
CALLS = ((1.0, 3), (-2.5, 0), (4.0, 5), (1.0, 3))


class Writer:
    """Writes one program."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.lines: list[str] = []
        self.helpers: list[str] = []
        self.locals: tuple[list[str], list[str]] = ([], [])  # numbers, vectors
        self.loops: list[str] = []
        self.fresh = 0

    def program(self) -> str:
        for number in range(self.rng.randrange(2)):
            self.function(f"h{number}", "x", 1)
            self.helpers.append(f"h{number}")
        self.function("f", "x, n", self.rng.randrange(2, 6))
        return MODULE + "\n".join(self.lines) + "\n"

    def function(self, name: str, parameters: str, length: int) -> None:
        self.locals, self.loops = ([], []), []
        self.lines += ["", "@jit", f"def {name}({parameters}):"]
        if self.rng.random() < 0.3:
            self.lines.append("    global V")
            self.in_place = True
        else:
            self.in_place = False
        self.block("    ", length, 2, has_n="n" in parameters)
        pick = self.rng.choice((self.number(2), self.vector(2), f"({self.number(1)}, V, W[1:])"))
        self.lines.append(f"    return {pick}")

    # -- statements

    def block(self, indent: str, length: int, depth: int, has_n: bool) -> None:
        kept = len(self.locals[0]), len(self.locals[1])
        for _ in range(length):
            kinds = [self.assign, self.assign, self.assign, self.item, self.local, self.call]
            if depth:
                kinds += [self.branch, self.loop, self.until, self.choose]
            kind = self.rng.choice(kinds)
            if kind in (self.branch, self.loop, self.until):
                kind(indent, depth - 1, has_n)  # type: ignore[call-arg]
            else:
                kind(indent)  # type: ignore[call-arg]
        if indent != "    ":  # a name of one side is not bound on the other
            del self.locals[0][kept[0]:], self.locals[1][kept[1]:]

    def put(self, indent: str, text: str) -> None:
        self.lines.append(indent + text)

    def assign(self, indent: str) -> None:
        how = self.rng.choice(("assign", "assign", "assign_add", "assign_sub"))
        kind = self.rng.random()
        if kind < 0.15:
            self.put(indent, f"N.{how}({self.rng.choice(('N + 1', '2', '3 - N', 'N % 3'))})")
        elif kind < 0.6:
            value = self.number(2)
            target = self.rng.choice(SCALARS)
            self.put(indent, f"{target}.{how}(q({value}))" if how == "assign" else
                     f"{target}.assign(q({target} {'+' if how[-1] == 'd' else '-'} {value}))")
            if self.in_place and self.rng.random() < 0.5:
                self.put(indent, "V += 0.5")
        else:
            self.put(indent, f"{self.rng.choice(VECTORS)}.assign(q({self.vector(2)}))")
            if self.rng.random() < 0.2:
                self.put(indent, f"m.w {self.rng.choice('+-')}= 1.0")

    def item(self, indent: str) -> None:
        target = self.rng.choice(VECTORS)
        at = self.rng.choice(("0", "-1", "2", *(f"{k} % 4" for k in self.loops)))
        if self.rng.random() < 0.3:
            self.put(indent, f"{target}[1:3] = q({self.vector(1)})[:2]")
        else:
            op = self.rng.choice(("=", "+=", "-="))
            self.put(indent, f"{target}[{at}] {op} q({self.number(1)})")

    def local(self, indent: str) -> None:
        name, self.fresh = f"t{self.fresh}", self.fresh + 1
        if self.rng.random() < 0.5:
            target = self.rng.choice(SCALARS)
            self.put(indent, f"{name} = " + self.rng.choice(
                (f"{target}.read_value()", self.number(2), f"{target}.assign({target} * 0.5)")))
            self.locals[0].append(name)
        else:
            target = self.rng.choice(VECTORS)
            self.put(indent, f"{name} = " + self.rng.choice(
                (f"{target}.numpy()", f"{target}[::-1]", self.vector(2))))
            self.locals[1].append(name)

    def call(self, indent: str) -> None:
        if not self.helpers or self.lines[-1].startswith("def h"):
            self.assign(indent)
            return
        self.put(indent, f"{self.rng.choice(self.helpers)}(q({self.number(1)}))")

    def branch(self, indent: str, depth: int, has_n: bool) -> None:
        self.put(indent, f"if {self.test()}:")
        self.block(indent + "    ", self.rng.randrange(1, 3), depth, has_n)
        if self.rng.random() < 0.6:
            self.put(indent, "else:")
            self.block(indent + "    ", self.rng.randrange(1, 3), depth, has_n)

    def loop(self, indent: str, depth: int, has_n: bool) -> None:
        name, self.fresh = f"k{self.fresh}", self.fresh + 1
        count = self.rng.choice(("3", "n", "2") if has_n else ("3", "2"))
        self.put(indent, f"for {name} in range({count}):")
        self.loops.append(name)
        self.block(indent + "    ", self.rng.randrange(1, 4), depth, has_n)
        self.loops.pop()

    def until(self, indent: str, depth: int, has_n: bool) -> None:
        name, self.fresh = f"j{self.fresh}", self.fresh + 1
        self.put(indent, f"{name} = 0")
        self.put(indent, f"while {name} < 4 and {self.test()}:")
        self.put(indent + "    ", f"{name} += 1")
        self.block(indent + "    ", self.rng.randrange(1, 3), depth, has_n)

    def choose(self, indent: str) -> None:
        target = self.rng.choice(SCALARS)
        self.put(indent, f"fusec.cond({self.test()}, lambda: {target}.assign(q({self.number(1)})), "
                         f"lambda: {target}.assign_add(0.5))")

    # -- expressions

    def number(self, depth: int) -> str:
        if not depth or self.rng.random() < 0.3:
            return self.rng.choice((
                "x", "0.5", "-1.0", "3.0", *SCALARS, *self.locals[0],
                f"{self.rng.choice(VECTORS)}[{self.rng.randrange(4)}]"))
        a = self.number(depth - 1)
        return self.rng.choice((
            f"({a} + {self.number(depth - 1)})", f"({a} - {self.number(depth - 1)})",
            f"({a} * 0.5)", f"np.minimum({a}, 4.0)", f"abs({a})",
            f"q({self.vector(depth - 1)}).sum()", f"np.max({self.vector(depth - 1)})",
            f"({a} + N)"))

    def vector(self, depth: int) -> str:
        if not depth or self.rng.random() < 0.3:
            return self.rng.choice((*VECTORS, *VECTORS, *self.locals[1]))
        a = self.vector(depth - 1)
        return self.rng.choice((
            f"({a} + {self.vector(depth - 1)})", f"({a} - {self.number(depth - 1)})",
            f"({a} * 0.5)", f"{a}[::-1]", f"np.where({a} > 0, {a}, {self.number(depth - 1)})",
            f"np.maximum({a}, {self.vector(depth - 1)})"))

    def test(self) -> str:
        return self.rng.choice((
            f"{self.number(1)} > {self.number(1)}", f"N % 2 == {self.rng.randrange(2)}",
            f"{self.rng.choice(SCALARS)} < 2.0", f"np.any({self.vector(1)} > 2.0)"))


def run(source: str, jit: Any) -> list[Any]:
    """The results of each call and the state after it."""
    module: dict[str, Any] = {"np": np, "fusec": fusec, "jit": jit}
    exec(compile(source, "<program>", "exec"), module)
    seen = []
    for x, n in CALLS:
        result = module["f"](x, np.int64(n))
        parts = result if type(result) is tuple else (result,)
        seen.append([np.array(part) for part in parts] + [
            eval(name, module).numpy() for name in ALL])
    return seen


def failure(seed: int) -> str:
    """The failure of the program of this seed; nothing where all is right."""
    import linecache

    source = Writer(seed).program()
    linecache.cache["<program>"] = (len(source), None, source.splitlines(True), "<program>")
    expected = run(source, lambda f: f)
    try:
        found = run(source, fusec.jit(fp="strict"))
    except Exception:
        return f"{source}\n{traceback.format_exc(limit=3)}"
    for call, (one, other) in enumerate(zip(expected, found, strict=True)):
        for a, b in zip(one, other, strict=True):
            if a.dtype != b.dtype or not np.array_equal(a, b):
                return f"{source}\ncall {call}: {one}\nbut {other}"
    return ""


def main(count: int, first: int = 0) -> int:
    """How many of so many programs are wrong; prints them."""
    start, wrong = time.monotonic(), 0
    for seed in range(first, first + count):
        found = failure(seed)
        if found:
            wrong += 1
            print(f"---- seed {seed}\n{found}", flush=True)
        if seed % 500 == 499:
            print(f"{seed + 1 - first} programs, {wrong} wrong, "
                  f"{time.monotonic() - start:.0f} s", flush=True)
    return wrong


if __name__ == "__main__":
    sys.exit(bool(main(int(sys.argv[1]), *map(int, sys.argv[2:]))))
