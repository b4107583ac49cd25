"""The machine of a page, and the measured limits of its devices."""

from __future__ import annotations

import os
import platform
import time
from typing import Any

from fusec import config
from fusec.core import machine, versions
from fusec.runtime.devices import calibration, registry

Json = dict[str, Any]


def machine_data(measure: bool = False) -> Json:
    """Versions, cores, threads, and the rates of devices: see `rates_data`."""
    return {"versions": versions.summary(), "cpu": cpu_name(), "cores": machine.usable_cores(),
            "cores in all": os.cpu_count(), "threads": config.num_threads,
            "at": time.strftime("%Y-%m-%d %H:%M:%S"), "rates": rates_data(measure)}


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


def rates_data(measure: bool = False) -> list[Json]:
    """Bytes and operations per nanosecond of each device.

    Where ``measure`` is false only of those that have been measured, in this process or earlier.
    """
    found = []
    for device in registry.devices():
        rates = calibration.rates(device) if measure else calibration.measured(device)
        if rates is not None:
            found.append({"device": device.name.short, "bytes_per_ns": rates.bytes_per_ns,
                          "flops_per_ns": rates.flops_per_ns})
    return found
