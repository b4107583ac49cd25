"""Loops that draw random numbers: ``python -m fusec.bench.draws [--write docs/performance.md]``.

Every function is ordinary NumPy source on a ``np.random.Generator``, given unchanged to Python, to
`fusec.jit` and to ``numba.njit``.  Python's and fusec's results, and the generators' states after
them, have to be equal before the clock starts.
"""

from __future__ import annotations

import argparse
import copy
import datetime
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import fusec
from fusec.core.code_roles import AS_USERS
from fusec.runtime import draws

from .loops import written
from .measuring import host

FUSEC_ROLE = AS_USERS

Args = tuple[Any, ...]
BEGIN, END = "<!-- draws: begin -->", "<!-- draws: end -->"


def random_walk(rng: np.random.Generator, n: int) -> float:
    """The largest distance from the origin of a walk in the plane."""
    x = y = 0.0
    most = 0.0
    for _ in range(n):
        x += rng.normal(0.0, 1.0)
        y += rng.normal(0.0, 1.0)
        most = max(most, x * x + y * y)
    return most


def gibbs(rng: np.random.Generator, n: int, thin: int) -> np.ndarray:
    """Two variables, one gamma and one normal given the other."""
    x = y = 0.0
    kept = np.zeros((n, 2))
    for i in range(n):
        for _ in range(thin):
            x = rng.gamma(3.0, 1.0 / (y * y + 4.0))
            y = rng.normal(1.0 / (x + 1.0), 1.0 / np.sqrt(2.0 * x + 2.0))
        kept[i, 0] = x
        kept[i, 1] = y
    return kept


def metropolis(rng: np.random.Generator, n: int) -> np.ndarray:
    """A sampler of a mixture of two normal densities."""
    x = 0.0
    kept = np.zeros(n)
    now = np.exp(-0.5 * (x - 2.0) * (x - 2.0)) + np.exp(-0.5 * (x + 2.0) * (x + 2.0))
    for i in range(n):
        proposal = x + rng.uniform(-1.5, 1.5)
        left, right = proposal + 2.0, proposal - 2.0
        there = np.exp(-0.5 * left * left) + np.exp(-0.5 * right * right)
        if rng.random() * now < there:
            x = proposal
            now = there
        kept[i] = x
    return kept


def ising(rng: np.random.Generator, spins: np.ndarray, beta: float, n: int) -> np.ndarray:
    """Single spins of a periodic lattice, turned as Metropolis has it."""
    spins = spins.copy()
    size = spins.shape[0]
    for _ in range(n):
        i = rng.integers(0, size)
        j = rng.integers(0, size)
        around = (spins[(i + 1) % size, j] + spins[(i - 1) % size, j]
                  + spins[i, (j + 1) % size] + spins[i, (j - 1) % size])
        cost = 2.0 * spins[i, j] * around
        if cost <= 0.0 or rng.random() < np.exp(-beta * cost):
            spins[i, j] = -spins[i, j]
    return spins


def diamond_square(rng: np.random.Generator, size: int, rough: float) -> np.ndarray:
    """A landscape by midpoints, each moved by chance."""
    h = np.zeros((size + 1, size + 1))
    step = size
    scale = 1.0
    while step > 1:
        half = step // 2
        for i in range(half, size, step):
            for j in range(half, size, step):
                mean = (h[i - half, j - half] + h[i - half, j + half]
                        + h[i + half, j - half] + h[i + half, j + half]) / 4.0
                h[i, j] = mean + rng.uniform(-scale, scale)
        for i in range(0, size + 1, half):
            for j in range((i + half) % step, size + 1, step):
                total = 0.0
                count = 0
                if i >= half:
                    total += h[i - half, j]
                    count += 1
                if i + half <= size:
                    total += h[i + half, j]
                    count += 1
                if j >= half:
                    total += h[i, j - half]
                    count += 1
                if j + half <= size:
                    total += h[i, j + half]
                    count += 1
                h[i, j] = total / count + rng.uniform(-scale, scale)
        step = half
        scale *= rough
    return h


def decay(rng: np.random.Generator, n: int, rate: float) -> float:
    """The time until the last of n atoms has decayed, one exponential wait after the other."""
    time_ = 0.0
    left = n
    while left > 0:
        time_ += rng.exponential(1.0 / (rate * left))
        left -= 1
    return time_


def in_the_circle(rng: np.random.Generator, n: int) -> float:
    """Pi by points of the unit square."""
    inside = 0
    for _ in range(n):
        p = rng.random(2)
        if p[0] * p[0] + p[1] * p[1] < 1.0:
            inside += 1
    return 4.0 * inside / n


@dataclass(frozen=True)
class DrawCase:
    """A loop that draws: its source, its size in words, and its other arguments."""

    run: Callable[..., Any]
    size: str
    args: Args
    small: Args  # for tests


def _spins(n: int) -> np.ndarray:
    return np.where(np.random.default_rng(1).random((n, n)) < 0.5, -1.0, 1.0)


