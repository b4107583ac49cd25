"""``import fusec`` stays light: heavy modules are imported at first use."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.alone  # seconds

HEAVY = ("numba", "scipy", "rich", "matplotlib", "llvmlite", "optree", "fusec.codegen",
         "fusec.passes", "fusec.ops", "fusec.trace.values")
DECORATE = "import fusec; fusec.jit(lambda x: x + 1)"
TIMED = f"""
import time
start = time.process_time()
import numpy
middle = time.process_time()
{DECORATE}
print(middle - start, time.process_time() - middle)
"""
RUNS = 5


def run(code: str, tmp_path: Path) -> str:
    """The output of a fresh process that may keep byte code, as an installed package has it."""
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(tmp_path)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    done = subprocess.run([sys.executable, "-c", code], env=environment, check=True,
                          capture_output=True, text=True, cwd=tmp_path)
    return done.stdout


def test_importing_and_decorating_is_lighter_than_numpy(tmp_path):
    """A third of NumPy's own time when this was written, 0.9 with the tracer imported; file reads
    that are slow for minutes have doubled it."""
    run(DECORATE, tmp_path)  # writes the byte code
    ratios = []
    for _ in range(RUNS):
        numpy_s, fusec_s = map(float, run(TIMED, tmp_path).split())
        ratios.append(fusec_s / numpy_s)
    assert statistics.median(ratios) < 0.8, ratios


def test_nothing_heavy_is_imported_before_the_first_call(tmp_path):
    shown = run(f"{DECORATE}\nimport sys\nprint(*sys.modules)", tmp_path).split()
    assert not [m for m in shown if m.startswith(HEAVY)]


def test_a_call_imports_no_optional_package(tmp_path):
    code = ("import sys, numpy, fusec; fusec.jit(lambda x: numpy.sort(numpy.exp(x)).sum())("
            "numpy.ones(3)); print(*sys.modules)")
    loaded = {m.partition(".")[0] for m in run(code, tmp_path).split()}
    assert not loaded & {"numba", "scipy", "rich", "matplotlib"}


def test_a_program_without_loops_loads_no_compiler_of_loops(tmp_path):
    code = ("import sys, numpy, fusec; fusec.jit(lambda x: numpy.exp(x) + 1)(numpy.ones(3)); "
            "print(*sys.modules)")
    loaded = run(code, tmp_path).split()
    assert "fusec.codegen.cpu.compile" in loaded
    assert not [m for m in loaded if m.startswith("fusec.codegen.cpu.loops")]


def test_the_stages_add_up_to_the_first_call(tmp_path):
    """The imports of a process's first call are one of them."""
    code = """
import time
import numpy
import fusec
f = fusec.jit(lambda x: numpy.exp(x) + 1)
x = numpy.ones(3)
start = time.perf_counter()
f(x)
whole = time.perf_counter() - start
print(f.traces[0].times.get("imports", 0.0), sum(f.traces[0].times.values()) / 1e3 / whole)
"""
    run(code, tmp_path)  # writes the byte code
    shares = []
    for _ in range(RUNS):
        imports, share = map(float, run(code, tmp_path).split())
        assert imports > 10
        shares.append(share)
    assert 0.7 < statistics.median(shares) <= 1.0, shares


@pytest.mark.parametrize("first", ["f.trace(x)", "f.lower(x)", "call_with_a_wrong_size()"])
def test_imports_are_told_by_no_call_that_did_not_wait_for_them(tmp_path, first):
    code = f"""
import numpy
import fusec
x = numpy.ones(3)
f = fusec.jit(lambda x: numpy.exp(x) + numpy.ones(3))
def call_with_a_wrong_size():
    try:
        f(numpy.ones(4))
    except ValueError:
        print("refused")
{first}
f(x)
print([trace.times.get("imports") for trace in f.traces])
"""
    assert run(code, tmp_path).split()[-1] == "[None]"
