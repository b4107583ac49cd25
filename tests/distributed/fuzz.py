"""Random programs in random blocks against one machine.

Usage: ``python -m tests.distributed.fuzz COUNT [SEED] [--processes EVERY] [--loops]``

Each program runs on whole arrays and on arrays in blocks.  Results made row by row have the same
bits; those below a sum over an axis in blocks differ by rounding.  With ``--processes`` one program
of so many runs on clusters of 1, 2 and 4 processes too, with the same bits.  A program that blocks
cannot compute is refused by name, and counted.  With ``--loops`` half of the statements are
branches and loops.  No two tasks of a stage compute the same.
"""

from __future__ import annotations

import argparse
import linecache
import sys
from collections import Counter
from typing import Any

import dask
import dask.array as da
import numpy as np

import fusec
from fusec.distributed.block_tasks import run_block
from tests.distributed.chunked_programs import ChunkedProgram, Made, program_of
from tests.distributed.looping_programs import looping_program_of

TOLERANCE = 1e-9  # of the largest element: sums of at most a thousand numbers, divided and squared


def compiled(source: str) -> Any:
    """The program's function, whose lines errors can show."""
    name = f"<program {hash(source) & 0xffffffff:08x}>"
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    scope: dict[str, Any] = {"np": np}
    exec(compile(source, name, "exec"), scope)
    return fusec.jit(scope["program"])


def in_blocks(program: ChunkedProgram) -> list[Any]:
    return [array if program.chunks[name] is None else
            da.from_array(array, chunks=program.chunks[name])
            for name, array in program.arguments.items()]


def computed(lazy: Any, scheduler: Any) -> list[Any]:
    with dask.config.set(scheduler=scheduler):
        return list(dask.compute(*lazy))


def difference(made: Made, ours: Any, whole: Any) -> str:
    """What differs between a result in blocks and that of whole arrays; "" where nothing does."""
    ours, whole = np.asarray(ours), np.asarray(whole)
    if (ours.dtype, ours.shape) != (whole.dtype, whole.shape):
        return f"{ours.dtype}{ours.shape}, not {whole.dtype}{whole.shape}"
    if np.array_equal(ours, whole, equal_nan=ours.dtype.kind == "f"):
        return ""
    gap = np.nanmax(np.abs(ours - whole))
    scale = max(1.0, float(np.nanmax(np.abs(whole))))
    same_gaps = np.array_equal(np.isnan(ours), np.isnan(whole))
    if made.is_exact or not gap <= TOLERANCE * scale or not same_gaps:
        return f"{made.name} differs by {gap:.3g} of {scale:.3g}"
    return ""


def check_tasks(lazy: Any) -> None:
    """Assert that no two tasks of a stage compute the same: each block is some task's alone."""
    tasks: dict[Any, Any] = {}
    for array in lazy:
        tasks |= dict(getattr(array, "dask", {}))
    given = Counter(_given(task) for task in tasks.values()
                    if getattr(task, "func", None) is run_block)
    assert not given or max(given.values()) == 1, given.most_common(1)


def _given(task: Any) -> str:
    """The stage, and what of which blocks a task of it reads."""
    return repr(task.args)


def failure_of(program: ChunkedProgram, results: list[Made], schedulers: Any = ()) -> str:
    """What is wrong with a program; "" where nothing is, a refusal begins with "refused"."""
    function = compiled(program.source(results))
    whole = function(*program.arguments.values())
    try:
        lazy = function(*in_blocks(program))
    except fusec.errors.UnsupportedError as error:
        return f"refused {str(error).splitlines()[0]}"
    ours = computed(lazy, "sync")
    check_tasks(lazy)
    found = [difference(*three) for three in zip(results, ours, whole, strict=True)]
    for scheduler in schedulers:
        for a, b in zip(ours, computed(lazy, scheduler), strict=True):
            if not np.array_equal(a, b, equal_nan=np.asarray(a).dtype.kind == "f"):
                found.append("other bits with another number of processes")
    return "; ".join(filter(None, found))


def told(program: ChunkedProgram, results: list[Made]) -> str:
    """What `failure_of` says, or the exception."""
    try:
        return failure_of(program, results)
    except Exception as error:  # a fault of the program's or ours: shown with the program
        return f"{type(error).__name__}: {error}"


def shrunk(program: ChunkedProgram) -> list[Made]:
    """The earliest value that fails by itself."""
    for made in program.made:
        text = told(program, [made])
        if text and not text.startswith("refused"):
            return [made]
    return program.results


def run(
    count: int, seed: int, every: int = 0, clients: Any = (), has_loops: bool = False
) -> tuple[int, list[str]]:
    """How many programs were split, and the failures, each with its program."""
    split, failures = 0, []
    causes = Counter[str]()
    for number in range(seed, seed + count):
        program = (looping_program_of if has_loops else program_of)(number)
        others = clients if every and number % every == 0 else ()
        try:
            text = failure_of(program, program.results, others)
        except Exception as error:
            text = f"{type(error).__name__}: {error}"
        if text.startswith("refused"):
            causes[text.partition(",")[0].partition(" of an array")[0].partition(" along")[0]] += 1
        elif text:
            results = shrunk(program)
            failures.append(f"seed {number}: {text}\nchunks {program.chunks}\n"
                            f"{program.source(results)}")
            print(failures[-1], flush=True)
        else:
            split += 1
        if (number - seed) % 500 == 499:
            print(f"{number - seed + 1}: {split} split, {len(failures)} failed", flush=True)
    for cause, times in causes.most_common():
        print(f"{times:6d} {cause}")
    return split, failures


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("count", type=int)
    parser.add_argument("seed", type=int, nargs="?", default=0)
    parser.add_argument("--processes", type=int, default=0, metavar="EVERY")
    parser.add_argument("--loops", action="store_true")
    given = parser.parse_args()
    if not given.processes:
        split, failures = run(given.count, given.seed, has_loops=given.loops)
    else:
        from distributed import Client, LocalCluster

        clients = [Client(LocalCluster(n_workers=n, threads_per_worker=1, dashboard_address=":0"),
                          set_as_default=False) for n in (1, 2, 4)]
        split, failures = run(
            given.count, given.seed, given.processes, clients, given.loops)
        for client in clients:
            client.cluster.close()
            client.close()
    print(f"{given.count} programs: {split} equal, {len(failures)} failed, "
          f"{given.count - split - len(failures)} refused")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
