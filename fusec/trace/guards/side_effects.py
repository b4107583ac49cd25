"""Effects that a compiled function would have while it is traced only: a warning, once a line.

Effects that a trace records happen at each call: assignments to attributes, draws of random
numbers, `fusec.print`.  All others of a program run as Python runs them: when the function is
traced.  Methods that change an object (an event, a queue, a logger) run at each call, which is
traced.  Where data decides whether one happens it is refused.
"""

from __future__ import annotations

import io
import os
import warnings
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from pathlib import PurePath
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from fusec.core import log
from fusec.errors import DtypeWarning, SideEffectWarning, unsupported
from fusec.ir import Loc

from ..facts.dict_versions import Rebindings
from ..values.handlers import any_traced
from ..values.trace import Trace
from .guard import once_guard

_PRINT = "fusec.print prints the values of every call"
_CLOCKS = frozenset({"time", "time_ns", "perf_counter", "perf_counter_ns", "monotonic",
                     "monotonic_ns", "process_time", "process_time_ns", "thread_time",
                     "localtime", "gmtime", "ctime", "asctime", "strftime"})
_READ_BEFORE = "do it before the call and pass what it gives"
_READING: frozenset[Any] = frozenset({
    open, input, np.load, np.loadtxt, np.genfromtxt, np.fromfile, np.memmap, os.listdir, os.scandir,
    os.stat, os.urandom, os.read, os.system, os.popen, os.walk, os.path.exists, os.path.isfile,
    os.path.isdir, os.path.getsize, os.path.getmtime})
_OUTSIDE = frozenset({  # modules whose functions and classes look at the world
    "uuid", "secrets", "socket", "_socket", "subprocess", "urllib", "http", "tempfile", "glob",
    "shutil", "getpass", "platform", "requests", "httpx", "sqlite3", "select", "multiprocessing"})
_STATES = frozenset({"_queue", "_thread", "sqlite3"})  # of classes in C whose state nobody sees
_PATHS = frozenset({
    "read_text", "read_bytes", "open", "exists", "is_file", "is_dir", "stat", "iterdir", "glob",
    "rglob", "write_text", "write_bytes", "unlink", "mkdir", "touch", "cwd", "home"})
_LOGGING = frozenset({"debug", "info", "warning", "error", "critical", "exception", "log"})
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
_seen: set[tuple[str, int, str]] = set()


def warn_of_effect(trace: Trace, fn: Callable[..., Any]) -> None:
    """Warn, once for each line, of a call with an effect or with a result that changes by itself.
    """
    effect = _effect(fn)
    if effect is not None:
        warn(trace, *effect)


def warn(trace: Trace, what: str, way_out: str) -> None:
    """That this happens at tracing, once for each line."""
    warn_with(trace, what, "{what} happens while {name} is traced, not at each call: " + way_out)


def warn_with(trace: Trace, what: str, text: str) -> None:
    """The same in another sentence, with ``{what}`` and the ``{name}`` of the traced function."""
    loc = trace.loc or Loc("<unknown>", 0)
    if (loc.file, loc.line, what) in _seen:
        return
    _seen.add((loc.file, loc.line, what))
    log.warn(text.format(what=what, name=trace.name), SideEffectWarning, loc.file, loc.line)


def warn_of_dtype(
    trace: Trace, name: str, before: tuple[Any, Loc | None], after: tuple[Any, Loc | None]
) -> None:
    """Warn, once for each loop and variable, of an array that has one dtype for all of a loop."""
    loc = trace.loc or Loc("<unknown>", 0)
    if (loc.file, loc.line, name) in _seen:
        return
    _seen.add((loc.file, loc.line, name))
    (old, origin), (new, changed) = before, after
    log.warn(
        f"{name!r} is an array of {old} before the loop{_at(origin or loc)} and of {new} after an "
        f"iteration{_at(changed)}: in {trace.name} it has {new} from the beginning, where the loop "
        f"does not run too; convert it before the loop: {name} = {name}.astype(np.{new})",
        DtypeWarning, loc.file, loc.line)


def _at(loc: Loc | None) -> str:
    return f" (line {loc.line})" if loc is not None else ""


def _effect(fn: Callable[..., Any]) -> tuple[str, str] | None:
    """The effect of a call that is not recorded, and the way out."""
    module, name = getattr(fn, "__module__", None), getattr(fn, "__name__", "")
    owner = getattr(fn, "__self__", None)
    if fn is print:
        return "print", _PRINT
    if _looks_outside(fn, module, owner, name):
        return _title(fn, module, name), _READ_BEFORE
    if module == "time" and (name in _CLOCKS or name == "sleep"):
        return f"time.{name}", "measure around the call, or with fusec.benchmark"
    if module == "logging" and name in _LOGGING:
        return f"logging ({name})", f"log the results after the call; {_PRINT}"
    if isinstance(owner, io.IOBase) and name.startswith("read"):
        return f"{type(owner).__name__}.{name}", _READ_BEFORE
    if isinstance(owner, io.IOBase) and name.startswith(("write", "flush")):
        return f"{type(owner).__name__}.{name}", f"{_PRINT}, to a file too (file=...)"
    if owner is not None and name in ("now", "utcnow", "today") and (
            getattr(owner, "__module__", "") == "datetime"):
        return f"{owner.__name__}.{name}", "pass the time as an argument"
    return None


