"""Folders of saved functions with something changed: loading and calling one of them is an error of
fusec's, or the right answer.

``python -m tests.saved.mutations COUNT [SEED]`` runs that many in this process, where every array
ends at a page that nobody may touch, and prints what went otherwise; a crash leaves the number of
its mutation in the file LAST.  Hashes are written anew in most of them, or nothing behind a hash
would be reached.
"""

from __future__ import annotations

import copy
import faulthandler
import hashlib
import json
import os
import random
import shutil
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import fusec

REFUSED = (fusec.FusecError, FileNotFoundError)
# What NumPy and library calls raise for numbers that a mutation changed.
RAISED = (*REFUSED, ValueError, IndexError, ZeroDivisionError, OverflowError,
          np.linalg.LinAlgError, MemoryError, RecursionError)


def _scatter(x: Any, i: Any) -> Any:
    x[i] = 2.0 * x[i] + 1.0
    return x[1:4], x.sum()


def _loop(x: Any, n: Any) -> Any:
    total = 0.0
    for k in range(n):
        if x[k % 5] > 0.5:
            total += np.sqrt(x[k % 5])
    return {"total": total, "all": np.cumsum(x)[::-1]}


WEIGHTS = np.arange(5.0)
STATE = fusec.Variable(np.zeros(5), name="state")


def _state(x: Any) -> Any:
    STATE.assign_add(x * WEIGHTS)
    return x[x > 0.0], STATE.read_value().reshape(5, 1)


def _open(x: Any) -> Any:
    n = len(x)
    return x / n + np.arange(n), x[: n - 1]


PROGRAMS: dict[str, tuple[Callable[..., Any], Callable[[], tuple[Any, ...]], Any]] = {
    "scatter": (_scatter, lambda: (np.arange(5.0), np.array([3, 1])), None),
    "loop": (_loop, lambda: (np.linspace(0.0, 1.0, 5), np.int64(7)), None),
    "state": (_state, lambda: (np.linspace(-1.0, 1.0, 5),), None),
    "open": (_open, lambda: (np.arange(6.0),), (fusec.TensorSpec((None,)),)),
}


def save_all(folder: Path) -> None:
    """A folder for each program."""
    for name, (f, arguments, specs) in PROGRAMS.items():
        fusec.save(folder / name, {"f": fusec.jit(f).concrete(*(specs or arguments()))})


def _places(form: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    items: Any = form.items() if isinstance(form, dict) else enumerate(form) if isinstance(
        form, list) else ()
    for key, part in items:
        yield from _places(part, (*path, key))


_TEXTS = ("", "f64[3]", "f64[s0]", "size(\"n\")", "../../etc/passwd", "Slice", "Input", "n1", "x:0",
          "builtins.exec", "numpy.arange", "-1", "9" * 30)


def _other(random_: random.Random, value: Any, pool: list[Any]) -> Any:
    if random_.random() < 0.3:
        return copy.deepcopy(random_.choice(pool))
    if type(value) is bool:
        return not value
    if type(value) is int:
        return random_.choice((value + 1, value - 1, -value, 0, 1, 1000, 1 << 40, 1 << 70))
    if type(value) is float:
        return random_.choice((0.0, -value, 1e308, float("inf")))
    if type(value) is str:
        at = random_.randrange(len(value) + 1)
        return random_.choice((*_TEXTS, value[:at], value[:at] + "7" + value[at:]))
    if type(value) is list:
        return random_.choice((value[1:], value * 2, value[::-1], []))
    if type(value) is dict and value:
        return {k: v for k, v in value.items() if k != random_.choice([*value])}
    return random_.choice((None, 0, "x", [], {}))


def mutate(folder: Path, random_: random.Random) -> None:
    """Change one to three things in a folder."""
    for _ in range(random_.randint(1, 3)):
        path = random_.choice(sorted(folder.iterdir()))
        if path.suffix != ".json" or random_.random() < 0.15:
            _change_bytes(path, random_)
            continue
        try:
            form = json.loads(path.read_text())
        except ValueError:
            continue
        places = [p for p in _places(form) if p]
        if not places:
            continue
        *way, last = random_.choice(places)
        holder = form
        for key in way:
            holder = holder[key]
        pool = [_at(form, random_.choice(places)) for _ in range(4)]
        holder[last] = _other(random_, holder[last], pool)
        path.write_text(json.dumps(form))
    if random_.random() < 0.9:
        _hash_anew(folder)


def _at(form: Any, place: tuple[Any, ...]) -> Any:
    for key in place:
        form = form[key]
    return form


def _change_bytes(path: Path, random_: random.Random) -> None:
    data = bytearray(path.read_bytes())
    kind = random_.randrange(3)
    if kind == 0 or not data:
        path.unlink()
        path.write_bytes(bytes(data[: random_.randrange(len(data) + 1)]))
    elif kind == 1:
        data[random_.randrange(len(data))] ^= 1 << random_.randrange(8)
        path.write_bytes(bytes(data))
    else:
        path.write_bytes(bytes(data) + b"\0" * 8)


def _hash_anew(folder: Path) -> None:
    try:
        index = json.loads((folder / "saved.json").read_text())
        for function in index["functions"].values():
            for row in function["signatures"]:
                data = (folder / f"graph-{row['graph']}.json").read_bytes()
                row["sha256"] = hashlib.sha256(data).hexdigest()
        (folder / "saved.json").write_text(json.dumps(index))
    except (ValueError, LookupError, TypeError, AttributeError, OSError):
        return


def outcome(folder: Path, name: str) -> str:
    """How loading and calling went where it is no answer and no error that it should be."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            program = fusec.load(folder)
        except REFUSED:
            return ""
        except BaseException as error:
            return f"load: {type(error).__name__}: {str(error)[:300]}"
        try:
            if "f" in program:
                program.f(*PROGRAMS[name][1]())
        except TypeError as error:  # of parameters that a mutation changed
            refused = isinstance(error, fusec.FusecError) or "argument" in str(error)
            return "" if refused else f"call: {type(error).__name__}: {str(error)[:300]}"
        except RAISED as error:
            return f"call: {str(error)[:500]}" if isinstance(error, fusec.InternalError) else ""
        except BaseException as error:
            return f"call: {type(error).__name__}: {str(error)[:300]}"
    return ""


def campaign(
    count: int, seed: int, begins: Callable[[int], Any] = lambda number: None
) -> Iterator[str]:
    """Mutations that end in anything but an answer or an error of fusec's, in words; ``begins`` is
    told the number of each."""
    with tempfile.TemporaryDirectory() as at:
        base = Path(at)
        save_all(base / "good")
        for number in range(count):
            begins(number)
            random_ = random.Random(f"{seed}-{number}")
            name = random_.choice([*PROGRAMS])
            shutil.copytree(base / "good" / name, base / "bad")
            mutate(base / "bad", random_)
            if text := outcome(base / "bad", name):
                yield f"{seed}-{number} {name}: {text}"
            shutil.rmtree(base / "bad")


def main(count: int, seed: int) -> None:
    """See the module."""
    from tests.graphs.mutants.guards import guard_all_arrays

    guard_all_arrays()
    faulthandler.enable()
    found = 0
    with open("LAST", "w") as last:
        for line in campaign(count, seed, lambda number: os.pwrite(
                last.fileno(), f"{seed}-{number:09}\n".encode(), 0)):
            found += 1
            print(line, flush=True)
    print(f"{count} mutations, {found} not as they should be")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0)
