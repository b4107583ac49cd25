"""Object code kept on disk between processes: one file per module, named by a hash of its inputs.

An entry is written to a temporary file and renamed, so readers see all of it or nothing, and no
lock is needed: two processes that compile the same module write the same bytes.  The code read is
going to be executed: an entry says which key it is for, under its checksum, so one copied over
another is none; it must be a plain file, and it and the folders it lies in must be this user's (or
the administrator's) and closed to others' writes.  A bad entry is removed and compiled anew; a
folder that cannot be read, written or trusted costs one warning (``FUSEC_LOG`` 1), never an
exception.

The folder is ``fusec.config.cache_dir``; above ``fusec.config.cache_cap_bytes`` the entries that
were used longest ago go.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import stat
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from fusec import config
from fusec.core import log
from fusec.core.records import dataclass

_SUFFIX = ".fusec-object"
_PARTIAL = ".fusec-partial"  # of files that are being written
_MAGIC = b"fusec object 2\n"  # followed by the digest of key and code, the key, the code
MAX_ENTRY = 1 << 28  # bytes; a module's code has some hundred thousand
# No waiting for the other end of a pipe that lies there, no link to elsewhere.
_READ = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(
    os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
_STAMP = "last-trim"
_TRIM_EVERY_S = 86_400.0  # at least this often where anything is stored at all
_TOUCH_AFTER_S = 3_600.0  # a use is noted by the file's time, once an hour at most
_KEEP = 0.75  # what trimming leaves of the cap


@dataclass(frozen=True)
class CacheInfo:
    """Where the cache is (``None``: switched off), its number of entries and their bytes."""

    path: Path | None
    entries: int
    size: int


class _State:
    """This process's view of the folder."""

    warned = False
    stored = 0  # bytes written since the last look at the folder's size


def directory() -> Path | None:
    """The folder in use, or None when the cache is switched off."""
    text = config.cache_dir
    return None if text.lower() in config.SETTINGS["cache_dir"].off else Path(text)


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
        _check_folders(folder, path.parent)
        data, used = _read(path)
        code = _unpacked(key, data)
        if code is None:
            path.unlink()
            return None
    except FileNotFoundError:
        return None
    except OSError as error:
        _warn("read", folder, error)
        return None
    _touch(path, used)
    return code


def store(key: str, code: bytes) -> None:
    """Keep object code under a key; a folder that cannot be written is warned about once."""
    folder = directory()
    if folder is None or len(code) > MAX_ENTRY // 2:
        return
    try:
        path = _path(folder, key)
        _make_folder(path.parent)
        _check_folders(folder, path.parent)
        _write(path, _packed(key, code))
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


def _check_folders(*folders: Path) -> None:
    """Raise ``OSError`` unless only this user (or the administrator) can have put files there.

    The first may be a link, as a home folder often is; those inside of it may not.
    """
    for number, folder in enumerate(folders):
        status = os.stat(folder, follow_symlinks=number == 0)
        if not stat.S_ISDIR(status.st_mode):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(folder))
        if not _is_private(status):
            raise PermissionError(
                errno.EPERM, f"{folder} is another user's, or others may write to it (chmod 700)")


def _is_private(status: os.stat_result) -> bool:
    """Whether nobody but this user and the administrator can have written it."""
    if not hasattr(os, "geteuid"):  # permissions of another kind
        return True
    return status.st_uid in (os.geteuid(), 0) and not status.st_mode & 0o022


def _read(path: Path) -> tuple[bytes, float]:
    """A file's bytes and when it was used; none of one that is no plain file of this user's."""
    if not stat.S_ISREG(os.lstat(path).st_mode):
        return b"", 0.0
    descriptor = os.open(path, _READ)
    try:
        status = os.fstat(descriptor)  # of what was opened, whatever has changed since
        if not stat.S_ISREG(status.st_mode) or not _is_private(status) or (
                status.st_size > MAX_ENTRY):
            return b"", 0.0
        with open(descriptor, "rb", closefd=False) as file:
            return file.read(status.st_size), status.st_mtime
    finally:
        os.close(descriptor)


def _packed(key: str, code: bytes) -> bytes:
    name = key.encode()
    return _MAGIC + hashlib.sha256(name + code).digest() + name + code


def _unpacked(key: str, data: bytes) -> bytes | None:
    code = data[len(_packed(key, b"")):]
    return code if data == _packed(key, code) else None


def _make_folder(folder: Path) -> None:
    """Make a folder and those above it, closed to others whatever the process's umask."""
    if folder.is_dir():
        return
    _make_folder(folder.parent)
    with contextlib.suppress(FileExistsError):  # another process was quicker
        folder.mkdir(0o700)
        folder.chmod(0o700)


def _write(path: Path, data: bytes) -> None:
    temporary = path.with_suffix(f".{os.urandom(8).hex()}{_PARTIAL}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    try:
        with os.fdopen(os.open(temporary, flags, 0o600), "wb") as file:
            if hasattr(os, "fchmod"):
                os.fchmod(file.fileno(), 0o600)
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
    for inner in _listed(folder):
        if len(inner.name) == 2 and inner.is_dir(follow_symlinks=False):
            for file in _listed(inner):
                if file.name.endswith((_SUFFIX, _PARTIAL)):
                    with contextlib.suppress(OSError):
                        status = file.stat(follow_symlinks=False)
                        yield status.st_mtime, status.st_size, Path(file)


def _listed(folder: Path | os.DirEntry[str]) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError:  # not made yet, gone meanwhile, or closed to this user
        return []


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
    log.write(log.WARN, f"the disk cache {folder} cannot be {verb} "
                        f"({error.strerror or error}): code is compiled anew in each process; set "
                        f"FUSEC_CACHE_DIR to a folder of yours, or to off")
