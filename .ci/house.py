"""Print how the house stands, and fail where a measure is worse than the ceiling beside it.

Usage: ``python .ci/house.py [root]``.  Ceilings are what was last reached: lower one with the
change that earns it.  Lines of code have none: a ceiling there joins statements and deletes
helpers.  Imports are read from the sources, late ones (in functions) and those for annotations
included; a *circle* is a strongly connected component of modules.
"""

from __future__ import annotations

import ast
import gc
import math
import re
import statistics
import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import UnionType
from typing import Any

PACKAGES = {"fusec": "fusec", "passes": "fusec.passes", "codegen": "fusec.codegen",
            "runtime": "fusec.runtime"}
READ = (*PACKAGES, "tests", "examples")  # whose docstrings count
# From the ground up.
ROOMS = (
    "core", "ir", "ops", "state", "trace", "passes", "codegen", "runtime", "placement", "signature",
    "compiled", "distributed", "dispatch", "gradients", "inspect", "bench", "api")
# Public modules that lie in `fusec`.
FLAT = {"config": "core", "errors": "core", "inputs": "api", "random": "api", "summary": "api"}
TRACE = "fusec.trace"
# The folders of that room, likewise; `tracer.py` and what else is flat stands above them.
TRACE_FOLDERS = ("facts", "source", "rewrite", "convert", "values", "call", "operands", "guards",
         "library", "index", "ufuncs", "choice", "lists", "places", "control", "arrays", "numpy",
         "scipy", "objects", "hooks", "python", "boundary")
# Coefficients and rows of tables, one entry a line.
TABLES = ("codegen/vecmath/", "fusec/inspect/coverage_")
CEILINGS = {
    "largest import circle in trace": 1, "largest import circle anywhere": 2,
    "late imports in trace": 0, "late imports of ours": 23,
    "files of trace in no folder": 1, "imports running back up in trace": 0,
    "imports running back up": 0, "arrows between rooms": 94,
    "files in one folder": 14,
    "files over 400 lines": 0,
    "functions, median": 6, "functions, 99th percentile": 27, "functions over 50 lines": 0,
    "fields of Trace": 11, "classes in the chain of hooks": 2, "classes of guards": 1,
    "sets of ops outside ops/": 7, "names of several classes": 11,
    "docstrings that say \"what\" twice": 0,
}
# Of which `listed` reads names.
DISPLAYS = ast.Set | ast.Tuple | ast.List | ast.Dict | ast.Call


@dataclass(frozen=True)
class Import:
    """One name that a module imports from another of ours."""

    source: str
    target: str
    line: int
    late: bool


@dataclass(frozen=True)
class Module:
    name: str
    path: Path

    @cached_property
    def text(self) -> str:
        return self.path.read_text(encoding="utf-8")

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text, str(self.path))

    @cached_property
    def nodes(self) -> list[tuple[ast.AST, bool]]:
        """Those of the tree, and whether each is within a function; walked once."""
        return list(walk(self.tree))

    def of(self, kind: type | UnionType) -> Iterator[Any]:
        """The nodes of a kind."""
        return (node for node, _ in self.nodes if isinstance(node, kind))

    @property
    def lines(self) -> int:
        return len(self.text.splitlines())

    def imported(self) -> Iterator[tuple[str, int, bool]]:
        """Dotted names that are imported, the line, and whether it is within a function."""
        package = self.name.split(".") if self.path.name == "__init__.py" \
            else self.name.split(".")[:-1]
        for node, late in self.nodes:
            if isinstance(node, ast.Import):
                yield from ((alias.name, node.lineno, late) for alias in node.names)
            elif isinstance(node, ast.Call) and (name := asked_for(node)):
                yield name, node.lineno, True
            elif isinstance(node, ast.ImportFrom):
                base = package[: len(package) - node.level + 1] if node.level else []
                start = ".".join([*base, *([node.module] if node.module else [])])
                yield from ((f"{start}.{name.name}", node.lineno, late) for name in node.names)


