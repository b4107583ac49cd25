"""Links of CUDA C++, PTX and SASS: of a kernel with the lines of its loops, of a branch or loop
with its statements.

Which lines of CUDA C++ are of which expression is noted as they are written; NVRTC says of PTX and
of machine code which lines of the source they are of (``-lineinfo``, which changes no code).
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ..kernels.loop_ir import Expr
from ..kernels.loop_ir import walk as walk_expressions
from ..machine_code.code_listings import (
    Listing,
    Notes,
    ProgramRows,
    lines_of_expressions,
    note_lines,
)
from ..plan.control_runs import ControlRun
from ..structured.kernel_statements import RunKernel
from ..structured.program import StructuredProgram
from ..structured.statements import walk
from .compiled_nests import CudaForm, NestCall
from .disassembly import disassembled, disassembler
from .driver import nvrtc
from .kernels.joined_nests import function_of, index_of
from .kernels.kernel_sources import noted_texts
from .kernels.kernel_texts import KernelTexts
from .lanes.lane_call import LaneProgram
from .lanes.lane_printer import lane_kernel
from .lanes.lane_program import NAME as LANES
from .module import CudaModule
from .persistent.persistent_call import PersistentProgram
from .persistent.program import NAME
from .persistent.program import printed as persistent
from .persistent.program_kernel import ProgramKernel
from .programs.program import HEAD, nests_of_modules
from .programs.program import printed as launched
from .programs.program_text import ProgramText

ARCHITECTURE = nvrtc.ARCHITECTURES[-1]
TITLES = ("CUDA C++", "PTX", "SASS")
_CODE = "using namespace fusec;\n"  # after it stand the kernels
_LOC = re.compile(r"\s*\.loc\s+\d+ (?P<at>\d+ \d+)(?:, function_name \S+, inlined_at \d+ "
                  r"(?P<caller>\d+ \d+))?")
_PLACE = re.compile(r'File "[^"]*", line (\d+)')
_INSTRUCTION = re.compile(r"\s+(/\*[0-9a-f]{4,}\*/)\s+(.*?;)")
_SITE = re.compile(r"\s*(launch\d+)\(")
Noted = Iterable[tuple[str, Notes]]  # the texts of kernels, with what their lines are of
# Lines of a text, each with the line of the source that it is of, then those of the calls around
# it that were inlined.
Places = Iterable[tuple[str, Sequence[int]]]


def listings(step: RunKernel) -> dict[str, Listing]:
    """The texts of a kernel: CUDA C++, PTX where NVRTC is, SASS where NVIDIA's disassembler is,
    too; none where it is not a CUDA device's."""
    nests = [nest for nest in step.code if isinstance(nest, NestCall)]
    if len(nests) != len(step.code) or not nests:
        return {}
    made = {title: Listing("", []) for title in TITLES}
    for nest, rows in zip(nests, lines_of_expressions(step.kernel), strict=False):
        module, of = nest.asm.module, dict[int, list[int]]()
        _note_nest(of, module, _written(nest.form, module), rows)
        _add(made, module, of)
    return _finished(made)


def control_listings(
    run: ControlRun, program: StructuredProgram, rows: ProgramRows, backend: Any
) -> dict[str, Listing]:
    """The texts of a branch or loop; ``rows``: the lines of the program's text.  None where it is
    not a CUDA device's, or has another program by now."""
    texts, code = (getattr(run.program, name, None) for name in ("texts", "code"))
    if not isinstance(texts, KernelTexts):
        return {}
    if isinstance(code, LaneProgram):
        return _of_one_kernel(texts.module, lane_kernel(program, is_noted=True), LANES, rows)
    if isinstance(code, PersistentProgram):
        return _of_one_kernel(texts.module, persistent(program, is_noted=True), NAME, rows)
    text = launched(program, backend, is_noted=True)
    return _of_launches(texts, text, rows) if text.source_text(HEAD) == texts["py"] else {}


