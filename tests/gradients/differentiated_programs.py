"""Random straight-line programs, both directions of their derivatives judged.

The programs are those of ``tests/fuzz/fuzzer`` on ordinary numbers.  ``<u, J v> = <J^T u, v>`` is
judged wherever all is finite; tangents against differences where the program is smooth: where
differences of several steps agree.  By hand:
``python tests/gradients/differentiated_programs.py -n 5000``.
"""

from __future__ import annotations

import argparse
import itertools
import random
import sys
import time
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "fuzz")]

from fuzzer.grow import LENGTHS, Growing, Program  # noqa: E402
from fuzzer.program import names  # noqa: E402
from fuzzer.values import Argument, make  # noqa: E402
from rule_harness import Derivatives, inner, random_like  # noqa: E402

from fusec.errors import FusecError, InternalError  # noqa: E402

SHAPES: list[tuple[int, ...]] = [(3,), (5,), (2, 3), (3, 3), (3, 1), (), (4, 3, 2), (2, 2), (8,)]
STEPS = (2.0**-9, 2.0**-11, 2.0**-13)
# By the narrowest dtype that a program computes in.
CONSISTENT = {8: 1e-12, 4: 2e-5, 2: 5e-2}
ROUNDING = 1e-15  # of a result, which differences divide by the step
SMOOTH, RIGHT = 1e-6, 1e-5  # how far differences are from each other, and from tangents


class Smooth(Growing):
    """A program under way whose arguments are floats, or complex numbers, away from corners."""

    def __init__(self, seed: str) -> None:
        super().__init__(seed)
        count = self.rng.choice([1, 2, 2, 3])
        self.arguments = tuple(_argument(self.rng) for _ in range(count))
        self.scope, self.names = names(), [f"x{i}" for i in range(count)]
        self.scope.update(zip(self.names, make(list(self.arguments)), strict=True))


def _argument(rng: random.Random) -> Argument:
    shape = rng.choice(SHAPES)
    dtype = rng.choice(["f8", "f8", "f8", "c16"])

    def number() -> float:
        return round(rng.choice([-1, 1, 1]) * rng.uniform(0.3, 2.5), 4)

    values = [complex(number(), number()) if dtype == "c16" else number()
              for _ in range(int(np.prod(shape)))]
    return Argument("array", dtype, tuple(values), shape)


def program_of(seed: int) -> Program:
    growing = Smooth(f"g{seed}")
    growing.grow(growing.rng.choice(LENGTHS))
    return growing.finished()


class Wrong(AssertionError):
    """A derivative that is not right."""