CASES: Sequence[DrawCase] = (
    DrawCase(random_walk, "2e4", (20_000,), (200,)),
    DrawCase(gibbs, "2e3 x 10", (2_000, 10), (30, 3)),
    DrawCase(metropolis, "2e4", (20_000,), (200,)),
    DrawCase(ising, "64 x 64, 5e4", (_spins(64), 0.44, 50_000), (_spins(8), 0.44, 300)),
    DrawCase(diamond_square, "128 x 128", (128, 0.6), (8, 0.6)),
    DrawCase(decay, "2e4", (20_000, 0.1), (100, 0.1)),
    DrawCase(in_the_circle, "2e4", (20_000,), (100,)),
)


@dataclass(frozen=True)
class DrawFinding:
    """CPU seconds of one call: the smallest of several rounds; None where Numba refuses."""

    case: DrawCase
    python: float
    through_python: float  # fusec with draws by calls of Python
    fusec: float
    numba: float | None


def measure(case: DrawCase, rounds: int = 7) -> DrawFinding:
    """Compile, compare results and states, then let them take turns."""
    compiled = fusec.jit(case.run)
    _compare(case, compiled)
    theirs = _numbas(case)
    times: dict[str, list[float]] = {}
    for _ in range(rounds):
        times.setdefault("fusec", []).append(_once(compiled, case))
        if theirs is not None:
            times.setdefault("numba", []).append(_once(theirs, case))
    for _ in range(2):
        times.setdefault("python", []).append(_once(case.run, case))
        with _through_python():
            times.setdefault("called", []).append(_once(compiled, case))
    least = {name: min(kept) for name, kept in times.items()}
    return DrawFinding(case, least["python"], least["called"], least["fusec"], least.get("numba"))


def _compare(case: DrawCase, compiled: Callable[..., Any]) -> None:
    one, two = np.random.default_rng(0), np.random.default_rng(0)
    np.testing.assert_allclose(
        compiled(two, *copy.deepcopy(case.args)), case.run(one, *case.args), rtol=1e-9)
    if one.bit_generator.state != two.bit_generator.state:
        raise AssertionError(f"{case.run.__name__} leaves another state than NumPy")


def _numbas(case: DrawCase) -> Callable[..., Any] | None:
    """Numba's function, compiled."""
    import numba  # only here: it is slow to import

    compiled: Callable[..., Any] = numba.njit(case.run)
    try:
        compiled(np.random.default_rng(0), *case.args)
    except numba.core.errors.NumbaError:
        return None
    return compiled


@contextmanager
def _through_python() -> Iterator[None]:
    """No C function of NumPy's is known meanwhile."""
    known, draws.reason = draws.reason, lambda generator, drawing: "measured"
    try:
        yield
    finally:
        draws.reason = known


def _once(call: Callable[..., Any], case: DrawCase) -> float:
    rng = np.random.default_rng(0)
    start = time.process_time()
    call(rng, *case.args)
    return time.process_time() - start


def row(f: DrawFinding) -> str:
    """Of the table."""
    numba = "refused | |" if f.numba is None else f"{1e3 * f.numba:.3g} | {f.fusec / f.numba:.2f} |"
    return (f"| {f.case.run.__name__} | {f.case.size} | {1e3 * f.python:.3g} | "
            f"{1e3 * f.through_python:.3g} | {1e3 * f.fusec:.3g} | {numba}")


def render(findings: Sequence[DrawFinding]) -> str:
    """The section as Markdown."""
    return "\n".join([
        "## Draws in loops", "",
        "Generated by `python -m fusec.bench.draws --write docs/performance.md`; the functions are "
        "in", "`fusec/bench/draws.py`, one source, with a `np.random.Generator`; fusec's "
        "results and the generator's", "state after the call are NumPy's. *Through Python*: fusec "
        "where a draw calls the method, as all did", "before native loops called NumPy's C "
        "functions. CPU milliseconds of one call, the smallest of several.",
        "", f"{datetime.date.today()}; {host.sentence()}.", "",
        "| loop | size | Python | through Python | fusec | Numba | fusec / Numba |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |", *map(row, findings)])


def main(argv: Sequence[str] | None = None) -> int:
    """The command; its status is 1 where a loop is slower than plain Python."""
    parser = argparse.ArgumentParser(prog="python -m fusec.bench.draws", description=__doc__)
    parser.add_argument("names", nargs="*", help="only these loops")
    parser.add_argument("--write", type=Path, help="the page whose section is replaced")
    args = parser.parse_args(argv)
    findings = []
    for case in CASES:
        if not args.names or case.run.__name__ in args.names:
            findings.append(measure(case))
            print(row(findings[-1]), flush=True)
    if args.write:
        page = args.write.read_text()
        args.write.write_text(written(page, render(findings), BEGIN, END))
    return int(any(f.fusec > f.python for f in findings))


if __name__ == "__main__":
    raise SystemExit(main())
