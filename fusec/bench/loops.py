"""Native loops against Numba: ``python -m fusec.bench.loops [--write docs/performance.md]``.

Every function is ordinary NumPy source, given unchanged to `fusec.jit` and to ``numba.njit``.  The
two take turns in one run, and the smallest of their times are compared; results are checked first.
"""

from __future__ import annotations

import argparse
import datetime
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import fusec
from fusec.core.code_roles import AS_USERS

from .measuring import host

FUSEC_ROLE = AS_USERS

Args = tuple[Any, ...]
BEGIN, END = "<!-- loops: begin -->", "<!-- loops: end -->"
ALLOWED = 1.5  # times the same loop in Numba


def recurrence(a: np.ndarray, b: np.ndarray) -> float:
    """``s = a[i] s + b[i]``."""
    s = 0.0
    for i in range(len(a)):
        s = a[i] * s + b[i]
    return s


def logistic(r: float, n: int) -> float:
    """The logistic map until it leaves the unit interval."""
    x = 0.3
    i = 0
    while i < n:
        x = r * x * (1.0 - x)
        if x > 2.0:
            break
        i += 1
    return x


def newton(values: np.ndarray) -> np.ndarray:
    """Cube roots by Newton's method."""
    out = np.zeros(len(values))
    for i in range(len(values)):
        c = values[i]
        x = c
        while True:
            step = (x * x * x - c) / (3.0 * x * x)
            x = x - step
            if abs(step) < 1e-12 * abs(x):
                break
        out[i] = x
    return out


def thomas(a: np.ndarray, b: np.ndarray, c: np.ndarray, d: np.ndarray) -> np.ndarray:
    """A tridiagonal system."""
    n = len(d)
    cp = np.zeros(n)
    x = np.zeros(n)
    cp[0] = c[0] / b[0]
    x[0] = d[0] / b[0]
    for i in range(1, n):
        m = b[i] - a[i] * cp[i - 1]
        cp[i] = c[i] / m
        x[i] = (d[i] - a[i] * x[i - 1]) / m
    for i in range(n - 2, -1, -1):
        x[i] = x[i] - cp[i] * x[i + 1]
    return x


def edit_distance(s: np.ndarray, t: np.ndarray) -> int:
    """Levenshtein's distance by its whole table."""
    table = np.zeros((len(s) + 1, len(t) + 1), np.int64)
    for i in range(len(s) + 1):
        table[i, 0] = i
    for j in range(len(t) + 1):
        table[0, j] = j
    for i in range(1, len(s) + 1):
        for j in range(1, len(t) + 1):
            cost = 0 if s[i - 1] == t[j - 1] else 1
            best = min(table[i - 1, j] + 1, table[i, j - 1] + 1)
            table[i, j] = min(best, table[i - 1, j - 1] + cost)
    return table[len(s), len(t)]


def gauss_seidel(u: np.ndarray, f: np.ndarray) -> np.ndarray:
    """One sweep of the five-point Laplacian."""
    u = u.copy()
    for i in range(1, u.shape[0] - 1):
        for j in range(1, u.shape[1] - 1):
            u[i, j] = 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] - f[i, j])
    return u


def smoothing(x: np.ndarray, alpha: float) -> np.ndarray:
    """An exponential filter."""
    out = np.zeros(len(x))
    y = x[0]
    for i in range(len(x)):
        y = y + alpha * (x[i] - y)
        out[i] = y
    return out


def orbit(p: np.ndarray, v: np.ndarray, dt: float, n: int) -> np.ndarray:
    """A body around another, by vectors of three."""
    p = p.copy()
    v = v.copy()
    for _ in range(n):
        r2 = p[0] * p[0] + p[1] * p[1] + p[2] * p[2]
        v -= dt * p / (r2 * np.sqrt(r2))
        p += dt * v
    return p


