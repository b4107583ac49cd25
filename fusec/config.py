"""Every setting and every environment variable of fusec, typed, in this one file.

Settings are plain attributes: ``fusec.config.num_threads = 2``.  A name that does not exist raises
``AttributeError`` with close matches, a value of a wrong type ``TypeError``, one out of range
``ValueError``; each message says the cure.  Settings belong to the process, not to a
thread.  The environment is read once, when this module is imported.

The ``FUSEC_LOG`` ladder (each rung includes those below it):

==  ==========================================================================
0   silent
1   warnings and fallbacks (the default)
2   one line per compile and per retrace, with its reason
3   the pass log: name, time and rewrites of each pass
4   graphs and kernels as text
5   one line per launch
==  ==========================================================================
"""

from __future__ import annotations

import contextlib
import operator
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from types import ModuleType
from typing import Any

from fusec.core import locks, machine
from fusec.core.records import dataclass

# The types that a type checker sees; the table below gives the same names their behaviour.
log_level: int
dump_dir: str | None
progress: int
num_threads: int
parallel_threshold: int
memory_cap_bytes: int
plan_cache_bytes: int
gradient_memory: int
logical_cpu_devices: int
soft_placement: bool
cuda_host_seed: int
deterministic: bool
history: bool
history_size: int
verify: bool
check_numerics: str
verbose_errors: bool
cache_dir: str
cache_cap_bytes: int

Parser = Callable[[str], Any]
Listener = Callable[[Any], None]

_MOST = (1 << 63) - 1  # that the machine counts to
_WORDS = {int: "an int", bool: "True or False", str: "a path (str or os.PathLike)"}


@dataclass(frozen=True)
class Setting:
    """One row: attribute name, type, default, environment variable, range and meaning."""

    name: str
    type: type
    default: Callable[[], Any]
    env: str
    doc: str
    low: int | None = None
    high: int | None = None
    optional: bool = False
    off: tuple[str, ...] = ()  # texts that stand for no folder
    words: tuple[str, ...] = ()  # of which it is one; none: it is a folder

    @property
    def expects(self) -> str:
        """The values that may be assigned, in words."""
        if self.words:
            return f"{', '.join(map(repr, self.words[:-1]))} or {self.words[-1]!r}"
        words = _WORDS[self.type]
        if self.low is not None:
            few = self.high not in (None, _MOST)
            words += f" from {self.low} to {self.high}" if few else f" of at least {self.low}"
        return words + (" or None" if self.optional else "")


# --- the table ---------------------------------------------------------------------------------

_ROWS = (
    Setting("log_level", int, lambda: 1, "FUSEC_LOG",
            "what is written to stderr: 0 silent, 1 warnings and fallbacks, 2 compiles and "
            "retraces with their reason, 3 pass log, 4 graphs and kernels, 5 every launch", 0, 5),
    Setting("dump_dir", str, lambda: None, "FUSEC_DUMP",
            "folder that receives every artefact of every compile as a file", optional=True,
            off=("",)),
    Setting("progress", int, lambda: 2, "FUSEC_PROGRESS",
            "seconds of compiling after which stderr is told what is compiled and how far: a bar "
            "on a terminal, else a line now and then; 0 never, as with log_level 0", 0, _MOST),
    Setting("num_threads", int, machine.default_threads, "FUSEC_NUM_THREADS",
            "threads of a kernel; starts as OMP_NUM_THREADS, else the cores that affinity and "
            "control groups leave to this process", 1, 1024),
    Setting("parallel_threshold", int, lambda: 1 << 15, "FUSEC_PARALLEL_THRESHOLD",
            "estimated nanoseconds of work below which a kernel runs on the calling thread", 0,
            _MOST),
    Setting("memory_cap_bytes", int, machine.default_memory_cap, "FUSEC_MEMORY_CAP",
            "bytes of freed results kept for reuse (the variable takes K, M and G); 0 keeps "
            "nothing; starts as an eighth of the memory, at most 1 GiB", 0, _MOST),
    Setting("plan_cache_bytes", int, lambda: 128 << 20, "FUSEC_PLAN_CACHE",
            "bytes that the plans of one function's sizes may take (the variable takes K, M and "
            "G); those used longest ago go first", 0, _MOST),
    Setting("gradient_memory", int, machine.default_gradient_memory, "FUSEC_GRADIENT_MEMORY",
            "bytes that the loops of a gradient may keep for the way back (the variable takes K, M "
            "and G); what is more is computed again; read when a gradient is traced; starts as a "
            "quarter of the memory", 0, _MOST),
    Setting("logical_cpu_devices", int, lambda: 1, "FUSEC_LOGICAL_CPU_DEVICES",
            "devices CPU:0, CPU:1, ... that this machine's CPU is presented as", 1, 64),
    Setting("soft_placement", bool, lambda: False, "FUSEC_SOFT_PLACEMENT",
            "leave out a device that no node can have there, with one warning, instead of raising"),
    Setting("cuda_host_seed", int, lambda: 0, "FUSEC_CUDA_HOST_SEED",
            "order of blocks, threads and streams on the emulated device CUDAHOST, where kernels "
            "leave it open; 0: one after the other", 0, _MOST),
    Setting("deterministic", bool, lambda: True, "FUSEC_DETERMINISTIC",
            "False: a GPU may add floats to one place in any order (np.add.at, weights of "
            "np.bincount), in less time and with other last bits in each run; read when a kernel "
            "is compiled"),
    Setting("history", bool, lambda: False, "FUSEC_HISTORY",
            "record every launch for fusec.history(), not only those that compiled"),
    Setting("history_size", int, lambda: 10_000, "FUSEC_HISTORY_SIZE",
            "launches that fusec.history() remembers", 1, _MOST),
    Setting("verify", bool, lambda: False, "FUSEC_VERIFY",
            "run the graph verifier after every pass"),
    Setting("check_numerics", str, lambda: "off", "FUSEC_CHECK_NUMERICS",
            "what becomes of a call that makes an infinity or NaN: \"off\" nothing, \"warn\" a "
            "warning, \"raise\" a FloatingPointError; both name the node that makes the first one",
            words=("off", "warn", "raise")),
    Setting("verbose_errors", bool, lambda: False, "FUSEC_VERBOSE_ERRORS",
            "keep fusec's own frames in the traceback of a user error"),
    Setting("cache_dir", str, machine.default_cache_dir, "FUSEC_CACHE_DIR",
            "folder that keeps machine code between processes; \"off\" keeps none",
            off=("", "off")),
    Setting("cache_cap_bytes", int, lambda: 256 << 20, "FUSEC_CACHE_CAP",
            "bytes that the disk cache may take (the variable takes K, M and G); the entries used "
            "longest ago go first", 0, _MOST),
)
SETTINGS: Mapping[str, Setting] = {row.name: row for row in _ROWS}

