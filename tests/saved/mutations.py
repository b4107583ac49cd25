"""Folders of saved functions with something changed: loading and calling one of them is an error of
fusec's, or the right answer: that of the reference interpreter, from the same folder.

Folders are held in memory and have no file on a disk, but for the disk cache of the campaign, from
which a right answer must come as well.  Hashes are written anew in most of them, or
nothing behind a hash would be reached.  One that was made before is not run again.

``python -m tests.saved.mutations COUNT [SEED]`` runs that many in child processes, where every
array ends at a page that nobody may touch, and prints what went otherwise, crashes among it.
"""

from __future__ import annotations

import copy
import faulthandler
import hashlib
import json
import os
import random
import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, cast

import numpy as np
import optree
import safetensors.numpy as safetensors

import fusec
from fusec import config
from fusec.codegen import backends
from fusec.compiled.saved.reading import read_functions
from fusec.dispatch.loading import LoadedFunction, LoadedProgram
from fusec.state import checkpoint_files

from ..graphs.mutants.judge import EndlessError, at_most

Files = dict[str, bytes]
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


def _kernels(x: Any, i: Any) -> Any:
    return x[i] * 2.0 + x.sum(), np.where(x[1:4] > 0.5, x[2::-1], 0.25 * x[2:])


def _open(x: Any) -> Any:
    n = len(x)
    return x / n + np.arange(n), x[: n - 1]


PROGRAMS: dict[str, tuple[Callable[..., Any], Callable[[], tuple[Any, ...]], Any]] = {
    "scatter": (_scatter, lambda: (np.arange(5.0), np.array([3, 1])), None),
    "loop": (_loop, lambda: (np.linspace(0.0, 1.0, 5), np.int64(7)), None),
    "state": (_state, lambda: (np.linspace(-1.0, 1.0, 5),), None),
    "kernels": (_kernels, lambda: (np.linspace(0.0, 1.0, 5), np.array([3, 1, -1])), None),
    "open": (_open, lambda: (np.arange(6.0),), (fusec.TensorSpec((None,)),)),
}


KEPT = "kernels"  # of which the disk cache has the plan after a call


def save_all(folder: Path) -> None:
    """A folder for each program."""
    for name, (f, arguments, specs) in PROGRAMS.items():
        fusec.save(folder / name, {"f": fusec.jit(f).concrete(*(specs or arguments()))})


def _places(form: Any) -> list[tuple[Any, ...]]:
    """The ways to all parts of JSON's data, but the whole."""
    found: list[tuple[Any, ...]] = []

    def add(form: Any, path: tuple[Any, ...]) -> None:
        items: Any = form.items() if type(form) is dict else enumerate(form) if (
            type(form) is list) else ()
        for key, part in items:
            found.append(way := (*path, key))
            if type(part) in (dict, list):
                add(part, way)

    add(form, ())
    return found


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


def _read(folder: Path) -> Files:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


class Held:
    """A folder in memory: ``held / name`` is the path of a file that lies on no disk."""

    def __init__(self, files: Files) -> None:
        self._files = files
        self._open: dict[str, int] = {}

    def __truediv__(self, name: str) -> Path:
        if name not in self._files:
            return Path("/proc/self/fd/none")
        if name not in self._open:
            self._open[name] = descriptor = os.memfd_create(name)
            os.write(descriptor, self._files[name])
        return Path(f"/proc/self/fd/{self._open[name]}")

    def __enter__(self) -> Held:
        return self

    def __exit__(self, *error: object) -> None:
        for descriptor in self._open.values():
            os.close(descriptor)

    def stat(self) -> os.stat_result:
        """That of a folder which nobody exchanges."""
        return os.stat_result((0,) * 10)

    def load(self) -> LoadedProgram:
        """As `fusec.load` of the folder."""
        read = read_functions(cast(Path, self), {})  # of which it has what is asked for
        return LoadedProgram("held", {
            name: LoadedFunction(name, function) for name, function in read.functions.items()},
            read.variables)


