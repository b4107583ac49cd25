"""Calls that change the world or a setting of the process, which happen while tracing only.

One warning for each line.  What changes an object (an event, a queue, a logger) is done at each
call, which is traced.  Where data decides whether it happens it is refused.
"""

from __future__ import annotations

import os
import warnings
from types import ModuleType
from typing import Any

import numpy as np

from fusec.errors import unsupported

from ..values.trace import Trace
from .guard import once_guard
from .side_effects import is_outside, warn, warn_with

_CURE = "do it before or after the call, or in a function that is not compiled"
_NUMPYS = frozenset({"seterr", "seterrcall", "setbufsize", "set_printoptions", "save", "savez",
                     "savez_compressed", "savetxt", "tofile", "dump"})
_FILES = frozenset({
    "chdir", "fchdir", "makedirs", "mkdir", "remove", "unlink", "rename", "renames", "replace",
    "rmdir", "removedirs", "symlink", "link", "chmod", "chown", "utime", "truncate", "write",
    "close", "putenv", "unsetenv", "umask", "nice", "kill", "killpg", "mkfifo"})
_ENVIRONMENT = frozenset({"update", "pop", "popitem", "setdefault", "clear", "__setitem__",
                          "__delitem__", "__ior__"})
_OBJECTS = frozenset({"threading", "thread", "queue", "concurrent", "asyncio"})
_OWNERS = _OBJECTS | {"logging"}
_MODULES = _OWNERS | {
    "atexit", "decimal", "faulthandler", "gc", "locale", "resource", "signal", "sys",
    "tracemalloc", "warnings"}
_STARTING = ("start", "submit")  # what goes on after the call, whoever made the object
_VERBS = (*_STARTING, "set", "add", "remove", "put", "notify", "register", "unregister", "enable",
          "disable", "freeze", "stop", "clear", "acquire", "release", "basicConfig",
          "captureWarnings", "simplefilter", "filterwarnings", "resetwarnings", "warn_explicit",
          "alarm", "signal", "shutdown", "task_done")


def check_world(trace: Trace, fn: Any, kwargs: dict[str, Any]) -> None:
    """Warn of a call that changes what outlives the compiled function; refuse it in a branch."""
    if fn is np.errstate:
        _note_errors(trace, kwargs)
        return
    name = getattr(fn, "__name__", "")
    owner = getattr(fn, "__self__", None)
    module = _module(fn, owner)
    if _changes(module, name, owner) and not (
            _is_undone(trace, module, owner) and name not in _STARTING):
        note_change(trace, _title(module, name, owner), owner if _is_object(owner) else None)


def note_change(trace: Trace, title: str, owner: Any = None) -> None:
    """That this happens while tracing, or not at all; with an object that changes, at each call."""
    if trace.in_region:
        raise unsupported(f"{title} in a branch or loop that data decides", loc=trace.loc,
                          notes=("while tracing it would happen once, whatever the data",),
                          cure=_CURE)
    if type(owner).__module__.partition(".")[0].removeprefix("_") in _OWNERS:
        trace.world.guards[id(owner), ""] = once_guard(type(owner).__name__, trace.loc)
    else:
        warn(trace, title, _CURE)


def _note_errors(trace: Trace, modes: dict[str, Any]) -> None:
    asked = [f"{name}={mode!r}" for name, mode in modes.items() if mode not in (None, "ignore")]
    if asked:
        warn_with(trace, f"np.errstate({', '.join(asked)})", "{what} has no effect in {name}: "
                  "compiled code neither raises nor warns for floating-point errors; "
                  "look at the results, as fusec.check_numerics does")


def _module(fn: Any, owner: Any) -> str:
    """The first name of the module of a function, or of the class of a method."""
    if owner is None or isinstance(owner, ModuleType):
        found = getattr(fn, "__module__", None)
    else:
        found = (owner if isinstance(owner, type) else type(owner)).__module__
    return str(found).partition(".")[0].removeprefix("_")


def _changes(module: str, name: str, owner: Any) -> bool:
    if module == "numpy":
        return name in _NUMPYS
    if type(owner) is type(os.environ):
        return name in _ENVIRONMENT
    if module in ("os", "posix", "nt"):
        return name in _FILES
    return module in _MODULES and name.startswith(_VERBS)


def _is_undone(trace: Trace, module: str, owner: Any) -> bool:
    """Whether what changes is of the call: an object that it has made, the filters of warnings in
    ``with warnings.catch_warnings()``."""
    if module == "warnings":
        return warnings.filters is not trace.world.filters
    return module in _OBJECTS and _is_object(owner) and not is_outside(trace, owner)


def _title(module: str, name: str, owner: Any) -> str:
    if type(owner) is type(os.environ):
        return "a change of os.environ"
    root = {"posix": "os", "nt": "os", "numpy": "np"}.get(module, module)
    return f"{type(owner).__name__ if _is_object(owner) else root}.{name}"


def _is_object(owner: Any) -> bool:
    return owner is not None and not isinstance(owner, (ModuleType, type))


__all__ = ["check_world", "note_change"]
