"""The types of devices, and the back end of each: the only file that knows them all."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

from fusec import config
from fusec.core import gpus, machine
from fusec.core.records import dataclass

from .backend import Backend


def _one() -> int:
    return 1


@dataclass(frozen=True, eq=False)
class DeviceKind:
    """A type of devices, as far as it is asked for before anything is compiled.

    ``home``: the module whose ``BACKEND`` makes their code, loaded when it is first asked for.
    ``count``: how many of them this process has.  ``memory``: the bytes of the memory that each
    has of its own; None: it reads the host's.  ``missing``: why there are none, ``notes``: what is
    slower on them than it should be, both for people.  ``is_automatic``: placement may choose them
    without being told.
    """

    home: str
    count: Callable[[], int] = _one
    memory: Callable[[], int] | None = None
    missing: Callable[[], str] = str
    notes: Callable[[], Sequence[str]] = tuple
    is_automatic: bool = False


KINDS = {  # by the name of the back end; the type of the devices is that in capitals
    "cpu": DeviceKind(
        "fusec.codegen.cpu.backend", lambda: config.logical_cpu_devices, is_automatic=True),
    "reference": DeviceKind("fusec.codegen.reference_backend"),
    "null": DeviceKind("fusec.codegen.null_backend"),
    "cudahost": DeviceKind(
        "fusec.codegen.cuda.emulated_backend", memory=machine.emulated_memory),
    "gpu": DeviceKind(
        "fusec.codegen.cuda.gpu_backend", gpus.used, gpus.memory, gpus.missing,
        lambda: gpus.notes),
}
_loaded: dict[str, Backend] = {}
_current: ContextVar[str] = ContextVar("backend", default="cpu")


def kind_of(type_: str | None) -> DeviceKind | None:
    """The kind of the devices of that type; None: there is none."""
    return KINDS.get((type_ or "").lower())


def backend(name: str) -> Backend:
    """The back end of that name, loaded when it is first asked for; raises ``ValueError``."""
    if name not in _loaded:
        if name not in KINDS:
            raise ValueError(f"no back end is named {name!r}: give one of {', '.join(KINDS)}")
        _loaded[name] = importlib.import_module(KINDS[name].home).BACKEND
    return _loaded[name]


def current() -> Backend:
    """The back end that programs are compiled for."""
    return backend(_current.get())


@contextmanager
def using(name: str) -> Iterator[Backend]:
    """Compile for another back end inside this block; functions compiled before keep theirs."""
    selected = backend(name)
    token = _current.set(name)
    try:
        yield selected
    finally:
        _current.reset(token)


def clear_caches() -> None:
    """Forget the code that back ends keep for later plans."""
    for loaded in _loaded.values():
        loaded.clear()
