"""``fusec.benchmark`` of calls with arrays of a GPU: against the same function on CuPy's arrays.

CuPy's arrays answer NumPy's functions, so the function itself, uncompiled, is CuPy's eager way.
Times are those of the GPU, between two events on its current stream around a batch of calls.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import optree

from fusec.core import gpus
from fusec.core.display.notebook import Shown
from fusec.core.records import dataclass

from .measuring.adapter import FusecBackend
from .measuring.other_results import TOLERANCE, bytes_of, first_line, is_near

BATCHES, MOST_CALLS = 7, 1000
COPY_BYTES = 1 << 28


@dataclass(frozen=True)
class GpuReport(Shown):
    """Times of a function on a GPU, in seconds a call.

    ``eager`` is CuPy's, None where it cannot run the function, as ``why`` says.  ``nbytes`` are
    read and written by kernels, each element once; ``copy_rate`` is of a copy in the GPU's memory,
    in bytes a second, read and written.  ``equal``: results are CuPy's but for rounding; None:
    there are none to compare with.
    """

    name: str
    seconds: float
    eager: float | None
    why: str
    first_call_ms: float | None
    nbytes: int
    copy_rate: float
    equal: bool | None
    runs: str

    @property
    def speedup(self) -> float:
        """CuPy's time over fusec's; NaN where CuPy has none."""
        return float("nan") if self.eager is None else self.eager / self.seconds

    @property
    def share_of_copy(self) -> float:
        """The rate of reading and writing, of a copy's."""
        return self.nbytes / self.seconds / self.copy_rate

    def __str__(self) -> str:
        eager = f"CuPy cannot run it: {self.why}" if self.eager is None else (
            f"CuPy eager {_us(self.eager)}, fusec is {self.speedup:.2f}x as fast")
        equal = {True: "yes", False: "NO", None: "not compared"}[self.equal]
        lines = [f"{self.name} on the GPU: {_us(self.seconds)}; {eager}",
                 f"equal:      {equal}",
                 f"memory:     {self.nbytes / 1e6:.3g} MB, "
                 f"{self.nbytes / self.seconds / 1e9:.4g} GB/s, {self.share_of_copy:.0%} of a copy",
                 f"calls:      {self.runs}"]
        if self.first_call_ms is not None:
            lines.append(f"first call: {self.first_call_ms:.4g} ms")
        return "\n".join(lines)


def is_of_gpu(args: Sequence[Any]) -> bool:
    """Whether arrays among the arguments are on a GPU."""
    tree: Any = tuple(args)
    return any(map(gpus.is_on_gpu, optree.tree_leaves(tree)))


def benchmark_on_gpu(
    f: Callable[..., Any], args: Sequence[Any], seconds: float, backend: FusecBackend
) -> GpuReport:
    """Measure; arrays that the function writes to are copies."""
    cupy = gpus.cupy()
    compiled: Any = f if backend.is_function(f) else backend.jit(f)
    eager, own = backend.eager(compiled), _copied(cupy, args)
    start = time.perf_counter()
    result = compiled(*own)
    cupy.cuda.get_current_stream().synchronize()
    first_ms = None if compiled is f else 1e3 * (time.perf_counter() - start)
    wanted, why = _tried(eager, _copied(cupy, args))
    compiled(*own)  # the second call is prepared, the third one finds its memory
    concrete = compiled.concrete(*own)
    return GpuReport(
        name=getattr(eager, "__name__", "function"),
        seconds=_least(cupy, lambda: compiled(*own), seconds / 2),
        eager=None if why else _least(cupy, lambda: eager(*own), seconds / 2), why=why,
        first_call_ms=first_ms, nbytes=bytes_of(concrete), copy_rate=_copy_rate(cupy, seconds / 4),
        equal=None if why else _are_equal(result, wanted), runs=str(concrete.gpu_call))


def _copied(cupy: Any, args: Sequence[Any]) -> tuple[Any, ...]:
    """The arguments with copies of the GPU's arrays."""
    tree: Any = tuple(args)
    copies: Any = optree.tree_map(lambda x: cupy.array(x) if gpus.is_on_gpu(x) else x, tree)
    return tuple(copies)


def _tried(eager: Callable[..., Any], args: Sequence[Any]) -> tuple[Any, str]:
    """CuPy's result, or why it has none."""
    try:
        return eager(*args), ""
    except Exception as error:  # whatever CuPy raises for what it has not
        return None, f"{type(error).__name__}: {first_line(error)}"


def _are_equal(got: Any, want: Any) -> bool:
    leaves = [optree.tree_leaves(x) for x in (got, want)]
    return len(leaves[0]) == len(leaves[1]) and all(
        _is_near(one, other.get() if hasattr(other, "get") else other)
        for one, other in zip(*leaves, strict=True))


def _is_near(got: Any, want: Any) -> bool:
    return is_near(got, want, TOLERANCE.get(np.asarray(want).dtype.itemsize, 1e-6))


def _least(cupy: Any, call: Callable[[], Any], budget: float) -> float:
    """Seconds a call of the quickest batch."""
    once = max(_between(cupy, call, 1), 1e-7)
    count = max(1, min(MOST_CALLS, int(budget / BATCHES / once)))
    return min(_between(cupy, call, count) for _ in range(BATCHES)) / count


def _between(cupy: Any, call: Callable[[], Any], count: int) -> float:
    """Seconds on the GPU from before the first call to after the last."""
    begin, end = cupy.cuda.Event(), cupy.cuda.Event()
    begin.record()
    for _ in range(count):
        call()
    end.record()
    end.synchronize()
    return 1e-3 * float(cupy.cuda.get_elapsed_time(begin, end))


def _copy_rate(cupy: Any, budget: float) -> float:
    source, target = cupy.zeros(COPY_BYTES, np.uint8), cupy.zeros(COPY_BYTES, np.uint8)

    def copy() -> None:
        target[...] = source

    return 2 * COPY_BYTES / _least(cupy, copy, budget)


def _us(seconds: float) -> str:
    return f"{1e6 * seconds:.4g} µs"
