"""A branch or loop as text of the host's that launches its kernels one after the other."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Any, Protocol

from fusec import config
from fusec.codegen.structured.memory import Strides
from fusec.codegen.structured.program import StructuredProgram, build_program
from fusec.codegen.structured.statements import CallPython, walk
from fusec.codegen.structured.verify import verify
from fusec.ir import Node
from fusec.ir.sizes.bindings import Bindings, resolve
from fusec.ir.sizes.dims import symbols_of

from ...kernels.specialise import LoopForm
from ...machine_code.native_nest import CompileStats
from ...plan.control_program import ControlCode
from ..compiled_nests import CudaForm, NestCall
from ..driver.driver import Driver
from ..joined_call import JoinedCall
from ..kernels.joined_nests import may_be_joined
from ..kernels.kernel_sources import module_of
from ..kernels.kernel_texts import KernelTexts
from ..module import CudaModule
from .launch_queue import launch_us, most_at_once
from .launch_sites import LaunchSite
from .printer import print_block
from .program_call import LaunchedProgram
from .program_text import LibraryAt, ProgramText

HEAD = "def run(call):"


class CudaCompiler(Protocol):
    """The parts of `CudaBackend` that programs are made with."""

    @property
    def driver(self) -> Driver: ...
    def compile(self, forms: Sequence[CudaForm], stats: CompileStats) -> list[NestCall]: ...
    def joined(self, forms: Sequence[CudaForm], stats: CompileStats) -> JoinedCall: ...
    def library_at(self, node: Node) -> LibraryAt: ...


def launched_program(
    program: StructuredProgram, strides: Sequence[Strides], compiler: CudaCompiler,
    stats: CompileStats, reason: str = "",
) -> ControlCode:
    """Raises `NotNativeError` for what only runs step by step; ``reason``: why all of it is not
    one kernel."""
    if config.verify:
        verify(program)
    text = printed(program, compiler)
    sites = _sites(text, compiler, stats)
    text.names |= sites
    node, forms = program.node, [form.loops for site in text.sites.values() for form in site]
    calls = [x.site.node for x in walk(program.body) if isinstance(x, CallPython)]
    run = LaunchedProgram(
        program, compiler.driver, text.compiled(HEAD, f"<program of {program.node.name}>"),
        text.arrays, AtOnce(forms, calls, program.outer))
    texts = KernelTexts(*_modules(sites), py=text.source_text(HEAD))
    return ControlCode(node, run, forms, program.copied, texts,
                       lambda: build_program(node, strides),
                       f"text that launches {len(text.sites)} kernels"
                       f"{f' (not one for all iterations: {reason})' if reason else ''}")


def printed(
    program: StructuredProgram, compiler: CudaCompiler, is_noted: bool = False
) -> ProgramText:
    """The text with all statements; ``is_noted``: which lines of the whole source are of which
    statement is noted in ``notes``."""
    text = ProgramText(program, compiler.library_at)
    text.notes = [] if is_noted else None
    print_block(text, text.body)
    text.finish()
    return text


class AtOnce:
    """``at(sizes)``: how many launches may be under way for the longest of them to be over soon."""

    def __init__(
        self, forms: Sequence[LoopForm], calls: Sequence[Node], outer: Set[str]
    ) -> None:
        """Of these nests and library calls; ``outer`` are the sizes that a call knows."""
        self._forms, self._calls, self._outer = forms, calls, outer
        self._known: tuple[tuple[int, ...], int] | None = None

    def __call__(self, sizes: Bindings) -> int:
        key = tuple(sizes[name] for name in sorted(sizes))
        if self._known is None or self._known[0] != key:
            self._known = key, most_at_once(max(self._longest(sizes), default=0.0))
        return self._known[1]

    def _longest(self, sizes: Bindings) -> Iterator[float]:
        """Those of sizes that only the run knows are not counted."""
        for form in self._forms:
            places = tuple((o.offset, o.strides, o.gathered) for o in form.operands)
            if form.is_static or self._is_of_call(form.extents, places):
                known = form if form.is_static else form.at_sizes(sizes)
                yield launch_us(known.moved_bytes)
        for node in self._calls:
            shapes = tuple(v.shape for v in (*node.outputs, *node.inputs) if v.type.kind == "array")
            if self._is_of_call(shapes):
                result, *operands = resolve(shapes, sizes) or ((),)
                inner = operands[0][-1:] if node.op == "MatMul" and operands else ()
                yield launch_us(0, 2 * math.prod((*result, *inner)) if inner else 0)

    def _is_of_call(self, *sizes: Any) -> bool:
        return symbols_of(sizes) <= self._outer


def _sites(
    text: ProgramText, compiler: CudaCompiler, stats: CompileStats
) -> dict[str, LaunchSite]:
    """The launches by name; nests that one launch does each have a module of their own."""
    sites = {name: LaunchSite([], compiler.joined(forms, stats))
             for name, forms in text.sites.items() if is_joined(text, name)}
    others = {name: forms for name, forms in text.sites.items() if name not in sites}
    nests = iter(compiler.compile([form for forms in others.values() for form in forms], stats))
    return sites | {name: LaunchSite([next(nests) for _ in forms])
                    for name, forms in others.items()}


def is_joined(text: ProgramText, site: str) -> bool:
    """Whether one launch does all nests of a site."""
    forms = text.sites[site]
    return site in text.apart and may_be_joined(forms[0].kernel, [form.loops for form in forms])


def nests_of_modules(text: ProgramText) -> Iterator[tuple[str, list[int]]]:
    """For each module of the program's `KernelTexts` the site, and the numbers of its nests."""
    joined = [name for name in text.sites if is_joined(text, name)]
    yield from ((name, [*range(len(text.sites[name]))]) for name in joined)
    for name, forms in text.sites.items():
        if name not in joined:
            yield from ((name, [number]) for number in range(len(forms)))


def _modules(sites: Mapping[str, LaunchSite]) -> Iterator[CudaModule]:
    """The kernels, for people: a module for each nest, or for nests that are joined."""
    for site in sites.values():
        if site.joined is not None:
            yield site.joined.joined.module
        for nest in site.nests:
            yield module_of([one.written for one in nest.kernels])
