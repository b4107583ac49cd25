"""The harness: equality first, varied inputs, interleaving, honest verdicts."""

from __future__ import annotations

import dataclasses
import json
import tracemalloc

import numpy as np
import pytest
from bench_standin import StandIn

import fusec
from fusec.bench.measure import benchmark, peak_memory
from fusec.bench.measuring import inputs, timing
from fusec.bench.measuring.adapter import (
    FusecBackend,
    MeasuredTraffic,
    by_stage,
    extern_name,
    kernel_traffic,
    traffic,
)
from fusec.bench.measuring.stats import Timing
from fusec.bench.reports.report import Report

pytestmark = pytest.mark.alone  # seconds


def triple(x):
    return 3.0 * x + 1.0


def fast(f, *args, backend=None, **options):
    return benchmark(f, *args, backend=backend or StandIn(), repeats=6, **options)


def test_report_of_an_identity_compiler():
    report = fast(triple, np.linspace(0.0, 1.0, 1000))
    assert report.equality.equal and report.threads == 2 and report.fused
    assert report.kernels == 1 and report.bytes_moved == 24_000
    assert report.eager.samples == 6 and report.eager.calls_per_sample > 1
    assert 0.2 < report.speedup < 5.0 and 0 < report.limit_share < 10
    assert report.total_compile_ms == 10.0 and report.first_call_ms > 0
    assert report.peak_eager >= 8000 and report.eager_kept.samples == 6
    text = str(report)
    assert "compile   10.0 ms" in text and "5 operations in 1 kernel;" in text


def test_report_is_json():
    data = fast(triple, np.ones(10)).to_dict()
    assert json.loads(json.dumps(data))["kernels"] == 1


def test_compiled_functions_are_taken_as_they_are():
    backend = StandIn()
    compiled = backend.jit(triple)
    report = fast(compiled, np.ones(10), backend=backend)
    assert compiled.calls > 6 and report.first_call_ms is None and report.name == "triple"


def test_thread_counts_are_entered_and_reported():
    backend = StandIn()
    report = fast(triple, np.ones(10), backend=backend, threads=(1, 4))
    assert set(report.compiled) == set(report.limit_seconds) == {1, 4} == set(backend.used_threads)


def test_wrong_results_are_found_and_said_first():
    report = fast(triple, np.ones(10), backend=StandIn(twist=lambda r: r * (1 + 1e-12)))
    assert not report.equality.equal and report.verdict.startswith("The results differ")
    assert "10 of 10 float64 values" in report.equality.reason


def test_every_check_set_counts():
    def twist(r):
        return r + 1.0 if r[0] > 100.0 else r
    checks = [(np.ones(5),), (np.full(5, 1e3),)]
    assert fast(triple, np.ones(5), backend=StandIn(twist)).equality.equal
    assert not fast(triple, np.ones(5), backend=StandIn(twist), checks=checks).equality.equal


def test_arguments_stay_untouched_and_written_ones_are_compared():
    def scale(x):
        x *= 2.0
        return x.sum()

    x = np.ones(50)
    report = fast(scale, x)
    assert (x == 1.0).all() and report.equality.equal
    assert report.eager.calls_per_sample <= timing.MAX_POOL


def test_writing_to_an_argument_wrongly_is_not_equal():
    calls = []

    def scale(x):
        calls.append(1)
        # Calls: the compiled function's first, eager, in extended precision, compiled.
        x *= 2.0 if len(calls) in (2, 3) else 2.5

    assert not fast(scale, np.ones(5)).equality.equal


def test_no_two_repeats_see_the_same_inputs():
    seen = []

    def f(x):
        seen.append(float(x[1]))
        return x

    case = timing.Case("f", f)
    timing.run([case], inputs.varying((np.arange(1.0, 9.0),)), repeats=5, budget=0.0)
    assert len(set(seen)) > 5 and len(case.samples) == 5


