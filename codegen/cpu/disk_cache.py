"""Object code kept on disk between processes: one file per module, named by what it depends on.

An entry is written to a temporary file and renamed, so readers see all of it or nothing, and no
lock is needed: two processes that compile the same module write the same bytes.  An entry whose
checksum does not fit, or that another user owns, is compiled anew.  A folder that cannot be read or
written costs one warning (``FUSEC_LOG`` 1), never an exception.

The folder is ``fusec.config.cache_dir``; above ``fusec.config.cache_cap_bytes`` the entries that
were used longest ago go.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from fusec import config

_SUFFIX = ".fusec-object"
_MAGIC = b"fusec object 1\n"
_DIGEST_SIZE = 32
_STAMP = "last-trim"
_TRIM_EVERY_S = 86_400.0  # at least this often where anything is stored at all
_TOUCH_AFTER_S = 3_600.0  # a use is noted by the file's time, once an hour at most
_KEEP = 0.75  # what trimming leaves of the cap
_OFF = ("", "off")


@dataclass(frozen=True)
class CacheInfo:
    """Where the cache is (``None``: switched off), its number of entries and their bytes."""

    path: Path | None
    entries: int
    size: int


class _State:
    """What this process knows of the folder."""

    warned = False
    stored = 0  # bytes written since the last look at the folder's size


def directory() -> Path | None:
    """The folder in use, or None when the cache is switched off."""
    text = config.cache_dir
    return None if text.lower() in _OFF else Path(text).expanduser()


def key_of(parts: Sequence[str]) -> str:
    """The name of the entry that depends on all of these texts."""
    digest = hashlib.sha256()
    for part in parts:
        encoded = part.encode()
        digest.update(b"%d:" % len(encoded))
        digest.update(encoded)
    return digest.hexdigest()


def load(key: str) -> bytes | None:
    """The object code stored under a key; None when there is none that can be trusted."""
    folder = directory()
    if folder is None:
        return None
    path = _path(folder, key)
    try:
        with open(path, "rb") as file:
            status = os.fstat(file.fileno())
            data = file.read() if _is_trusted(status) else b""
    except FileNotFoundError:
        return None
    except OSError as error:
        _warn("read", folder, error)
        return None
    _touch(path, status.st_mtime)
    return _unpacked(data)


def store(key: str, code: bytes) -> None:
    """Keep object code under a key; a folder that cannot be written is warned about once."""
    folder = directory()
    if folder is None:
        return
    try:
        path = _path(folder, key)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _write(path, _MAGIC + hashlib.sha256(code).digest() + code)
        _State.stored += len(code)
        _trim_sometimes(folder)
    except OSError as error:
        _warn("written", folder, error)


def info() -> CacheInfo:
    """The folder, how many entries it has and how many bytes they take."""
    folder = directory()
    if folder is None:
        return CacheInfo(None, 0, 0)
    sizes = [size for _, size, _ in _entries(folder)]
    return CacheInfo(folder, len(sizes), sum(sizes))


def clear() -> int:
    """Delete every entry; the number deleted.  Code that processes have loaded stays in use."""
    folder = directory()
    if folder is None:
        return 0
    return sum(_remove(path) for _, _, path in list(_entries(folder)))


def trim(folder: Path, cap: int) -> int:
    """Delete the entries used longest ago until three quarters of ``cap`` bytes are left.

    Does nothing below ``cap``; returns the number deleted.
    """
    entries = sorted(_entries(folder))
    total, removed = sum(size for _, size, _ in entries), 0
    if total <= cap:
        return 0
    for _, size, path in entries:
        if total <= _KEEP * cap:
            break
        total -= size
        removed += _remove(path)
    return removed


# --- files -------------------------------------------------------------------------------------


def _path(folder: Path, key: str) -> Path:
    return folder / key[:2] / (key[2:] + _SUFFIX)


def _is_trusted(status: os.stat_result) -> bool:
    """Whether this user (or the administrator) wrote the file: it is going to be executed."""
    return not hasattr(os, "geteuid") or status.st_uid in (os.geteuid(), 0)


def _unpacked(data: bytes) -> bytes | None:
    start = len(_MAGIC) + _DIGEST_SIZE
    code = data[start:]
    if data[:start] != _MAGIC + hashlib.sha256(code).digest():
        return None
    return code


def _write(path: Path, data: bytes) -> None:
    temporary = path.with_suffix(f".{os.urandom(8).hex()}.tmp")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    try:
        with os.fdopen(os.open(temporary, flags, 0o600), "wb") as file:
            file.write(data)
        os.replace(temporary, path)
    except BaseException:
        _remove(temporary)
        raise


def _touch(path: Path, used: float) -> None:
    """Note the use; a folder that only others may write keeps its times."""
    if time.time() - used > _TOUCH_AFTER_S:
        with contextlib.suppress(OSError):
            os.utime(path)


def _entries(folder: Path) -> Iterator[tuple[float, int, Path]]:
    """(last use, bytes, path) of every entry; entries that vanish meanwhile are left out.

    Files that a killed process left half written count too, so that they go some day.
    """
    for path in (*folder.glob(f"??/*{_SUFFIX}"), *folder.glob("??/*.tmp")):
        with contextlib.suppress(OSError):
            status = path.stat()
            yield status.st_mtime, status.st_size, path


def _remove(path: Path) -> bool:
    try:
        path.unlink()
    except OSError:  # another process was quicker, or the folder is read-only
        return False
    return True


def _trim_sometimes(folder: Path) -> None:
    """Look at the folder's size once a day, and when this process alone has added much."""
    cap = config.cache_cap_bytes
    stamp = folder / _STAMP
    recent = stamp.exists() and time.time() - stamp.stat().st_mtime < _TRIM_EVERY_S
    if recent and _State.stored <= cap // 16:
        return
    stamp.touch()
    _State.stored = 0
    trim(folder, cap)


def _warn(verb: str, folder: Path, error: OSError) -> None:
    if _State.warned:
        return
    _State.warned = True
    from fusec.inspect import log

    log.write(log.WARN, f"the disk cache {folder} cannot be {verb} "
                        f"({error.strerror or error}): code is compiled anew in each process; set "
                        f"FUSEC_CACHE_DIR to a folder of yours, or to off")
