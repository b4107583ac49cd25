"""Entries of the disk cache that fusec's own code made of a graph: JSON, and the sources behind it.

The cache answers for who wrote an entry, and for whole files (`disk_cache`).  An entry also names
the files of fusec that had a part in it, with their sizes and times, as Python's own bytecode does:
where one has changed since, there is no entry.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from fusec import config
from fusec.codegen.machine_code import disk_cache, llvm
from fusec.core import checkout
from fusec.core.versions import version_of

# Settings that decide nothing but reports, and how much is kept.
_REPORTS = frozenset({
    "log_level", "dump_dir", "progress", "history", "history_size", "verbose_errors", "cache_dir",
    "cache_cap_bytes", "plan_cache_bytes", "memory_cap_bytes"})
_BEFORE = ("fusec.trace.", "fusec.signature.", "fusec.dispatch.")
_states: dict[str, str] = {}  # of files of fusec: those of a process stay as it has loaded them


def key_of(kind: str, parts: Sequence[str]) -> str | None:
    """The name of the entry that depends on these texts, on settings, the CPU, and the versions of
    fusec, Python, NumPy and LLVM; None where there is no cache, or passes are verified."""
    if disk_cache.directory() is None or config.verify:
        return None
    settings = [(name, getattr(config, name)) for name in config.SETTINGS if name not in _REPORTS]
    return disk_cache.key_of((
        kind, str(version_of("fusec")), _root(), sys.version, np.__version__,
        os.environ.get("NPY_DISABLE_CPU_FEATURES", ""), *llvm.settings(), repr(settings), *parts))


def read(key: str) -> Any:
    """The data of an entry; None where there is none that still holds."""
    data = disk_cache.load(key)
    if data is None:
        return None
    try:
        form = json.loads(data)
        return form["data"] if form["sources"] == _state(form["modules"]) else None
    except (ValueError, TypeError, LookupError, AttributeError, OSError, RecursionError):
        return None  # of another form, or of files that are gone


def write(key: str, data: Any) -> None:
    """Keep data, where they are JSON's."""
    modules = _modules()
    try:
        form = {"modules": modules, "sources": _state(modules), "data": data}
        disk_cache.store(key, json.dumps(form, default=_plain).encode())
    except (TypeError, OSError):  # objects among numbers; files that have changed, or are gone
        return


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{value!r} is no number")


def _root() -> str:
    """The folder that fusec lies in."""
    return os.path.dirname(sys.modules["fusec"].__path__[0])


def _modules() -> str:
    """The files of fusec that this process has loaded, a line each, in the root; not those that
    only make or call what the entry is of."""
    root = _root() + os.sep
    files = {getattr(module, "__file__", None) or "" for name, module in [*sys.modules.items()]
             if name.startswith("fusec.") and not name.startswith(_BEFORE)}
    return "\n".join(sorted(file.removeprefix(root) for file in files if file.startswith(root)))


def _state(modules: str) -> str:
    """Sizes and times of these files.  Raises ``OSError`` where one is gone, or was changed since
    this process began, which has loaded an older one."""
    root, names = _root() + os.sep, modules.split("\n")
    for name in names:
        if name not in _states:
            found = os.stat(root + name)
            if found.st_mtime_ns > checkout.LOADED_NS:
                raise FileNotFoundError(f"{name} has changed")
            _states[name] = f"{found.st_size} {found.st_mtime_ns}"
    return disk_cache.key_of(["\n".join(map(_states.__getitem__, names))])
