"""``python -m fusec doctor``: the parts of this installation, and how to get those it lacks.

It covers users' needs, not those of developers' tests, linters and comparisons.  It installs and
changes nothing, and a part that cannot be read is reported in its own line.
"""

from __future__ import annotations

import importlib
import os
import platform
import sys
from collections.abc import Callable, Iterable

from fusec import config
from fusec.core import machine
from fusec.core.records import dataclass
from fusec.core.versions import (
    FOUNDATIONS,
    Requirement,
    python_bounds,
    requirements,
    version_of,
    within,
)

# Of the many features LLVM reports, those that decide how wide and how fast kernels run.
_VECTOR_FEATURES = ("sse4.2", "avx", "avx2", "fma", "avx512f", "avx512dq", "avx512vl", "neon",
                    "sve", "sve2")
# The extras that a command of users reads, by what they are for.
_PURPOSES = {"": "fusec itself", "bench": "python -m fusec bench"}


@dataclass(frozen=True)
class Section:
    title: str
    lines: tuple[str, ...]

    def __str__(self) -> str:
        return "\n".join([self.title, *(f"  {line}" for line in self.lines)])


@dataclass(frozen=True)
class DoctorReport:
    """The sections, and whether everything that fusec itself needs is there."""

    sections: tuple[Section, ...]
    healthy: bool

    def __str__(self) -> str:
        verdict = "has what it needs" if self.healthy else "lacks what it needs: see above"
        return "\n\n".join([*map(str, self.sections), f"fusec {verdict}"])


def examine() -> DoctorReport:
    """Look at versions, CPU, LLVM, threads, kept code, runtime, packages and settings."""
    needs = requirements()
    parts: list[tuple[str, Callable[[], Iterable[str]]]] = [
        ("versions", lambda: version_lines(needs)), ("cpu", _cpu), ("threads", _threads),
        ("machine code", _kept_code), ("runtime", _runtime), ("devices", _devices),
        ("packages", lambda: package_lines(needs)), ("settings", _settings),
    ]
    sections = tuple(Section(title, tuple(_guarded(lines))) for title, lines in parts)
    return DoctorReport(sections, all(need.satisfied for need in needs if not need.extra))


def _guarded(lines: Callable[[], Iterable[str]]) -> list[str]:
    """The lines of a part; where reading it raises, those before, and the error as the last line.

    The command is run on machines where something is wrong, so no part may end the report.
    """
    read: list[str] = []
    try:
        read.extend(lines())
    except Exception as error:
        read.append(f"cannot be read: {type(error).__name__}: {error}")
    return read


def version_lines(needs: Iterable[Requirement]) -> Iterable[str]:
    """A line each for fusec, Python, the system and dependencies; untested ones say so."""
    bounds = {need.package: need.bounds for need in needs if not need.extra}
    yield f"fusec {version_of('fusec')}"
    python = platform.python_version()
    kind = f"({platform.python_implementation()}) {sys.executable}"
    yield f"Python {python} {kind}{untested(python, python_bounds())}"
    yield f"{platform.system()} {platform.release()} {platform.machine()}"
    for name in FOUNDATIONS:
        version = version_of(name)
        yield f"{name} {version or 'missing'}{untested(version, bounds.get(name, ''))}"


def untested(version: str | None, bounds: str) -> str:
    """The remark about a version outside ``bounds``; '' for one within, or for None."""
    if version is None or within(version, bounds):
        return ""
    return f": UNTESTED, fusec is tested with {bounds}"


def _cpu() -> Iterable[str]:
    import llvmlite.binding as llvm

    features = llvm.get_host_cpu_features()
    names = [name for name in _VECTOR_FEATURES if features.get(name)]
    yield f"LLVM {'.'.join(map(str, llvm.llvm_version_info))} sees {llvm.get_host_cpu_name()}"
    yield f"target {llvm.get_default_triple()}"
    yield f"vector features: {' '.join(names) or 'none'}"


def _threads() -> Iterable[str]:
    yield f"{config.num_threads} for kernels, {machine.usable_cores()} cores usable, " \
          f"{os.cpu_count()} in the machine"
    yield (f"kernels of less than {config.parallel_threshold} ns (estimated) run on the "
           f"calling thread")
    yield from importlib.import_module("fusec.inspect.conditions").remarks_now()


def _kept_code() -> Iterable[str]:
    """The disk cache: where it is cold, first calls compile every kernel."""
    info = importlib.import_module("fusec.codegen.machine_code.disk_cache").info()
    if info.path is None:
        yield "is not kept (cache_dir is off): every process compiles every kernel anew"
    elif not info.entries:
        yield f"none is kept in {info.path} yet: first calls compile kernels, in 10 to 100 ms each"
    else:
        yield f"{info.entries} kernels, {info.size / 1e6:.1f} MB, are kept in {info.path}"


# Native parts that a machine may lack.  Each function starts the part where it has not been started
# and returns an object with ``.available`` and, where that is false, the ``.reason``.
RUNTIME_PARTS = (
    ("allocator", "fusec.runtime.memory", "allocator_status"),
    ("launcher", "fusec.runtime.launching.launch", "launcher_status"),
)


def _runtime() -> Iterable[str]:
    for title, module, function in RUNTIME_PARTS:
        status = getattr(importlib.import_module(module), function)()
        yield f"{title}: {'in use' if status.available else 'NOT in use'}, {status.reason}"


def _devices() -> Iterable[str]:
    """The parts that devices beside the CPU need, each with its own report of a missing one."""
    backends = importlib.import_module("fusec.codegen.backends")
    for name in backends.KINDS:
        yield from backends.backend(name).status()


def package_lines(needs: Iterable[Requirement]) -> list[str]:
    """A line per purpose: complete, or the packages that are missing and the exact command."""
    groups: dict[str, list[Requirement]] = {}
    for need in needs:
        if need.extra in _PURPOSES:
            groups.setdefault(need.extra, []).append(need)
    return [_extra_line(extra, group) for extra, group in groups.items()]


def _extra_line(extra: str, group: list[Requirement]) -> str:
    title = _PURPOSES[extra]
    absent = [need for need in group if not need.satisfied]
    if not absent:
        return f"{title}: complete"
    lacks = ", ".join(f"{n}{f' (has {n.installed})' if n.installed else ''}" for n in absent)
    command = " ".join(f"'{need}'" for need in absent)
    return f"{title}: missing {lacks}; run: pip install {command}"


def _settings() -> Iterable[str]:
    for name, value in config.as_dict().items():
        yield f"{name} = {value!r} [{config.SETTINGS[name].env}]"
    for name in config.unknown_environment():
        yield f"{name} is set, and nothing reads it: misspelt?"
