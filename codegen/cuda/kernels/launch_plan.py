"""How a form's kernels are launched: their arguments, and how many threads there are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fusec.core.records import dataclass

from ...kernels.specialise import LoopForm

# What a parameter is given: ("operand", number), ("extent", loop), ("stride", number, loop),
# ("gathered", number, position), ("param", number), ("work",), ("status",), ("partials",),
# ("scratch", number), ("row_packs",), ("row_points",), ("row_bytes",), ("chunks",); and reciprocals
# of an extent, of its packs or its tiles: ("divide_magic", loop), ("divide_shift", loop),
# ("divide_packs_magic", lanes), ("divide_packs_shift", lanes), ("divide_tiles_magic", loop),
# ("divide_tiles_shift", loop).
Slot = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Layout:
    """One launch: blocks, threads of a block, and further needs.

    ``work`` is the number of packs or points that threads share; ``shared``: bytes of dynamic
    shared memory; ``scratch``: elements of each scratch row in global memory; ``partials``: bytes.
    """

    blocks: int
    threads: tuple[int, int]
    work: int
    shared: int = 0
    scratch: int = 0
    partials: int = 0
    row_packs: int = 0
    row_points: int = 0
    row_bytes: int = 0
    chunks: int = 1


Geometry = Callable[[LoopForm], Layout]  # of a form with its sizes evaluated
MAX_BLOCKS = 1 << 14  # threads go on with a grid's stride after these


def blocks_for(work: int, threads: int, limit: int = MAX_BLOCKS) -> int:
    """Enough blocks for a thread for each piece of work, up to a limit."""
    return most(1, least(limit, -(-work // threads)))


def least(a: Any, b: Any) -> Any:
    """The smaller of two numbers; of a launch that is a text, an expression without a branch."""
    if hasattr(a, "least"):
        return a.least(b)
    return b.least(a) if hasattr(b, "least") else min(a, b)


def most(a: Any, b: Any) -> Any:
    """The larger of two numbers, as `least`."""
    if hasattr(a, "most"):
        return a.most(b)
    return b.most(a) if hasattr(b, "most") else max(a, b)


def reciprocal(divisor: int) -> tuple[int, int]:
    """A factor of 32 bits and a shift, by which numbers from 0 to 2**31 - 1 are divided: see
    ``quotient`` of the prelude.  After T. Granlund and P. L. Montgomery, "Division by invariant
    integers using multiplication", PLDI 1994, figure 4.1."""
    shift = (divisor - 1).bit_length()
    return (((1 << shift) - divisor) << 32) // divisor + 1, shift
