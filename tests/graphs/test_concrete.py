"""`F.concrete`: graphs, structures, and the report of a run; timeouts."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
import weakref

import numpy as np
import pytest

import fusec
from fusec.core.process import deadline
from fusec.errors import FusecError


def test_structured_inputs_and_outputs() -> None:
    @fusec.jit(static=("n",))
    def f(params, x, n, *, scale=2.0):
        y = x @ params["w"] + params["b"]
        return {"y": y * scale, "rows": (y.T, y[0], n), "count": len(x), "positive": x[x > 0]}

    x, w = np.ones((4, 3)), np.ones((3, 2), np.float32)
    concrete = f.concrete({"w": w, "b": np.zeros(2)}, x, 5, scale=3.0)
    (params, given, n), kwargs = concrete.structured_inputs
    assert params["w"] == fusec.TensorSpec((3, 2), np.float32, "params['w']")
    assert given == fusec.TensorSpec((4, 3), np.float64, "x") and n == 5
    assert kwargs == {"scale": fusec.TensorSpec((), np.float64, "scale")} or kwargs == {}
    out = concrete.structured_outputs
    assert out["y"] == fusec.TensorSpec((4, 2)) and out["count"] == 4
    assert out["rows"] == (fusec.TensorSpec((2, 4)), fusec.TensorSpec((2,)), 5)
    assert out["positive"] == fusec.TensorSpec((None,))


def test_structures_agree_with_results() -> None:
    """Every spec of an output admits a call's result."""
    @fusec.jit
    def f(x):
        return x[1:, ::2], x.reshape(6), x.sum(), (x > 1, x.astype("i4")), x.T[None], x

    x = np.arange(6.0).reshape(2, 3)
    concrete = f.concrete(x)
    specs, results = concrete.structured_outputs, f(x)
    assert len(specs) == len(results)
    for spec, result in zip([*specs[:3], *specs[3], *specs[4:]],
                            [*results[:3], *results[3], *results[4:]], strict=True):
        assert spec.admits(result), (spec, result)


def test_a_traced_run_reports_every_step() -> None:
    @fusec.jit
    def f(x, w):
        y = np.exp(x) * 2.0 + 1.0
        return np.tanh(y @ w)

    x, w = np.ones((8, 4)), np.ones((4, 2))
    concrete = f.concrete(x, w)
    result, metadata = concrete.run(x, w, options=fusec.RunOptions(trace=True))
    np.testing.assert_allclose(result, np.tanh((np.exp(x) * 2 + 1) @ w))
    assert [node.op for node in metadata.nodes] == ["kernel", "MatMul", "kernel"]
    first, product, last = metadata.nodes
    assert {"Exp", "Fma"} <= set(first.nodes) and "Tanh" in last.nodes
    assert first.bytes == 2 * x.nbytes and product.bytes == x.nbytes + w.nbytes + 8 * 2 * 8
    assert metadata.bytes == sum(node.bytes for node in metadata.nodes)
    assert all(node.us > 0 for node in metadata.nodes)
    assert metadata.total_us >= sum(us for _, us in metadata.steps)
    assert first.loc is not None and first.loc.line > 0
    assert metadata.graphs == (concrete.optimized_graph,)
    assert "kernel" in str(metadata) and "bytes" in str(metadata)


def test_a_plain_run_reports_its_time_alone() -> None:
    concrete = fusec.jit(lambda x: x + 1).concrete(np.ones(3))
    result, metadata = concrete.run(np.ones(3))
    assert result.tolist() == [2.0] * 3
    assert metadata.total_us > 0 and metadata.nodes == [] and metadata.bytes == 0
    assert metadata.graphs == (concrete.optimized_graph,)


def test_a_part_of_a_graph_reports_too() -> None:
    graph = fusec.jit(lambda x: np.square(np.square(x))).concrete(np.ones(3)).graph
    function = graph.function(inputs=["Square:0"])
    result, metadata = function.run(np.full(3, 2.0), options=fusec.RunOptions(trace=True))
    assert result.tolist() == [4.0] * 3
    assert [node.nodes for node in metadata.nodes] == [("Square_1",)]