_SHORT = {"posix": "os", "nt": "os", "genericpath": "os.path", "posixpath": "os.path",
          "numpy": "np"}


def _looks_outside(fn: Any, module: Any, owner: Any, name: str) -> bool:
    """Whether a call reads files, processes, sockets, or randomness of the system."""
    if isinstance(owner, PurePath) or (isinstance(owner, type) and issubclass(owner, PurePath)):
        return name in _PATHS
    if str(type(owner).__module__) in _STATES:
        return type(owner).__module__ != "_thread" or name == "locked"
    if str(module).partition(".")[0] in _OUTSIDE:
        return isinstance(fn, FunctionType | BuiltinFunctionType | MethodType | type)
    return isinstance(fn, FunctionType | BuiltinFunctionType | type(np.fromfile) | type) and (
        fn in _READING)


def _title(fn: Any, module: Any, name: str) -> str:
    if fn is open or fn is input:
        return name
    path = str(module or type(fn).__module__).removeprefix("_")
    root = _SHORT.get(path.partition(".")[0], path)
    owner = getattr(fn, "__self__", None)
    if isinstance(owner, PurePath) or str(type(owner).__module__) in _STATES:
        root = type(owner).__name__
    return f"{root}.{name}"


def check_state(trace: Trace, fn: Any, args: tuple[Any, ...], loc: Loc | None) -> None:
    """Refuse methods that change state no guard sees: of a generator or context variable."""
    owner, name = getattr(fn, "__self__", None), getattr(fn, "__name__", "")
    if str(type(owner).__module__) in _STATES and any_traced(args, {}):
        raise unsupported(
            f"giving a value of the graph to {type(owner).__name__}.{name}", loc=loc,
            cure="return it, and give it to the object after the call")
    if isinstance(owner, Iterator) and name in ("send", "throw", "close", "__next__"):
        check_unconsumed(trace, owner, loc)
    if type(owner) is ContextVar and name in ("set", "reset"):
        raise unsupported("setting a context variable", loc=loc,
                          cure="set it around the call: fusec reads it at each call")


class SpentIterators(dict[int, Any]):
    """Of a trace: iterators of which data decided how many items were taken."""


def check_unconsumed(trace: Trace, iterator: Any, loc: Loc | None) -> None:
    """Refuse an iterator from outside: its items are gone at the next call."""
    if id(iterator) in trace.part(SpentIterators):
        raise unsupported("going on with an iterator of which data decides how many items any() "
                          "or all() took", loc=loc, cure="make a list of its items before")
    is_pythons = isinstance(iterator, Iterator) and type(
        type(iterator).__next__) is not FunctionType  # a class of the user's has attributes
    if is_pythons and trace.active and is_outside(trace, iterator):
        raise unsupported("taking items of an iterator that outlives the call", loc=loc,
                          cure="take the items before the call and pass them")


def is_outside(trace: Trace, container: Any) -> bool:
    """Whether a container or iterator is a global, a closure variable of the traced function, was
    found in an attribute, or lies in one that is."""
    functions = (*trace.entry, *getattr(trace.hooks, "functions", ()))
    return id(container) in trace.world.reachable.reached or any(
        container is fn.__globals__ for fn in functions)


# ------------------------------------------------------------------- what changes the world


def check_world(trace: Trace, fn: Any, kwargs: dict[str, Any]) -> None:
    """Warn of a call that changes state outliving the compiled function; refuse it in a branch."""
    if fn is np.errstate:
        _note_errors(trace, kwargs)
        return
    name = getattr(fn, "__name__", "")
    owner = getattr(fn, "__self__", None)
    module = _module(fn, owner)
    if _changes(module, name, owner) and not (
            _is_undone(trace, module, owner) and name not in _STARTING):
        note_change(trace, _change_title(module, name, owner), owner if _is_object(owner) else None)


def note_change(trace: Trace, title: str, owner: Any = None) -> None:
    """That this happens while tracing, or not at all; with an object that changes, at each call."""
    if trace.in_region:
        raise unsupported(f"{title} in a branch or loop that data decides", loc=trace.loc,
                          notes=("while tracing it would happen once, whatever the data",),
                          cure=_CURE)
    trace.part(Rebindings).is_acting = True
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
        name = getattr(fn, "__module__", None)
    else:
        name = (owner if isinstance(owner, type) else type(owner)).__module__
    return str(name).partition(".")[0].removeprefix("_")


def _changes(module: str, name: str, owner: Any) -> bool:
    if module == "numpy":
        return name in _NUMPYS
    if type(owner) is type(os.environ):
        return name in _ENVIRONMENT
    if module in ("os", "posix", "nt"):
        return name in _FILES
    return module in _MODULES and name.startswith(_VERBS)


def _is_undone(trace: Trace, module: str, owner: Any) -> bool:
    """Whether the changed object is of the call: an object that it has made, the filters of
    warnings in ``with warnings.catch_warnings()``."""
    if module == "warnings":
        return warnings.filters is not trace.world.filters
    return module in _OBJECTS and _is_object(owner) and not is_outside(trace, owner)


def _change_title(module: str, name: str, owner: Any) -> str:
    if type(owner) is type(os.environ):
        return "a change of os.environ"
    return f"{type(owner).__name__ if _is_object(owner) else _SHORT.get(module, module)}.{name}"


def _is_object(owner: Any) -> bool:
    return owner is not None and not isinstance(owner, (ModuleType, type))