def _add(
    made: Mapping[str, Listing], module: CudaModule, of: Mapping[int, list[int]]
) -> None:
    """Adds the texts of a module; ``of``: for lines of its source, from 1, those of the loops."""
    for title, places in _texts(module):
        for text, lines in places:
            made[title].text += f"{text}\n"
            made[title].rows.append(next((of[line] for line in lines if of.get(line)), []))


def _finished(made: Mapping[str, Listing]) -> dict[str, Listing]:
    return {title: listing for title, listing in made.items() if listing.text}


def _of_one_kernel(
    module: CudaModule, kernel: ProgramKernel, name: str, rows: ProgramRows
) -> dict[str, Listing]:
    at = module.source.find(kernel.text(name))
    if at < 0:
        return {}
    first = module.source.count("\n", 0, at) + 1 + kernel.first_line
    of: dict[int, list[int]] = {}
    note_lines(of, first, _by_statement(kernel.em.notes or (), rows), list)
    steps = {id(use.form): (x, number) for x in walk(kernel.program.body)
             if isinstance(x, RunKernel) for number, use in enumerate(x.nests)}
    for grid in kernel.grids:
        if id(grid.form.loops) in steps:
            step, number = steps[id(grid.form.loops)]
            functions = kernel.functions.of(grid.form)
            stem = functions[0].name.rpartition("_")[0]
            noted = ((function.text, notes) for function, (_, notes) in zip(
                functions, noted_texts(grid.form.loops, grid.form.index, stem), strict=True))
            _note_nest(of, module, noted, rows.nests(step)[number])
    made = {title: Listing("", []) for title in TITLES}
    _add(made, module, of)
    return _finished(made)


def _by_statement(notes: Notes, rows: ProgramRows) -> Iterator[tuple[int, int, list[int]]]:
    """Notes of statements, and of expressions of the kernels that are printed in them: with the
    lines of the program's text."""
    inside: list[tuple[int, int, Expr]] = []
    for low, high, source in notes:
        if isinstance(source, Expr):
            inside.append((low, high, source))
            continue
        for first, last, e in inside:
            if of := rows.of_expression(source, e):
                yield first, last, of
        inside.clear()
        yield low, high, rows.of(source)


def _of_launches(
    texts: KernelTexts, text: ProgramText, rows: ProgramRows
) -> dict[str, Listing]:
    """The text that launches the kernels, and those of the kernels."""
    found: dict[int, list[int]] = {}
    of_site: dict[str, Any] = {}
    lines = texts["py"].split("\n")
    for low, high, statement in text.notes or ():
        for line in range(low, high):
            if launch := _SITE.match(lines[line]):
                of_site.setdefault(launch[1], statement)
    same = itertools.groupby(text.notes or (), lambda note: note[:2])  # ops of one kernel
    together = ((low, high, [*dict.fromkeys(row for *_, x in notes for row in rows.of(x))])
                for (low, high), notes in same)
    note_lines(found, 0, together, list)
    made = {"launches": Listing(texts["py"], [found.get(n, []) for n in range(len(lines))])}
    kernels = {title: Listing("", []) for title in TITLES}
    for module, (site, numbers) in zip(texts.modules, nests_of_modules(text), strict=True):
        of: dict[int, list[int]] = {}
        forms = [text.sites[site][number] for number in numbers]
        written = _joined(forms) if len(forms) > 1 else [_written(forms[0], module)]
        for number, noted in zip(numbers, written, strict=True):
            _note_nest(of, module, noted, _rows_of_site(text, site, number, of_site[site], rows))
        _add(kernels, module, of)
    return made | _finished(kernels)


def _rows_of_site(
    text: ProgramText, site: str, number: int, statement: Any, rows: ProgramRows
) -> Mapping[Expr, list[int]]:
    """The lines of the expressions of a nest that is launched there."""
    if isinstance(statement, RunKernel):
        return rows.nests(statement)[number]
    if site in text.expressions:
        of: dict[Expr, list[int]] = {}
        for e, x in text.expressions[site]:
            of.setdefault(e, []).extend(rows.of(x))
        return of
    every = walk_expressions(text.sites[site][number].loops.nest.roots)
    return dict.fromkeys(every, rows.of(statement))


