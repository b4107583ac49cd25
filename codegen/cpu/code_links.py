"""Links of machine code: of a kernel with the lines of its loops, of a branch or loop with its
statements.

Those who look ask the folder of a back end for this module; one that has none links nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from weakref import WeakKeyDictionary

from ..machine_code.code_listings import Listing, lines_of_expressions
from ..machine_code.llvm import NativeCode
from ..machine_code.native_nest import NativeNest
from ..plan.control_program import ControlProgram
from ..plan.control_runs import ControlRun
from ..structured.kernel_statements import RunKernel
from ..structured.program import StructuredProgram
from .line_numbers import lines_of_code
from .loops.program import NAME, printed
from .nests.modes import emit_nest

MOST_LINES = 40_000  # of LLVM's text of a module, which is optimised anew for links: about 10 s
TITLES = ("LLVM", "LLVM, optimised", "assembly")
Rows = Mapping[int, list[int]]
_last: WeakKeyDictionary[NativeCode, Sequence[tuple[str, Sequence[int]]]] = WeakKeyDictionary()


def listings(step: RunKernel) -> dict[str, Listing]:
    """LLVM's text, the optimised one and the assembly of the functions of a kernel; none where it
    is not the CPU's."""
    nests = [nest for nest in step.code if isinstance(nest, NativeNest)]
    if len(nests) != len(step.code) or len(nests) != len(step.forms) or not nests:
        return {}
    origins = _origins(step, nests)
    made = {title: Listing("", []) for title in TITLES}
    for code in {id(nest.code): nest.code for nest in nests}.values():
        symbols = {nest.symbol for nest in nests if nest.code is code}
        for title, (text, lines) in zip(made, _texts(code), strict=True):
            _add(made[title], text, lines, origins[id(code)], symbols)
            made[title].unlinked = _unlinked(title, code)
    return made


def control_listings(
    run: ControlRun, program: StructuredProgram, rows: Rows, backend: Any
) -> dict[str, Listing]:
    """The texts of a branch's or loop's function; ``rows``: by the id of a statement of the program
    the lines of its text.  None where it is not the CPU's, or has another program by now."""
    if not isinstance(run.program, ControlProgram):
        return {}
    code, frame = run.program.code, printed(program, is_noted=True)
    start = _place(code, frame.text(NAME))
    if start < 0:
        return {}
    of: dict[int, list[int]] = {}
    for low, high, statement in frame.em.of_lines:  # inner statements are noted first
        for line in range(low, high):
            of.setdefault(start + frame.first_line + line, rows.get(id(statement), []))
    return {title: Listing(text, [of.get(line, []) for line in lines], _unlinked(title, code))
            for title, (text, lines) in zip(TITLES, _texts(code, NAME), strict=True)}


def _unlinked(title: str, code: NativeCode) -> str:
    count = code.source.count("\n")
    return "" if title == TITLES[0] or count <= MOST_LINES else (
        f"no links: the module has {count:,} lines of LLVM, more than {MOST_LINES:,}")


def _texts(code: NativeCode, prefix: str = "nest_") -> Sequence[tuple[str, Sequence[int]]]:
    """The texts of a module, with the line of its source for each of theirs.  Those of the last one
    that was asked for are kept: its kernels are asked for one after another."""
    if (found := _last.get(code)) is None:
        optimised, assembly = ([], []) if _unlinked("", code) else lines_of_code(code, prefix)
        found = ((code.source, range(code.source.count("\n") + 1)),
                 (code.llvm_ir, optimised), (code.assembly, assembly))
        _last.clear()
        _last[code] = found
    return found


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


def _origins(step: RunKernel, nests: Sequence[NativeNest]) -> dict[int, dict[int, list[int]]]:
    """For each code, by its id, and each line of its source, the lines of the loops."""
    found: dict[int, dict[int, list[int]]] = {id(nest.code): {} for nest in nests}
    rows = lines_of_expressions(step.kernel)
    for number, (nest, form) in enumerate(zip(nests, step.forms, strict=True)):
        emitter = emit_nest(form, nest.symbol, is_noted=True)
        for name, (first, notes) in (emitter.origins or {}).items():
            start = _place(nest.code, emitter.functions[name])
            for low, high, e in notes if start >= 0 else ():
                for line in range(low, high):  # the innermost expressions are noted first
                    found[id(nest.code)].setdefault(start + first + line, rows[number].get(e, []))
    return found


def _place(code: NativeCode, function: str) -> int:
    """The line of the source at which a function begins; -1 where its text is another."""
    at = code.source.find(function)
    return code.source.count("\n", 0, at) if at >= 0 else -1
