"""Gradients of the corpus's programs, judged along random directions against differences.

``python -m tests.gradients.corpus [NAME ...]`` prints a line for each program: *right*, *zero*
(of a program without floats, by the floats that its integers are cast from), *refused* with the
reason, *no judgement* where the differences disagree among themselves (the result jumps), or
*WRONG*.  A weighted sum of all floats that a program returns, and of the
float arrays among its arguments as it leaves them, is differentiated by its float arguments.

Some are judged beside their own arguments (`ELSEWHERE` says why).  A tolerance whose gradient is 0,
as it only says when an iteration ends, is not moved: the result jumps with it.
"""

from __future__ import annotations

import inspect
import itertools
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

import fusec
from tests.programs.corpus import Program, programs

TOLERANCE = 2e-6
PATIENCE = 90  # seconds for a program
STEPS = (1e-3, 3e-4, 1e-4, 3e-5, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9, 1e-10, 1e-11)
# By program an argument, what is in its place, and why.
ELSEWHERE: dict[str, tuple[str, Callable[[Any], Any], str]] = {
    "heston_paths": ("xi", lambda xi: xi / 6,
                     "a variance that falls to 0 has a root of infinite slope"),
    "adam_rosenbrock": ("x", lambda x: x + np.linspace(0.2, 0.9, len(x)),
                        "the root of a gradient's square has a corner where that is 0"),
    "conjugate_gradients": ("tolerance", lambda tolerance: 0.05,
                            "the last steps divide rounding errors by each other"),
    "dct_denoise": ("image", lambda image: image + 0.01 * np.cos(np.arange(image.size)).reshape(
        image.shape), "coefficients of equal size are kept, and cut beside that"),
}


Path = tuple[Any, ...]  # the keys that lead to a leaf


def leaves(x: Any, kinds: str, path: Path = ()) -> Iterator[Path]:
    """Where numbers of these kinds lie in the tuples, lists and dicts of a result."""
    if isinstance(x, (list, tuple)):
        for k, item in enumerate(x):
            yield from leaves(item, kinds, (*path, k))
    elif isinstance(x, dict):
        for k, item in x.items():
            yield from leaves(item, kinds, (*path, k))
    elif x is not None and not isinstance(x, str) and np.asarray(x).dtype.kind in kinds:
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


def positions(args: tuple[Any, ...], kinds: str = "f") -> tuple[int, ...]:
    """The arguments to differentiate by."""
    return tuple(i for i, a in enumerate(args)
                 if (isinstance(a, float) and "f" in kinds)
                 or (isinstance(a, np.ndarray) and a.dtype.kind in kinds))


def names_of(program: Program) -> list[str]:
    return list(inspect.signature(program.function).parameters)


def arguments(program: Program) -> tuple[Any, ...]:
    """Those that a gradient is judged at, made anew."""
    args, names = list(program.inputs(program.small)), names_of(program)
    if program.name in ELSEWHERE:
        name, moved, _ = ELSEWHERE[program.name]
        k = names.index(name)
        args[k] = moved(args[k])
    return tuple(args)


def total_of(paths: Sequence[Path], result: Any, arrays: Sequence[Any]) -> Any:
    """One number of all that a program computes."""
    parts = [weighted(leaf(result, path)) for path in paths] + [weighted(a) for a in arrays]
    value = parts[0]
    for part in parts[1:]:
        value = value + part
    return value


def objective(program: Program, args: tuple[Any, ...], paths: list[Path]) -> Callable[..., Any]:
    """The program as a function that returns one float."""
    function = program.function
    arrays = [i for i in positions(args) if isinstance(args[i], np.ndarray)]

    def total(*args: Any) -> Any:
        return total_of(paths, function(*args), [args[i] for i in arrays])

    return total


def differences(
    f: Callable[..., Any], program: Program, chosen: tuple[int, ...], v: Any
) -> Iterator[float]:
    """Those of ``f`` in a direction, one for each of `STEPS`."""
    def at(h: float) -> float:
        args = list(arguments(program))
        for i, direction in zip(chosen, v, strict=True):
            args[i] = args[i] + (h * direction).astype(np.asarray(args[i]).dtype)
            args[i] = float(args[i]) if np.ndim(args[i]) == 0 else args[i]
        with np.errstate(all="ignore"):
            return float(f(*args))

    for h in STEPS:
        coarse, fine = (at(h) - at(-h)) / (2 * h), (at(h / 2) - at(-h / 2)) / h
        yield (4 * fine - coarse) / 3