def judged(program: Program, seed: int) -> str:
    """``right``, ``consistent``, ``refused: …`` or why nothing was judged; raises `Wrong`."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = Derivatives(program.function(), program.make())
        except InternalError:
            raise
        except (FusecError, ArithmeticError, ValueError, TypeError, IndexError,
                np.linalg.LinAlgError):
            return "not traced"
        except AssertionError:
            return "no floats"
        return _of_both(found, np.random.default_rng(seed))


def _of_both(found: Derivatives, rng: np.random.Generator) -> str:
    v = random_like(rng, [found.arguments[k] for k in found.variables])
    try:
        u = random_like(rng, found.values(found.arguments))
    except (ArithmeticError, ValueError, TypeError, IndexError, np.linalg.LinAlgError):
        return "raises"
    try:
        forward, backward = found.pushed(v), found.pulled(u)
    except InternalError:
        raise
    except KeyError:  # a cotangent's size is none that an argument of the graph can define
        return "sizes"
    except FusecError as error:
        return f"refused: {str(error).splitlines()[0]}"
    if not all(np.isfinite(x).all() for x in (*forward, *backward)):
        return "not finite"
    _check_consistent(found, u, v, forward, backward)
    return _against_differences(found, v, forward)


def _check_consistent(
    found: Derivatives, u: Any, v: Any, forward: Any, backward: Any
) -> None:
    one, other = inner(u, forward), inner(backward, v)
    size = sum(float(np.sum(np.abs(a) * np.abs(b)))
               for a, b in (*zip(u, forward, strict=True), *zip(backward, v, strict=True)))
    apart = abs(one - other)
    if apart > CONSISTENT[_narrowest(found)] * (1 + size) and apart > 10 * _noise(
            found, u, v, one, other):
        raise Wrong(f"<u, J v> is {one}, <J^T u, v> is {other}")


def _noise(found: Derivatives, u: Any, v: Any, one: float, other: float) -> float:
    """How far both products move when the arguments do by their last bits."""
    kept, rng = found.arguments, np.random.default_rng(0)
    found.arguments = [
        a * (1 + 1e-15 * rng.standard_normal(a.shape)) if a.dtype.kind in "fc" else a for a in kept]
    moved = abs(inner(u, found.pushed(v)) - one) + abs(inner(found.pulled(u), v) - other)
    found.arguments = kept
    return moved


def _narrowest(found: Derivatives) -> int:
    """Bytes of the narrowest float of the graph."""
    types = (t.dtype for node in found.graph.nodes for t in node.types)
    return min((d.itemsize // (2 if d.kind == "c" else 1) for d in types if d.kind in "fc"),
               default=8)


def _against_differences(found: Derivatives, v: Any, forward: Any) -> str:
    if _narrowest(found) < 8 or _has_phases(found):
        return "consistent"
    rows = [found._difference(v, step) for step in STEPS]
    for value, *parts in zip(found.values(found.arguments), forward, *rows, strict=True):
        tangent, *near = (np.asarray(p) for p in parts)
        size = 1 + np.max(np.abs(np.stack(near)), initial=0)
        if np.max(np.abs(value), initial=0) * ROUNDING > STEPS[-1] * RIGHT or _has_corner(
                found, v, size):
            return "consistent"
        last = (16 * near[2] - near[1]) / 15  # of steps by 4
        if not np.isfinite(last).all() or not all(
                np.allclose(a, b, rtol=0, atol=SMOOTH * size * 100)
                for a, b in itertools.pairwise(near)):
            return "consistent"
        if np.max(np.abs(tangent - last), initial=0) > RIGHT * size:
            raise Wrong(f"a tangent is {tangent}, differences are {last}")
    return "right"


def _has_phases(found: Derivatives) -> bool:
    """Whether there are complex vectors, whose phases LAPACK chooses."""
    return any(node.op in ("LinalgEigh", "LinalgSvd", "Scipy") and any(
        t.dtype.kind == "c" for t in node.types) for node in found.graph.nodes)


def _has_corner(found: Derivatives, v: Any, size: float) -> bool:
    """Whether slopes before and behind the arguments differ."""
    step = STEPS[-1]
    ends = zip(*(found.values(found._moved(v, s)) for s in (-step, 0, step)), strict=True)
    return any(np.max(np.abs(a - 2 * b + c), initial=0) > 0.05 * step * size for a, b, c in ends)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-n", type=int, default=1000, help="how many programs (1000)")
    parser.add_argument("--seed", type=int, default=0, help="the first (0)")
    parser.add_argument("--refused", action="store_true", help="list what was refused")
    chosen = parser.parse_args()
    verdicts: Counter[str] = Counter()
    wrong, began = 0, time.monotonic()
    for seed in range(chosen.seed, chosen.seed + chosen.n):
        program = program_of(seed)
        try:
            verdicts[judged(program, seed)] += 1
        except Exception as error:  # also what fusec raises by mistake
            wrong += 1
            print(f"# seed {seed}: {type(error).__name__}: {error}\n{program.runnable}\n")
    kinds = Counter({"refused" if k.startswith("refused") else k: 0 for k in verdicts})
    for verdict, count in verdicts.items():
        kinds["refused" if verdict.startswith("refused") else verdict] += count
    print(dict(kinds), f"WRONG: {wrong}", f"{time.monotonic() - began:.0f} s")
    if chosen.refused:
        for verdict, count in verdicts.most_common():
            print(count, verdict) if verdict.startswith("refused") else None
    return min(wrong, 1)


if __name__ == "__main__":
    sys.exit(main())
