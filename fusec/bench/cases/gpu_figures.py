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


def figures_of(
    program: Program, size: int, dtype: str, architecture: str = "sm_90"
) -> Iterator[Figures]:
    """The kernels of a program; raises `NoNvrtcError` where NVRTC is missing."""
    return figures_of_call(
        program.name, program.function, program.make_args(size, dtype, 0), dtype, architecture)


def figures_of_call(
    name: str, function: Callable[..., Any], args: Sequence[Any], dtype: str,
    architecture: str = "sm_90",
) -> Iterator[Figures]:
    """The kernels of a function of these arguments; raises `NoNvrtcError`."""
    lowered = fusec.jit(function).lower(*args)
    for kernel in lowered.kernels:
        step = kernel.step
        strides = [buffer_strides(p.dtype, p.strides) for p in step.places]
        moved = sum(kernel.bytes_loaded.values()) + sum(kernel.bytes_stored.values())
        points = sum(_points(nest.extents) for nest in step.kernel.nests)
        for number, nest in enumerate(step.kernel.nests):
            form = specialise(step.kernel, nest, strides)
            for written in write_form(form, "i32", f"{_word(kernel.name)}_{number}"):
                compiled = nvrtc.compile(module_of([written]), architecture)
                yield _figures(name, dtype, form, written, compiled, moved / points)


def _points(extents: Sequence[int]) -> int:
    count = 1
    for extent in extents:
        count *= max(extent, 1)
    return count


def _word(name: str) -> str:
    return re.sub(r"\W", "_", name)


def _figures(
    program: str, dtype: str, form: LoopForm, written: WrittenKernel, compiled: Compiled,
    bytes_per_point: float,
) -> Figures:
    layout, usage = written.geometry(form), compiled.usage[written.kernel.name]
    threads = layout.threads[0] * layout.threads[1]
    return Figures(
        program, dtype, written.kernel.name, form.mode, threads, usage.registers,
        usage.shared_bytes + layout.shared, usage.spill_stores + usage.spill_loads,
        usage.occupancy(threads, layout.shared), len(_ANY.findall(compiled.ptx)),
        len(_WIDE.findall(compiled.ptx)), bytes_per_point, _instructions(written, compiled))


def _instructions(written: WrittenKernel, compiled: Compiled) -> Mapping[str, float]:
    if disassembly.disassembler() is None:
        return {}
    counted = sass.instructions(compiled.cubin)
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
        for program in programs:
            yield from figures_of(program, program.sizes[-1], dtype)
        for case in gpu_kernels.CASES:
            yield from figures_of_call(case.name, case.function, case.args(dtype), dtype)