def mutate(files: Files, random_: random.Random) -> None:
    """Change one to three things in a folder."""
    if random_.random() < 0.1:
        _change_tensor(files, random_)
    for _ in range(random_.randint(0 if random_.random() < 0.1 else 1, 3)):
        name = random_.choice(sorted(files))
        if not name.endswith(".json") or random_.random() < 0.15:
            files[name] = _with_other_bytes(files[name], random_)
            continue
        try:
            form = json.loads(files[name])
        except ValueError:
            continue
        places = _places(form)
        if not places:
            continue
        *way, last = random_.choice(places)
        holder = form
        for key in way:
            holder = holder[key]
        pool = [_at(form, random_.choice(places)) for _ in range(4)]
        holder[last] = _other(random_, holder[last], pool)
        files[name] = json.dumps(form).encode()
    if random_.random() < 0.9:
        _hash_anew(files)


def _at(form: Any, place: tuple[Any, ...]) -> Any:
    for key in place:
        form = form[key]
    return form


def _change_tensor(files: Files, random_: random.Random) -> None:
    """Another array in the place of one, whose entry is right."""
    name = random_.choice(("variables", "constants"))
    values = safetensors.load(files[f"{name}.safetensors"])
    index = json.loads(files["saved.json"])
    if not values:
        return
    key = random_.choice(sorted(values))
    old = values[key]
    values[key] = new = np.ascontiguousarray(random_.choice((
        old[:-1], old[:1], old[:0], np.append(old, 7), old.astype(np.float32),
        old.astype(np.int64), old.reshape(1, -1), old[::-1], np.float64(3.0))))
    entry = checkpoint_files.entry_of(new)
    index[name][key]["tensor"] = entry._asdict()
    if name == "constants":
        index[name][key]["order"] = [*range(new.ndim)]
    files[f"{name}.safetensors"] = safetensors.save(values)
    files["saved.json"] = json.dumps(index).encode()


def _with_other_bytes(data: bytes, random_: random.Random) -> bytes:
    kind = random_.randrange(3)
    if kind == 0 or not data:
        return data[: random_.randrange(len(data) + 1)]
    if kind == 1:
        changed = bytearray(data)
        changed[random_.randrange(len(data))] ^= 1 << random_.randrange(8)
        return bytes(changed)
    return data + b"\0" * 8


def _hash_anew(files: Files) -> None:
    try:
        index = json.loads(files["saved.json"])
        for function in index["functions"].values():
            for row in function["signatures"]:
                data = files[f"graph-{row['graph']}.json"]
                row["sha256"] = hashlib.sha256(data).hexdigest()
        files["saved.json"] = json.dumps(index).encode()
    except (ValueError, LookupError, TypeError, AttributeError):
        return


def _called(files: Files, name: str) -> tuple[str, Any]:
    """What loading and calling came to, ``refused`` or ``raised`` or ``answer``, and the error or
    the results."""
    with Held(files) as held:
        try:
            program = held.load()
        except REFUSED as error:
            return "refused", error
        if "f" not in program:
            return "refused", None
        arguments = PROGRAMS[name][1]()
        try:
            result = program.f(*arguments)
        except TypeError as error:  # of parameters that a mutation changed
            if isinstance(error, fusec.FusecError) or "argument" in str(error):
                return "raised", error
            raise
        except RAISED as error:
            if isinstance(error, fusec.InternalError):
                raise
            return "raised", error
        values = {k: v.numpy() for k, v in program.variables.items()}
        return "answer", (result, arguments, values)


LIMIT_SECONDS = 20.0  # a mutation may take away what ends a loop


