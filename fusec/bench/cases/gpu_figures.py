"""Registers and memory of CUDA kernels, from NVIDIA's compiler alone: no GPU is needed.

For each kernel of the benchmark programs: registers of a thread, shared memory of a block, bytes of
registers spilled, the share of a multiprocessor's threads that run at once, loads and stores of
several elements, bytes that each point reads and writes, and machine instructions for each element.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import fusec
from fusec.codegen.cuda import disassembly
from fusec.codegen.cuda.driver import nvrtc
from fusec.codegen.cuda.driver.nvrtc import Compiled
from fusec.codegen.cuda.kernels.kernel_sources import WrittenKernel, module_of, write_form
from fusec.codegen.kernels.complex_pairs import buffer_strides
from fusec.codegen.kernels.specialise import LoopForm, specialise
from fusec.core.records import dataclass

from ..measuring.program import Program
from . import gpu_kernels, sass

_WIDE = re.compile(r"\b(ld|st)\.global(?:\.nc)?\.v[248]\.")
_ANY = re.compile(r"\b(ld|st)\.global(?:\.nc)?\.")


@dataclass(frozen=True)
class Figures:
    """One CUDA kernel of a program."""

    program: str
    dtype: str
    kernel: str
    mode: str
    threads: int
    registers: int
    shared_bytes: int
    spilled_bytes: int
    occupancy: float
    accesses: int
    wide: int  # of the accesses, those of several elements
    bytes_per_point: float
    instructions: Mapping[str, float]  # for an element, by class; none without a disassembler

    @property
    def instructions_in_all(self) -> float:
        return sum(self.instructions.values())


@dataclass(frozen=True)
class _Nest:
    """A kernel of a program, whose name in a module of many begins with its number there."""

    program: str
    dtype: str
    form: LoopForm
    written: WrittenKernel
    bytes_per_point: float

    @property
    def name(self) -> str:
        return self.written.kernel.name.partition("_")[2]


def figures_of(
    program: Program, size: int, dtype: str, architecture: str = "sm_90"
) -> Iterator[Figures]:
    """The kernels of a program; raises `NoNvrtcError` where NVRTC is missing."""
    nests = [*_nests(program.name, program.function, program.make_args(size, dtype, 0), dtype, 0)]
    return _compiled(nests, architecture)


def _nests(
    name: str, function: Callable[..., Any], args: Sequence[Any], dtype: str, number: int
) -> Iterator[_Nest]:
    """The kernels of a function of these arguments."""
    for kernel in fusec.jit(function).lower(*args).kernels:
        step = kernel.step
        strides = [buffer_strides(p.dtype, p.strides) for p in step.places]
        moved = sum(kernel.bytes_loaded.values()) + sum(kernel.bytes_stored.values())
        points = sum(_points(nest.extents) for nest in step.kernel.nests)
        for count, nest in enumerate(step.kernel.nests):
            form = specialise(step.kernel, nest, strides)
            title = f"p{number}_{_word(kernel.name)}_{count}"
            for written in write_form(form, "i32", title):
                yield _Nest(name, dtype, form, written, moved / points)


def _compiled(nests: Sequence[_Nest], architecture: str = "sm_90") -> Iterator[Figures]:
    """Kernels as one module: the disassembler takes most of a second for each."""
    compiled = nvrtc.compile(module_of([nest.written for nest in nests]), architecture)
    ptx = {part.partition("(")[0]: part for part in compiled.ptx.split(".visible .entry ")[1:]}
    text = disassembly.disassembled(compiled.cubin) if disassembly.disassembler() else ""
    return (_figures(nest, ptx[nest.written.kernel.name], text, compiled) for nest in nests)


def _points(extents: Sequence[int]) -> int:
    count = 1
    for extent in extents:
        count *= max(extent, 1)
    return count


def _word(name: str) -> str:
    return re.sub(r"\W", "_", name)


def _figures(nest: _Nest, ptx: str, text: str, compiled: Compiled) -> Figures:
    form, written = nest.form, nest.written
    layout, usage = written.geometry(form), compiled.usage[written.kernel.name]
    threads = int(layout.threads[0] * layout.threads[1])
    return Figures(
        nest.program, nest.dtype, nest.name, form.mode, threads, usage.registers,
        usage.shared_bytes + layout.shared, usage.spill_stores + usage.spill_loads,
        usage.occupancy(threads, layout.shared), len(_ANY.findall(ptx)), len(_WIDE.findall(ptx)),
        nest.bytes_per_point, _instructions(written, text))


def _instructions(written: WrittenKernel, text: str) -> Mapping[str, float]:
    if not text:
        return {}
    counted = sass.instructions(sass.of_kernel(text, written.kernel.name))
    return {kind: count / written.elements for kind, count in counted.items()}


_HEAD = ("program", "kernel", "dtype", "threads", "registers", "shared B", "spilled B", "occupancy",
         "wide / all accesses", "B / point", "instructions / element", *sass.CLASSES)


def markdown(rows: Sequence[Figures]) -> str:
    """The figures as a table."""
    lines = [_row(_HEAD), _row(["---"] * len(_HEAD))]
    lines += [_row(_cells(f)) for f in rows]
    return "\n".join(lines)


def _cells(f: Figures) -> list[Any]:
    return [f.program, f"`{f.kernel}`", f.dtype, f.threads, f.registers, f.shared_bytes,
            f.spilled_bytes, f"{f.occupancy:.0%}", f"{f.wide} / {f.accesses}",
            f"{f.bytes_per_point:.1f}", *_counts(f)]


def _counts(f: Figures) -> list[str]:
    if not f.instructions:
        return ["-"] * (1 + len(sass.CLASSES))
    return [f"{n:.1f}" for n in (f.instructions_in_all, *f.instructions.values())]


def _row(cells: Sequence[Any]) -> str:
    return f"| {' | '.join(map(str, cells))} |"


def table(programs: Sequence[Program], dtypes: Sequence[str]) -> str:
    """The figures of these programs at their largest sizes, and of the kernels that were profiled;
    raises `NoNvrtcError`."""
    return markdown([*every_kernel(programs, dtypes)])


def every_kernel(programs: Sequence[Program], dtypes: Sequence[str]) -> Iterator[Figures]:
    """The rows of `table`."""
    for dtype in dtypes:
        calls = [*((p.name, p.function, p.make_args(p.sizes[-1], dtype, 0)) for p in programs),
                 *((c.name, c.function, c.args(dtype)) for c in gpu_kernels.CASES)]
        nests = [nest for number, call in enumerate(calls) for nest in _nests(*call, dtype, number)]
        yield from _compiled(nests)
