"""Conditions of a measurement beside the program: other processes, quotas, heat, BLAS.

Linux counts these in small files; where there are none nothing is said.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

from fusec.core import machine
from fusec.core.records import dataclass
from fusec.runtime.devices.blas import blas_threads

_STAT = Path("/proc/stat")
_THROTTLES = "cpu*/thermal_throttle/core_throttle_count"
_OTHERS, _STOLEN, _STOPPED = 0.2, 0.05, 0.01  # cores, shares: what is worth a remark


@dataclass(frozen=True)
class Counters:
    """Seconds since the machine started, but for ``throttles``, which counts.

    ``busy``: of all CPUs; ``stolen``: by a hypervisor; ``stopped``: of this control group, by its
    quota; ``own``: CPU time of this process and its children.
    """

    at: float
    own: float
    busy: float
    stolen: float
    stopped: float
    throttles: int


def counters(stat: Path = _STAT, cpus: Path = Path("/sys/devices/system/cpu")) -> Counters:
    """The counters now."""
    busy, stolen = _cpu_seconds(stat)
    times = os.times()
    return Counters(
        time.perf_counter(), sum(times[:4]), busy, stolen, machine.stopped_by_quota(),
        sum(int(path.read_text()) for path in cpus.glob(_THROTTLES)))


def _cpu_seconds(stat: Path) -> tuple[float, float]:
    """Busy and stolen, of proc(5): user nice system idle iowait irq softirq steal guest ..."""
    if not stat.is_file():
        return 0.0, 0.0
    with stat.open() as file:
        user, nice, system, _, _, irq, softirq, steal, *_ = map(int, file.readline().split()[1:])
    tick = os.sysconf("SC_CLK_TCK")
    return (user + nice + system + irq + softirq) / tick, steal / tick


def remarks(
    before: Counters, after: Counters, threads: int, blas: bool = True
) -> tuple[str, ...]:
    """Conditions that may have slowed down a measurement between the two, on so many threads;
    ``blas``: whether library calls were a part of it."""
    others = _others(before, after)
    found = tuple(_disturbances(before, after, others, threads))
    return (*found, *blas_remarks(others if others > _OTHERS else 0.0)) if blas else found


def _others(before: Counters, after: Counters) -> float:
    """Cores that other processes used."""
    busy = after.busy - before.busy - (after.own - before.own)
    return max(busy / max(after.at - before.at, 1e-9), 0.0)


def _disturbances(
    before: Counters, after: Counters, others: float, threads: int
) -> Iterator[str]:
    wall, cores = max(after.at - before.at, 1e-9), os.cpu_count() or 1
    if others > _OTHERS and others + threads > cores:
        yield (f"the machine is loaded: other processes used {others:.1f} of {cores} cores "
               f"meanwhile, so times on {threads} are too long")
    stolen = (after.stolen - before.stolen) / wall
    if stolen > _STOLEN:
        yield f"the host gave {100 * stolen:.0f} % of a core's time to other machines"
    stopped = (after.stopped - before.stopped) / wall
    if stopped > _STOPPED:
        yield (f"the control group's CPU quota stopped the process for {100 * stopped:.0f} % of "
               f"the time: set fusec.config.num_threads and OPENBLAS_NUM_THREADS to the quota, "
               f"{machine.cgroup_cores():g} cores")
    if after.throttles > before.throttles:
        yield "the processor was too hot and ran slower than it can"


def blas_remarks(others: float = 0.0) -> Iterator[str]:
    """The remark on a BLAS with more threads than there are cores beside those that ``others`` use:
    its threads wait for each other in busy loops, and a small product can take a hundred times as
    long."""
    used, cores = blas_threads(), machine.usable_cores()
    if used is not None and used > 1 and used + others > cores:
        yield (f"NumPy's BLAS has {used} threads that wait for each other in busy loops, on "
               f"{max(cores - others, 0):.2g} free cores: OPENBLAS_NUM_THREADS="
               f"{max(1, int(cores - others))} (MKL_NUM_THREADS) before Python starts")


def remarks_now(seconds: float = 0.2) -> tuple[str, ...]:
    """Disturbances of a measurement on all cores now, from a look at so many seconds."""
    before = counters()
    time.sleep(seconds)
    return remarks(before, counters(), machine.usable_cores())
