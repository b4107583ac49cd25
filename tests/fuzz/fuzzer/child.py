"""The process that runs programs and may die of them; it talks to `campaign` in lines of JSON."""

from __future__ import annotations

import faulthandler
import gc
import json
import os
import resource
import sys
import traceback
import warnings
from collections import Counter
from typing import Any, TextIO

from . import grow
from .control import grammar, objects, six_sizes, sizes
from .control.judge import ControlJudge, StatefulJudge
from .control.program import ControlProgram, StatefulProgram
from .control.shrink import shrink_control
from .judge import Judge
from .program import Program
from .shrink import shrink

MEMORY = 12 << 30


def serve() -> None:
    """Run the seeds that come in, one a line, until there are no more."""
    out = _private_output()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    warnings.simplefilter("ignore")
    faulthandler.enable()
    gc.freeze()  # what is imported by now is not looked through for every program
    gc.set_threshold(10_000)
    for line in sys.stdin:
        seed = line.strip()
        _say(out, {"begins": seed})
        _say(out, judged(seed, lambda seed=seed: _say(out, {"alive": seed})))


def _private_output() -> TextIO:
    """Standard output for us alone: LAPACK prints to descriptor 1."""
    private = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    return private


def _say(out: TextIO, what: dict[str, Any]) -> None:
    out.write(json.dumps(what) + "\n")
    out.flush()


AnyProgram = Program | ControlProgram


def program_of(seed: str) -> AnyProgram:
    """The program of a seed: ``"17"`` is a straight line, ``"c17"`` has branches and loops,
    ``"s17"`` Python's state as well, ``"w17"`` arrays that shrink and grow, ``"z17"`` is run at six
    sizes."""
    if seed.startswith("z"):
        return six_sizes.program_of(int(seed[1:]))
    if seed.startswith("w"):
        return sizes.program_of(int(seed[1:]))
    if seed.startswith("s"):
        return objects.program_of(int(seed[1:]))
    return grammar.program_of(int(seed[1:])) if seed.startswith("c") else grow.program_of(seed)


def judge_of(program: AnyProgram, turn: int) -> Judge | ControlJudge | six_sizes.SixSizesJudge:
    if isinstance(program, six_sizes.SixSizesProgram):
        return six_sizes.SixSizesJudge(program)
    if isinstance(program, StatefulProgram):
        return StatefulJudge(program)
    if isinstance(program, ControlProgram):
        return ControlJudge(program)
    return Judge(program, turn)


def kinds_in(program: AnyProgram) -> Counter[str]:
    """The kinds that a program exercises."""
    if isinstance(program, ControlProgram):
        return Counter(program.kinds)
    return Counter(s.op for s in program.statements)


def shorten(program: Any, fails: Any, seconds: float | None = None) -> Any:
    """The shortest program found that fails in the same way."""
    limit = {} if seconds is None else {"seconds": seconds}
    make: Any = shrink_control if isinstance(program, ControlProgram) else shrink
    return make(program, fails, **limit)


def judged(seed: str, alive: Any = lambda: None) -> dict[str, Any]:
    """The outcome of the seed's program, as plain data; a failing one is shrunk."""
    program = program_of(seed)
    try:
        verdict = judge_of(program, _turn(seed)).judge()
    except Exception as error:
        return _failure(seed, program, error, alive)
    return {"seed": seed, "ops": kinds_in(verdict.program), "rows": verdict.rows,
            "checks": verdict.checks, "refused": verdict.refused}


def _turn(seed: str) -> int:
    return int(seed) if seed.isdigit() else len(seed)


def _failure(seed: str, program: AnyProgram, error: Exception, alive: Any) -> dict[str, Any]:
    text = describe(error)
    trace = "".join(traceback.format_exception(error))

    def fails(candidate: AnyProgram) -> str | None:
        alive()
        return failure_of(candidate, _turn(seed))

    found = shorten(program, fails)
    return {"seed": seed, "failure": text, "traceback": trace, "program": found.runnable,
            "now": failure_of(found, _turn(seed)) or "it does not fail again"}


def failure_of(program: AnyProgram, turn: int = 0) -> str | None:
    """How the program fails; None when it does not, or when NumPy does not take it."""
    try:
        judge_of(program, turn).judge()
    except Exception as error:
        return describe(error)
    return None


def describe(error: Exception) -> str:
    """An exception on one line."""
    cause = f" ({error.__cause__!r:.200})" if error.__cause__ is not None else ""
    return f"{type(error).__name__}: {str(error).partition(chr(10))[0]:.300}{cause}".replace(
        "\n", " ")


def check_pickled() -> None:
    """Run the program, or grow that of the seed, that comes pickled on standard input.

    `campaign` looks whether we live.
    """
    import pickle

    given = pickle.load(sys.stdin.buffer)
    program_of(given) if isinstance(given, str) else failure_of(given)


if __name__ == "__main__":
    check_pickled() if "--program" in sys.argv else serve()
