"""``python -m fusec bench --suite gpu`` where there is a GPU: times of programs on it.

Bandwidth of a copy; elementwise chains, reductions and the benchmark programs, with their arrays
on the GPU; small calls; the time to compile.  Beside it the same functions by CuPy, ``cupy.fuse``,
JAX and torch.compile, where they are installed and can run them.

A time is the least of several batches of calls, by the wall clock: the calls of a batch are asked
for one after the other, and waited for together.  So long times are those of the GPU, and short
ones the overhead of a call.
"""

from __future__ import annotations

import importlib
import math
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import optree

import fusec
from fusec.core import gpus
from fusec.core.records import dataclass, field

from .cases import gpu_cases
from .cases.gpu_cases import GpuCase
from .measuring.other_results import TOLERANCE, bytes_of, first_line, is_near
from .measuring.program import Program
from .peers.other_numpy import with_numpy
from .peers.peers import installed

COPY_BYTES = 1 << 28
BATCHES, BATCH_SECONDS, MOST_CALLS = 5, 0.02, 1000
CHECKED_ELEMENTS = 1_000_000  # beyond, NumPy's result would take longer than all else
RIVALS = ("cupy", "cupy.fuse", "jax", "torch")
Call = Callable[[], Any]


@dataclass
class Row:
    """The times of a case, in seconds a call; ``rivals`` has a text where one could not run it."""

    case: GpuCase
    seconds: float = math.nan
    compile_ms: float = math.nan
    nbytes: int = 0
    rivals: dict[str, float | str] = field(default_factory=dict)
    wrong: str = ""


class Suite:
    """Measures on the first GPU; raises `NoGpuError` where there is none."""

    def __init__(self, copy_bytes: int = COPY_BYTES) -> None:
        self.cupy = gpus.cupy()
        self.copy = self._copy_rate(copy_bytes)

    def wait(self) -> None:
        """Until the GPU has done its work."""
        self.cupy.cuda.get_current_stream().synchronize()

    def _copy_rate(self, nbytes: int) -> float:
        """Bytes a second, read and written."""
        source, target = (self.cupy.asarray(np.zeros(nbytes, np.uint8)) for _ in range(2))

        def copy() -> None:
            target[...] = source

        return 2 * nbytes / least(copy, self.wait)

    def measure(self, case: GpuCase) -> Row:
        """One case, and the times of others for it."""
        row, args = Row(case), case.make_args()
        own = [self.cupy.asarray(a) if isinstance(a, np.ndarray) else a for a in args]
        compiled = fusec.jit(case.function)
        start = time.perf_counter()
        try:
            result = compiled(*own)
            self.wait()
        except Exception as error:  # one case must not end the others
            row.wrong = f"{type(error).__name__}: {first_line(error)}"
            return row
        row.compile_ms = 1e3 * (time.perf_counter() - start)
        row.wrong = self._difference(case, args, result)
        row.seconds = least(lambda: compiled(*own), self.wait)
        row.nbytes = bytes_of(compiled.concrete(*own))
        for name in RIVALS:
            row.rivals[name] = self._rival(name, case, args)
        return row

    def _difference(self, case: GpuCase, args: Sequence[Any], result: Any) -> str:
        """How it differs from NumPy's result by more than rounding; empty if it does not."""
        if sum(a.size for a in args if isinstance(a, np.ndarray)) > CHECKED_ELEMENTS:
            return ""
        near = TOLERANCE[np.dtype(case.dtype).itemsize]
        with np.errstate(all="ignore"):
            wanted = optree.tree_leaves(case.function(*args))
        pairs = zip(optree.tree_leaves(result), wanted, strict=True)
        return "" if all(is_near(got, want, near) for got, want in pairs) else (
            "other results than NumPy's")

    def _rival(self, name: str, case: GpuCase, args: Sequence[Any]) -> float | str:
        if not installed(name.partition(".")[0]):
            return "-"
        try:
            call, wait = _MAKE[name](case, args)
            return least(call, wait)
        except Exception as error:  # whatever a foreign library raises is its result here
            return f"{type(error).__name__}: {first_line(error)}"


def least(call: Call, wait: Callable[[], None]) -> float:
    """Seconds a call."""
    call()
    wait()
    start = time.perf_counter()
    call()
    wait()
    once = max(time.perf_counter() - start, 1e-7)
    count = max(1, min(MOST_CALLS, int(BATCH_SECONDS / once)))
    return min(_batch(call, wait, count) for _ in range(BATCHES)) / count


