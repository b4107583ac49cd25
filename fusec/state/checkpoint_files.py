"""The two files of a checkpoint: safetensors with the values, JSON that describes them.

``name-3.safetensors`` is written first, read back, and renamed to its name; then the index
``name-3.json``, whose renaming is the moment from which the checkpoint is there.  Whatever stops a
save before leaves the older ones as they were.  Nothing of a file is believed: an index must have
the form of `TensorEntry`, values the dtype, shape and hash that it says; loading runs no code.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import stat
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from fusec.core.versions import install_command
from fusec.errors import CheckpointWarning, FusecError, user_error

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

FORMAT, VERSION = "fusec checkpoint", 1
_ENDINGS = (".json", ".safetensors", ".json.part", ".safetensors.part")
_LONGEST_INDEX = 1 << 26  # bytes
_DONT_WAIT = getattr(os, "O_NONBLOCK", 0)  # for somebody to write to a pipe
_DTYPES = {np.dtype(code).name for code in "?bhilBHILefdFD"}
Refuse = Callable[[Path, str], Exception]  # what is raised for a file, and why
_PARTS = {"complex64": np.dtype(np.float32), "complex128": np.dtype(np.float64)}


class TensorEntry(NamedTuple):
    """The entry of an index for one Variable; ``sha256`` of its bytes in C order."""

    dtype: str
    shape: tuple[int, ...]
    sha256: str
    stored: str  # "real pairs" for complex numbers: a last axis of real and imaginary parts

    @property
    def in_file(self) -> tuple[Any, tuple[int, ...]]:
        """The dtype and shape that the values have in the file."""
        part = _PARTS.get(self.dtype)
        return (np.dtype(self.dtype), self.shape) if part is None else (part, (*self.shape, 2))


def library() -> Any:
    """``safetensors``, which only checkpoints need."""
    try:
        import safetensors
        import safetensors.numpy
    except ImportError:
        raise user_error(
            ImportError, "checkpoints need the package safetensors", None,
            install_command("checkpoint")) from None
    return safetensors


# -- which there are ------------------------------------------------------------------------------


def numbers(prefix: Path) -> list[int]:
    """Those of the complete checkpoints of a prefix, oldest first."""
    return [n for n in _numbers(prefix, ".json") if not _no_index(_index_of(prefix, n))]


def _index_of(prefix: Path, number: int) -> Path:
    return with_ending(numbered(prefix, number), ".json")


def _no_index(path: Path) -> str:
    """Why something cannot be an index, before it is opened: of a pipe or a device there may be no
    end; empty where it may be one."""
    try:
        found = path.stat()
    except OSError as error:
        return f"it cannot be looked at: {error.strerror}"
    if not stat.S_ISREG(found.st_mode):
        return "it is no ordinary file"
    return "it is too long for an index" if found.st_size > _LONGEST_INDEX else ""


def _numbers(prefix: Path, *endings: str) -> list[int]:
    pattern = re.compile(rf"{re.escape(prefix.name)}-([0-9]+)({'|'.join(map(re.escape, endings))})")
    names = os.listdir(prefix.parent) if prefix.parent.is_dir() else []
    return sorted({int(match[1]) for name in names if (match := pattern.fullmatch(name))})


def numbered(prefix: Path, number: int) -> Path:
    return prefix.with_name(f"{prefix.name}-{number}")


def with_ending(base: Path, ending: str) -> Path:
    return base.with_name(base.name + ending)


def found_at(path: Path) -> Path:
    """The checkpoint of that name, else the newest with it as a prefix.

    Raises ``FileNotFoundError`` where there is none.
    """
    if with_ending(path, ".json").is_file():
        return path
    complete = numbers(path)
    if not complete:
        raise user_error(
            FileNotFoundError, f"there is no complete checkpoint at {path}", None,
            "give what save() returned, or the path that it was given")
    _warn_of_others(path, complete[-1])
    return numbered(path, complete[-1])


def _warn_of_others(prefix: Path, taken: int) -> None:
    """Say that something with the name of a newer index is none."""
    for number in reversed(_numbers(prefix, ".json")):
        path = _index_of(prefix, number)
        if number > taken and (why := _no_index(path)):
            warnings.warn(f"{path} is passed over, {why}; {_index_of(prefix, taken)} is the newest "
                          "checkpoint", CheckpointWarning, stacklevel=4)


@contextlib.contextmanager
def locked(folder: Path, *, writes: bool) -> Iterator[None]:
    """One process writes in a folder, or several read; the system frees it when one dies."""
    if fcntl is None:
        yield
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX if writes else fcntl.LOCK_SH)
        yield
    finally:
        os.close(descriptor)


# -- writing --------------------------------------------------------------------------------------


def write(prefix: Path, values: Mapping[str, np.ndarray], keep: int | None) -> Path:
    """A new checkpoint of these values (C-contiguous); with ``keep`` older ones are removed."""
    prefix.parent.mkdir(parents=True, exist_ok=True)
    with locked(prefix.parent, writes=True):
        _remove_parts(prefix)
        taken = _numbers(prefix, *_ENDINGS)
        base = numbered(prefix, taken[-1] + 1 if taken else 1)
        entries = {name: entry_of(value) for name, value in values.items()}
        write_values(with_ending(base, ".safetensors"), values, entries)
        _write_index(with_ending(base, ".json"), entries)
        for number in numbers(prefix)[: 0 if keep is None else -keep]:
            _remove(numbered(prefix, number))
        return base


def entry_of(value: np.ndarray) -> TensorEntry:
    stored = "real pairs" if value.dtype.kind == "c" else "as they are"
    return TensorEntry(value.dtype.name, value.shape, _hash(value), stored)


def _as(value: np.ndarray, dtype: Any, shape: tuple[int, ...]) -> np.ndarray:
    """The same bytes."""
    return value.reshape(-1).view(dtype).reshape(shape)


def _hash(value: np.ndarray) -> str:
    return hashlib.sha256(value.reshape(-1).view(np.uint8).data if value.size else b"").hexdigest()


def write_values(
    path: Path, values: Mapping[str, np.ndarray], entries: Mapping[str, TensorEntry]
) -> None:
    stored = {name: _as(value, *entries[name].in_file) for name, value in values.items()}
    with _renamed_to(path) as part:
        part.write_bytes(library().numpy.save(stored))  # `save_file` has temporary files of its own
        sync(part)
        for name, read in read_values(part, entries, refused):
            if read.tobytes() != values[name].tobytes():
                raise OSError(f"{part}: what was read back of {name} is not what was written")


def _write_index(path: Path, entries: Mapping[str, TensorEntry]) -> None:
    text = json.dumps({"format": FORMAT, "version": VERSION,
                       "values": path.with_suffix(".safetensors").name,
                       "variables": {name: entry._asdict() for name, entry in entries.items()}},
                      indent=1)
    with _renamed_to(path) as part:
        part.write_text(text, encoding="utf-8")
        sync(part)
        read_index(part, path.with_suffix(".safetensors").name)


@contextlib.contextmanager
def _renamed_to(path: Path) -> Iterator[Path]:
    """A file to write beside it, which takes its name when it is whole, and goes otherwise: on a
    full disk half a checkpoint is in the way."""
    part = with_ending(path, ".part")
    try:
        yield part
    except OSError:
        part.unlink(missing_ok=True)
        raise
    os.replace(part, path)
    sync(path.parent)


def sync(path: Path) -> None:
    """Wait until the disk has it; systems that cannot open folders have no such thing for them."""
    if path.is_dir() and os.name != "posix":
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _remove_parts(prefix: Path) -> None:
    """Files of saves that were stopped: nobody else writes now."""
    if fcntl is not None:
        for number in set(_numbers(prefix, *_ENDINGS)).difference(_numbers(prefix, ".json")):
            _remove(numbered(prefix, number))


def _remove(base: Path) -> None:
    """The index goes first: without it there is no checkpoint.  Anything but a file is not ours."""
    for path in (with_ending(base, ending) for ending in _ENDINGS):
        if path.is_file():
            path.unlink(missing_ok=True)


# -- reading --------------------------------------------------------------------------------------


def read_index(path: Path, values_name: str) -> dict[str, TensorEntry]:
    """The index's entry for each Variable; raises ``ValueError`` for any other file."""
    if why := _no_index(path):
        raise refused(path, why)
    try:
        index = json.loads(read_bytes(path, refused).decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise refused(path, f"it is no JSON: {error}") from None
    if not isinstance(index, dict) or index.get("format") != FORMAT or (
            index.get("version") != VERSION or not isinstance(index.get("variables"), dict)):
        raise refused(path, f"it is no index of a {FORMAT}, version {VERSION}")
    if index.get("values") != values_name:
        raise refused(path, f"it names {index.get('values')!r}, and its values lie in "
                      f"{values_name!r} beside it")
    return {name: checked(path, name, entry, refused)
            for name, entry in index["variables"].items()}


def read_bytes(path: Path, refuse: Refuse) -> bytes:
    """Its bytes, no more than an index has at most: it may have been exchanged meanwhile."""
    with open(path, "rb", opener=lambda name, flags: os.open(name, flags | _DONT_WAIT)) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise refuse(path, "it is no ordinary file")
        with _named(path):
            data = file.read(_LONGEST_INDEX + 1)
    if len(data) > _LONGEST_INDEX:
        raise refuse(path, "it is too long for an index")
    return data


@contextlib.contextmanager
def _named(path: Path) -> Iterator[None]:
    """A system's error that does not say of which file it is gets the name."""
    try:
        yield
    except OSError as error:
        if error.filename is None:
            error.filename = str(path)
        raise


def checked(path: Path, name: str, entry: Any, refuse: Refuse) -> TensorEntry:
    """The entry that an index has for one value; raises for anything else."""
    if not isinstance(entry, dict) or entry.keys() != set(TensorEntry._fields):
        raise refuse(path, f"its entry for {name} has not the fields of one")
    shape = entry["shape"]
    is_known = isinstance(entry["dtype"], str) and entry["dtype"] in _DTYPES
    if not is_known or not isinstance(shape, list) or len(shape) > 64 or not all(
            type(size) is int and 0 <= size < 1 << 62 for size in shape):
        raise refuse(path, f"its entry for {name} has no dtype and shape of a Variable")
    pairs = "real pairs" if entry["dtype"] in _PARTS else "as they are"
    if entry["stored"] != pairs or not isinstance(entry["sha256"], str):
        raise refuse(path, f"its entry for {name} does not say how the values are stored")
    return TensorEntry(entry["dtype"], tuple(shape), entry["sha256"], entry["stored"])


def read_values(
    path: Path, entries: Mapping[str, TensorEntry], refuse: Refuse, *, no_others: bool = False,
) -> Iterator[tuple[str, np.ndarray]]:
    """The values of these Variables, each compared with its entry before its memory is made.

    Raises ``ValueError`` for a file that is damaged, or differs from the entries; ``no_others``:
    also where it has values that no entry is of.
    """
    if path.exists() and not path.is_file():  # opening a pipe would wait for ever
        raise refuse(path, "it is no ordinary file")
    errors = library().SafetensorError
    try:
        with _named(path), library().safe_open(path, framework="np") as file:
            there = set(file.keys())
            if no_others and there - entries.keys():
                raise refuse(path, f"it has values of {min(there - entries.keys())}, which nothing "
                             "asks for")
            for name, entry in entries.items():
                if name not in there:
                    raise refuse(path, f"it has no values of {name}")
                yield name, _read(path, file, name, entry, refuse)
    except errors as error:
        raise refuse(path, f"it is damaged: {error}") from None
    except FileNotFoundError:
        raise refuse(path, "its values are not beside it") from None


_NAMES = {"BOOL": "bool", "U8": "uint8", "I8": "int8", "U16": "uint16", "I16": "int16",
          "U32": "uint32", "I32": "int32", "U64": "uint64", "I64": "int64", "F16": "float16",
          "F32": "float32", "F64": "float64"}


def _read(path: Path, file: Any, name: str, entry: TensorEntry, refuse: Refuse) -> np.ndarray:
    part = file.get_slice(name)
    dtype, shape = entry.in_file
    if _NAMES.get(part.get_dtype()) != dtype.name or tuple(part.get_shape()) != shape:
        raise refuse(path, f"{name} is {part.get_dtype()}{list(part.get_shape())} there, and "
                      f"its index says {dtype}{list(shape)}")
    value = _as(np.array(file.get_tensor(name), dtype, order="C"), entry.dtype, entry.shape)
    if value.dtype == np.bool_ and value.size and np.max(value.view(np.uint8)) > 1:
        raise refuse(path, f"{name} has booleans that are neither 0 nor 1")
    if _hash(value) != entry.sha256:
        raise refuse(path, f"the values of {name} are not those that were saved (SHA-256)")
    return value


def refused(path: Path, why: str) -> FusecError:
    """The error for a file that is no part of a checkpoint."""
    return user_error(ValueError, f"{path} cannot be restored: {why}", None,
                      "restore an older checkpoint; no Variable was changed")


__all__ = ["TensorEntry", "checked", "entry_of", "found_at", "locked", "numbers", "read_bytes",
           "read_index", "read_values", "refused", "sync", "with_ending", "write", "write_values"]
