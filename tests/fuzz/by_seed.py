"""Common to generators of programs by seed: a program with its source, and the command line."""

from __future__ import annotations

import argparse
import linecache
import sys
from collections.abc import Callable
from typing import Any


def defined(text: str, name: str, names: dict[str, Any]) -> dict[str, Any]:
    """The names that the program of this text defines, beside those given; its source is known."""
    linecache.cache[name] = len(text), None, text.splitlines(keepends=True), name
    exec(compile(text, name, "exec"), names)
    return names


def main(description: str | None, failure: Callable[[int], str | None]) -> None:
    """Try the programs of some seeds; the process fails if one does."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("-n", "--programs", type=int, default=400)
    parser.add_argument("--seed", type=int, default=0, help="the first")
    options = parser.parse_args()
    failures = 0
    for seed in range(options.seed, options.seed + options.programs):
        found = failure(seed)
        if found is not None:
            failures += 1
            print(f"# seed {seed}\n{found}", flush=True)
    print(f"{options.programs} programs, {failures} failures")
    sys.exit(failures > 0)
