"""The report of ``python -m fusec cache`` about files that outlive a process."""

from __future__ import annotations

from fusec.codegen.machine_code import disk_cache
from fusec.runtime.devices import table_files

_OFF = "disk cache: off (FUSEC_CACHE_DIR)"


def listing() -> list[str]:
    """Where machine code and measured times are, and their sizes."""
    status = disk_cache.info()
    if status.path is None:
        return [_OFF]
    return [f"disk cache: {status.path}",
            f"{status.entries} entries, {status.size / 1e6:.1f} MB",
            *(f"{name}: measured times, {size:,} bytes"
              for name, size in table_files.sizes(status.path).items())]


def clear() -> list[str]:
    """Delete them; the deleted files."""
    folder = disk_cache.info().path
    if folder is None:
        return [_OFF]
    return [f"disk cache: {disk_cache.clear()} entries deleted from {folder}",
            *(f"{name} deleted" for name in table_files.clear(folder))]
