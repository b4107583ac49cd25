"""Small tables that are kept between processes, as JSON files in the folder of the disk cache.

A file that another user could have written, or that is no table, counts as absent.  It is written
beside its place and renamed, so that readers see all of it or nothing; of two processes that write
at once the last one's stays.
"""

from __future__ import annotations

import contextlib
import json
import os
import stat
from pathlib import Path
from typing import Any

from fusec import config
from fusec.core import log

Table = dict[str, Any]
TABLES = ("devices", "node_times")  # what there is: rates of devices, times of nodes
_warned: set[Path] = set()
_MOST_BYTES = 1 << 20
_FLAGS = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(
    os, "O_CLOEXEC", 0)


def _folder() -> Path | None:
    text = config.cache_dir
    return None if text.lower() in config.SETTINGS["cache_dir"].off else Path(text)


def is_on() -> bool:
    """Whether tables are kept at all."""
    return _folder() is not None


def load(name: str) -> Table:
    """The table of that name; an empty one where there is none that can be trusted."""
    folder = _folder()
    if folder is None:
        return {}
    try:
        table = json.loads(_read(folder / f"{name}.json"))
    except (OSError, ValueError, RecursionError):  # none, not ours to read, or no JSON
        return {}
    return table if isinstance(table, dict) else {}


def store(name: str, table: Table) -> None:
    """Keep a table under that name, where a folder is set; one that cannot be written is warned
    about, once."""
    folder = _folder()
    if folder is None:
        return
    path = folder / f"{name}.json"
    try:
        _make(folder)
        _write(path, json.dumps(table, indent=1).encode())
    except OSError as error:
        if path in _warned:
            return
        _warned.add(path)
        log.write(log.WARN, f"{path} cannot be written ({error.strerror or error}): "
                            f"it is found out anew in each process; set FUSEC_CACHE_DIR to a "
                            f"folder of yours, or to off")


def sizes(folder: Path) -> dict[str, int]:
    """The bytes of each table that is kept in the folder of the disk cache, by its file's name."""
    found: dict[str, int] = {}
    for name in TABLES:
        with contextlib.suppress(OSError):
            found[f"{name}.json"] = (folder / f"{name}.json").lstat().st_size
    return found


def clear(folder: Path) -> list[str]:
    """Delete the tables that are kept there; the names of the files that were."""
    deleted = []
    for name in sizes(folder):
        with contextlib.suppress(OSError):  # another process was quicker, or it may not be written
            (folder / name).unlink()
            deleted.append(name)
    return deleted


def _read(path: Path) -> bytes:
    """The bytes of a plain file that only this user (or the administrator) can have written."""
    descriptor = os.open(path, _FLAGS)
    with open(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        private = not hasattr(os, "geteuid") or (
            status.st_uid in (os.geteuid(), 0) and not status.st_mode & 0o022)
        if not stat.S_ISREG(status.st_mode) or not private or status.st_size > _MOST_BYTES:
            return b""
        return file.read()


def _make(folder: Path) -> None:
    """Make a folder and those above it, closed to others whatever the process's umask."""
    if not folder.is_dir():
        _make(folder.parent)
        with contextlib.suppress(FileExistsError):  # another process was quicker
            folder.mkdir(0o700)


def _write(path: Path, data: bytes) -> None:
    temporary = path.with_suffix(f".{os.urandom(8).hex()}.fusec-partial")
    try:
        with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600),
                       "wb") as file:
            file.write(data)
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
