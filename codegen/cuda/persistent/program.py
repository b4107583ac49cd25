"""A structured program as one kernel: made of its statements, compiled, and what people see of it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Protocol

from fusec import config
from fusec.codegen.backend import Strides
from fusec.codegen.structured import statements as s
from fusec.codegen.structured.not_native import NotNativeError
from fusec.codegen.structured.program import StructuredProgram, build_program
from fusec.codegen.structured.statements import walk
from fusec.codegen.structured.verify import verify
from fusec.core.records import dataclass
from fusec.ir import Loc

from ...kernels.loop_ir import Kernel
from ...machine_code.native_nest import CompileStats
from ...plan.control_program import ControlCode
from ..driver.driver import Driver
from ..kernels.kernel_sources import source_of
from ..kernels.kernel_texts import KernelTexts
from ..module import CudaKernel, CudaModule
from ..scalars.scalar_functions import ScalarText, definition
from . import choice as choices
from .choice import choose
from .hazards import Hazards, PendingAccesses
from .persistent_call import PersistentProgram
from .printer import print_block
from .program_kernel import ProgramKernel

NAME = "persistent"
MOST_LINES = 3000  # of the kernel, beside its nests


class PersistentCompiler(Protocol):
    """The parts of `CudaBackend` that persistent kernels are made with."""

    @property
    def driver(self) -> Driver: ...
    def driver_for(self, kernel: Kernel) -> Any: ...


def persistent_program(
    program: StructuredProgram, strides: Sequence[Strides], compiler: PersistentCompiler,
    stats: CompileStats,
) -> ControlCode:
    """Raises `NotNativeError` for what has to be launched, or is better so."""
    if config.verify:
        verify(program)
    start = time.perf_counter()
    made = printed(program)
    choice = choose(program, made)
    if not choice.is_persistent and choices.forced != "persistent":
        raise NotNativeError(str(choice))
    module = module_of_program(made, NAME)
    kernel, loaded = compiled_module(module, compiler.driver, stats, start)
    node = program.node
    whole = whole_of(program)
    run = PersistentProgram(program, made, kernel, loaded, compiler.driver_for(whole), whole)
    return ControlCode(node, run, [grid.form.loops for grid in made.grids], program.copied,
                       KernelTexts(module), lambda: build_program(node, strides),
                       f"one kernel that does all of it; {choice}")


def compiled_module(
    module: CudaModule, driver: Driver, stats: CompileStats, start: float
) -> tuple[CudaKernel, Any]:
    """The one kernel of a module, and what the driver has loaded; ``start``: when it was begun."""
    (kernel,) = module.kernels
    emitted = time.perf_counter()
    loaded = driver.compile(module)
    stats.codegen_ms += 1e3 * (emitted - start)
    stats.add(driver.compiler, 1e3 * (time.perf_counter() - emitted))
    stats.compiled += 1
    return kernel, loaded


def printed(
    program: StructuredProgram, stem: str = "", is_noted: bool = False
) -> ProgramKernel:
    """The kernel with all statements, and barriers where loops need them; ``stem`` begins the names
    of its functions; ``is_noted``: which lines are of which statement is noted in ``em.notes``.

    Raises `NotNativeError` for one of which a compiler had too much: its time grows faster than the
    text, and each number of each iteration is a variable.
    """
    entries: dict[int, PendingAccesses] = {}
    while True:
        hazards = Hazards(entries)
        made = ProgramKernel(program, hazards, stem)
        made.em.notes = [] if is_noted else None
        print_block(made, program.body)
        if len(made.em.lines) > MOST_LINES:
            raise NotNativeError(f"{len(made.em.lines)} lines of code, of at most {MOST_LINES}")
        if hazards.is_stable:
            return made
        entries = hazards.entries


@dataclass(frozen=True)
class WrittenProgram:
    """A kernel as parts of a module, as `source_of` takes them, but for `helpers`."""

    kernel: CudaKernel
    texts: list[str]
    math: list[Any]
    called: list[ScalarText]


def written(made: ProgramKernel, name: str, waits: bool = True) -> WrittenProgram:
    """The kernel of that name, when all statements are printed; ``waits``: whether threads and
    blocks wait for each other."""
    text = made.text(name)
    functions = list(made.functions)
    called = [*made.em.functions, *(f for one in functions for f in one.written.functions)]
    math = [*made.em.math, *(m for one in functions for m in one.written.math)]
    params = tuple(argument.param for argument in made.arguments.values())
    kernel = CudaKernel(name, params, made.most_threads, waits, is_cooperative=waits)
    return WrittenProgram(kernel, [*(f.text for f in functions), text], math, [
        definition(f) if isinstance(f, str) else f for f in called])


def module_of_program(made: ProgramKernel, name: str, waits: bool = True) -> CudaModule:
    """A module of that kernel: see `written`."""
    parts = written(made, name, waits)
    source = source_of(parts.math, [helpers(), *parts.texts], parts.called)
    return CudaModule(source, (parts.kernel,))


@cache
def helpers() -> str:
    """The C++ that all such kernels are made with."""
    text = (Path(__file__).parent / "persistent.cuh").read_text()
    return f"namespace fusec {{\n{text}}}  // namespace fusec"


def whole_of(program: StructuredProgram) -> Kernel:
    """A name for all of it, with the program's lines, for faults."""
    return Kernel(program.node.name, (), (), (), tuple(dict.fromkeys(_locs(program))))


def _locs(program: StructuredProgram) -> Iterator[Loc]:
    for x in walk(program.body):
        if isinstance(x, s.RunKernel):
            yield from x.kernel.locs
