"""What a call of an exported function takes beside its kernels: the checks of its arguments and
sizes, and the choice of code.

``python -m tests.exports.overheads [NAME ...]`` prints a line for each program of the corpus that
is exported, of the CPU's time at five sizes the most.  A call whose workspace lies over the first
byte of its last array passes all checks but the last one, which then refuses it: no kernel runs.
Where there is no workspace, the result lies over the last argument.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from collections.abc import Iterator, Sequence

import numpy as np

import fusec
from fusec.codegen.exported.parts import OF_PARAMETER, ExportedFunction
from fusec.compiled.exports.c_library import CLibrary
from fusec.trace.facts.trees import flattened
from tests.programs.five_sizes import Sized, sized_programs

from .c_program import CProgram
from .corpus import exported

CALLS, TIMES = 2000, 40  # of each the least
MOST_NS = 200.0  # that the issue allows
_LOOP = """
    struct timespec from, to;
    double least = 1e30;
    for (int k = 0; k < {times}; k++) {{
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &from);
        for (int i = 0; i < {calls}; i++) code = {call};
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &to);
        double ns = ((to.tv_sec - from.tv_sec) * 1e9 + (to.tv_nsec - from.tv_nsec)) / {calls};
        if (ns < least) least = ns;
    }}
    give(&code, 4);
    give(&least, 8);
    return 0;
"""


def refused_calls(function: ExportedFunction, passed: Sequence[str]) -> Iterator[str]:
    """Calls that one of the last checks refuses, and what one takes."""
    names = [*(f"a{k}" for k in range(len(function.arguments))),
             *(f"r{k}" for k in range(len(function.results)))]
    *_, last = _arrays(function)
    before = _argument_before(function)
    yield "    char *block = memory(2 * workspace_bytes + 128);"
    yield "    if (workspace_bytes) {"
    yield f"        {names[last]} = (void *)(block + (workspace_bytes + 127) / 64 * 64);"
    yield f"        workspace = (char *){names[last]} - workspace_bytes + 1;"
    yield "    } else {"
    yield "        give(\"\\0\\0\\0\\0\", 4);\n        return 0;" if before is None else (
        f"        {names[last]} = (void *){names[before]};")
    yield "    }"
    yield _LOOP.format(times=TIMES, calls=CALLS, call=f"{function.name}({', '.join(passed)})")


def _arrays(function: ExportedFunction) -> list[int]:
    return [k for k, p in enumerate(function.parameters) if p.is_array]


def _argument_before(function: ExportedFunction) -> int | None:
    """The last argument that is compared with the last result, where there is no workspace."""
    found = [k for k in _arrays(function) if k < len(function.arguments)]
    return found[-1] if found and function.results else None


def overhead(made: CLibrary, function: ExportedFunction, leaves: Sequence[object]) -> float | None:
    """In ns; None where no such call is refused."""
    _, reader = CProgram(made, function, refused_calls).answer(leaves)
    code = int(reader.array(np.dtype(np.int32), ())[()])
    refused = [OF_PARAMETER["OVERLAP"][0] - k for k in (
        _arrays(function)[-1], _argument_before(function)) if k is not None]
    if code not in refused:
        return None
    return float(reader.array(np.dtype(np.float64), ())[()])


def of_program(program: Sized) -> list[float]:
    """That of each size."""
    with tempfile.TemporaryDirectory() as folder:
        made, is_open = exported(program, f"{folder}/lib", ("v3", "v4"))
        found = [overhead(made, made.functions[0 if is_open else k],
                          flattened((program.inputs(n), {}))[0])
                 for k, n in enumerate(program.sizes)]
    return [ns for ns in found if ns is not None]


def main(names: Sequence[str]) -> None:
    most: dict[str, float] = {}
    for program in sized_programs():
        if names and program.name not in names:
            continue
        try:
            found = of_program(program)
        except fusec.UnsupportedError:
            continue
        if found:
            most[program.name] = max(found)
            print(f"{program.name}: {max(found):.1f} ns", flush=True)
        else:
            print(f"{program.name}: no such call", flush=True)
    print(f"{len(most)} programs: {statistics.median(most.values()):.0f} ns in the median, "
          f"{max(most.values()):.0f} at most; {sum(ns > MOST_NS for ns in most.values())} above "
          f"{MOST_NS:.0f}")


if __name__ == "__main__":
    main(sys.argv[1:])
