"""How long nodes took on this machine, kept between processes in the folder of the disk cache.

Of each node, by the type of its device, its op and its operands' types, the least time is kept:
other work of the machine can only make it longer.
"""

from __future__ import annotations

import functools
import math
import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fusec import config

from . import calibration, table_files
from .device import Device

_TABLE, _MOST_MACHINES, _MOST_NODES = "node_times", 4, 4000
_FORMAT = 1  # another number where signatures or what is measured are others
# What decides how many threads the libraries of NumPy and SciPy use.
_LIBRARY_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")

Times = Mapping[str, float]  # nanoseconds by "TYPE signature"
_known: dict[tuple[str, str], dict[str, float]] = {}  # by the folder and what the times depend on


def kept_times(devices: Sequence[Device]) -> Times:
    """The kept times of nodes on such devices; nothing where `config.cache_dir` is off."""
    if not table_files.is_on():
        return {}
    place = config.cache_dir, _key(devices)
    if place not in _known:
        _known[place] = _read(place[1])
    return _known[place]


def add(devices: Sequence[Device], observed: Times) -> None:
    """Keep the least of these and the known ones, where `config.cache_dir` is set."""
    if not table_files.is_on():
        return
    key = _key(devices)
    least = _read(key)  # other processes add to it, too
    for name, ns in observed.items():
        least[name] = min(ns, least.pop(name, math.inf))
    _known[config.cache_dir, key] = least = dict([*least.items()][-_MOST_NODES:])
    table = table_files.load(_TABLE)
    table.pop(key, None)
    newest = [*table.items()][-_MOST_MACHINES + 1:]
    table_files.store(_TABLE, {**dict(newest), key: least})


def _key(devices: Sequence[Device]) -> str:
    """The key of the times, beside the nodes."""
    threads = ",".join(str(calibration.threads_of(d)) for d in devices if d.is_automatic)
    return " ".join([f"{_FORMAT}", *_software(), "threads", threads])


@functools.cache
def _software() -> tuple[str, ...]:
    libraries = (f"{name}={os.environ[name]}" for name in _LIBRARY_THREADS if name in os.environ)
    return (*calibration.this_machine(), f"numpy {np.__version__}", *libraries)


def _read(key: str) -> dict[str, float]:
    """The entries of the file that are of the form written, whatever has become of it."""
    entries: Any = table_files.load(_TABLE).get(key)
    return {} if not isinstance(entries, dict) else {
        name: ns for name, ns in entries.items()
        if isinstance(ns, float) and math.isfinite(ns) and ns > 0}
