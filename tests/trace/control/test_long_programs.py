"""The first call of long programs: its cost grows with their length, and is accounted for."""

import gc
import json
import subprocess
import sys
import textwrap
import time
from contextlib import contextmanager

import numpy as np
import pytest

import fusec

pytestmark = pytest.mark.alone  # seconds and memory

PROGRAMS = {
    "products": "[a @ m for m in many]",
    "chain of products": "functools.reduce(lambda x, m: x @ m, many, a)",
    "solve": "functools.reduce(lambda x, m: np.linalg.solve(m, x), many, a)",
    "sort": "functools.reduce(lambda x, m: np.sort(x, axis=0) + m, many, a)",
    "fft": "functools.reduce(lambda x, m: np.fft.fft(x) * 0.1 + m, many, a)",
    "kernels": "functools.reduce(lambda x, m: x + m.sum(), many, a)",
    "expressions": "[a * m + 1 for m in many]",
}
MEASURE = """
    import functools, json, sys, time
    import numpy as np
    import fusec

    def program(a, many):
        return {expression}

    def first_call(n):
        rng = np.random.default_rng(n)
        many = [np.eye(4) + 0.01 * rng.random((4, 4)) for _ in range(n)]
        a = rng.random((4, 4))
        start = time.process_time()
        found = fusec.jit(program)(a, many)
        spent = time.process_time() - start
        np.testing.assert_allclose(found, program(a, many), rtol=1e-6)
        return spent

    def python_work():
        # A fixed piece of Python is the unit: the machine may be slow, or just now busy.
        start = time.process_time()
        kept = {}
        for i in range(300_000):
            kept[i % 997, "a"] = [str(i), isinstance(i, float)]
        return time.process_time() - start

    first_call(3)
    times = [first_call(200), first_call(800), python_work()]
    with open("/proc/self/status") as status:  # rusage counts the memory of what forked it, too
        (peak,) = [line.split()[1] for line in status if line.startswith("VmHWM")]
    print(json.dumps([*times, int(peak) / 1024]))
"""


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_first_call_grows_with_the_program_s_length(name, tmp_path):
    script = tmp_path / "long_program.py"
    script.write_text(textwrap.dedent(MEASURE).replace("{expression}", PROGRAMS[name]))
    made = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
    short, long, unit, megabytes = json.loads(made.stdout)
    assert long < 8 * short  # in proportion it is 4, 16 if the cost is quadratic
    assert long < 40 * unit  # of fft, the longest, it is 22; the unit is some 60 ms
    assert megabytes < 300


@contextmanager
def no_collector():
    """Going over all objects of this process, a suite's, takes longer than a first call does."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


@pytest.mark.parametrize("count", [20, 200])
@pytest.mark.parametrize("step", [np.matmul, np.add, lambda x, m: np.sort(x) + m])
def test_the_stages_times_add_up_to_the_first_call_s(step, count):
    many = [np.full((4, 4), 0.5 + i) for i in range(count)]

    @fusec.jit
    def program(a, many):
        for m in many:
            a = step(a, m) * 0.1
        return a

    with no_collector():
        start = time.perf_counter()
        program(np.eye(4), many)
        total = 1e3 * (time.perf_counter() - start)
    (trace,) = program.traces
    assert 0.8 * total < sum(trace.times.values()) <= total
    assert f"plan {trace.times['plan']:.1f} ms" in str(fusec.explain(program, np.eye(4), many))
