"""The files of a library for C programs."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fusec.codegen import backends
from fusec.codegen.exported.identifiers import RESERVED
from fusec.codegen.exported.libraries import LIBRARIES, TAKEN_LIBRARIES, is_of_c
from fusec.codegen.exported.parts import CField, ExportedFunction, NoTextError
from fusec.codegen.machine_code.targets import TARGETS, CpuTarget
from fusec.codegen.objects.archive import archive
from fusec.codegen.objects.shared_object import shared_object
from fusec.core import versions
from fusec.core.records import dataclass
from fusec.errors import UnsupportedError, user_error
from fusec.signature.specs import TensorSpec

from ..tracing_compiler import TracingCompiler
from .c_header import header, reserved_names
from .functions import Exporter
from .library_state import give_fields
from .refusals import Refusal, RefusedError
from .wheel import DESCRIPTION, description, write_files

_LEVELS = ("v2", "v3", "v4", "aarch64")
_NAME = re.compile(r"[A-Za-z]\w*", re.ASCII)
THREADS = ("none", "pool", "callback")


@dataclass(frozen=True)
class CLibrary:
    """The files of a library, and its functions as they were exported."""

    folder: Path
    name: str
    functions: tuple[ExportedFunction, ...]
    fields: tuple[CField, ...] = ()  # of the state

    def __repr__(self) -> str:  # sizes among the fields outlived their trace, and have no text
        names = ", ".join(f.name for f in self.functions)
        return f"<fusec.export_c {self.folder}: {names}>"

    @property
    def header(self) -> Path:
        return self.folder / f"{self.name}.h"

    @property
    def shared(self) -> Path:
        return self.folder / f"lib{self.name}.so"

    @property
    def static(self) -> Path:
        return self.folder / f"lib{self.name}.a"


Compiled = Mapping[str, tuple[TracingCompiler, Sequence[Any]]]  # with the specs of arguments


def write_library(
    functions: Compiled, path: str | os.PathLike[str], levels: Sequence[str], threads: str,
) -> CLibrary:
    """Write the files, see `fusec.export_c`."""
    folder = Path(path)
    name = checked_name(folder.name, "the folder's name")
    if name in TAKEN_LIBRARIES or any(map(is_of_c, reserved_names(name))):
        raise user_error(ValueError, f"the folder's name, {name!r}, is that of a library of the "
                         "system, or begins names that the C library has", None,
                         f"name the folder my_{name}")
    targets = _targets(levels)
    if threads not in THREADS:
        raise user_error(ValueError, f"{threads!r} is no way to run threads", None,
                         f"give one of {', '.join(map(repr, THREADS))}")
    exported, fields = _exported(name, functions)
    made = _objects(name, exported, fields, targets, threads)
    soname = f"lib{name}.so"
    version = versions.version_of("fusec") or ""
    files = {f"{name}.h": header(name, exported, fields, version, list(levels), threads).encode(),
             soname: shared_object(
                 [*made.objects.values()], soname, made.exported, LIBRARIES, made.unique),
             f"lib{name}.a": archive(made.objects),
             DESCRIPTION: description(name, targets[0].machine, exported, fields, threads)}
    write_files(folder, files)
    return CLibrary(folder, name, tuple(exported), tuple(fields))


def _objects(
    name: str, functions: Sequence[ExportedFunction], fields: Sequence[CField],
    targets: Sequence[CpuTarget], threads: str,
) -> Any:
    backend: Any = backends.backend("cpu")
    try:
        return backend.library(name, functions, fields, targets, threads)
    except NoTextError as error:  # a size that is computed in a way that has no text
        raise UnsupportedError(
            f"a number of the program cannot follow from sizes in C: {error}",
            cure="give the sizes in the specs") from None


def checked_name(name: str, whose: str) -> str:
    """The name; raises ``ValueError`` where it is none in C."""
    if not _NAME.fullmatch(name):
        raise user_error(ValueError, f"{whose}, {name!r}, is no name in C", None,
                         "begin it with a letter, and use letters, digits and _")
    return name


def _targets(levels: Sequence[str]) -> list[CpuTarget]:
    if isinstance(levels, str) or not levels or any(level not in _LEVELS for level in levels):
        raise user_error(ValueError, f"{levels!r} are no levels of a CPU", None,
                         f"give some of {', '.join(_LEVELS)}, such as (\"v3\", \"v4\")")
    targets = [TARGETS[name] for name in _LEVELS if name in levels]
    if len({target.machine for target in targets}) > 1:
        raise user_error(ValueError, f"{levels!r} are levels of several machines", None,
                         "write a library for each, in folders of their own")
    return targets


def _exported(
    library: str, functions: Compiled,
) -> tuple[list[ExportedFunction], list[CField]]:
    """All functions and their state, or one error with all that cannot be exported."""
    if not functions:
        raise user_error(ValueError, "there is no function to export", None,
                         "give {name: (function, specs)}")
    exported: list[ExportedFunction] = []
    exporters: list[Exporter] = []
    fields: list[CField] = []
    refused: list[tuple[str, Refusal]] = []
    taken = {*RESERVED, *LIBRARIES, *reserved_names(library)}
    for name, (compiler, specs) in functions.items():
        checked_name(name, "a function's name")
        own = {name, f"{name}_sizes", f"{name}_shapes", f"{name}_dlpack",
               f"{name}_error"}
        if own & taken:
            raise user_error(ValueError, f"the library cannot define {min(own & taken)}, which is "
                             "a word of C, of its library, or of another function", None,
                             f"name it {library}_{name}")
        if of_c := [*filter(is_of_c, sorted(own))]:
            raise user_error(ValueError, f"the library cannot define {of_c[0]}, which the C "
                             "library has: programs would call one for the other", None,
                             f"name it {library}_{name}")
        taken |= own
        checked_specs(name, specs)
        try:
            exporter = Exporter(name, compiler, tuple(specs), {})
            exported.append(exporter.exported())
            exporters.append(exporter)
        except RefusedError as error:
            refused += [(name, refusal) for refusal in error.refusals]
    if not refused:
        try:
            fields = give_fields(exporters, exported)
        except RefusedError as error:
            refused += [("its state", refusal) for refusal in error.refusals]
    refuse_all("a library for C", refused)
    return exported, fields


def checked_specs(name: str, specs: Any) -> None:
    """Raises ``TypeError`` where they are none."""
    if isinstance(specs, TensorSpec) or not isinstance(specs, Sequence):
        raise user_error(TypeError, f"the specs of {name} are no sequence", None,
                         "give a tuple with a TensorSpec for each argument")


def refuse_all(library: str, refused: Sequence[tuple[str, Refusal]]) -> None:
    """Raises `UnsupportedError` with all of them, where there are some."""
    if refused:
        raise UnsupportedError(
            f"{library} has no Python, which these parts need",
            values=[(name, str(refusal)) for name, refusal in refused],
            loc=refused[0][1].loc,
            cure="compute that before or after the call, and export the rest")
