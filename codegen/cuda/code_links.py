"""Links of CUDA C++, PTX and SASS: of a kernel with the lines of its loops, of a branch or loop
with its statements.

Which lines of CUDA C++ are of which expression is noted as they are written; NVRTC says of PTX and
of machine code which lines of the source they are of (``-lineinfo``, which changes no code).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ..machine_code.code_listings import Listing, lines_of_expressions
from ..plan.control_runs import ControlRun
from ..structured.kernel_statements import RunKernel
from ..structured.program import StructuredProgram
from .compiled_nests import NestCall
from .disassembly import disassembled, disassembler
from .driver import nvrtc
from .kernels.kernel_sources import noted_texts
from .kernels.kernel_texts import KernelTexts
from .module import CudaModule
from .persistent.persistent_call import PersistentProgram
from .persistent.program import NAME
from .persistent.program import printed as persistent
from .persistent.program_kernel import ProgramKernel
from .programs.program import HEAD
from .programs.program import printed as launched
from .programs.program_text import ProgramText

ARCHITECTURE = nvrtc.ARCHITECTURES[-1]
TITLES = ("CUDA C++", "PTX", "SASS")
_CODE = "using namespace fusec;\n"  # after it stand the kernels
_LOC = re.compile(r"\s*\.loc\s+\d+ (?P<at>\d+ \d+)(?:, function_name \S+, inlined_at \d+ "
                  r"(?P<caller>\d+ \d+))?")
_PLACE = re.compile(r"line (\d+)$")
_INSTRUCTION = re.compile(r"\s+(/\*[0-9a-f]{4,}\*/)\s+(.*?;)")
Places = Iterable[tuple[str, int]]  # lines of a text, each with a line of the source, or -1


def listings(step: RunKernel) -> dict[str, Listing]:
    """The texts of a kernel: CUDA C++, PTX where NVRTC is, SASS where NVIDIA's disassembler is,
    too; none where it is not a CUDA device's."""
    nests = [nest for nest in step.code if isinstance(nest, NestCall)]
    if len(nests) != len(step.code) or not nests:
        return {}
    made = {title: Listing("", []) for title in TITLES}
    for nest, rows in zip(nests, lines_of_expressions(step.kernel), strict=False):
        module = nest.asm.module
        of = _rows_of_source(nest, module, rows)
        for title, places in _texts(module):
            for text, line in places:
                made[title].text += f"{text}\n"
                made[title].rows.append(of.get(line, []))
    return {title: listing for title, listing in made.items() if listing.text}


def control_listings(
    run: ControlRun, program: StructuredProgram, rows: Mapping[int, list[int]], backend: Any
) -> dict[str, Listing]:
    """The texts of a branch or loop; ``rows``: by the id of a statement of the program the lines of
    its text.  None where it is not a CUDA device's, or has another program by now."""
    texts = getattr(run.program, "texts", None)
    if not isinstance(texts, KernelTexts):
        return {}
    if isinstance(getattr(run.program, "code", None), PersistentProgram):
        return _of_one_kernel(texts.module, persistent(program, is_noted=True), rows)
    text = launched(program, backend, is_noted=True)
    return _of_launches(texts, text, rows) if text.source_text(HEAD) == texts["py"] else {}


def _of_one_kernel(
    module: CudaModule, kernel: ProgramKernel, rows: Mapping[int, list[int]]
) -> dict[str, Listing]:
    at = module.source.find(kernel.text(NAME))
    if at < 0:
        return {}
    first = module.source.count("\n", 0, at) + 1 + kernel.first_line
    of: dict[int, list[int]] = {}
    for low, high, statement in kernel.em.notes or ():  # inner statements are noted first
        for line in range(first + low, first + high):
            of.setdefault(line, rows.get(id(statement), []))
    made = {}
    for title, places in _texts(module):
        lines = list(places)
        made[title] = Listing("\n".join(text for text, _ in lines),
                              [of.get(line, []) for _, line in lines])
    return made


def _of_launches(
    texts: KernelTexts, text: ProgramText, rows: Mapping[int, list[int]]
) -> dict[str, Listing]:
    """The text that launches the kernels, and that of the kernels themselves without links."""
    py = texts["py"]
    found: list[list[int]] = [[] for _ in py.split("\n")]
    for low, high, statement in text.notes or ():
        for line in range(low, high):
            found[line] = found[line] or rows.get(id(statement), [])
    made = {"launches": Listing(py, found)}
    for key, title in (("cu", "CUDA C++"), ("ptx", "PTX")):
        if key in texts:
            made[title] = Listing(texts[key], [])
    return made


def _rows_of_source(
    nest: NestCall, module: CudaModule, rows: dict[Any, list[int]]
) -> dict[int, list[int]]:
    """For lines of a module's source, from 1, the lines of the loops."""
    found: dict[int, list[int]] = {}
    name = nest.kernels[0].kernel.name.rpartition("_")[0]
    for text, notes in noted_texts(nest.form.loops, nest.form.index, name):
        at = module.source.find(text)
        first = module.source.count("\n", 0, at) + 1
        for low, high, e in notes if at >= 0 else ():
            for line in range(first + low, first + high):  # inner expressions are noted first
                found.setdefault(line, rows.get(e, []))
    return found


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
    return ((line, first + number) for number, line in enumerate(text.split("\n")))


def _of_ptx(lines: Sequence[str], names: Sequence[str]) -> Places:
    """The kernels of a module's PTX, without directives of debuggers.

    An instruction of a function that was inlined is of the line of the kernel that calls it.
    """
    heads = tuple(f".entry {name}(" for name in names)
    line, inside, callers = -1, False, dict[str, str]()
    for text in lines:
        if any(head in text for head in heads):
            yield f"// {ARCHITECTURE}", -1
            inside, line = True, -1
        if not inside:
            continue
        if place := _LOC.match(text):
            if place["caller"]:
                callers[place["at"]] = place["caller"]
            else:
                callers.pop(place["at"], None)
            line = _outermost(place["at"], callers)
            continue
        is_code = text.startswith(("\t", "@")) and not text.startswith(("\t.", "\t//"))
        yield text, line if is_code else -1
        if text == "}":
            inside = False


def _outermost(at: str, callers: dict[str, str]) -> int:
    """The line of the function that is in no other, along calls that were inlined."""
    known = set[str]()
    while at in callers and at not in known:
        known.add(at)
        at = callers[at]
    return int(at.partition(" ")[0])


def _of_sass(lines: Sequence[str], names: Sequence[str]) -> Places:
    """The kernels of a module's machine code.

    Before an instruction the disassembler says its place, then the places of the calls that were
    inlined around it: the last one is the kernel's own.
    """
    starts = {f"{name}:" for name in names}
    line, inside = -1, False
    for text in lines:
        if text in starts:
            yield f"// {ARCHITECTURE}", -1
            inside, line = True, -1
        elif text.startswith("//----"):
            inside = False
        if not inside:
            continue
        if "//## File" in text:
            place = _PLACE.search(text)
            line = int(place[1]) if place else -1
        elif found := _INSTRUCTION.match(text):
            yield f"  {found[1]}  {found[2]}", line
        elif (text[:1] in (".", "$") and not text.startswith(".text")) or text in starts:
            yield text, -1
