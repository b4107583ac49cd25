"""The machine of a page, and the measured limits of its devices."""

from __future__ import annotations

import functools
import os
import platform
import time
from collections.abc import Collection
from typing import Any

import numpy as np

import fusec
from fusec import config
from fusec.compiled.run_metadata import RunOptions
from fusec.core import machine, versions
from fusec.runtime.devices import calibration, registry

Json = dict[str, Any]
MEASURED = 1 << 24  # elements of each array, 128 MB: more than caches of GPUs hold
CALLS = 6  # of which the first one is not counted
CHAIN = 256
_FACTORS = tuple(0.5 + number / 1024 for number in range(CHAIN))


def machine_data(measure: bool = False, used: Collection[str] = ()) -> Json:
    """Versions, cores, threads, and the rates of devices: see `rates_data`."""
    return {"versions": versions.summary(), "cpu": cpu_name(), "cores": machine.usable_cores(),
            "cores in all": os.cpu_count(), "threads": config.num_threads,
            "at": time.strftime("%Y-%m-%d %H:%M:%S"), "rates": rates_data(measure, used)}


def cpu_name() -> str:
    """The processor as Linux has it."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            for line in file:
                if line.startswith("model name"):
                    return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def rates_data(measure: bool = False, used: Collection[str] = ()) -> list[Json]:
    """Bytes and operations per nanosecond of each device.

    Where ``measure`` is false only of those that have been measured, in this process or earlier;
    where it is true those of ``used`` devices whose kernels are not of this machine's cores are
    measured by kernels of their own: see `kernel_rates`.
    """
    found = []
    for device in registry.devices():
        if calibration.is_measurable(device):
            rates = calibration.ceilings(device) if measure else calibration.measured(device)
            pair = None if rates is None else (rates.bytes_per_ns, rates.flops_per_ns)
        else:
            pair = kernel_rates(str(device.name)) if measure and str(device.name) in used else None
        if pair is not None:
            found.append({"device": device.name.short, "bytes_per_ns": pair[0],
                          "flops_per_ns": pair[1]})
    return found


@functools.cache
def kernel_rates(device: str, elements: int = MEASURED) -> tuple[float, float] | None:
    """Bytes and float64 operations per nanosecond that kernels of fusec's reach on a device.

    The first is of STREAM's triad, the second of multiplications with additions, `CHAIN` for each
    element, each of which depends on the one before; the best of some calls.  None where the device
    runs none of the two as a kernel.
    """
    x, y = np.linspace(0.0, 1.0, elements), np.ones(elements)
    triad = _fastest_us(fusec.jit(_triad, device=device, fp="contract"), x, y)
    chain = _fastest_us(fusec.jit(_chain, device=device, fp="contract"), x)
    if triad is None or chain is None:
        return None
    return 3 * x.nbytes / triad / 1e3, 2 * CHAIN * elements / chain / 1e3


def _triad(x: Any, y: Any) -> Any:
    return x + 3.0 * y


def _chain(x: Any) -> Any:
    for factor in _FACTORS:
        x = x * factor + 0.25
    return x


def _fastest_us(function: fusec.Function, *args: np.ndarray) -> float | None:
    concrete = function.concrete(*args)
    (name, *others) = [kernel.name for kernel in concrete.kernels] or [""]
    times = []
    for _ in range(CALLS):
        _, report = concrete.run(*args, options=RunOptions(trace=True))
        times += [node.us for node in report.nodes if node.name == name and not others]
    return max(min(times[1:]), 1e-3) if len(times) > 1 else None
