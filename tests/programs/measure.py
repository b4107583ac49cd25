"""One program measured in a process of its own; prints a line of JSON.

``python -m tests.programs.measure NAME [small]``
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from types import FrameType, FunctionType
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
    first = program.inputs(size)
    while sum(found) < BUDGET and len(found) < 30:
        args = renewed(first, program.inputs(size))
        start = time.perf_counter()
        outcome(function, args)
        found.append(time.perf_counter() - start)
    return min(found)


def renewed(old: Any, new: Any) -> Any:
    """``new``, but its objects are those of ``old`` with the new state: traces are per object."""
    if type(new) in (list, tuple):
        return type(new)(renewed(a, b) for a, b in zip(old, new, strict=True))
    if not hasattr(new, "__dict__") or isinstance(new, (FunctionType, type)):
        return new
    vars(old).clear()
    vars(old).update(vars(new))
    return old


def fallbacks(program: Program) -> int:
    """How often a call of the compiled program runs Python code of the program's file: a loop body
    that a library call runs, or the whole program, eagerly."""
    import fusec

    compiled, size = fusec.jit(program.function), program.small
    first = program.inputs(size)
    for _ in range(3):
        outcome(compiled, renewed(first, program.inputs(size)))
    args, found = renewed(first, program.inputs(size)), []
    file = program.function.__code__.co_filename

    def watch(frame: FrameType, event: str, arg: Any) -> None:
        if event == "call" and frame.f_code.co_filename == file:
            found.append(frame.f_code.co_name)

    sys.setprofile(watch)
    try:
        outcome(compiled, args)
    finally:
        sys.setprofile(None)
    return len(found)


def measure(program: Program) -> dict[str, Any]:
    """The row of the table, timings at the large size."""
    import fusec

    failure = check(program, program.small)
    row: dict[str, Any] = {"name": program.name, "failure": failure}
    if failure:
        return row
    row["fallbacks"] = fallbacks(program)
    if row["fallbacks"]:
        return row | {"failure": f"{row['fallbacks']} calls of its own Python code in a call"}
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
    if "chaotic" in program.traits:
        import fusec

        compiled = fusec.jit(program.function, fp="strict")
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
