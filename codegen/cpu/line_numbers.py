"""Which lines of LLVM's text became which lines of the optimised text and of the assembly.

LLVM carries places of a source through its passes.  Here the text itself is taken for the source:
each instruction gets the number of its line, and those that come out of the optimiser and the code
generator say it.  Places hardly change code; where the code with them is another (LLVM promises
it for no version), nothing is said.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from ..machine_code.llvm import NativeCode

_PLACE = re.compile(r", !dbg !(\d+)")
_PLACES = re.compile(r"(?m)^!(\d+) = !DILocation\(line: (\d+)")
_LOC = re.compile(r"\s+\.loc\s+\d+\s+(\d+)")
_SYMBOL = re.compile(r"\.?L[\w.]+")
# Functions of nests, of branches and loops, and those in them that call themselves.
_HEAD = re.compile(r"define (internal )?(void @nest_|i64 @(run\(|call_))")
MOST_OTHER = 0.02  # of the instructions, in the same place and another form
_SCOPE = 1_000_000  # the number of a function's scope, above those of lines
_METADATA = """
!llvm.dbg.cu = !{!2000000}
!llvm.module.flags = !{!2000001}
!2000000 = distinct !DICompileUnit(language: DW_LANG_C, file: !2000002, emissionKind: FullDebug)
!2000001 = !{i32 2, !"Debug Info Version", i32 3}
!2000002 = !DIFile(filename: "kernel.ll", directory: ".")
!2000003 = !DISubroutineType(types: !{null})
"""


def lines_of_code(code: NativeCode) -> tuple[list[int], list[int]]:
    """For each line of ``code.llvm_ir`` and of ``code.assembly`` the line of ``code.source`` that
    it is of, from 0; -1 for none.  Only functions that compute steps of a program are looked at,
    not those that they call for it."""
    optimised, assembly = code.listings(_with_places(code.source))
    return (_of_optimised(optimised, code.llvm_ir.splitlines()),
            _of_assembly(assembly.splitlines(), code.assembly.splitlines()))


def _with_places(source: str) -> str:
    """The text, with a place for each instruction of its functions."""
    result, metadata, inside, scopes = list[str](), list[str](), False, 0
    for number, line in enumerate(source.splitlines()):
        if line.endswith("{") and _HEAD.match(line):
            inside, scopes = True, scopes + 1
            scope = _SCOPE + scopes
            metadata.append(
                f'!{scope} = distinct !DISubprogram(name: "f{scopes}", scope: !2000002, file: '
                f"!2000002, line: {number + 1}, type: !2000003, unit: !2000000, spFlags: "
                "DISPFlagDefinition)")
            line = f"{line[:-1]}!dbg !{scope} {{"
        elif line == "}":
            inside = False
        elif inside and line.startswith("  ") and not line.isspace():
            metadata.append(f"!{number + 10} = !DILocation(line: {number + 1}, column: 1, "
                            f"scope: !{_SCOPE + scopes})")
            line = f"{line}, !dbg !{number + 10}"
        result.append(line)
    return "\n".join([*result, _METADATA, *metadata, ""])


def _of_optimised(listing: str, plain: Sequence[str]) -> list[int]:
    of = {place: int(line) - 1 for place, line in _PLACES.findall(listing)}
    bodies = [line for line in listing.splitlines() if line.startswith("  ")]
    found = iter([(_PLACE.sub("", line), _PLACE.search(line)) for line in bodies])
    return _merged(
        plain, ((text, of.get(place[1], -1) if place else -1) for text, place in found),
        lambda line: line.startswith("  "), lambda line: line.partition(", !")[0].strip())


def _of_assembly(listing: Sequence[str], plain: Sequence[str]) -> list[int]:
    return _merged(plain, _instructions(listing), _is_instruction,
                   lambda line: _SYMBOL.sub("L", line).strip())


def _instructions(listing: Iterable[str]) -> Iterator[tuple[str, int]]:
    """Instructions, each with the line that was said last before it."""
    line = -1
    for text in listing:
        place = _LOC.match(text)
        if place:
            line = int(place[1]) - 1
        elif _is_instruction(text):
            yield text, line
        elif text and not text[0].isspace() and not text.startswith((".L", "#")):
            line = -1  # another function


def _is_instruction(text: str) -> bool:
    return text.startswith("\t") and not text.startswith(("\t.", "\t#"))


def _merged(
    plain: Sequence[str], places: Iterable[tuple[str, int]], is_code: Callable[[str], bool],
    text_of: Callable[[str], str],
) -> list[int]:
    """The places of a plain listing's lines; none where the two are not the same code.

    With places single instructions have another form (``leaq`` for ``addq``): those have none.
    """
    given = [(text_of(text), line) for text, line in places]
    code = [text_of(line) for line in plain if is_code(line)]
    same = [own == text for own, (text, _) in zip(code, given, strict=False)]
    if len(given) != len(code) or same.count(False) > MOST_OTHER * len(code):
        return [-1] * len(plain)
    lines = iter([line if is_same else -1
                  for is_same, (_, line) in zip(same, given, strict=True)])
    return [next(lines) if is_code(line) else -1 for line in plain]
