"""How fast the devices of this machine are: measured once, or estimated.

Measured are, on the device's own thread and workers, a triad over more memory than the caches hold
(the benchmark STREAM's: two arrays read, one written), chains of multiplications with additions in
registers, a copy of memory that another thread has written, and the time from handing over a piece
of work to its start.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import math
import statistics
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from queue import SimpleQueue
from typing import Any, TypeVar

import llvmlite
import numpy as np

from fusec.codegen.machine_code import llvm
from fusec.core import locks, machine
from fusec.core.records import dataclass
from fusec.runtime.native import NativeUnavailableError, cpus, speed

from ..launching import threads
from . import table_files
from .device import Device

T = TypeVar("T")
_TABLE, _MOST_ENTRIES = "devices", 64
_FORMAT = 1  # another number where what is measured, or how, is another
_SECONDS = 0.03  # for each of the two kernels, once its memory is there
_TOTAL_BYTES = 48 << 20, 384 << 20  # of the triad's arrays, the lower if it takes too long to fill
_FILL_SECONDS = 0.08
_COPY_BYTES = 16 << 20
_HANDOVERS = 40


@dataclass(frozen=True)
class MeasuredRates:
    """Bytes that kernels read and write, floating-point operations and bytes of transfers, each
    per nanosecond (that is in GB/s and GFLOP/s), and nanoseconds until a kernel starts."""

    bytes_per_ns: float
    flops_per_ns: float
    transfer_bytes_per_ns: float
    launch_ns: float


# One core of an ordinary machine, times the threads of a device where they help.
_ONE_THREAD = MeasuredRates(10.0, 30.0, 8.0, 20_000.0)
_MOST_MEMORY_THREADS = 4  # more streams do not make memory faster
_INTERPRETED = MeasuredRates(1.0, 0.2, 8.0, 50_000.0)  # NumPy's functions one by one, say

_measuring = locks.Lock()
_known: dict[str, MeasuredRates] = {}
_ceilings: dict[str, MeasuredRates] = {}


def rates(device: Device, estimate: bool = False) -> MeasuredRates:
    """Measured rates of a device, of now, earlier, or by an earlier process on this machine.

    With ``estimate`` nothing is measured: where nobody has asked yet, a guess is returned at once.
    """
    if not is_measurable(device):
        return _INTERPRETED
    known = measured(device)
    if known is not None:
        return known
    return _estimated(device) if estimate else _measured_now(device)


def ceilings(device: Device) -> MeasuredRates:
    """The best rates of a device that were ever measured, once by this process.

    A measurement beside other programs is too low.  `rates` do not change in this process, so that
    placements do not either; the next one reads these.
    """
    rates(device)
    with _measuring:
        key = _key(device)
        if key not in _ceilings:
            _ceilings[key] = _best_of(_known[key], _measure(device))
            _keep(key, _ceilings[key])
        return _ceilings[key]


def _best_of(a: MeasuredRates, b: MeasuredRates) -> MeasuredRates:
    return MeasuredRates(
        max(a.bytes_per_ns, b.bytes_per_ns), max(a.flops_per_ns, b.flops_per_ns),
        max(a.transfer_bytes_per_ns, b.transfer_bytes_per_ns), min(a.launch_ns, b.launch_ns))


def is_measurable(device: Device) -> bool:
    """Whether its kernels are machine code for this machine's cores."""
    return bool(device.cores)


def measured(device: Device) -> MeasuredRates | None:
    """Measured rates of a device, if there are any."""
    if not is_measurable(device):
        return None
    key = _key(device)
    if key not in _known:
        found = _read(table_files.load(_TABLE).get(key))
        if found is None:
            return None
        _known[key] = found
    return _known[key]


def _estimated(device: Device) -> MeasuredRates:
    count = threads_of(device)
    return MeasuredRates(_ONE_THREAD.bytes_per_ns * min(count, _MOST_MEMORY_THREADS),
                         _ONE_THREAD.flops_per_ns * count, _ONE_THREAD.transfer_bytes_per_ns,
                         _ONE_THREAD.launch_ns)


def _measured_now(device: Device) -> MeasuredRates:
    with _measuring:  # of one device after the other: they share the memory
        known = measured(device)
        if known is None:
            known = _known[_key(device)] = _measure(device)
            _keep(_key(device), known)
        return known


def threads_of(device: Device) -> int:
    """Threads that its kernels use at once."""
    return device.threads or threads.get_num_threads()


# ---- kept in a file --------------------------------------------------------------------------

def _key(device: Device) -> str:
    """The key of the rates."""
    return " ".join([f"{_FORMAT}", *this_machine(), "on", ",".join(map(str, sorted(device.cores))),
                     f"threads {threads_of(device)}"])


@functools.cache
def this_machine() -> tuple[str, ...]:
    """The machine and compiler that measured times depend on."""
    features = hashlib.sha256(llvm.host_features().encode()).hexdigest()[:8]
    return (cpus.cpu_model(), features, f"llvm {llvmlite.__version__}",
            f"memory {machine.usable_memory()}")