def _batch(call: Call, wait: Callable[[], None], count: int) -> float:
    start = time.perf_counter()
    for _ in range(count):
        call()
    wait()
    return time.perf_counter() - start


# ------------------------------------------------------------------------------------------- rivals

Made = tuple[Call, Callable[[], None]]


def _cupy(case: GpuCase, args: Sequence[Any], fuse: bool = False) -> Made:
    cupy = importlib.import_module("cupy")
    function = with_numpy(case.function, cupy)
    if fuse:
        if not case.elementwise:
            raise TypeError("not elementwise")
        function = cupy.fuse()(function)
    own = [cupy.asarray(a) if isinstance(a, np.ndarray) else a for a in args]
    return lambda: function(*own), lambda: cupy.cuda.get_current_stream().synchronize()


def _jax(case: GpuCase, args: Sequence[Any]) -> Made:
    jax = importlib.import_module("jax")
    jax.config.update("jax_enable_x64", True)
    function = jax.jit(with_numpy(case.function, jax.numpy))
    own = [jax.device_put(a) if isinstance(a, np.ndarray) else a for a in args]
    last: list[Any] = []

    def call() -> None:
        last[:] = [function(*own)]

    return call, lambda: jax.block_until_ready(last)


def _torch(case: GpuCase, args: Sequence[Any]) -> Made:
    torch = importlib.import_module("torch")
    function = torch.compile(with_numpy(case.function, torch), dynamic=False)
    own = [torch.from_numpy(a).cuda() if isinstance(a, np.ndarray) else a for a in args]
    return lambda: function(*own), torch.cuda.synchronize


_MAKE: dict[str, Callable[[GpuCase, Sequence[Any]], Made]] = {
    "cupy": _cupy, "cupy.fuse": lambda case, args: _cupy(case, args, fuse=True), "jax": _jax,
    "torch": _torch,
}


# -------------------------------------------------------------------------------------------- table


def run(programs: Sequence[Program], dtypes: Sequence[str], quick: bool) -> Iterator[str]:
    """The lines of the report as they come, the table last; `Failed` at the end where a result is
    wrong."""
    suite = Suite(COPY_BYTES >> 6 if quick else COPY_BYTES)
    yield f"{machine(suite.cupy)}; a copy reads and writes {suite.copy / 1e9:.0f} GB/s"
    rows = []
    for case in gpu_cases.cases(programs, dtypes, quick):
        rows.append(suite.measure(case))
        yield f"{case.name} {case.dtype} {case.size}: {rows[-1].wrong or 'measured'}"
    yield table(rows, suite.copy)
    wrong = [row for row in rows if row.wrong]
    if wrong:
        raise Failed(f"{len(wrong)} of {len(rows)} cases are wrong")


class Failed(Exception):
    """A case has failed or gives other results than NumPy."""


def machine(cupy: Any) -> str:
    """The GPU, CUDA's versions and the day."""
    runtime = cupy.cuda.runtime
    name = runtime.getDeviceProperties(0)["name"].decode()
    return (f"{name}, driver for CUDA {runtime.driverGetVersion()}, CuPy {cupy.__version__}, "
            f"{time.strftime('%Y-%m-%d')}")


_HEAD = ("case", "dtype", "size", "fusec µs", "GB/s", "of a copy", *(f"{n} µs" for n in RIVALS),
         "first call ms")


def table(rows: Sequence[Row], copy: float) -> str:
    """The rows as a table in Markdown."""
    lines = [_HEAD, ["---"] * len(_HEAD), *(_cells(row, copy) for row in rows)]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)


def _cells(row: Row, copy: float) -> list[str]:
    rate = row.nbytes / row.seconds
    return [row.case.name, row.case.dtype, f"{row.case.size:,}", row.wrong or _us(row.seconds),
            f"{rate / 1e9:.0f}", f"{rate / copy:.0%}",
            *(_us(row.rivals.get(n, "-")) for n in RIVALS), f"{row.compile_ms:.0f}"]


def _us(seconds: float | str) -> str:
    return seconds if isinstance(seconds, str) else f"{1e6 * seconds:.1f}"