def outcome(files: Files, name: str) -> tuple[str, str]:
    """The fate of a folder, and what is wrong where it is neither a right answer nor an error."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            with at_most(LIMIT_SECONDS):
                fate, found = _called(files, name)
                if fate == "answer":
                    if name == KEPT:
                        _compare((fate, found), _called(files, name))
                    with backends.using("reference"):
                        _compare((fate, found), _called(files, name))
        except EndlessError:
            return "endless", ""
        except BaseException as error:
            return "wrong", f"{type(error).__name__}: {str(error)[:500]}"
    return fate, ""


def _compare(found: Any, expected: Any) -> None:
    leaves, others = (optree.tree_leaves(tree, none_is_leaf=True) for tree in (found, expected))
    assert len(leaves) == len(others), (found, expected)
    for x, y in zip(leaves, others, strict=True):
        a, b = np.asarray(x), np.asarray(y)
        assert (a.dtype, a.shape) == (b.dtype, b.shape), (found, expected)
        if a.dtype.kind in "fc":
            np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-300)
        else:
            assert (a == b).all(), (found, expected)


def campaign(
    numbers: Iterable[int], seed: int, begins: Callable[[int], Any] = lambda number: None,
    fates: Counter[str] | None = None,
) -> Iterator[str]:
    """Mutations that end in anything but an answer or an error of fusec's, in words; ``begins`` is
    told the number of each, ``fates`` counts how they ended."""
    with tempfile.TemporaryDirectory() as at:
        save_all(Path(at))
        good = {name: _read(Path(at) / name) for name in PROGRAMS}
    seen: set[bytes] = set()
    counted = Counter[str]() if fates is None else fates
    for number in numbers:
        begins(number)
        random_ = random.Random(f"{seed}-{number}")
        name = random_.choice([*PROGRAMS])
        files = dict(good[name])
        mutate(files, random_)
        key = hashlib.blake2b(repr(sorted(files.items())).encode(), digest_size=16).digest()
        if key in seen or files == good[name]:
            counted["again"] += 1
            continue
        seen.add(key)
        fate, text = outcome(files, name)
        counted[fate] += 1
        if text:
            yield f"{seed}-{number} {name}: {text}"


RECYCLED_AFTER = 20_000  # mutations; kernels add up in a process


def child(first: int, count: int, seed: int, last: int) -> None:
    """Mutations from ``first`` on under guard pages; the number of each goes to the file ``last``
    with the counts before it."""
    from tests.graphs.mutants.guards import guard_all_arrays

    guard_all_arrays()
    faulthandler.enable()
    fates = Counter[str]()
    with tempfile.TemporaryDirectory() as at, config.override(cache_dir=at):
        for line in campaign(range(first, first + count), seed, lambda number: os.pwrite(
                last, json.dumps([number, fates]).ljust(400).encode(), 0), fates):
            print(line, flush=True)
    print(json.dumps(fates), flush=True)


def main(count: int, seed: int) -> None:
    """See the module."""
    at, fates, begin, wrong = 0, Counter[str](), time.monotonic(), 0
    last = os.memfd_create("last")
    while at < count:
        some = min(RECYCLED_AFTER, count - at)
        done = subprocess.run(
            [sys.executable, "-m", "tests.saved.mutations", "--child", str(at), str(some),
             str(seed), str(last)], stdout=subprocess.PIPE, text=True, pass_fds=[last])
        *lines, told = done.stdout.splitlines() or [""]
        if done.returncode == 0:
            fates.update(json.loads(told))
            at += some
        else:
            number, counted = json.loads(os.pread(last, 400, 0))
            lines += [told, f"{seed}-{number}: the process ended with status {done.returncode}"]
            fates.update(counted)
            at = number + 1
        wrong += len([line for line in lines if line])
        print(*(line for line in lines if line), sep="\n", end="\n" * bool(lines))
        print(f"{at} mutations, {at / (time.monotonic() - begin):.0f} a second, {wrong} not as they"
              f" should be; {dict(fates)}", flush=True)


if __name__ == "__main__":
    if sys.argv[1] == "--child":
        child(*map(int, sys.argv[2:]))
    else:
        main(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0)
