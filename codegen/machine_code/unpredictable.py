"""Minima and maxima of integers that LLVM's back end may not make jumps of.

In a loop it takes jumps for shorter than a chain of conditional moves, as they are where one side
is nearly always the smaller.  Of lanes each has data of its own, which no processor has seen
before: Levenshtein's distance of pairs of 32 letters takes 2.4 times as long with jumps.  The
extremum of all elements so far is not meant: it changes ever more seldom.

LLVM's optimiser makes intrinsics of such selections, which lose the mark, so it comes afterwards.
"""

from __future__ import annotations

import re

MARK = "; many lanes"  # a comment in the text of a module that is meant
_EXTREMUM = re.compile(
    r"(?m)^ +(%\S+) = (?:tail )?call (i\d+) @llvm\.([su])(min|max)\.i\d+\(i\d+ ([^,]+), i\d+ "
    r"([^),]+)\)")
_PHI = re.compile(r"(?m)^ +(%\S+) = phi ")


def marked(ir: str) -> str:
    """The text of an optimised module with selections for its integers' minima and maxima."""
    so_far = set(_PHI.findall(ir))

    def selection(found: re.Match[str]) -> str:
        name, kind, sign, extremum, a, b = found.groups()
        if a in so_far or b in so_far:
            so_far.add(name)
            return found[0]
        order, test = "lt" if extremum == "min" else "gt", f"%is.{extremum}.{name[1:]}"
        return (f"  {test} = icmp {sign}{order} {kind} {a}, {b}\n"
                f"  {name} = select i1 {test}, {kind} {a}, {kind} {b}, !unpredictable !{{}}")

    return _EXTREMUM.sub(selection, ir)
