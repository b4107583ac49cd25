"""One program measured in a process of its own; prints a line of JSON.

``python -m tests.programs.measure NAME [small]``
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any

from .compare import difference, outcome
from .corpus import Program, programs

BUDGET = 0.4  # seconds of repeated calls per side


def check(program: Program, size: int) -> str:
    """How two calls of the compiled program differ from the plain one; empty if they do not."""
    import fusec

    compiled = fusec.jit(program.function)
    want = outcome(program.function, program.inputs(size))
    for call in ("first", "second"):
        try:
            got = outcome(compiled, program.inputs(size))
        except Exception as error:
            return f"{type(error).__name__}: {error}"
        if text := difference(got[0], want[0]) or difference(got[1], want[1], "arguments"):
            return f"{text} ({call} call)"
    return ""


def best(function: Callable[..., Any], program: Program, size: int) -> float:
    """Seconds of the fastest call, on fresh arguments each."""
    found: list[float] = []
    while sum(found) < BUDGET and len(found) < 30:
        args = program.inputs(size)
        start = time.perf_counter()
        outcome(function, args)
        found.append(time.perf_counter() - start)
    return min(found)


def measure(program: Program) -> dict[str, Any]:
    """The row of the table, timings at the large size."""
    import fusec

    failure = check(program, program.small)
    row: dict[str, Any] = {"name": program.name, "failure": failure}
    if failure:
        return row
    compiled = fusec.jit(program.function)
    start = time.perf_counter()
    compiled(*program.inputs(program.large))
    row["first_ms"] = 1e3 * (time.perf_counter() - start)
    row["large_failure"] = _difference_at(program, compiled, program.large)
    row["traces"] = compiled.trace_count
    row |= _built(compiled.traces[-1])
    row["eager_ms"] = 1e3 * best(program.function, program, program.large)
    row["compiled_ms"] = 1e3 * best(compiled, program, program.large)
    return row


def _difference_at(program: Program, compiled: Callable[..., Any], size: int) -> str:
    got = outcome(compiled, program.inputs(size))
    want = outcome(program.function, program.inputs(size))
    return difference(got[0], want[0]) or difference(got[1], want[1], "arguments")


def _built(concrete: Any) -> dict[str, Any]:
    return {
        "kernels": len(concrete.kernels),
        "externs": len(concrete.externs),
        "compile_ms": sum(concrete.times.values()),
        "native": sum(c.is_native for c in concrete.control),
        "stepwise": [c.run.reason for c in concrete.control if not c.is_native],
    }


def main(name: str, mode: str = "") -> None:
    """Print the row; ``small`` only compares."""
    program = next(p for p in programs() if p.name == name)
    if mode == "small":
        row = {"name": name, "failure": check(program, program.small)}
    else:
        row = measure(program)
    print(json.dumps(row))


if __name__ == "__main__":
    main(*sys.argv[1:])