def _written(form: CudaForm, module: CudaModule) -> Noted:
    """The texts of a nest's kernels in a module of their own, with notes."""
    name = module.kernels[0].name.rpartition("_")[0]
    return noted_texts(form.loops, form.index, name)


def _joined(forms: Sequence[CudaForm]) -> Iterator[Noted]:
    """For each nest the function that it is in the kernel of all."""
    index = index_of(form.index for form in forms)
    for number, form in enumerate(forms):
        yield ((function_of(text), notes)
               for text, notes in noted_texts(form.loops, index, f"nest_{number}"))


def _note_nest(
    of: dict[int, list[int]], module: CudaModule, written: Noted,
    rows: Mapping[Expr, list[int]],
) -> None:
    """Adds for lines of a module's source, from 1, the lines of the loops that they compute."""
    own: dict[int, list[int]] = {}
    for text, notes in written:
        at = module.source.find(text)
        if at >= 0:
            note_lines(own, module.source.count("\n", 0, at) + 1, notes,
                       lambda e: rows.get(e, []))
    for line, found in own.items():  # of another kernel with the same code, too
        of[line] = [*dict.fromkeys((*of.get(line, ()), *found))]


def _texts(module: CudaModule) -> Iterator[tuple[str, Places]]:
    head, _, kernels = module.source.partition(_CODE)
    yield "CUDA C++", enumerate_source(kernels.rstrip("\n"), head.count("\n") + 2)
    if nvrtc.is_available():
        code = nvrtc.compile(module, ARCHITECTURE, ("-lineinfo",))
        names = [kernel.name for kernel in module.kernels]
        yield "PTX", _of_ptx(code.ptx.split("\n"), names)
        if disassembler() is not None:
            yield "SASS", _of_sass(disassembled(code.cubin, "-gi").split("\n"), names)


def enumerate_source(text: str, first: int) -> Places:
    """Lines of a source, each with its own number."""
    return ((line, (first + number,)) for number, line in enumerate(text.split("\n")))


def _of_ptx(lines: Sequence[str], names: Sequence[str]) -> Places:
    """The kernels of a module's PTX, without directives of debuggers."""
    heads = tuple(f".entry {name}(" for name in names)
    at, inside, callers = "", False, dict[str, str]()
    for text in lines:
        if any(head in text for head in heads):
            yield f"// {ARCHITECTURE}", ()
            inside, at = True, ""
        if not inside:
            continue
        if place := _LOC.match(text):
            if place["caller"]:
                callers[place["at"]] = place["caller"]
            else:
                callers.pop(place["at"], None)
            at = place["at"]
            continue
        is_code = text.startswith(("\t", "@")) and not text.startswith(("\t.", "\t//"))
        yield text, _lines_around(at, callers) if is_code and at else ()
        if text == "}":
            inside = False


def _lines_around(at: str, callers: dict[str, str]) -> Sequence[int]:
    """The line of a place, then those of the calls around it that were inlined."""
    known = {at: None}
    while (at := callers.get(at, "")) and at not in known:
        known[at] = None
    return [int(place.partition(" ")[0]) for place in known]


def _of_sass(lines: Sequence[str], names: Sequence[str]) -> Places:
    """The kernels of a module's machine code.

    Before an instruction the disassembler says its place, then the places of the calls that were
    inlined around it, where these are others than before.
    """
    starts = {f"{name}:" for name in names}
    places, inside, is_new = list[int](), False, True
    for text in lines:
        if text in starts:
            yield f"// {ARCHITECTURE}", ()
            inside, places = True, []
        elif text.startswith("//----"):
            inside = False
        if not inside:
            continue
        if "//## File" in text:
            place = _PLACE.search(text)
            places = [] if is_new else places
            places += [int(place[1])] if place else []
            is_new = False
        elif found := _INSTRUCTION.match(text):
            is_new = True
            yield f"  {found[1]}  {found[2]}", tuple(places)
        elif (text[:1] in (".", "$") and not text.startswith(".text")) or text in starts:
            yield text, ()