_listeners: dict[str, list[Listener]] = {name: [] for name in SETTINGS}
_lock = locks.Lock()


# --- environment -------------------------------------------------------------------------------

_TRUE, _FALSE = ("1", "true", "yes", "on"), ("0", "false", "no", "off", "")
_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def _parse_bool(text: str) -> bool:
    if text.lower() in _TRUE + _FALSE:
        return text.lower() in _TRUE
    raise ValueError(text)


def _parse_int(text: str) -> int:
    unit = _UNITS.get(text[-1:].upper(), 1)
    return int(text if unit == 1 else text[:-1]) * unit


_PARSERS: dict[type, Parser] = {bool: _parse_bool, int: _parse_int, str: str}


def _from_environment(setting: Setting, environ: Mapping[str, str]) -> Any:
    """The value that the environment gives a setting, else its default.

    Raises ``ValueError`` that names the variable, its text and the values it may have.
    """
    text = environ.get(setting.env, "").strip()
    if not text:
        return setting.default()
    try:
        return _checked(setting, _PARSERS[setting.type](text))
    except ValueError:
        raise ValueError(
            f"environment variable {setting.env}={text!r}: expected {setting.expects}; "
            f"unset it or correct it ({setting.doc})"
        ) from None


def unknown_environment(environ: Mapping[str, str] | None = None) -> list[str]:
    """Variables that start with ``FUSEC_`` and that nothing reads, sorted (usually misspelt)."""
    variables = {setting.env for setting in _ROWS}
    names = os.environ if environ is None else environ
    return sorted(n for n in names if n.startswith("FUSEC_") and n not in variables)


# --- checks ------------------------------------------------------------------------------------


def _as_type(setting: Setting, value: Any) -> Any:
    """``value`` as the setting's type; raises ``TypeError``.  True is no int, 1 is no bool."""
    if value is None and setting.optional:
        return None
    if setting.words:
        return _one_of(setting, value)
    if setting.type is str:
        text = os.fspath(value)
        if not isinstance(text, str):
            raise TypeError
        return text if text.lower() in setting.off else _whole_path(setting, text)
    if setting.type is bool or isinstance(value, bool):
        if type(value) is not setting.type:
            raise TypeError
        return value
    return operator.index(value)


def _one_of(setting: Setting, value: Any) -> str:
    if type(value) is not str:
        raise TypeError
    if value not in setting.words:
        raise ValueError(
            f"fusec.config.{setting.name} = {value!r}: expected {setting.expects}")
    return value


def _whole_path(setting: Setting, text: str) -> str:
    expanded = os.path.expanduser(text)
    if expanded.startswith("~"):
        raise ValueError(f"fusec.config.{setting.name} = {text!r}: there is no such user; write "
                         f"./{text} for a folder of that name")
    return os.path.abspath(expanded)


