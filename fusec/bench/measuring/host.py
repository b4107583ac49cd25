"""The machine and the software a measurement was made on."""

from __future__ import annotations

import platform
from pathlib import Path

from fusec import config
from fusec.core.machine import usable_cores
from fusec.core.versions import version_of

from ..peers.peers import versions


def processor() -> str:
    """The processor's marketing name where the system tells it."""
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def describe() -> dict[str, str]:
    """Processor, cores, system and versions, as text."""
    packages = {name: version_of(name) or "not installed"
                for name in ("numpy", "llvmlite", "fusec")}
    return {
        "processor": processor(), "cores": str(usable_cores()),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(), **packages,
        **{name: text.removeprefix(f"{name} ") for name, text in versions().items()},
        "threads": str(config.num_threads),
    }


def sentence() -> str:
    """The description on one line."""
    return ", ".join(f"{key} {value}" for key, value in describe().items())