def asked_for(node: ast.Call) -> str:
    """The module of ``import_module("fusec.codegen.backends")``."""
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    first = node.args[0] if node.args else None
    is_text = isinstance(first, ast.Constant) and isinstance(first.value, str)
    return first.value if name == "import_module" and is_text else ""


def described(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """The lines and texts of the docstrings of a module, its classes and functions."""
    for node, _ in walk(tree, ast.stmt | ast.excepthandler | ast.match_case):
        if isinstance(
                node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
        ) and (text := ast.get_docstring(node, clean=False)):
            yield node.body[0].lineno, text


def walk(root: ast.AST, kinds: type | UnionType = ast.AST) -> Iterator[tuple[ast.AST, bool]]:
    """The nodes of these kinds that are reached through such, and whether within a function.

    A stack, for ``ast.walk`` makes generators and strings of field names for each node.
    """
    waiting = [(root, False)]
    while waiting:
        node, late = waiting.pop()
        yield node, late
        late = late or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        for value in vars(node).values():
            children = value if isinstance(value, list) else (value,)
            waiting += [(child, late) for child in children if isinstance(child, kinds)]


class House:
    """The modules of a checkout and what imports what."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.modules = {name: Module(name, path) for name, path in self._found()}
        self.imports = [edge for module in self.modules.values() for edge in self._edges(module)]
        self.trace = [m for name, m in self.modules.items() if name.startswith(f"{TRACE}.")]

    def _found(self) -> Iterator[tuple[str, Path]]:
        for folder, package in PACKAGES.items():
            for path in sorted((self.root / folder).rglob("*.py")):
                parts = path.relative_to(self.root / folder).with_suffix("").parts
                yield ".".join([package, *parts]).removesuffix(".__init__"), path

    def _edges(self, module: Module) -> Iterator[Import]:
        for name, line, late in module.imported():
            target = name if name in self.modules else name.rpartition(".")[0]
            if target in self.modules and target != module.name:
                yield Import(module.name, target, line, late)

    def circles(self, prefix: str = "") -> int:
        """Modules in the largest circle among those whose name starts with ``prefix``."""
        graph: dict[str, set[str]] = {
            name: set() for name in self.modules if name.startswith(prefix)}
        for edge in self.imports:
            if edge.source in graph and edge.target in graph:
                graph[edge.source].add(edge.target)
        return max(map(len, components(graph)))

    def late(self, prefix: str = "") -> int:
        return len({(e.source, e.line) for e in self.imports
                    if e.late and e.source.startswith(prefix)})

    ROOMS, TRACE_FOLDERS = ROOMS, TRACE_FOLDERS

    @staticmethod
    def room(name: str) -> str | None:
        """The room that a module is in; None of the public face, which imports of any."""
        _, _, rest = name.partition(".")
        first = rest.partition(".")[0]
        return FLAT.get(first, first if first in ROOMS else None)

    @staticmethod
    def trace_folder(name: str) -> str | None:
        first = name.removeprefix(f"{TRACE}.").partition(".")[0]
        return first if name.startswith(f"{TRACE}.") and first in TRACE_FOLDERS else None

    def upward(self) -> list[str]:
        """Imports from a room into one that stands above it."""
        return self._upward(self.room, ROOMS)

    def upward_in_trace(self) -> list[str]:
        return self._upward(self.trace_folder, TRACE_FOLDERS)

    def _upward(
        self, place: Callable[[str], str | None], order: tuple[str, ...]
    ) -> list[str]:
        pairs = ((e, place(e.source), place(e.target)) for e in self.imports)
        return sorted({f"{e.source} imports {e.target}" for e, a, b in pairs
                       if a and b and order.index(a) < order.index(b)})

    def arrows(self) -> int:
        """How many pairs of rooms there are of which one imports of the other."""
        pairs = {(self.room(e.source), self.room(e.target)) for e in self.imports}
        return sum(a is not None and b is not None and a != b for a, b in pairs)

    def lines(self) -> dict[str, int]:
        """How many each room has, from the ground up."""
        return {room: sum(m.lines for name, m in self.modules.items() if self.room(name) == room)
                for room in ROOMS}

    def folders(self) -> Counter[Path]:
        """How many files each folder has."""
        return Counter(m.path.parent for m in self.modules.values()
                       if m.path.name != "__init__.py")

    def functions(self) -> list[int]:
        return sorted((node.end_lineno or node.lineno) - node.lineno + 1
                      for module in self.modules.values()
                      for node in module.of(ast.FunctionDef | ast.AsyncFunctionDef))

    def long_files(self) -> list[str]:
        named = ((m.path.relative_to(self.root).as_posix(), m) for m in self.modules.values())
        return [name for name, m in named if m.lines > 400 and not name.startswith(TABLES)]

    def repeated_classes(self) -> list[str]:
        """Names of which there are several classes; those with ``_`` stay in their modules."""
        counts = Counter(node.name for module in self.modules.values()
                         for node in module.of(ast.ClassDef))
        return sorted(name for name, count in counts.items() if count > 1 and name[0] != "_")

    @cached_property
    def docstrings(self) -> dict[str, str]:
        """By the places where they begin, those of tests and examples too."""
        ours = {module.path: module for module in self.modules.values()}
        paths = [path for folder in READ for path in sorted((self.root / folder).rglob("*.py"))]
        return {f"{path.relative_to(self.root).as_posix()}:{line}": text for path in paths
                for line, text in described((ours.get(path) or Module("", path)).tree)}

    def vague_docstrings(self, most: int = 1) -> list[str]:
        """Those with more "what"s than ``most``: each stands where a noun could."""
        return [place for place, text in self.docstrings.items()
                if len(re.findall(r"\bwhat\b", text, re.IGNORECASE)) > most]

    def class_of(self, name: str) -> ast.ClassDef:
        return next(node for module in self.modules.values() for node in module.of(ast.ClassDef)
                    if node.name == name)

    def fields(self, name: str) -> int:
        """What ``self.`` names a class assigns."""
        return len({node.attr for node in ast.walk(self.class_of(name))
                    if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
                    and isinstance(node.value, ast.Name) and node.value.id == "self"})

    def chain(self, root: str) -> int:
        """The most classes, of ours, that one class has from ``root`` on."""
        bases = {node.name: [base.id for base in node.bases if isinstance(base, ast.Name)]
                 for module in self.modules.values() for node in module.of(ast.ClassDef)}
        chains = (reach(bases, name) & {*bases} | {name} for name in bases)
        return max(len(chain) for chain in chains if root in chain)

    def derived(self, root: str) -> int:
        """Classes of ours that are ``root`` or derive from it directly."""
        return sum(node.name == root or any(
            isinstance(base, ast.Name) and base.id == root for base in node.bases)
            for module in self.trace for node in module.of(ast.ClassDef)
            if module.name != f"{TRACE}.values.collaborators")

    def op_sets(self) -> list[str]:
        """Collections of two or more names of ops and tables by name of op, outside of the rows."""
        ops = self.op_names()
        return [f"{module.name}:{node.lineno}" for module in self.modules.values()
                if not module.name.startswith("fusec.ops") for node in module.of(DISPLAYS)
                if len(names := listed(node)) >= 2 and names <= ops]

    def op_names(self) -> set[str]:
        """What the calls in ``fusec/ops`` that make rows name, and functions of NumPy there."""
        calls = [node for module in self.modules.values() if module.name.startswith("fusec.ops")
                 for node in module.of(ast.Call)]
        return {name for call in calls for name in row_names(call) if name[:1].isupper()}


def listed(node: ast.AST) -> set[object]:
    """The constants of a display, the keys of a table, the words of a text that is split."""
    match node:
        case ast.Set(elts=parts) | ast.Tuple(elts=parts) | ast.List(elts=parts):
            return {part.value if isinstance(part, ast.Constant) else part for part in parts}
        case ast.Dict(keys=keys):
            return {key.value if isinstance(key, ast.Constant) else key for key in keys}
        case ast.Call(func=ast.Attribute(value=ast.Constant(value=str(text)), attr="split")):
            return set(text.split())
    return set()


def row_names(call: ast.Call) -> Iterator[str]:
    """``Add`` of ``_ufunc("Add", …)`` and of ``Op(name="Add", …)``, ``Sort`` of ``np.sort``."""
    named = [keyword.value for keyword in call.keywords if keyword.arg == "name"]
    for part in (*call.args[:1], *named):
        if isinstance(part, ast.Constant) and str(part.value).isidentifier():
            yield str(part.value)
    for part in ast.walk(call):
        if isinstance(part, ast.Attribute) and isinstance(part.value, ast.Name):
            home = {"_LINALG": "Linalg", "_FFT": "Fft", "np": ""}.get(part.value.id)
            if home is not None:
                yield home + "".join(w[:1].upper() + w[1:] for w in part.attr.split("_"))


def components(graph: dict[str, set[str]]) -> list[set[str]]:
    """Strongly connected components: what reaches each other (graphs here are small)."""
    reached = {name: reach(graph, name) for name in graph}
    seen: set[str] = set()
    circles = []
    for name in graph:
        if name not in seen:
            circles.append({other for other in reached[name] if name in reached[other]} | {name})
            seen |= circles[-1]
    return circles


def reach(graph: Mapping[str, Collection[str]], start: str) -> set[str]:
    reached, waiting = set(), [start]
    while waiting:
        new = {*graph.get(waiting.pop(), ())} - reached
        reached |= new
        waiting += new
    return reached


def measures(house: House) -> dict[str, float]:
    functions = house.functions()
    return {
        "modules": len(house.modules), "arrows between rooms": house.arrows(),
        "imports running back up": len(house.upward()),
        "largest import circle in trace": house.circles(TRACE),
        "largest import circle anywhere": house.circles(),
        "late imports in trace": house.late(TRACE), "late imports of ours": house.late(),
        "files of trace in no folder": sum(
            house.trace_folder(m.name) is None for m in house.trace),
        "imports running back up in trace": len(house.upward_in_trace()),
        "files in one folder": max(house.folders().values()),
        "files over 400 lines": len(house.long_files()),
        "functions, median": statistics.median(functions),
        "functions, 99th percentile": round(statistics.quantiles(functions, n=100)[98]),
        "functions over 50 lines": sum(lines > 50 for lines in functions),
        "fields of Trace": house.fields("Trace"),
        "classes in the chain of hooks": house.chain("Hooks"),
        "classes of guards": house.derived("Guard"),
        "sets of ops outside ops/": len(house.op_sets()),
        "names of several classes": len(house.repeated_classes()),
        "docstrings that say \"what\"": len(house.vague_docstrings(0)),
        "docstrings that say \"what\" twice": len(house.vague_docstrings()),
    }


def main(root: Path) -> int:
    house = House(root)
    worse = []
    for name, value in measures(house).items():
        ceiling = CEILINGS.get(name, math.inf)
        print(f"{value:8g}  {name}" + (f"  (at most {ceiling:g})" if name in CEILINGS else ""))
        if value > ceiling:
            worse.append(name)
    print("lines: " + ", ".join(f"{room} {lines:,}" for room, lines in house.lines().items()))
    for name in worse:
        print(f"worse than it was: {name}", file=sys.stderr)
    return 1 if worse else 0


if __name__ == "__main__":
    gc.disable()  # trees of a million nodes, all alive until the end
    sys.exit(main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parents[1]))
