"""The C++ compiler of the emulated device: g++ where it is on PATH, else that of `ziglang`."""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import os
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from fusec.core.records import dataclass
from fusec.errors import FusecError

_HOW = ("-x", "c++", "-std=c++17", "-w", "-fPIC", "-fvisibility=hidden", "-fno-exceptions",
        "-fno-rtti", "-ffp-contract=off", "-fno-strict-aliasing", "-fno-math-errno",
        "-march=native")
_RUNTIME = ("-O2",)
# Every access to memory becomes a call, and so does what C++ leaves undefined.
_CHECKED = ("-O1", "-g1", "-fsanitize=thread", "-fsanitize=alignment,shift,integer-divide-by-zero,"
            "signed-integer-overflow,float-cast-overflow")
_OF_GCC = ("--param", "tsan-instrument-func-entry-exit=0")
_OF_CLANG = ("-mllvm", "-tsan-instrument-func-entry-exit=0", "-fno-sanitize-trap=all",
             "-fsanitize-recover=all")
_LINKED = ("-shared", "-Wl,-z,defs", "-Wl,-Bsymbolic")
SECONDS = 900  # zig builds its libraries when it is first used


class NoCompilerError(FusecError):
    """There is no C++ compiler for the emulated device."""


class CompilationError(FusecError):
    """The compiler has refused a source, with its message, or has failed at it."""


class NoFolderError(FusecError):
    """There is no folder where modules can be written and loaded."""


@contextlib.contextmanager
def temporary_folder() -> Iterator[Path]:
    """A folder that is gone afterwards; raises `NoFolderError` for errors with files."""
    try:
        with tempfile.TemporaryDirectory(prefix="fusec-") as folder:
            yield Path(folder)
    except OSError as error:
        raise NoFolderError(
            "the emulated device /device:CUDAHOST:0 cannot write its modules and load them",
            values=[("folder", tempfile.tempdir or "none is found"), ("reason", error)],
            cure="let TMPDIR name a folder with some megabytes, from which programs may be run "
                 "(not mounted with noexec)") from None


@dataclass(frozen=True)
class Toolchain:
    """A compiler as the start of a command line; ``version`` is its own text."""

    command: tuple[str, ...]
    version: str
    is_clang: bool

    @property
    def key(self) -> str:
        """The key of code, beside its source."""
        flags = (*_HOW, *_RUNTIME, *_CHECKED, *self._own, *_LINKED)
        return "\n".join([self.version, platform.machine(), *flags])

    @property
    def _own(self) -> tuple[str, ...]:
        return _OF_CLANG if self.is_clang else _OF_GCC

    def runtime(self, source: str) -> bytes:
        """Object code of the part that is not instrumented."""
        return self._compiled(source, (*_HOW, *_RUNTIME))

    def module(self, source: str, runtime: bytes) -> bytes:
        """A shared library of kernels, linked with the runtime's object code."""
        with temporary_folder() as folder:
            own, common = folder / "kernels.o", folder / "runtime.o"
            own.write_bytes(self._compiled(source, (*_HOW, *_CHECKED, *self._own)))
            common.write_bytes(runtime)
            library = folder / "module.so"
            # The instrumentation's functions are the runtime's own: its libraries are not linked.
            self._run([*_LINKED, "-o", str(library), str(own), str(common), "-lm"], "", folder)
            return library.read_bytes()

    def _compiled(self, source: str, flags: Sequence[str]) -> bytes:
        with temporary_folder() as folder:
            text, code = folder / "source.cpp", folder / "source.o"
            text.write_text(source, encoding="utf-8")
            self._run([*flags, "-c", "-o", str(code), str(text)], source, folder)
            return code.read_bytes()

    def _run(self, arguments: Sequence[str], source: str, folder: Path) -> None:
        try:
            done = subprocess.run(
                [*self.command, *arguments], capture_output=True, text=True, errors="replace",
                cwd=folder, timeout=SECONDS, check=False, stdin=subprocess.DEVNULL)
        except subprocess.TimeoutExpired:
            raise CompilationError(f"{self._name} has not ended after {SECONDS} s") from None
        except OSError as error:
            raise CompilationError(f"{self._name} cannot be run: {error}") from None
        if done.returncode:
            raise self._failure(done, source)

    @property
    def _name(self) -> str:
        return f"the compiler of the emulated device ({self.version})"

    def _failure(self, done: subprocess.CompletedProcess[str], source: str) -> CompilationError:
        said = done.stderr.strip()
        if done.returncode < 0 or "Killed signal" in said:  # g++ says so of the programs it runs
            name = signal.strsignal(-done.returncode if done.returncode < 0 else signal.SIGKILL)
            return CompilationError(f"{self._name} was ended by a signal ({name}) {said}".rstrip(),
                                    cure="see whether there is memory left")
        if "No space left on device" in said:
            return CompilationError(f"{self._name} has no space left in {tempfile.gettempdir()}",
                                    cure="let TMPDIR name a folder with some megabytes")
        return CompilationError(
            f"{self._name} refuses a source:\n{said}\n{_numbered(source)}".rstrip())


def _numbered(source: str) -> str:
    """The source as the compiler counts its lines."""
    _, _, kernels = source.partition(FIRST_LINE)
    return "\n".join(f"{n:5} {line}" for n, line in enumerate(kernels.splitlines(), 1))


_NONE = ("C++ compiler, and there is none: install g++ (on Debian: apt-get install g++), or pip "
         "install ziglang")
FIRST_LINE = '#line 1 "kernels.cu"\n'  # before the kernels' own text


@functools.cache
def toolchain() -> Toolchain:
    """The compiler that is there; raises `NoCompilerError` where none is."""
    for command in _candidates():
        version = _version(command)
        if version is not None:
            return Toolchain(command, version, "clang" in version)
    raise NoCompilerError(
        f"the emulated device /device:CUDAHOST:0 compiles its kernels with a {_NONE}")


def _candidates() -> list[tuple[str, ...]]:
    gcc = shutil.which("g++")
    found: list[tuple[str, ...]] = [] if gcc is None else [(gcc,)]
    if importlib.util.find_spec("ziglang") is not None:
        found.append((sys.executable, "-m", "ziglang", "c++"))
    return found


def _version(command: Sequence[str]) -> str | None:
    """The first line of the compiler's own version text; None where it does not run."""
    try:
        done = subprocess.run([*command, "--version"], capture_output=True, text=True,
                              errors="replace", timeout=SECONDS, check=False,
                              stdin=subprocess.DEVNULL)
    except (OSError, subprocess.TimeoutExpired):
        return None
    lines = done.stdout.splitlines()
    return lines[0] if done.returncode == 0 and lines else None


def addr2line() -> str | None:
    """The program that finds source lines of addresses, which comes with g++."""
    return shutil.which("addr2line", path=os.environ.get("PATH"))


def status() -> str:
    """Which compiler there is, or the one to install."""
    try:
        found = toolchain()
    except NoCompilerError:
        return f"it needs a {_NONE}"
    return f"compiled by {found.version}, {' '.join(found.command)}"
