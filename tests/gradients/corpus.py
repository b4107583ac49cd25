"""Gradients of the corpus's programs, judged along random directions against differences.

``python -m tests.gradients.corpus [NAME ...]`` prints a line for each program: *right*, *refused*
with the reason, *no judgement* where the differences disagree among themselves (the result jumps),
or *WRONG*.  What is differentiated is a weighted sum of all floats that a program returns, and of
the float arrays among its arguments as it leaves them, by its float arguments.
"""

from __future__ import annotations

import itertools
import signal
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import fusec
from tests.programs.corpus import Program, programs

TOLERANCE = 2e-6
PATIENCE = 25  # seconds for a program
STEPS = (1e-3, 3e-4, 1e-4, 3e-5, 1e-5, 1e-6)


Path = tuple[Any, ...]  # the keys that lead to a leaf


def floats_in(x: Any, path: Path = ()) -> Iterator[Path]:
    """Where the floats of a result lie in its tuples, lists and dicts."""
    if isinstance(x, (list, tuple)):
        for k, item in enumerate(x):
            yield from floats_in(item, (*path, k))
    elif isinstance(x, dict):
        for k, item in x.items():
            yield from floats_in(item, (*path, k))
    elif x is not None and not isinstance(x, (str, bool, int)) and np.asarray(x).dtype.kind in "fc":
        yield path


def leaf(x: Any, path: Path) -> Any:
    for key in path:
        x = x[key]
    return x


def weighted(x: Any) -> Any:
    """A sum of the elements with weights of both signs."""
    x = np.asarray(x)
    if x.dtype.kind == "c":
        return weighted(x.real) + weighted(x.imag)
    weights = np.cos(1.0 + np.arange(x.size)).reshape(x.shape)
    return (np.where(np.isfinite(x), x, 0.0) * weights).sum()


def positions(args: tuple[Any, ...]) -> tuple[int, ...]:
    """The arguments to differentiate by."""
    return tuple(i for i, a in enumerate(args)
                 if isinstance(a, float) or (isinstance(a, np.ndarray) and a.dtype.kind == "f"))


def objective(program: Program, args: tuple[Any, ...], paths: list[Path]) -> Callable[..., Any]:
    """The program as a function that returns one float."""
    function = program.function
    arrays = [i for i in positions(args) if isinstance(args[i], np.ndarray)]

    def total(*args: Any) -> Any:
        result = function(*args)
        parts = [weighted(leaf(result, path)) for path in paths]
        parts += [weighted(args[i]) for i in arrays]
        value = parts[0]
        for part in parts[1:]:
            value = value + part
        return value

    return total


def along(f: Callable[..., Any], program: Program, chosen: tuple[int, ...], v: Any) -> list[float]:
    """Differences of ``f`` in a direction, one for each of `STEPS`."""
    def at(h: float) -> float:
        args = list(program.inputs(program.small))
        for i, direction in zip(chosen, v, strict=True):
            args[i] = args[i] + (h * direction).astype(np.asarray(args[i]).dtype)
            args[i] = float(args[i]) if np.ndim(args[i]) == 0 else args[i]
        with np.errstate(all="ignore"):
            return float(f(*args))

    found = []
    for h in STEPS:
        coarse, fine = (at(h) - at(-h)) / (2 * h), (at(h / 2) - at(-h / 2)) / h
        found.append((4 * fine - coarse) / 3)
    return found


def direction(rng: np.random.Generator, x: np.ndarray) -> Any:
    """As large as the argument, on average; nothing where that is missing (NaN)."""
    v = rng.normal(size=x.shape) * (0.1 + np.nanmean(np.abs(x)))
    return np.where(np.isnan(x), 0.0, v)[()]


def is_near(a: float, b: float, scale: float, tolerance: float) -> bool:
    return abs(a - b) <= tolerance * max(abs(a), abs(b), scale)


def verdict(program: Program) -> str:
    args = program.inputs(program.small)
    chosen = positions(args)
    result = program.function(*program.inputs(program.small))
    paths = list(floats_in(result))
    if not chosen or not (paths or any(isinstance(args[i], np.ndarray) for i in chosen)):
        return "no floats"
    f = objective(program, args, paths)
    try:
        gradients = fusec.grad(f, chosen)(*args)
    except fusec.UnsupportedError as error:
        notes = error.diagnostic.notes
        where = error.loc
        line = f" at {where.file.rpartition('/')[2]}:{where.line}" if where else ""
        return f"refused: {error.diagnostic.title.partition(' is not supported')[0]}" + (
            f" ({notes[0]})" if notes else "") + line
    rng = np.random.default_rng(0)
    is_single = any(np.asarray(args[i]).dtype == np.float32 for i in chosen)
    tolerance = 1e-2 if is_single else TOLERANCE
    for _ in range(2):
        v = [direction(rng, np.asarray(args[i])) for i in chosen]
        got = float(sum(np.sum(g * d) for g, d in zip(gradients, v, strict=True)))
        scale = 1e-9 * sum(float(np.sum(np.abs(g * d))) for g, d in zip(gradients, v, strict=True))
        found = along(f, program, chosen, v)
        if np.isnan(got):  # said loudly: NumPy's functions have no derivative there
            return f"NaN: differences {found[2]:.8g}"
        if not any(is_near(got, d, scale, tolerance) for d in found):
            # Iterations that end at a tolerance give results that jump a little: as near as two
            # differences are to each other.
            gap, middle = min((abs(a - b), (a + b) / 2) for a, b in itertools.pairwise(found))
            if abs(got - middle) > 5 * gap or gap > 1e-4 * abs(middle):
                what = "WRONG" if gap < 1e-5 * abs(middle) else "no judgement"
                return f"{what}: {got:.8g}, differences {' '.join(f'{d:.8g}' for d in found)}"
    return "right"


def give_up(*_: Any) -> None:
    raise TimeoutError


def main(names: list[str]) -> int:
    signal.signal(signal.SIGALRM, give_up)
    counts: dict[str, int] = {}
    for program in programs():
        if names and program.name not in names and program.field not in names:
            continue
        start = time.process_time()
        signal.alarm(PATIENCE)
        try:
            text = verdict(program)
        except TimeoutError:
            text = f"slow: no answer in {PATIENCE} s"
        except Exception as error:
            text = f"FAILED: {type(error).__name__}: {str(error)[:300]}"
        signal.alarm(0)
        kind = text.partition(":")[0]
        counts[kind] = counts.get(kind, 0) + 1
        print(f"{program.field:20} {program.name:26} {time.process_time() - start:5.1f} s  {text}",
              flush=True)
    print(counts)
    return counts.get("WRONG", 0) + counts.get("FAILED", 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
