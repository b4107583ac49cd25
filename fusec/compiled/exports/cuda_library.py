"""The files of a library for CUDA: sources of kernels, their PTX, a C++ header that launches them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from fusec.codegen.cuda.driver import nvrtc
from fusec.codegen.cuda.exported.kernels import BACKEND
from fusec.codegen.cuda.exported.library import library_sources
from fusec.codegen.cuda.exported.loops import exported_loop
from fusec.codegen.cuda.module import CudaModule
from fusec.codegen.exported.identifiers import RESERVED
from fusec.codegen.exported.parts import ExportedFunction, NoTextError
from fusec.codegen.plan.call_plan import CallPlan
from fusec.codegen.structured.calls.call_statements import NodeCall
from fusec.codegen.structured.not_native import NotNativeError
from fusec.codegen.structured.program import StructuredProgram
from fusec.core import versions
from fusec.core.records import dataclass
from fusec.errors import UnsupportedError, user_error
from fusec.ir import Graph
from fusec.ir.sizes.symbolic_numbers import Symbolic
from fusec.passes.placement.reshaped_views import copy_all_reshaped_views
from fusec.passes.products.exported_products import exported_products

from .c_header import about, parameter_text
from .c_library import Compiled, checked_name, checked_specs, refuse_all
from .functions import Exporter
from .refusals import Refusal, RefusedError
from .traces import ExportTarget, PlannedCall, name_of, programs_of
from .wheel import write_files

# Names of the header's own, which functions and their parameters do not take.
_WORDS = (
    "library stream words bytes needed out_bytes shapes failed code detail failure load unload "
    "Library OK SIZES WORKSPACE NULL_POINTER MISALIGNED OVERLAP DRIVER FUSEC_TRY std names "
    "memory image device nullptr")
OWN_NAMES = frozenset(_WORDS.split())


@dataclass(frozen=True)
class CudaLibrary:
    """The files of a library for CUDA, and its functions as they were exported; ``ptx`` is None
    where there was no NVRTC, ``module`` has the kernels."""

    folder: Path
    name: str
    functions: tuple[ExportedFunction, ...]
    module: CudaModule
    ptx: Path | None

    def __repr__(self) -> str:  # sizes among the fields outlived their trace, and have no text
        names = ", ".join(f.name for f in self.functions)
        return f"<fusec.export_cuda {self.folder}: {names}>"

    @property
    def source(self) -> Path:
        return self.folder / f"{self.name}.cu"

    @property
    def header(self) -> Path:
        return self.folder / f"{self.name}.hpp"


def write_cuda_library(
    functions: Compiled, path: str | os.PathLike[str], arch: str
) -> CudaLibrary:
    """Write the files, see `fusec.export_cuda`."""
    folder = Path(path)
    name = checked_name(folder.name, "the folder's name")
    if not (arch.startswith("sm_") and arch[3:].rstrip("af").isdigit()):
        raise user_error(ValueError, f"{arch!r} is no architecture of a GPU", None,
                         'give one such as "sm_80" or "sm_90"')
    exported = [*_exported(functions)]
    version = versions.version_of("fusec") or ""
    declared = {f.name: [*map(parameter_text, f.parameters)] for f in exported}
    comments = {f.name: about(f) for f in exported}
    try:
        made = library_sources(name, exported, declared, comments, version)
    except NoTextError as error:
        raise UnsupportedError(
            f"a number of the program cannot follow from sizes in C++: {error}",
            cure="give the sizes in the specs") from None
    files = {f"{name}.cu": made.module.source.encode(), f"{name}.hpp": made.header.encode()}
    ptx = None
    if nvrtc.is_available():
        ptx = folder / f"{name}.{arch}.ptx"
        files[ptx.name] = nvrtc.compile(made.module, arch).ptx.encode()
    _remove_stale(folder, name, files[f"{name}.cu"])
    write_files(folder, files)
    return CudaLibrary(folder, name, tuple(exported), made.module, ptx)


def _remove_stale(folder: Path, name: str, source: bytes) -> None:
    """PTX of other sources, which the new header would launch; that of these is for other
    architectures, and stays."""
    path = folder / f"{name}.cu"
    if not path.is_file() or path.read_bytes() != source:
        for file in folder.glob(f"{name}.sm_*.ptx"):
            file.unlink()


def _exported(functions: Compiled) -> Iterator[ExportedFunction]:
    """All functions, or one error with all that cannot be exported."""
    if not functions:
        raise user_error(ValueError, "there is no function to export", None,
                         "give {name: (function, specs)}")
    exported: list[ExportedFunction] = []
    refused: list[tuple[str, Refusal]] = []
    taken = {*RESERVED, *OWN_NAMES}
    for name, (compiler, specs) in functions.items():
        checked_name(name, "a function's name")
        own = {name, *(f"{name}_{word}" for word in (
            "workspace_bytes", "sizes", "shapes", "wait", "error"))}
        if own & taken:
            raise user_error(ValueError, f"the header cannot define {min(own & taken)}, which is a "
                             "word of C++, of the header, or of another function", None,
                             "give the function another name")
        taken |= own
        checked_specs(name, specs)
        try:
            exporter = Exporter(name, compiler, tuple(specs), {}, TARGET, OWN_NAMES)
            exported.append(exporter.exported())
            refused += [(name, refusal) for refusal in dict.fromkeys(_of_state(exporter.plans))]
        except RefusedError as error:
            refused += [(name, refusal) for refusal in error.refusals]
    refuse_all("a library for CUDA", refused)
    yield from exported


def _of_state(plans: Sequence[PlannedCall]) -> Iterator[Refusal]:
    for plan in plans:
        for number in plan.state.own:
            yield Refusal(f"the state {plan.state.names[number]}, which outlives a call", None)


def _prepared(graph: Graph) -> Graph:
    """Without what CUDA calls a library for: products, and views that are reshaped."""
    return copy_all_reshaped_views(exported_products(graph))


def _programs(call_plan: CallPlan) -> dict[NodeCall, StructuredProgram]:
    """Of steps that are one kernel each."""
    refusals = [Refusal(reason, node.loc) for node in call_plan.graph.nodes
                if node.op == "Fused" and (reason := BACKEND.refusal(node))]
    programs: dict[NodeCall, StructuredProgram] = {}
    if call_plan.externs and any(type(n) is Symbolic for v in call_plan.graph.inputs
                                 for n in v.type.shape):
        refusals += [Refusal(f"{_text_of(step)} where specs leave sizes open", step.node.loc)
                     for step in call_plan.externs]
    else:
        try:
            programs = programs_of(call_plan)
        except RefusedError as error:
            refusals += error.refusals
    refusals += _without_kernels(programs)
    if refusals:
        raise RefusedError(refusals)
    return programs


def _without_kernels(programs: Mapping[NodeCall, StructuredProgram]) -> Iterator[Refusal]:
    """The programs that are no kernel."""
    for step, program in programs.items():
        try:
            exported_loop(step, program, "trial")
        except NotNativeError as error:
            yield Refusal(f"{_text_of(step)}: {error}", error.loc or step.node.loc)


def _text_of(step: NodeCall) -> str:
    name: Any = name_of(step.node)
    return f"a {name}" if step.run is not None else f"a call of {name}"


TARGET = ExportTarget(lambda: BACKEND, _prepared, _programs)
