"""Where the arrays of a lane are: in memory of its thread, or in global memory.

Local memory is registers where a compiler sees all indices; else it is memory in which the words
of a warp's threads lie side by side.  A GPU reserves it for all threads that it can hold, so larger
arrays are in global memory, for the threads of the launch alone.  There elements of neighbouring
threads lie side by side, too, where each is read and written as a whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Literal

from fusec.codegen.structured import statements as s
from fusec.codegen.structured.analyses.aliases import Aliases
from fusec.codegen.structured.memory import Memory, View
from fusec.codegen.structured.statements import walk
from fusec.ir.sizes.dims import is_static

MOST_LOCAL = 512  # bytes of an array, and of all together eight times as many
ArrayPlace = Literal["local", "interleaved", "apart"]


class LaneArrays:
    """``of``: the place of each memory that a lane declares; ``local_bytes``: of all local ones."""

    def __init__(self, block: s.Block, aliases: Aliases) -> None:
        self.of: dict[Memory, ArrayPlace] = {}
        self.local_bytes = 0
        views = [*_views(block)]
        for members in _classes(block, aliases):
            place = self._place(members, [v for v in views if v.memory in members])
            self.of.update(dict.fromkeys(
                (m for m in members if m.origin in ("temp", "zeros")), place))

    def _place(self, members: list[Memory], views: list[View]) -> ArrayPlace:
        own = [m for m in members if m.origin in ("temp", "zeros")]
        if all(is_static((m.nbytes,)) and m.nbytes <= MOST_LOCAL for m in own):
            nbytes = sum(int(m.nbytes) for m in own)
            if self.local_bytes + nbytes <= 8 * MOST_LOCAL:
                self.local_bytes += nbytes
                return "local"
        dtypes = {*(m.dtype for m in own), *(v.dtype for v in views)}
        is_plain = len({d.itemsize for d in dtypes}) == 1 and all(d.kind != "c" for d in dtypes)
        others = any(m.origin in ("operand", "target", "parameter") for m in members)
        return "interleaved" if is_plain and not others else "apart"


def _classes(block: s.Block, aliases: Aliases) -> Iterable[list[Memory]]:
    """The memories of the lanes' statements, those together that may be at one address."""
    found: dict[Any, dict[Memory, None]] = {}
    for memory in _memories(block):
        found.setdefault(aliases.class_of(memory), {})[memory] = None
    return [[*members] for members in found.values()]


def _memories(block: s.Block) -> Iterator[Memory]:
    for x in walk(block):
        for name in x.__match_args__ if hasattr(x, "__match_args__") else ():
            yield from _inside(getattr(x, name), Memory)
        for view in _views_of(x):
            yield view.memory


def _views(block: s.Block) -> Iterator[View]:
    for x in walk(block):
        yield from _views_of(x)


def _views_of(x: Any) -> Iterator[View]:
    if isinstance(x, s.RunKernel):
        yield from (place for place in x.places if isinstance(place, View))
        return
    for name in x.__match_args__:
        yield from _inside(getattr(x, name), View)


def _inside(x: Any, kind: type) -> Iterator[Any]:
    """The memories or views in a field of a statement, but for those of statements in it."""
    if isinstance(x, kind):
        yield x
    elif isinstance(x, tuple) and not any(isinstance(item, s.While | s.If) for item in x):
        for item in x:
            if isinstance(item, kind | tuple):
                yield from _inside(item, kind)
