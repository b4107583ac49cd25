"""A branch or loop as text of the host's that launches its kernels one after the other."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Sequence
from typing import Any

from fusec import config
from fusec.codegen.structured.memory import Strides
from fusec.codegen.structured.program import StructuredProgram, build_program
from fusec.codegen.structured.verify import verify

from ...plan.control_program import ControlCode
from ..compiled_nests import CudaForm, NestCall
from ..driver.driver import Driver
from ..kernels.kernel_sources import module_of
from ..kernels.kernel_texts import KernelTexts
from .launch_sites import LaunchSite
from .printer import print_block
from .program_call import LaunchedProgram
from .program_text import Library, ProgramText

Compile = Callable[[Sequence[CudaForm]], list[NestCall]]


def launched_program(
    program: StructuredProgram, strides: Sequence[Strides], driver: Driver, compile_: Compile,
    library: Library,
) -> ControlCode:
    """Raises `NotNativeError` for what only runs step by step; ``compile_`` makes the calls of
    nests; ``library``: see `ProgramText`."""
    if config.verify:
        verify(program)
    text = ProgramText(program, library)
    print_block(text, text.body)
    forms = [form for site in text.sites.values() for form in site]
    nests = compile_(forms)
    names, first = dict(text.names), 0
    for name, of_site in text.sites.items():
        names[name] = LaunchSite(nests[first: first + len(of_site)])
        first += len(of_site)
    run = LaunchedProgram(program, driver, _compiled(text, names), text.arrays)
    texts: Any = ChainMap({"py": text.text}, KernelTexts(  # type: ignore[arg-type]
        module_of([one.written for nest in nests for one in nest.kernels])))
    node = program.node
    return ControlCode(node, run, [form.loops for form in forms], program.copied, texts,
                       lambda: build_program(node, strides),
                       f"text that launches {len(text.sites)} kernels")


def _compiled(text: ProgramText, names: dict[str, Any]) -> Callable[..., None]:
    exec(compile(text.text, f"<program of {text.node.name}>", "exec"), names)
    run: Callable[..., None] = names.pop("run")
    return run
