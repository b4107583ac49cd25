"""Which math functions a nest calls instead of inlining them: long ones in long nests.

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


def with_calls(
    lines: Sequence[str], functions: Mapping[str, str], roots: Sequence[Expr]
) -> Sequence[str]:
    """The lines of a nest; calls that are to stay calls say so."""
    found = {k: m for k, line in enumerate(lines)
             if "@fusec." in line and (m := _CALL.search(line))}
    sizes = {m[2]: functions[m[1]].count("\n") for m in found.values()}
    counts = Counter(e.op for e in walk(roots) if e.op in sizes)
    if sum(count * sizes[name] for name, count in counts.items()) <= MOST_INLINED:
        return lines
    stay = {name for name, size in sizes.items()
            if counts[name] > 1 and size >= SHORT and ARITY[name] == 1}
    return [f"{line} noinline" if k in found and found[k][2] in stay else line
            for k, line in enumerate(lines)]
