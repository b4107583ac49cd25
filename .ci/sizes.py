"""Print the largest files and functions, and fail when one is beyond the house limits.

Usage: ``python .ci/sizes.py [root]``.  Lines are counted as a reader meets them, docstrings and
comments included; a function's decorators are not.
"""

from __future__ import annotations

import ast
import statistics
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

FOLDERS = ("fusec", "passes", "codegen", "runtime", "tests", "examples", ".ci")
MAX_FILE, MAX_FUNCTION, SHOWN = 800, 120, 10


class Size(NamedTuple):
    lines: int
    name: str


def sources(root: Path) -> list[Path]:
    return sorted(path for folder in FOLDERS for path in (root / folder).rglob("*.py"))


def functions(path: Path, name: str) -> Iterator[Size]:
    """The functions of a file, methods and nested ones included."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"), str(path))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            yield Size(lines, f"{name}:{node.lineno} {node.name}")


def report(title: str, sizes: list[Size], limit: int) -> bool:
    """Print the largest; True when all are within the limit."""
    counts = [size.lines for size in sizes]
    rank = statistics.quantiles(counts, n=100) if len(counts) > 1 else counts * 99
    print(f"{title}: {len(sizes)}, median {statistics.median(counts):g} lines, "
          f"99th percentile {rank[98]:.0f}, limit {limit}")
    for size in sorted(sizes, reverse=True)[:SHOWN]:
        print(f"{size.lines:6} {size.name}{'  TOO LONG' if size.lines > limit else ''}")
    return max(counts) <= limit


def main(root: Path) -> int:
    paths = {path.relative_to(root).as_posix(): path for path in sources(root)}
    if not paths:
        print(f"no Python files below {root}", file=sys.stderr)
        return 2
    files = [Size(len(p.read_text(encoding="utf-8").splitlines()), n) for n, p in paths.items()]
    parts = [size for name, path in paths.items() for size in functions(path, name)]
    fine = [report("files", files, MAX_FILE), report("functions", parts, MAX_FUNCTION)]
    return 0 if all(fine) else 1


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parents[1]))