def test_every_case_runs_in_every_round_in_changing_order():
    log = []
    slow = [timing.Case(name, lambda x, name=name: log.append(name)) for name in "abc"]
    for case in slow:
        case.batch = lambda pool, case=case: log.append(case.name) or 1.0
    timing.run(slow, lambda k: (np.ones(1),), repeats=20, budget=0.0)
    rounds = ["".join(log[i:i + 3]) for i in range(len(log) - 60, len(log), 3)]
    assert all(sorted(r) == list("abc") for r in rounds) and len(set(rounds)) > 2


def test_budget_is_kept():
    import time

    start = time.perf_counter()
    case = timing.Case("sleep", lambda x: time.sleep(0.005))
    timing.run([case], lambda k: (np.ones(1),), repeats=None, budget=0.1)
    assert timing.MIN_ROUNDS <= len(case.samples) <= 25
    assert time.perf_counter() - start < 2.0


def test_kept_results_are_the_last_eight():
    case = timing.Case("keep", lambda x: x, keep=True, calls=20)
    case.batch([(i,) for i in range(20)])
    assert list(case.kept) == list(range(12, 20))


def test_perturbed_keeps_layout_integers_signs_and_nan():
    x = np.array([[1.0, -2.0], [np.nan, 0.0]], order="F")
    y, n, name = inputs.perturbed((x, np.arange(3), "text"), 5)
    assert y.flags.f_contiguous and not y.flags.c_contiguous and name == "text"
    assert y[0, 0] == 1 + 5 / 4096 and y[0, 1] == -2 * y[0, 0] and np.isnan(y[1, 0])
    assert np.array_equal(n, np.arange(3)) and x[0, 0] == 1.0


def test_pools_respect_memory():
    assert inputs.pool_size((np.ones(10),), 32) == 32
    assert inputs.pool_size((np.broadcast_to(1.0, (1 << 24,)),), 32) == 2


def test_peak_memory_counts_temporaries():
    x = np.ones(100_000)
    assert peak_memory(lambda x: x + 1.0, (x,)) >= 800_000
    assert peak_memory(lambda x: (x + 1.0) * (x + 2.0), (x,)) >= 1_600_000
    tracemalloc.start()
    try:
        with pytest.raises(RuntimeError, match="already running"):
            peak_memory(lambda x: x, (x,))
    finally:
        tracemalloc.stop()


def test_traffic_counts_streams_not_small_operands():
    t = traffic({"x": 8000, "bias": 80}, [4000])
    assert (t.reads, t.writes, t.loaded, t.stored) == (1, 1, 8080, 4000)
    assert traffic(8000, 0) == MeasuredTraffic(1, 0, 8000, 0)
    assert traffic({}, {}) == MeasuredTraffic(0, 0, 0, 0)


def test_traffic_of_kernels_as_the_code_generator_describes_them():
    from types import SimpleNamespace as Thing

    sizes = [800, 800, 400]
    kernel = Thing(buffers=[Thing(role="in"), Thing(role="in"), Thing(role="out")],
                   bytes_of=sizes.__getitem__)
    assert kernel_traffic(Thing(kernel=kernel)) == MeasuredTraffic(2, 1, 1600, 400)
    assert kernel_traffic(
        Thing(bytes_loaded={"a": 8}, bytes_stored=4)) == MeasuredTraffic(1, 1, 8, 4)
    assert extern_name(Thing(node=Thing(op="MatMul"))) == extern_name("MatMul") == "MatMul"


def test_stage_names():
    times = by_stage({"trace": 1, "parse": 2.0, "emit": 3.0, "total": 9.0})
    assert times == {"trace": 1.0, "passes": 0.0, "codegen": 0.0, "llvm": 5.0}
    with pytest.raises(KeyError, match="linking"):
        by_stage({"linking": 1.0})


