"""The back ends, by name: the only file that knows them all, and where each is."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from .backend import Backend

_HOMES = {
    "cpu": "fusec.codegen.cpu.backend",
    "reference": "fusec.codegen.reference_backend",
    "null": "fusec.codegen.null_backend",
    "cuda": "fusec.codegen.cuda.gpu_backend",
    "cudahost": "fusec.codegen.cuda.emulated_backend",
}
_loaded: dict[str, Backend] = {}
_current: ContextVar[str] = ContextVar("backend", default="cpu")


def backend(name: str) -> Backend:
    """The back end of that name, loaded when it is first asked for; raises ``ValueError``."""
    if name not in _loaded:
        if name not in _HOMES:
            raise ValueError(f"no back end is named {name!r}: give one of {', '.join(_HOMES)}")
        _loaded[name] = importlib.import_module(_HOMES[name]).BACKEND
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