def triangular(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Forward substitution."""
    x = np.zeros(len(b))
    for i in range(len(b)):
        x[i] = (b[i] - a[i, :i] @ x[:i]) / a[i, i]
    return x


def cholesky(a: np.ndarray) -> np.ndarray:
    """Cholesky's factor by rows."""
    n = len(a)
    low = np.zeros((n, n))
    for i in range(n):
        for j in range(i):
            low[i, j] = (a[i, j] - low[i, :j] @ low[j, :j]) / low[j, j]
        low[i, i] = np.sqrt(a[i, i] - low[i, :i] @ low[i, :i])
    return low


def lu(a: np.ndarray) -> np.ndarray:
    """Gaussian elimination without pivots."""
    a = a.copy()
    n = len(a)
    for k in range(n - 1):
        for i in range(k + 1, n):
            a[i, k] = a[i, k] / a[k, k]
            a[i, k + 1:] -= a[i, k] * a[k, k + 1:]
    return a


@dataclass(frozen=True)
class LoopCase:
    """A loop: its source, its size in words, and the maker of its arguments."""

    run: Callable[..., Any]
    size: str
    make: Callable[[np.random.Generator], Args]


def _system(rng: np.random.Generator, n: int) -> np.ndarray:
    a = rng.random((n, n))
    return a @ a.T + n * np.eye(n)


N = 100_000
CASES: Sequence[LoopCase] = (
    LoopCase(recurrence, "1e5", lambda g: (g.random(N), g.random(N))),
    LoopCase(logistic, "1e5", lambda g: (3.7, N)),
    LoopCase(newton, "1e5", lambda g: (1 + g.random(N),)),
    LoopCase(thomas, "1e5", lambda g: (g.random(N), 4 + g.random(N), g.random(N), g.random(N))),
    LoopCase(edit_distance, "320 x 320", lambda g: (
        g.integers(0, 4, 320), g.integers(0, 4, 320))),
    LoopCase(gauss_seidel, "320 x 320", lambda g: (g.random((320, 320)), g.random((320, 320)))),
    LoopCase(smoothing, "1e5", lambda g: (g.random(N), 0.1)),
    LoopCase(orbit, "1e5", lambda g: (np.array([1.0, 0, 0]), np.array([0.0, 1, 0.1]), 1e-3, N)),
    LoopCase(triangular, "450", lambda g: (_system(g, 450), g.random(450))),
    LoopCase(triangular, "2000", lambda g: (_system(g, 2000), g.random(2000))),
    LoopCase(cholesky, "300", lambda g: (_system(g, 300),)),
    LoopCase(lu, "300", lambda g: (_system(g, 300),)),
)


@dataclass(frozen=True)
class LoopFinding:
    """Seconds of one call in fusec and in Numba: the smallest of several rounds."""

    case: LoopCase
    fusec: float
    numba: float

    @property
    def ratio(self) -> float:
        return self.fusec / self.numba


def measure(case: LoopCase, rounds: int = 15) -> LoopFinding:
    """Compile both, compare their results, then let them take turns."""
    import numba  # only here: it is slow to import

    args = case.make(np.random.default_rng(0))
    ours, theirs = fusec.jit(case.run), numba.njit(case.run)
    np.testing.assert_allclose(ours(*args), theirs(*args), rtol=1e-9)
    times: tuple[list[float], list[float]] = ([], [])
    calls: tuple[Callable[..., Any], ...] = (ours, theirs)
    for _ in range(rounds):
        for call, kept in zip(calls, times, strict=True):
            kept.append(_once(call, args))
    return LoopFinding(case, min(times[0]), min(times[1]))


def _once(call: Callable[..., Any], args: Args) -> float:
    start = time.perf_counter()
    call(*args)
    return time.perf_counter() - start


def render(findings: Sequence[LoopFinding]) -> str:
    """The section as Markdown."""
    rows = [f"| {f.case.run.__name__} | {f.case.size} | {1e3 * f.fusec:.3g} | {1e3 * f.numba:.3g} "
            f"| {f.ratio:.2f} |" for f in findings]
    return "\n".join([
        "## Native loops against Numba", "",
        "Generated by `python -m fusec.bench.loops --write docs/performance.md`; the functions are "
        "in", "`fusec/bench/loops.py`, the same source for both; the smallest of several times. "
        "Sizes give about 1e5", "innermost iterations: entering a native loop costs some 10 us a "
        "call, which a system of 300", "unknowns still shows.",
        "", f"{datetime.date.today()}; {host.sentence()}.", "",
        "| loop | size | fusec ms | Numba ms | ratio |", "| --- | ---: | ---: | ---: | ---: |",
        *rows])


def written(page: str, section: str, begin: str = BEGIN, end: str = END) -> str:
    """The page with its section replaced, or appended."""
    block = f"{begin}\n{section}\n{end}\n"
    if begin not in page:
        return f"{page.rstrip()}\n\n{block}"
    before, rest = page.split(begin, 1)
    return before + block + rest.split(end, 1)[1].lstrip("\n")


def main(argv: Sequence[str] | None = None) -> int:
    """The command; its status is 1 where a loop takes more than is allowed."""
    parser = argparse.ArgumentParser(prog="python -m fusec.bench.loops", description=__doc__)
    parser.add_argument("names", nargs="*", help="only these loops")
    parser.add_argument("--write", type=Path, help="the page whose section is replaced")
    args = parser.parse_args(argv)
    findings = []
    for case in CASES:
        if not args.names or case.run.__name__ in args.names:
            findings.append(measure(case))
            print(render(findings[-1:]).splitlines()[-1], flush=True)
    if args.write:
        args.write.write_text(written(args.write.read_text(), render(findings)))
    return int(any(f.ratio > ALLOWED for f in findings))


if __name__ == "__main__":
    raise SystemExit(main())