# ---------------------------------------------------------------------------------------- timeouts


def endless():
    @fusec.jit
    def f(x):
        total = x
        while total > -1.0:
            total = total * 0.5 + 1.0
        return total

    return f


def python_steps():
    """A loop that runs step by step: its library calls have results of any size."""
    @fusec.jit
    def f(x):
        count = 0
        while np.unique(x * count).size > -1:
            count = count + 1
        return count

    return f


@pytest.mark.parametrize(("make", "argument"), [(endless, 1.0), (python_steps, np.arange(3.0))],
                         ids=["native loop", "steps"])
@pytest.mark.parametrize("in_thread", [False, True])
def test_a_timeout_ends_a_run(make, argument, in_thread) -> None:
    concrete = make().concrete(argument)
    found: list[object] = []

    def call() -> None:
        start = time.perf_counter()
        try:
            concrete.run(argument, options=fusec.RunOptions(timeout=0.3))
        except TimeoutError as error:
            found.append(error)
        found.append(time.perf_counter() - start)

    if in_thread:
        thread = threading.Thread(target=call)
        thread.start()
        thread.join(30)
    else:
        call()
    error, seconds = found
    assert isinstance(error, FusecError) and "did not end within 0.3 s" in str(error)
    assert 0.2 < seconds < 10.0


def test_a_run_that_is_in_time_is_not_disturbed() -> None:
    concrete = fusec.jit(lambda x: x + 1).concrete(np.ones(3))
    for _ in range(200):
        result, _ = concrete.run(np.ones(3), options=fusec.RunOptions(timeout=0.5))
        assert result.tolist() == [2.0] * 3
    time.sleep(0.6)  # timers of runs that are over raise nothing
    assert sum(range(100_000)) == 4999950000


WATCHED = """
import sys
import numpy as np
import fusec

concrete = fusec.jit(lambda x: x + 1).concrete(np.ones(3))
for timeout in (5.0, 1e-9, 5.0):
    try:
        concrete.run(np.ones(3), options=fusec.RunOptions(timeout=timeout))
    except TimeoutError:
        pass
sys.setprofile(lambda *event: None)
print((lambda x: x + 1)(1))
"""


def test_a_profiler_goes_on_after_runs_with_a_timeout() -> None:
    """An exception that is taken back has CPython 3.11 look for it in each call for ever."""
    done = subprocess.run([sys.executable, "-c", WATCHED], capture_output=True, text=True,
                          timeout=60, check=False)
    assert done.stdout == "2\n", done.stderr


def test_the_function_goes_on_after_a_timeout() -> None:
    @fusec.jit
    def f(x, n):
        total = x * 0.0
        for i in range(n):
            total = total + x * i
        return total

    x = np.linspace(0.0, 1.0, 100_000)
    f(x, 2), f(x, 3)
    concrete = f.concrete(x, 1 << 40)
    with pytest.raises(TimeoutError):
        concrete.run(x, 1 << 40, options=fusec.RunOptions(timeout=0.2))
    np.testing.assert_allclose(f(x, 4), x * 6)


@pytest.mark.parametrize("timeout", [0, -1.0, float("nan"), float("inf"), "1"])
def test_what_is_no_timeout(timeout) -> None:
    with pytest.raises(ValueError, match="a number of seconds above 0"):
        fusec.RunOptions(timeout=timeout)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_timeout_that_is_lost_in_a_callback_comes_again():
    class Watched:
        pass

    def busy_callback(_):
        start = time.perf_counter()
        while time.perf_counter() < start + 0.3:
            pass

    def run():
        watched = Watched()
        kept = weakref.ref(watched, busy_callback)
        del watched  # the exception comes while this waits for the callback
        while kept() is None:
            pass

    with pytest.raises(TimeoutError):
        deadline.within(0.1, run, "run")
