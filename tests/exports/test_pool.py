"""Libraries with threads of their own: one pool a process, forks, callers at the same time."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fusec

from .calling import CFunction
from .test_c_library import SPEC, V3, centred
from .test_c_library import pytestmark as needs_v3

pytestmark = needs_v3
N = 200_000


def smooth(x: Any, y: Any) -> Any:
    return np.exp(np.sin(x) * 0.3) * y + np.sqrt(x * x + 1.0)


def histogram(x: Any, i: Any) -> Any:
    counts = np.zeros(10)
    np.add.at(counts, i, x)  # in order, whatever the number of threads
    return counts


def bad_threads(x: Any) -> Any:
    return x + 1


@pytest.fixture(scope="module")
def libraries(tmp_path_factory: Any) -> tuple[Any, Any]:
    folder, vector = tmp_path_factory.mktemp("pool"), SPEC((None,))
    one = fusec.export_c({"one": (smooth, (vector, vector)),
                          "centred": (centred, (SPEC((None, 70)),)),
                          "histogram": (histogram, (vector, SPEC((None,), np.int64)))},
                         folder / "first", V3, threads="pool")
    two = fusec.export_c({"two": (smooth, (vector, vector))}, folder / "second", V3, threads="pool")
    return one, two


def run(program: Path, libraries: Any, seconds: float, **environment: str) -> str:
    done = subprocess.run(
        [str(program), *(str(made.shared) for made in libraries), str(N), str(seconds)],
        env={**os.environ, **environment}, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.fixture(scope="module")
def program(tmp_path_factory: Any) -> Path:
    compiler = shutil.which("gcc")
    if compiler is None:
        pytest.skip("needs gcc")
    target = tmp_path_factory.mktemp("program") / "pool_program"
    subprocess.run([compiler, "-O1", "-Wall", "-Werror", "-pthread", "-o", str(target),
                    str(Path(__file__).parent / "pool_program.c"), "-ldl"], check=True)
    return Path(target)


@pytest.mark.parametrize("threads", [1, 3, 5])
def test_one_pool_forks_and_callers_at_once(program: Path, libraries: Any, threads: int) -> None:
    said = run(program, libraries, 1.0, FUSEC_NUM_THREADS=str(threads))
    assert said.startswith(f"ok {threads} threads"), said


@pytest.mark.parametrize("given", ["", "nonsense", "0", "99999999999999999999"])
def test_other_numbers_of_threads_are_those_of_the_cpus(
    program: Path, libraries: Any, given: str
) -> None:
    allowed = os.sched_getaffinity(0)
    said = run(program, libraries, 0.05, FUSEC_NUM_THREADS=given)
    assert said.startswith(f"ok {len(allowed)} threads")
    os.sched_setaffinity(0, {min(allowed)})
    try:
        assert run(program, libraries, 0.05, FUSEC_NUM_THREADS=given).startswith("ok 1 threads")
    finally:
        os.sched_setaffinity(0, allowed)


def test_bits_are_fusecs(libraries: Any, monkeypatch: Any) -> None:
    monkeypatch.setenv("FUSEC_NUM_THREADS", "3")
    rng = np.random.default_rng(40)
    handle = ctypes.CDLL(str(libraries[0].shared))
    called = {f.name: CFunction(handle, f) for f in libraries[0].functions}
    x, i, z = rng.random(N), rng.integers(0, 10, N), rng.random((9000, 70))
    for name, function, leaves in [("one", smooth, (x, x)), ("centred", centred, (z,)),
                                   ("histogram", histogram, (x, i))]:
        code, results, _ = called[name](leaves)
        want = fusec.jit(function)(*leaves)
        assert code == 0
        for a, b in zip(results, want if type(want) is tuple else (want,), strict=True):
            assert np.array_equal(np.ravel(a), np.ravel(b)), name


def test_it_needs_the_c_library_alone(libraries: Any) -> None:
    for made in libraries:
        data = made.shared.read_bytes()
        assert b"libpthread" not in data and b"libc.so.6" in data


def test_a_wheel_asks_for_the_c_library_that_has_threads(libraries: Any) -> None:
    assert fusec.wheel_stub(libraries[1].folder).name.endswith("manylinux_2_34_x86_64.whl")


def test_other_words_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no way to run threads"):
        fusec.export_c({"f": (bad_threads, (SPEC((4,)),))}, tmp_path / "lib", V3, threads="many")
