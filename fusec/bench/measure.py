"""``fusec.benchmark``: a function compiled against the same function eager, equality first."""

from __future__ import annotations

import contextlib
import functools
import time
import tracemalloc
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from fusec import config
from fusec.inspect.conditions import counters, remarks

from .gpu_benchmark import GpuReport, benchmark_on_gpu, is_of_gpu
from .measuring import equality, timing
from .measuring.adapter import FusecBackend, MeasuredBackend
from .measuring.inputs import Inputs, copied, nbytes, varying
from .measuring.limit import streaming_seconds
from .reports.report import PeerResult, Report
from .state import BenchState

# Inputs beyond this many elements get their float32 reference in float64: see equality.py.
REFERENCE_ELEMENTS = 2_000_000
KEPT_BYTES = 2 << 30
Context = Callable[[], contextlib.AbstractContextManager[Any]]


def benchmark(
    f: Callable[..., Any],
    *args: Any,
    repeats: int | None = None,
    time_budget_s: float = 1.0,
    inputs: Inputs | None = None,
    checks: Sequence[tuple[Any, ...]] | None = None,
    threads: Sequence[int] | None = None,
    peers: Mapping[str, Any] | None = None,
    backend: MeasuredBackend | None = None,
) -> Report | GpuReport:
    """Measure ``f``, a fusec function (or a plain one, compiled here), against eager NumPy.

    Equality is checked first, on ``args`` or on every set in ``checks``; see `equality` for the
    tolerances.  Then eager and compiled calls are timed in turn, in random order, on inputs that
    differ between repeats: ``inputs(k)`` makes the k-th set, by default ``args`` with its float
    arrays scaled by ``1 + k * 2**-12``.  Copies are not timed.

    ``repeats`` rounds are run, or as many as fit in ``time_budget_s`` seconds (at least seven).
    ``threads`` are the thread counts to measure, by default the current setting.  ``peers`` maps
    names to `Peer`.  The arguments themselves are never written to; the function's state is put
    back before each batch of calls and at the end.  ``backend`` compiles, by default fusec's.
    With arrays of a GPU it is timed by the GPU, against CuPy (`GpuReport`), within the budget.
    Raises whatever the function raises on these arguments, eager or compiled.
    """
    backend = backend or FusecBackend()
    if isinstance(backend, FusecBackend) and is_of_gpu(args):
        return benchmark_on_gpu(f, args, time_budget_s, backend)
    compiled = f if backend.is_function(f) else backend.jit(f)
    eager = backend.eager(compiled)
    counts = tuple(sorted(set(threads or (backend.max_threads(),))))
    with config.override(cache_dir="off"):  # so that compile times are those of compiling
        start = time.perf_counter()
        sets = checks or (tuple(args),)
        state = backend.state(compiled, [args, *(checks or ())])
        first_ms = None if compiled is f else _first_call_ms(compiled, args, start)
    try:
        same = _check(backend, state.before(compiled), state.before(eager), sets, counts)
        mutates, result_bytes = _observe(state.before(eager), args)
        cases = _cases(backend, state, compiled, eager, counts, result_bytes)
        rivals, failed = _peer_cases(peers or {}, state.before(eager), args)
        before = counters()
        timing.run([*cases.values(), *(case for case, _ in rivals.values())],
                   inputs or varying(args), repeats=repeats, budget=time_budget_s, mutates=mutates)
        after = counters()
        return _report(backend, compiled, eager, args, cases, counts, equality=same,
                       remarks=functools.partial(remarks, before, after, max(counts)),
                       first_call_ms=first_ms, peers=_peer_results(rivals) | failed)
    finally:
        state.put_back()


def _report(
    backend: MeasuredBackend, compiled: Callable[..., Any], eager: Callable[..., Any],
    args: Sequence[Any], cases: Mapping[str, timing.Case], counts: Sequence[int],
    remarks: Callable[[bool], tuple[str, ...]], **checked: Any,
) -> Report:
    """The report of these cases, with the compiler's figures of the function.

    ``remarks`` lists disturbances of the measurement, with or without libraries' threads.

    ``checked`` are further fields of `Report`, passed on unchanged.
    """
    traffic = backend.traffic(compiled, args)
    return Report(
        name=getattr(eager, "__name__", "function"),
        eager=cases["eager"].timing,
        compiled={n: cases[f"compiled {n}"].timing for n in counts},
        eager_kept=cases["eager kept"].timing if "eager kept" in cases else None,
        compiled_kept=cases["compiled kept"].timing if "compiled kept" in cases else None,
        compile_ms=backend.compile_times(compiled, args),
        peak_eager=peak_memory(eager, args),
        peak_compiled=peak_memory(compiled, args),
        traffic=traffic,
        externs=(externs := backend.externs(compiled, args)),
        remarks=remarks(bool(externs)),
        held_up=backend.held_up(compiled, args),
        operations=backend.operations(compiled, args),
        native_loops=backend.native_loops(compiled, args),
        products_in_loops=backend.products_in_loops(compiled, args),
        limit_seconds={n: _limit(traffic, n) for n in counts},
        **checked,
    )