def _checked(setting: Setting, value: Any) -> Any:
    """The value to store; raises ``TypeError`` or ``ValueError`` with the cure."""
    try:
        value = _as_type(setting, value)
    except TypeError:
        raise TypeError(
            f"fusec.config.{setting.name} = {value!r}: expected {setting.expects}, "
            f"got {type(value).__name__}"
        ) from None
    too_low = setting.low is not None and value < setting.low
    if too_low or (setting.high is not None and value > setting.high):
        raise ValueError(f"fusec.config.{setting.name} = {value!r}: expected {setting.expects}")
    return value


def _check_folder(setting: Setting, value: Any) -> None:
    """Raise ``ValueError`` for a folder that is none and cannot be made.

    Asked of assignments; one from the environment costs a warning when it is used.
    """
    is_folder = setting.type is str and not setting.words
    if not is_folder or value is None or value.lower() in setting.off:
        return
    reason = _why_no_folder(value)
    if reason:
        cure = f", or {setting.off[-1]!r} for none" if setting.off else ""
        raise ValueError(f"fusec.config.{setting.name} = {value!r}: {reason}; give a folder that "
                         f"is there or can be made{cure}")


def _why_no_folder(path: str) -> str:
    if "\0" in path:
        return "no path holds a NUL character"
    parent = path
    while not os.path.lexists(parent) and os.path.dirname(parent) != parent:
        parent = os.path.dirname(parent)
    if not os.path.isdir(parent):
        return f"{parent} is no folder"
    if not os.access(parent, os.R_OK | os.X_OK if parent == path else os.W_OK | os.X_OK):
        return f"this user may not use {parent}"
    return ""


def _setting(name: str) -> Setting:
    """The row of that name; raises ``AttributeError`` with close matches."""
    if name in SETTINGS:
        return SETTINGS[name]
    import difflib

    close = difflib.get_close_matches(name, SETTINGS, 3, 0.5)
    cure = f"did you mean {' or '.join(close)}?" if close else f"there are {', '.join(SETTINGS)}"
    raise AttributeError(f"fusec.config has no setting {name!r}; {cure}", name=name)


# --- changing settings -------------------------------------------------------------------------


def _store(name: str, value: Any) -> None:
    """Check, store and tell the listeners; one that raises leaves the old value in place."""
    value = _checked(_setting(name), value)
    with _lock:
        old = globals()[name]
        globals()[name] = value
        try:
            _notify(name, value)
        except BaseException:
            globals()[name] = old
            raise


def _notify(name: str, value: Any) -> None:
    for listener in tuple(_listeners[name]):
        listener(value)


def on_change(name: str, listener: Listener, *, call_now: bool = False) -> Callable[[], None]:
    """Call ``listener(value)`` after each assignment to a setting; returns its unregistration.

    ``call_now`` also calls it at once with the present value.
    """
    row = _setting(name)
    with _lock:
        _listeners[row.name].append(listener)
    if call_now:
        listener(globals()[name])
    return lambda: _listeners[row.name].remove(listener)


@contextlib.contextmanager
def override(**values: Any) -> Iterator[None]:
    """Change settings inside a ``with`` block: ``with fusec.config.override(num_threads=1):``.

    All values are checked before any is changed.  The change is the process's, so other threads
    see it too.
    """
    checked = {name: _checked(_setting(name), value) for name, value in values.items()}
    for name, value in checked.items():
        _check_folder(_setting(name), value)
    before = as_dict()
    names: list[str] = []
    try:
        for name, value in checked.items():
            _store(name, value)
            names.append(name)
        yield
    finally:
        for name in reversed(names):
            _store(name, before[name])


def as_dict() -> dict[str, Any]:
    """Every setting's present value, by name."""
    return {name: globals()[name] for name in SETTINGS}


def reset() -> None:
    """Give every setting the value that it has in a new process with today's environment."""
    for setting in _ROWS:
        _store(setting.name, _from_environment(setting, os.environ))


def describe() -> str:
    """A text table of the settings: name, present value, variable, meaning."""
    lines = []
    for row in _ROWS:
        lines.append(f"{row.name} = {globals()[row.name]!r}   [{row.env}] {row.expects}")
        lines.append(f"    {row.doc}")
    return "\n".join(lines)


class _ConfigModule(ModuleType):
    """A module whose assignments are checked.  Reads are ordinary dictionary look-ups."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name.startswith("_") or isinstance(value, ModuleType):  # the import system's own
            super().__setattr__(name, value)
        else:
            _check_folder(_setting(name), _checked(_setting(name), value))
            _store(name, value)

    def __delattr__(self, name: str) -> None:
        if name in SETTINGS:
            raise AttributeError(f"fusec.config.{name} cannot be deleted; assign to it", name=name)
        super().__delattr__(name)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # asked by the import system and by inspect
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}", name=name)
        return _setting(name)


globals().update({row.name: _from_environment(row, os.environ) for row in _ROWS})
sys.modules[__name__].__class__ = _ConfigModule
