"""The corpus: every program of this folder's field files, read from their `PROGRAMS` tables.

A row is (function, inputs, small size, large size, traits): ``inputs(n)`` makes fresh
deterministic arguments; the small size is for tests, the large one for timings.  Traits are
``published`` (reproduces a published algorithm in 25 lines or more), ``data-loop`` (a loop that
data decides), ``views`` (writes through views), ``state`` (keeps state in objects) and ``chaotic``
(at the large size a difference of one rounding grows to the size of the result: it is compared
under ``fp="strict"``, which rounds as NumPy does).
"""

from __future__ import annotations

import importlib.util
import inspect
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

FOLDER = Path(__file__).parent
SUPPORT = frozenset({"corpus", "compare", "measure", "report", "expected_failures", "five_sizes",
                     "slower"})


@dataclass(frozen=True)
class Program:
    """One program: its function, its arguments at a size, and the feature it is an example of."""

    field: str
    function: Callable[..., Any]
    inputs: Callable[[int], tuple[Any, ...]]
    small: int
    large: int
    traits: frozenset[str]

    @property
    def name(self) -> str:
        return self.function.__name__

    @property
    def lines(self) -> int:
        """Source lines that are not blank, helpers and classes of the same file included."""
        return sum(_line_count(part) for part in _reached(self.function))


def programs() -> list[Program]:
    """Every program, ordered by field and place in its file."""
    files = sorted(p for p in FOLDER.glob("*.py") if p.stem not in SUPPORT)
    return [program for path in files for program in _rows(path)]


def _rows(path: Path) -> list[Program]:
    module = _module(path)
    return [
        Program(path.stem, function, inputs, small, large, frozenset(traits.split()))
        for function, inputs, small, large, traits in module.PROGRAMS
    ]


def _module(path: Path) -> ModuleType:
    name = f"programs_{path.stem}"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None and spec.loader is not None
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


def _line_count(part: Any) -> int:
    return sum(1 for line in inspect.getsource(part).splitlines() if line.strip())


def _reached(function: Any) -> list[Any]:
    """The function and names of its own file that it uses, transitively."""
    found, queue = [], [function]
    while queue:
        part = queue.pop()
        if part not in found:
            found.append(part)
            queue += [p for n in _names(part) if (p := _local(part, n)) is not None]
    return found


def _names(part: Any) -> set[str]:
    if isinstance(part, FunctionType):
        return _code_names(part.__code__)
    members = [m for m in vars(part).values() if isinstance(m, FunctionType)]
    return set().union(*(_code_names(m.__code__) for m in members))


def _code_names(code: CodeType) -> set[str]:
    nested = [c for c in code.co_consts if isinstance(c, CodeType)]
    return set(code.co_names).union(*(_code_names(c) for c in nested))


def _local(part: Any, name: str) -> Any:
    value = getattr(sys.modules[part.__module__], name, None)
    mine = isinstance(value, (FunctionType, type)) and value.__module__ == part.__module__
    return value if mine else None
