"""Links of machine code: of a kernel with the lines of its loops, of a branch or loop with its
statements.

Those who look ask the folder of a back end for this module; one that has none links nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

from ..kernels.loop_ir import Expr
from ..kernels.specialise import LoopForm
from ..machine_code.code_listings import (
    Listing,
    ProgramRows,
    joined,
    lines_of_expressions,
    note_lines,
)
from ..machine_code.llvm import NativeCode
from ..machine_code.native_nest import NativeNest
from ..plan.control_program import ControlProgram
from ..plan.control_runs import ControlRun
from ..structured.kernel_statements import RunKernel
from ..structured.program import StructuredProgram
from ..structured.statements import walk
from .line_numbers import lines_of_code
from .loops.frame import Frame
from .loops.program import NAME, printed
from .nests.modes import emit_nest

MOST_LINES = 40_000  # of LLVM's text of a module, which is optimised anew for links: about 10 s
MOST_KEPT = 32  # modules with the lines of their texts
TITLES = ("LLVM", "LLVM, optimised", "assembly")
Part = tuple[NativeNest, LoopForm, Mapping[Expr, list[int]]]  # the lines of its expressions
Text = tuple[str, Sequence[int], str]  # the line of the source for each of its own; why it has none
_last: WeakKeyDictionary[NativeCode, Sequence[Text]] = WeakKeyDictionary()


def listings(step: RunKernel) -> dict[str, Listing]:
    """LLVM's text, the optimised one and the assembly of the functions of a kernel; none where it
    is not the CPU's."""
    nests = [nest for nest in step.code if isinstance(nest, NativeNest)]
    if len(nests) != len(step.code) or len(nests) != len(step.forms) or not nests:
        return {}
    return _of_nests([*zip(nests, step.forms, lines_of_expressions(step.kernel), strict=True)])


def control_listings(
    run: ControlRun, program: StructuredProgram, rows: ProgramRows, backend: Any
) -> dict[str, Listing]:
    """The texts of a branch's or loop's function, and of the nests that it calls; ``rows``: the
    lines of the program's text.  None where it is not the CPU's, or has another program by now."""
    if not isinstance(run.program, ControlProgram):
        return {}
    code, frame = run.program.code, printed(program, is_noted=True)
    functions = {**frame.em.functions, NAME: frame.text(NAME)}
    notes = {**(frame.em.origins or {}), NAME: (frame.first_line, frame.em.of_lines)}
    of: dict[int, list[int]] = {}
    for name, (first, own) in notes.items():
        start = _place(code, functions[name])
        if start < 0:
            return {}
        note_lines(of, start + first, own, rows.of)
    made = {title: Listing(text, [of.get(line, []) for line in lines], reason)
            for title, (text, lines, reason) in zip(TITLES, _texts(code), strict=True)}
    parts = _parts(run.program, program, frame, rows)
    return made if not parts else {
        title: joined(made[title], listing) for title, listing in _of_nests(parts).items()}


def _parts(
    compiled: ControlProgram, program: StructuredProgram, frame: Frame, rows: ProgramRows
) -> list[Part]:
    """The nests that a program calls, each once for each text of its loops."""
    uses = {id(use): (x, number) for x in walk(program.body) if isinstance(x, RunKernel)
            for number, use in enumerate(x.nests)}
    found: dict[tuple[int, str, int], Part] = {}
    for nest, use in zip(compiled.nests, frame.nests, strict=True):
        step, number = uses[id(use)]
        of = rows.nests(step)[number]
        first = min((line for lines in of.values() for line in lines), default=-1)
        key = id(nest.code.code), nest.code.symbol, first
        found.setdefault(key, (nest.code, use.largest, of))
    return [*found.values()]


def _of_nests(parts: Sequence[Part]) -> dict[str, Listing]:
    """The texts of the functions of nests."""
    nests = [nest for nest, _, _ in parts]
    origins = _origins(parts)
    made = {title: Listing("", []) for title in TITLES}
    for code in {id(nest.code): nest.code for nest in nests}.values():
        symbols = {nest.symbol for nest in nests if nest.code is code}
        for title, (text, lines, reason) in zip(made, _texts(code), strict=True):
            _add(made[title], text, lines, origins[id(code)], symbols)
            made[title].unlinked = made[title].unlinked or reason
    return made


def _texts(code: NativeCode) -> Sequence[Text]:
    """The texts of a module.  Those of the last ones that were asked for are kept: kernels and
    loops of a page have theirs in common."""
    if (found := _last.get(code)) is None:
        count = code.source.count("\n")
        if count > MOST_LINES:
            reason = f"no links: the module has {count:,} lines of LLVM, more than {MOST_LINES:,}"
            made: list[Text] = [(code.llvm_ir, (), reason), (code.assembly, (), reason)]
        else:
            made = [(text, lines, _OTHER_CODE if lines and max(lines) < 0 else "")
                    for text, lines in zip((code.llvm_ir, code.assembly), lines_of_code(code),
                                           strict=True)]
        found = [(code.source, range(count + 1), ""), *made]
        if len(_last) >= MOST_KEPT:
            _last.clear()
        _last[code] = found
    return found


_OTHER_CODE = "no links: asked for the places of instructions LLVM makes other code"


def _add(
    listing: Listing, text: str, lines: Sequence[int], rows: dict[int, list[int]],
    symbols: set[str],
) -> None:
    """Adds the functions of these symbols; the others are those of other kernels, or helpers."""
    kept = list(_functions(text.split("\n"), symbols))
    listing.text += "\n".join(line for _, line in kept) + "\n"
    listing.rows += [rows.get(lines[number], []) if number < len(lines) else []
                     for number, _ in kept]


def _functions(lines: Sequence[str], symbols: set[str]) -> Iterator[tuple[int, str]]:
    """The numbered lines of functions that are named so, in IR or in assembly."""
    heads = tuple(f"@{symbol}{end}" for symbol in symbols for end in ("(", ".finish("))
    labels = {f"{symbol}{end}:" for symbol in symbols for end in ("", ".finish")}
    inside = False
    for number, line in enumerate(lines):
        is_head = line.startswith("define ") and any(head in line for head in heads)
        inside = inside or is_head or line in labels
        if inside:
            yield number, line
            if line == "}" or line.startswith(".Lfunc_end"):
                inside = False
                yield number + 1, ""


def _origins(parts: Sequence[Part]) -> dict[int, dict[int, list[int]]]:
    """For each code, by its id, and each line of its source, the lines of the loops."""
    found: dict[int, dict[int, list[int]]] = {id(nest.code): {} for nest, _, _ in parts}
    for nest, form, rows in parts:
        own: dict[int, list[int]] = {}
        emitter = emit_nest(form, nest.symbol, is_noted=True)
        for name, (first, notes) in (emitter.origins or {}).items():
            start = _place(nest.code, emitter.functions[name])
            if start >= 0:
                note_lines(own, start + first, notes, partial(_rows_of, rows))
        every = found[id(nest.code)]  # of kernels that have the same nest, too
        for line, of in own.items():
            every[line] = [*dict.fromkeys((*every.get(line, ()), *of))]
    return found


def _rows_of(rows: Mapping[Expr, list[int]], e: Expr) -> list[int]:
    return rows.get(e, [])


def _place(code: NativeCode, function: str) -> int:
    """The line of the source at which a function begins; -1 where its text is another."""
    at = code.source.find(function)
    return code.source.count("\n", 0, at) if at >= 0 else -1