def direction(rng: np.random.Generator, x: np.ndarray) -> Any:
    """As large as the argument, on average; nothing where that is missing (NaN)."""
    v = rng.normal(size=x.shape) * (0.1 + np.nanmean(np.abs(x)))
    return np.where(np.isnan(x), 0.0, v)[()]


def is_near(a: float, b: float, scale: float, tolerance: float) -> bool:
    return abs(a - b) <= tolerance * max(abs(a), abs(b), scale)


def verdict(program: Program) -> str:
    args = arguments(program)
    chosen = positions(args)
    paths = list(leaves(program.function(*arguments(program)), "fc"))
    if not chosen or not (paths or any(isinstance(args[i], np.ndarray) for i in chosen)):
        return of_integers(program)
    f = objective(program, args, paths)
    try:
        gradients = fusec.grad(f, chosen)(*args)
    except fusec.UnsupportedError as error:
        return _refused(error)
    names = names_of(program)
    ends = [k for k, i in enumerate(chosen) if names[i] == "tolerance"]
    is_single = any(np.asarray(args[i]).dtype == np.float32 for i in chosen)
    rng = np.random.default_rng(0)
    for _ in range(2):
        v = [direction(rng, np.asarray(args[i])) for i in chosen]
        for k in ends:
            v[k] = np.float64(args[chosen[k]] if gradients[k] else 0.0)
        text = _along(f, program, chosen, v, gradients, 1e-2 if is_single else TOLERANCE)
        if text:
            return text
    return "right"


def _refused(error: Any) -> str:
    notes, where = error.diagnostic.notes, error.loc
    line = f" at {where.file.rpartition('/')[2]}:{where.line}" if where else ""
    return f"refused: {error.diagnostic.title.partition(' is not supported')[0]}" + (
        f" ({notes[0]})" if notes else "") + line


def _along(
    f: Callable[..., Any], program: Program, chosen: tuple[int, ...], v: Any, gradients: Any,
    tolerance: float,
) -> str:
    """The errors in a direction; nothing where there are none."""
    products = [g * d for g, d in zip(gradients, v, strict=True)]
    got = float(sum(np.sum(p) for p in products))
    if np.isnan(got):
        return "NaN"
    value = abs(float(f(*arguments(program))))
    scale = 1e-9 * (value + sum(float(np.sum(np.abs(p))) for p in products))
    found = []
    for d in differences(f, program, chosen, v):
        found.append(d)
        if is_near(got, d, scale, tolerance):
            return ""
    # Iterations that end at a tolerance give results that jump a little: as near as two
    # differences are to each other.
    gap, middle = min((abs(a - b), (a + b) / 2) for a, b in itertools.pairwise(found))
    if abs(got - middle) <= 5 * gap and gap <= 1e-4 * abs(middle):
        return ""
    what = "WRONG" if gap < 1e-5 * abs(middle) else "no judgement"
    return f"{what}: {got:.8g}, differences {' '.join(f'{d:.8g}' for d in found)}"


def of_integers(program: Program) -> str:
    """A program's gradient by floats that its integers are cast from: 0, and no error."""
    args = arguments(program)
    chosen = positions(args, "biu")
    if not chosen:
        return "no arrays"
    dtypes, function = {i: args[i].dtype for i in chosen}, program.function
    paths = list(leaves(function(*arguments(program)), "biufc"))

    def total(*args: Any) -> Any:
        own = [a.astype(dtypes[i]) if i in dtypes else a for i, a in enumerate(args)]
        result = function(*own)
        return total_of(paths, result, [own[i] for i in chosen])

    floats = [a.astype(float) if i in dtypes else a for i, a in enumerate(args)]
    gradients = fusec.grad(total, chosen)(*floats)
    is_zero = all(g.shape == floats[i].shape and not np.any(g)
                  for g, i in zip(gradients, chosen, strict=True))
    return "zero" if is_zero else "WRONG: not 0"


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
