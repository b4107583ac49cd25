"""A program in ordinary imperative NumPy, as source, and the arguments it is called with.

``source`` defines ``program(x, y, A, u, a, n)``: two float arrays of `LENGTH` elements, which may
share memory, a `ROWS` x `COLUMNS` matrix, an array of ints, a float and an int.
"""

from __future__ import annotations

import ast
import linecache
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

LENGTH, ROWS, COLUMNS = 12, 4, 8
NAMES = ("x", "y", "A", "u", "a", "n")


@dataclass(frozen=True)
class ControlProgram:
    """``layout`` is the code that makes the arrays of the random numbers ``r``."""

    source: str
    layout: str
    seed: int
    same_n: bool = True
    # Whether arrays shrink and grow: what a branch leaves in two sizes is refused, and what it
    # returns may be copies of one memory.
    resizes: bool = False

    def function(self) -> Callable[..., Any]:
        """The program as a function whose source can be found."""
        name = f"<fuzz {abs(hash(self.source))}>"
        linecache.cache[name] = (len(self.source), None, self.source.splitlines(True), name)
        scope: dict[str, Any] = {"np": np, "math": math}
        exec(compile(self.source, name, "exec"), scope)
        return scope["program"]

    def make(self, trial: int) -> list[Any]:
        """The arguments of a trial, fresh."""
        scope: dict[str, Any] = {"np": np}
        exec(self.arguments, scope)
        return scope["arguments"](trial)

    @property
    def arguments(self) -> str:
        draw = f"default_rng({self.seed})" if self.same_n else f"default_rng({self.seed} + trial)"
        body = [f"r = np.random.default_rng([{self.seed}, trial])",
                *self.layout.splitlines(),
                "a = float(r.integers(-24, 24)) / 8",
                f"n = int(np.random.{draw}.integers(0, 30))",
                f"return [{', '.join(NAMES)}]"]
        return "def arguments(trial):\n" + "".join(f"    {line}\n" for line in body)

    @property
    def rounds(self) -> bool:
        """Whether it adds elements up in an order of the implementation's choice."""
        return any(word in self.source for word in ("sum(", "mean(", "dot(", "@"))

    @property
    def kinds(self) -> list[str]:
        """Its kinds of statements, for the counts of a campaign."""
        return [kind_of(node) for node in ast.walk(ast.parse(self.source))
                if isinstance(node, ast.stmt | ast.Subscript | ast.Call | ast.IfExp | ast.BoolOp)]

    def with_source(self, source: str) -> ControlProgram:
        return replace(self, source=source)

    @property
    def runnable(self) -> str:
        """A script that shows the difference."""
        return f"""import math
import numpy as np
import fusec


{self.source}

{self.arguments}

def attempt(function, trial):
    args = arguments(trial)
    with np.errstate(all="ignore"):
        try:
            return function(*args), args
        except Exception as error:
            return repr(error), args


compiled = fusec.jit(program, fp="strict")
for trial in range(2):
    print("NumPy:", attempt(program, trial))
    print("fusec:", attempt(compiled, trial))
"""


class StatefulProgram(ControlProgram):
    """A module with state of its own: ``touch(trial)`` changes it before a call."""

    def module(self) -> dict[str, Any]:
        """The module, run anew: its state is its own."""
        return self.function().__globals__

    @property
    def runnable(self) -> str:
        """A script that shows the difference."""
        return f"""import math
import numpy as np
import fusec

SOURCE = {self.source!r}
{self.arguments}

def show(wrap):
    import linecache
    linecache.cache["<program>"] = len(SOURCE), None, SOURCE.splitlines(True), "<program>"
    module = {{"np": np, "math": math}}
    exec(compile(SOURCE, "<program>", "exec"), module)
    program = wrap(module["program"])
    for trial in range(3):
        module["touch"](trial)
        args = arguments(trial)
        with np.errstate(all="ignore"):
            try:
                print(program(*args), args)
            except Exception as error:
                print(repr(error), args)
        print({{k: vars(v) if hasattr(v, "add") else v for k, v in module.items()
               if k in ("GAIN", "COUNT", "MODE", "BUFFER", "TABLE", "STEPS", "one", "two")}})


show(lambda f: f)
show(lambda f: fusec.jit(f, fp="strict"))
print(SOURCE)
"""


def kind_of(node: ast.AST) -> str:
    """The name under which a construct is counted."""
    if isinstance(node, ast.Call):
        return ast.unparse(node.func).rpartition(".")[2] + "()"
    if isinstance(node, ast.Subscript):
        access = "=" if isinstance(node.ctx, ast.Store) else ""
        return ("x[:]" if ast.unparse(node.slice).count(":") else "x[i]") + access
    return type(node).__name__.lower()
