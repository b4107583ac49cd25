"""A random program: arguments, statements, results; as a function and as code that anyone can run.
"""

from __future__ import annotations

import linecache
import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from .values import Argument, make

IMPORTS = "import builtins, math\nimport numpy as np\nfrom numpy import inf, nan"
_NAME = re.compile(r"\b[xt]\d+\b")


@dataclass(frozen=True)
class Statement:
    """One line.  ``op`` names the exercised function; ``target`` is the name it binds, if any.

    ``rounding`` says how far its floats may be from NumPy's (see `rounding`); ``assigns``: it is
    an assignment, not an expression.
    """

    text: str
    op: str
    target: str = ""
    rounding: str = "backward"
    assigns: bool = False

    @property
    def line(self) -> str:
        return f"{self.target} = {self.text}" if self.target else self.text

    @property
    def reads(self) -> list[str]:
        return _NAME.findall(self.text)


def crashes_numpy(statement: Statement) -> bool:
    """Whether NumPy writes outside of arrays: ``cumsum`` into an array of rank 0."""
    return "out=np.zeros(()" in statement.text and any(
        name in statement.text for name in ("cumsum(", "cumprod(", "accumulate("))


@dataclass(frozen=True)
class Program:
    """``results`` are the names returned; ``fp`` is the option of `fusec.jit`."""

    arguments: tuple[Argument, ...]
    statements: tuple[Statement, ...] = ()
    results: tuple[str, ...] = ()
    fp: str = "contract"
    seed: str = field(default="", compare=False)

    @property
    def source(self) -> str:
        names = ", ".join(f"x{i}" for i in range(len(self.arguments)))
        body = [*[s.line for s in self.statements], f"return {self.returned}"]
        return f"def program({names}):\n" + "".join(f"    {line}\n" for line in body)

    @property
    def returned(self) -> str:
        return f"({', '.join(self.results)},)" if len(self.results) != 1 else self.results[0]

    def function(self, numpy: Any = np) -> Callable[..., Any]:
        """The program as a function whose source can be found; ``numpy`` is its ``np``."""
        name = f"<fuzz {abs(hash((self.source, self.fp)))}>"
        linecache.cache[name] = (len(self.source), None, self.source.splitlines(True), name)
        scope = names(numpy)
        exec(compile(self.source, name, "exec"), scope)
        return scope["program"]

    def make(self) -> list[Any]:
        """The arguments, fresh."""
        return make(list(self.arguments))

    def without(self, number: int) -> Program:
        """Less one statement and all that needs its result."""
        gone, kept = {self.statements[number].target} - {""}, list(self.statements[:number])
        for s in self.statements[number + 1:]:
            if gone.isdisjoint(s.reads) and s.target not in gone:
                kept.append(s)
            elif s.target:
                gone.add(s.target)
        return replace(self, statements=tuple(kept),
                       results=tuple(r for r in self.results if r not in gone))

    @property
    def runnable(self) -> str:
        """A script that shows the difference."""
        made = "".join(f"    x{i} = {a.code}\n" for i, a in enumerate(self.arguments))
        passed = ", ".join(f"x{i}" for i in range(len(self.arguments)))
        return f"""{imports(self.source)}
import fusec


{self.source}

def arguments():
{made}    return [{passed}]


def attempt(function):
    args = arguments()
    with np.errstate(all="ignore"):
        try:
            return function(*args), args
        except Exception as error:
            return repr(error), args


print("NumPy:", attempt(program))
print("fusec:", attempt(fusec.jit(program, fp="{self.fp}")))
"""


class OracleNumpy:
    """NumPy, but new arrays whose contents it leaves open are zero, as fusec's are."""

    empty, empty_like = staticmethod(np.zeros), staticmethod(np.zeros_like)

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)


ORACLE = OracleNumpy()


def names(numpy: Any = ORACLE) -> dict[str, Any]:
    """The names for a program's text."""
    import builtins
    import math

    found = {"np": numpy, "nan": np.nan, "inf": np.inf, "math": math, "builtins": builtins}
    return {**found, **_scipy()}


def _scipy() -> dict[str, Any]:
    import scipy.linalg
    import scipy.special

    return {"scipy": scipy}


def imports(source: str) -> str:
    """The imports that a program's text needs."""
    if "scipy." in source:
        return IMPORTS.replace("import numpy", "import scipy.linalg, scipy.special\nimport numpy")
    return IMPORTS