def _read(entry: Any) -> MeasuredRates | None:
    """An entry of the file, which anything may have become."""
    names = MeasuredRates.__dataclass_fields__
    if not isinstance(entry, dict) or {*entry} != {*names}:
        return None
    good = all(isinstance(value, float) and math.isfinite(value) and value > 0
               for value in entry.values())
    return MeasuredRates(**entry) if good else None


def _keep(key: str, found: MeasuredRates) -> None:
    table = table_files.load(_TABLE)
    table.pop(key, None)
    newest = [*table.items()][-_MOST_ENTRIES + 1:]
    table_files.store(_TABLE, {**dict(newest), key: asdict(found)})


# ---- measured --------------------------------------------------------------------------------

def on_its_thread(device: Device, work: Callable[[], T]) -> T:
    """The work's result, or exception, on the device's thread."""
    answer: SimpleQueue[tuple[T | None, BaseException | None]] = SimpleQueue()

    def answered() -> None:
        try:
            answer.put((work(), None))
        except BaseException as error:
            answer.put((None, error))

    device.submit(answered)
    result, error = answer.get()
    if error is not None:
        raise error
    return result  # type: ignore[return-value]


def _measure(device: Device) -> MeasuredRates:
    """About 0.2 s."""
    launch = _handover_ns(device)
    source = np.ones(_COPY_BYTES // 8)  # by this thread, as another device's result is
    copied = on_its_thread(device, lambda: _copy_rate(source))
    try:
        streamed, calculated = on_its_thread(device, lambda: (_stream_rate(device),
                                                              _chain_rate(device)))
    except NativeUnavailableError:  # no pools there: kernels run on one thread
        return _estimated(device)
    return MeasuredRates(streamed, calculated, copied, launch)


def _handover_ns(device: Device) -> float:
    def once() -> float:
        start = time.perf_counter_ns()
        return float(on_its_thread(device, time.perf_counter_ns) - start)

    once()
    return max(1.0, statistics.median(once() for _ in range(_HANDOVERS)))


def _copy_rate(source: np.ndarray) -> float:
    target = np.empty_like(source)
    return _best(lambda: np.copyto(target, source), source.nbytes, 0.01)


def _stream_rate(device: Device) -> float:
    low, high = _TOTAL_BYTES
    total = min(max(low, 3 * _cache_bytes(device.cores)), high,
                max(low, machine.usable_memory() // 8))
    total = max(low, min(total, _touchable(total)))
    tasks = total // (3 * 8 * speed.BLOCK)
    arrays = [np.ones(tasks * speed.BLOCK) for _ in range(3)]
    grain = max(1, tasks // (4 * threads_of(device)))
    return _nest_rate("triad", arrays, tasks, grain, sum(a.nbytes for a in arrays))


def _touchable(total: int) -> int:
    """How many bytes of new memory can be filled in `_FILL_SECONDS`, by a part of ``total``.

    The system takes longer to give memory than a kernel to use it: for 96 MB some 60 ms, and for
    more, or on a machine that is busy, several tenths of a second.
    """
    part = total // 24
    start = time.perf_counter()
    np.ones(part // 8)
    return int(part * _FILL_SECONDS / max(time.perf_counter() - start, 1e-9))


def _chain_rate(device: Device) -> float:
    tasks = 8 * threads_of(device)
    return _nest_rate("multiply_add", [np.ones(1)], tasks, 1, tasks * speed.chain_flops())


def _nest_rate(
    name: str, arrays: list[np.ndarray], tasks: int, grain: int, amount: int
) -> float:
    block = (ctypes.c_int64 * len(arrays))(*(a.ctypes.data for a in arrays))
    function, at = speed.code().address(name), ctypes.addressof(block)
    return _best(lambda: threads.parallel_for(function, at, tasks, grain), amount, _SECONDS)


def _best(run: Callable[[], None], amount: int, seconds: float) -> float:
    """The best rate, in units per nanosecond, within some seconds; the first run warms up."""
    run()
    best, end = math.inf, time.perf_counter() + seconds
    while time.perf_counter() < end or best == math.inf:
        start = time.perf_counter_ns()
        run()
        best = min(best, max(1, time.perf_counter_ns() - start))
    return amount / best


@functools.cache
def _cache_bytes(cores: tuple[int, ...]) -> int:
    """The largest cache of the first core, as far as Linux says; 32 MiB where nothing does."""
    folder = Path(f"/sys/devices/system/cpu/cpu{cores[0] if cores else 0}/cache")
    texts = [path.read_text().strip() for path in folder.glob("index*/size")]
    units = {"K": 1 << 10, "M": 1 << 20}
    sizes = [int(t[:-1]) * units[t[-1]] for t in texts if t[:-1].isdecimal() and t[-1:] in units]
    return max(sizes, default=32 << 20)
