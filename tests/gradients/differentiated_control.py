"""Random programs with branches, loops, views and writes, their gradients judged.

The programs are those of ``tests/fuzz/fuzzer/control``, at arguments a little beside theirs, which
are small multiples of powers of 2, where conditions change.  ``<J v> = <grad, v>`` is judged
wherever all is finite; gradients against differences where these settle.  By hand: ``python
tests/gradients/differentiated_control.py -n 5000``.
"""

from __future__ import annotations

import argparse
import itertools
import signal
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "fuzz"), str(HERE.parent.parent)]

from fuzzer.control import grammar, sizes  # noqa: E402
from fuzzer.control.program import ControlProgram  # noqa: E402

import fusec  # noqa: E402
from fusec.errors import FusecError, InternalError  # noqa: E402
from tests.gradients.corpus import leaves, total_of  # noqa: E402

STEPS = (1e-4, 1e-5, 1e-6, 1e-7)
CONSISTENT = 1e-11  # of the sizes of what is added up
RIGHT = 1e-5
PATIENCE = 60  # seconds for a program


class Wrong(AssertionError):
    """A derivative that is not right."""


def program_of(seed: int) -> ControlProgram:
    """Every third one has arrays that shrink and grow."""
    return (sizes if seed % 3 == 2 else grammar).program_of(seed)


def primals_of(program: ControlProgram) -> tuple[list[Any], Any, int]:
    """The floats, moved a little, in memory of their own; the array of ints and the int."""
    x, y, matrix, u, a, n = program.make(0)
    rng = np.random.default_rng(program.seed)
    moved = [z + 0.01 * rng.normal(size=z.shape) for z in (x, y, matrix)]
    return [*moved, float(a + 0.01 * rng.normal())], u, n


def fresh(primals: list[Any]) -> list[Any]:
    return [np.array(p) if isinstance(p, np.ndarray) else p for p in primals]


def judged(program: ControlProgram) -> str:
    """``right``, ``consistent``, ``refused: …`` or why nothing was judged; raises `Wrong`."""
    primals, u, n = primals_of(program)
    function = program.function()
    try:
        x, y, matrix, a = fresh(primals)
        paths = list(leaves(function(x, y, matrix, u.copy(), a, n), "fc"))
    except Exception:
        return "raises"

    def total(x: Any, y: Any, matrix: Any, a: Any) -> Any:
        result = function(x, y, matrix, u.copy(), a, n)
        return total_of(paths, result, [x, y, matrix])

    rng = np.random.default_rng(program.seed + 1)
    v = [rng.normal(size=np.shape(p))[()] for p in primals]
    try:
        gradients = fusec.grad(total, (0, 1, 2, 3))(*fresh(primals))
        _, tangent = fusec.jvp(total, tuple(fresh(primals)), tuple(
            d if np.shape(d) else float(d) for d in v))
    except InternalError:
        raise
    except FusecError as error:
        return f"refused: {str(error).splitlines()[0]}"
    products = [g * d for g, d in zip(gradients, v, strict=True)]
    got, size = float(sum(map(np.sum, products))), sum(
        float(np.sum(np.abs(p))) for p in products)
    if not np.isfinite([got, size, float(tangent)]).all():
        return "not finite"
    if abs(got - tangent) > CONSISTENT * (1 + size):
        raise Wrong(f"J v is {tangent}, <grad, v> is {got}, of products as large as {size}")
    return _against_differences(total, primals, v, got, size)


def _against_differences(
    total: Callable[..., Any], primals: list[Any], v: list[Any], got: float, size: float
) -> str:
    def at(step: float) -> float:
        moved = (p + step * d for p, d in zip(primals, v, strict=True))
        return float(total(*(z if np.ndim(z) else float(z) for z in moved)))

    scale = max(1.0, abs(got), 1e-3 * size)
    try:
        coarsest = np.spacing(abs(at(0.0)))
        steps = [h for h in STEPS if coarsest < RIGHT * scale * h]  # others are lost in rounding
        found = [(at(h) - at(-h)) / (2 * h) for h in steps]
    except Exception:
        return "consistent"  # it raises beside its arguments
    if any(abs(got - d) <= RIGHT * scale for d in found):
        return "right"
    if len(found) < 2:
        return "consistent"
    gap, middle = min((abs(a - b), (a + b) / 2) for a, b in itertools.pairwise(found))
    if gap < 1e-7 * max(1.0, abs(middle)):
        raise Wrong(f"<grad, v> is {got}, differences are {found}")
    return "consistent"


def give_up(*_: Any) -> None:
    raise TimeoutError


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-n", type=int, default=100, help="how many programs (100)")
    parser.add_argument("--seed", type=int, default=0, help="the first (0)")
    parser.add_argument("--seconds", type=float, default=1e9, help="begin none after so many")
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    signal.signal(signal.SIGALRM, give_up)
    verdicts: Counter[str] = Counter()
    wrong, began = 0, time.monotonic()
    for seed in range(chosen.seed, chosen.seed + chosen.n):
        if time.monotonic() - began > chosen.seconds:
            break
        program = program_of(seed)
        signal.alarm(PATIENCE)
        try:
            with np.errstate(all="ignore"):
                verdicts[judged(program)] += 1
        except TimeoutError:
            verdicts["slow"] += 1
        except Exception as error:  # also what fusec raises by mistake
            if isinstance(error.__cause__, TimeoutError):
                verdicts["slow"] += 1
                continue
            wrong += 1
            print(f"# seed {seed}: {type(error).__name__}: {error}\n{program.source}\n", flush=True)
        signal.alarm(0)
    kinds: Counter[str] = Counter()
    for verdict, count in verdicts.items():
        kinds[verdict.partition(":")[0]] += count
    print(dict(kinds), f"WRONG: {wrong}", f"{time.monotonic() - began:.0f} s")
    for verdict, count in verdicts.most_common():
        print(count, verdict) if verdict.startswith("refused") else None
    return min(wrong, 1)


if __name__ == "__main__":
    sys.exit(main())