def made(eager: float, compiled: float, **changes) -> Report:
    from fusec.bench.measuring.equality import EXACT

    def at(s):
        return Timing(s, 0.99 * s, 1.01 * s, 9, 1, 0.99)

    report = Report(
        name="f", eager=at(eager), compiled={1: at(compiled)}, eager_kept=None,
        compiled_kept=None, equality=EXACT, compile_ms={"trace": 10.0}, first_call_ms=None,
        peak_eager=0, peak_compiled=0, traffic=(MeasuredTraffic(1, 1, 10**6, 10**6),), externs=(),
        operations=5, limit_seconds={1: compiled / 10})
    return dataclasses.replace(report, **changes)


@pytest.mark.parametrize(("report", "says"), [
    (made(2e-3, 1e-3), "2.00x as fast as NumPy"),
    (made(1e-3, 1.005e-3), "No measurable difference"),
    (made(8e-7, 2e-6), "NumPy is 2.50x as fast as fusec here: too small"),
    (made(1e-3, 2e-3, externs=("matmul",)), "library-bound: the time is in matmul"),
    (made(1e-3, 2e-3, limit_seconds={1: 1.8e-3}), "memory-bound: the kernels already run at 90 %"),
    (made(1e-3, 2e-3, operations=1), "one operation"),
    (made(1e-3, 2e-3, operations=0), "a constant, and each call gives a copy"),
    (made(1e-3, 2e-3), "compute-bound"),
    (made(1e-3, 2e-3, products_in_loops=2), "2 products of matrices in a native loop: it adds"),
    (made(1e-3, 2e-3, held_up=("the loop: it calls Python",)), "here: the loop: it calls Python"),
])
def test_verdicts_say_who_is_faster_and_why(report, says):
    assert says in report.verdict


def test_what_loops_do_is_counted():
    def halved(x, n):
        for _ in range(n):
            x = np.sin(x) * 0.5
        return x

    compiled, args = fusec.jit(halved), (np.ones(9), 4000)
    backend = FusecBackend()
    assert (backend.operations(compiled, args), backend.native_loops(compiled, args)) == (4, 1)
    text = str(made(2e-3, 1e-3, operations=2, native_loops=1, traffic=()))
    assert text.endswith("\n  2 operations in 1 native loop")


def test_what_holds_a_loop_up():
    def shuffled(rng, x, n):
        for _ in range(n):
            x = rng.multivariate_normal(x, np.eye(2))
        return x

    compiled = fusec.jit(shuffled)
    args = np.random.default_rng(3), np.zeros(2), 40
    compiled(*args)
    reason, = FusecBackend().held_up(compiled, args)
    assert "which calls Python: rng.multivariate_normal" in reason
    assert FusecBackend().held_up(fusec.jit(lambda x: x + 1), (1.0,)) == ()


def test_break_even():
    assert made(2e-3, 1e-3).break_even_calls == pytest.approx(10.0)
    assert made(1e-3, 2e-3).break_even_calls == float("inf")
    assert "never pays" in str(made(1e-3, 2e-3))
    assert made(1e-3, 2e-3).to_dict()["break_even_calls"] is None


@pytest.mark.parametrize("program", [
    lambda x: x[x > 0] * 2,
    lambda x: (np.nonzero(x), x[x > 1].sum(), np.cumsum(x[x > 0])),
])
def test_results_of_lengths_that_data_decides(program):
    report = benchmark(program, np.arange(10.0) - 3, time_budget_s=0.05)
    assert report.equality.equal
    assert 0 < sum(t.nbytes for t in report.traffic) <= 10 * 8 * 12
    assert str(report)


def test_products_in_native_loops_are_counted() -> None:
    @fusec.jit
    def descent(x, n):
        w = np.ones(x.shape[1])
        for _ in range(n):
            w = w - x.T @ (x @ w) * 1e-3
        return w

    x = np.ones((5, 3))
    assert FusecBackend().products_in_loops(descent, (x, 40)) == 2
    assert FusecBackend().products_in_loops(fusec.jit(lambda x: x.T @ x), (x,)) == 0
