"""Every program of the corpus and of the bench: saved and loaded, the same bits; or refused."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import fusec
from fusec.bench.programs import all_programs
from tests.programs.corpus import programs

SIZES = {"kmeans": 200, "logreg": 150, "eos": 501}
# The list in docs/export.md, with words of each error.
REFUSED = {
    "sieve": "its steps must be known", "adam_rosenbrock": "is a Adam|assigns Adam",
    "normalised_features": "assigns BatchNorm", "controlled_tank": "assigns PID",
    "track": "assigns Kalman", "running_statistics": "assigns Welford",
    "filter_chain": r"sections\[0\] is a Biquad", "advect": "assigns Grid",
}


class Case(NamedTuple):
    name: str
    function: Callable[..., Any]
    inputs: Callable[[], tuple[Any, ...]]


def cases() -> Iterator[Case]:
    for program in programs():
        yield Case(program.name, program.function,
                   lambda program=program: program.inputs(program.small))
    for bench in all_programs():
        for dtype in ("float64", "float32"):
            yield Case(f"bench {bench.name} {dtype}", bench.function,
                       lambda bench=bench, dtype=dtype: tuple(bench.make_args(
                           SIZES.get(bench.name, 300), np.dtype(dtype), 0)))


CASES = [*cases()]


def difference(a: Any, b: Any, where: str = "result") -> str:
    """The first difference of two results, in types or bits."""
    if type(a) is not type(b):
        return f"{where}: {type(a).__name__} for {type(b).__name__}"
    if isinstance(a, dict):
        return "" if list(a) == list(b) and not any(
            difference(a[k], b[k]) for k in a) else f"{where}: another dict"
    if isinstance(a, (tuple, list)):
        found = [difference(x, y, f"{where}[{i}]") for i, (x, y) in enumerate(
            zip(a, b, strict=True))]
        return next((text for text in found if text), "")
    if isinstance(a, (np.ndarray, np.generic)):
        x, y = np.ascontiguousarray(a), np.ascontiguousarray(b)
        same = (x.dtype, np.shape(a)) == (y.dtype, np.shape(b)) and x.tobytes() == y.tobytes()
        return "" if same else f"{where}: other bits"
    return "" if repr(a) == repr(b) else f"{where}: {a!r} for {b!r}"


def saved(case: Case, folder: Path) -> tuple[Any, Any]:
    """The function saved; its result and its arguments after a call."""
    arguments = case.inputs()
    concrete = fusec.jit(case.function).concrete(*arguments)
    with np.errstate(all="ignore"):
        fusec.save(folder, {"f": concrete})
        return concrete(*arguments), arguments


def test_most_programs_can_be_saved() -> None:
    corpus = [case for case in CASES if not case.name.startswith("bench")]
    assert len(corpus) - len(REFUSED) >= 105 and set(REFUSED) <= {case.name for case in corpus}


@pytest.mark.repeats
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_same_bits_or_a_refusal(case: Case, tmp_path: Path) -> None:
    if case.name in REFUSED:
        with pytest.raises(fusec.FusecError, match=REFUSED[case.name]):
            saved(case, tmp_path / "m")
        return
    want = saved(case, tmp_path / "m")
    for _ in ("compiled", "by the plan that was kept, where one is"):
        arguments = case.inputs()
        with np.errstate(all="ignore"):
            got = fusec.load(tmp_path / "m").f(*arguments), arguments
        assert difference(got, want) == ""


CHILD = """
import pickle, sys, numpy as np, fusec
for name, arguments in pickle.load(open("arguments.pkl", "rb")).items():
    with np.errstate(all="ignore"):
        result = fusec.load(name).f(*arguments)
    pickle.dump((result, arguments), open(name + ".pkl", "wb"))
assert not any(name.startswith(("programs_", "tests", "fusec.bench")) for name in sys.modules)
"""
IN_A_CHILD = ("leapfrog_planets", "smith_waterman", "kmeans", "csr_product", "gauss_jordan_inverse",
              "bench black_scholes float32")


def test_a_process_without_the_source(tmp_path: Path) -> None:
    found = {case.name: case for case in CASES if case.name in IN_A_CHILD}
    want = {name: saved(case, tmp_path / name) for name, case in found.items()}
    arguments = {name: case.inputs() for name, case in found.items()}
    (tmp_path / "arguments.pkl").write_bytes(pickle.dumps(arguments))
    subprocess.run([sys.executable, "-c", CHILD], check=True, cwd=tmp_path,
                   env={**os.environ, "PYTHONPATH": str(Path(fusec.__file__).parents[1])})
    for name in found:
        got = pickle.loads((tmp_path / f"{name}.pkl").read_bytes())
        assert difference(got, want[name]) == "", name