def _first_call_ms(compiled: Callable[..., Any], args: Sequence[Any], start: float) -> float:
    compiled(*copied(args))
    return 1e3 * (time.perf_counter() - start)


def _outcome(f: Callable[..., Any], args: Sequence[Any]) -> list[Any]:
    """The leaves of the result, then the arrays among the arguments as the call left them."""
    own = copied(args)
    result = f(*own)
    return equality.leaves((result, equality.mutable(own)))


def _check(
    backend: MeasuredBackend, compiled: Callable[..., Any], eager: Callable[..., Any],
    sets: Sequence[tuple[Any, ...]], counts: Sequence[int],
) -> equality.Equality:
    """The worst verdict over all inputs and thread counts."""
    worst = equality.EXACT
    for args in sets:
        with np.errstate(all="ignore"):
            want = _outcome(eager, args)
        reference, name = equality.reference_run(eager, args, want, REFERENCE_ELEMENTS)
        for n in counts:
            with backend.threads(n):
                verdict = equality.compare(_outcome(compiled, args), want, reference, name)
            if not verdict.equal:
                return verdict
            worst = max(worst, verdict, key=lambda e: (e is not equality.EXACT, e.margin))
    return worst


def _observe(eager: Callable[..., Any], args: Sequence[Any]) -> tuple[bool, int]:
    """Whether a call writes to its arguments, and how many bytes it returns."""
    own = copied(args)
    with np.errstate(all="ignore"):
        result = eager(*own)
    pairs = zip(equality.mutable(own), equality.mutable(args), strict=True)
    return any(a.tobytes() != b.tobytes() for a, b in pairs), nbytes(result)


def _cases(
    backend: MeasuredBackend, state: BenchState, compiled: Callable[..., Any],
    eager: Callable[..., Any], counts: Sequence[int], result_bytes: int,
) -> dict[str, timing.Case]:
    def on_threads(n: int) -> Context:
        return functools.partial(state.around, functools.partial(backend.threads, n))

    quiet: Context = functools.partial(
        state.around, functools.partial(np.errstate, all="ignore"))
    cases = {"eager": timing.Case("eager", eager, context=quiet)}
    for n in counts:
        cases[f"compiled {n}"] = timing.Case(f"compiled {n}", compiled, context=on_threads(n))
    if timing.KEPT_RESULTS * result_bytes <= KEPT_BYTES:
        most = on_threads(max(counts))
        cases["eager kept"] = timing.Case("eager kept", eager, keep=True, context=quiet)
        cases["compiled kept"] = timing.Case("compiled kept", compiled, keep=True, context=most)
    return cases


def peak_memory(f: Callable[..., Any], args: Sequence[Any]) -> int:
    """Peak bytes allocated during one call, result included, as NumPy reports to tracemalloc."""
    own = copied(args)
    if tracemalloc.is_tracing():
        raise RuntimeError("tracemalloc is already running; stop it before benchmarking")
    tracemalloc.start()
    try:
        with np.errstate(all="ignore"):
            f(*own)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def _limit(traffic: Sequence[Any], threads: int) -> float:
    """Seconds to stream the kernels' operands and results, one after another."""
    return sum(
        streaming_seconds(k.reads, k.writes, k.nbytes // max(1, k.reads + k.writes), threads)
        for k in traffic)


_Rivals = dict[str, tuple[timing.Case, PeerResult]]


def _peer_cases(
    peers: Mapping[str, Any], eager: Callable[..., Any], args: Sequence[Any]
) -> tuple[_Rivals, dict[str, PeerResult]]:
    """A case per peer that runs and agrees with NumPy to within its own arithmetic."""
    cases: _Rivals = {}
    failed: dict[str, PeerResult] = {}
    if not peers:
        return cases, failed
    with np.errstate(all="ignore"):
        want = equality.leaves(eager(*copied(args)))
    for name, peer in peers.items():
        outcome = peer.try_out(args, want)
        if outcome.note:
            failed[name] = outcome
        else:
            cases[name] = (timing.Case(name, peer.call, prepare=peer.prepare), outcome)
    return cases, failed


def _peer_results(rivals: _Rivals) -> dict[str, PeerResult]:
    return {
        name: PeerResult(r.version, case.timing, "", r.error_ulp, r.first_call_ms)
        for name, (case, r) in rivals.items()
    }
