"""Which math functions compiled code calls instead of inlining them: long ones in long nests, and
in loops and branches those of which there would be many copies.

LLVM takes the same time for every copy of a function's text, and a loop that is longer than the
processor's cache of instructions runs slower, too.  A call costs the spilled registers around it:
a tenth of an exponential, nothing of a sine.  Steps of several vectors overlap inlined code,
hence copies of one expression count once; powers of one kernel overlap, too, and stay.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from fusec.codegen.vecmath import ARITY

from ...kernels.loop_ir import Expr, walk

MOST_INLINED = 800  # lines of LLVM IR that the functions of a nest may become
SHORT = 60  # lines of a function that is inlined nevertheless
_CALL = re.compile(r"= call fastcc .*? @(fusec\.(\w+)\.\w+)\(")
# LLVM takes 20 ms for a sine of 16 numbers, and an eighth of that for one of one number.
_VECTOR, _SCALAR = 8, 1


def with_calls(
    lines: Sequence[str], functions: Mapping[str, str], roots: Sequence[Expr]
) -> Sequence[str]:
    """The lines of a nest; calls that are to stay calls say so."""
    found = _calls(lines)
    sizes = {m[2]: functions[m[1]].count("\n") for m in found.values()}
    counts = Counter(e.op for e in walk(roots) if e.op in sizes)
    if sum(count * sizes[name] for name, count in counts.items()) <= MOST_INLINED:
        return lines
    stay = {name for name, size in sizes.items()
            if counts[name] > 1 and size >= SHORT and ARITY[name] == 1}
    return _stayed(lines, [k for k, m in found.items() if m[2] in stay])


def with_few_copies(lines: Sequence[str], functions: Mapping[str, str]) -> Sequence[str]:
    """The lines of a loop or branch; calls that are to stay calls say so.

    A loop over lanes in vectors holds its body up to three times.  With calls, loops of 2 to 60
    functions took 4 to 6 % longer, and LLVM a tenth of its time.
    """
    found = _calls(lines)
    counts = Counter(m[1] for m in found.values())
    copied = sum(
        count * functions[name].count("\n") * (_VECTOR if ".v" in name else _SCALAR)
        for name, count in counts.items())
    if copied <= _VECTOR * MOST_INLINED:
        return lines
    return _stayed(lines, [k for k, m in found.items() if counts[m[1]] > 1])


def _calls(lines: Sequence[str]) -> dict[int, re.Match[str]]:
    """The calls of functions of fusec's own, by line."""
    return {k: m for k, line in enumerate(lines)
            if "@fusec." in line and (m := _CALL.search(line))}


def _stayed(lines: Sequence[str], stay: Sequence[int]) -> list[str]:
    """The lines, of which these are calls that LLVM is not to inline."""
    changed = list(lines)
    for k in stay:
        changed[k] += " noinline"
    return changed
