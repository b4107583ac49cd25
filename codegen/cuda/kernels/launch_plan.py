"""How a form's kernels are launched: their arguments, and how many threads there are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fusec.core.records import dataclass
from fusec.ir.sizes.dims import Size, maximum, minimum

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

    blocks: Size
    threads: tuple[Size, Size]
    work: Size
    shared: int = 0
    scratch: Size = 0
    partials: Size = 0
    row_packs: Size = 0
    row_points: Size = 0
    row_bytes: Size = 0
    chunks: int = 1


# Of a form: of numbers where its sizes are evaluated, else of expressions of them.
Geometry = Callable[[LoopForm], Layout]
MAX_BLOCKS = 1 << 14  # threads go on with a grid's stride after these


def blocks_for(work: Size, threads: Size, limit: int = MAX_BLOCKS) -> Size:
    """Enough blocks for a thread for each piece of work, up to a limit."""
    return most(1, least(limit, pieces(work, threads)))


def pieces(size: Size, of: Size) -> Size:
    """A size divided, rounded up; of no negative one, for kernels divide towards 0."""
    return (size + of - 1) // of


def either(is_first: Size, first: Size, second: Size) -> Size:
    """By a size that is 1 or 0."""
    return is_first * first + (1 - is_first) * second


def least(a: Any, b: Any) -> Any:
    """The smaller of two sizes; of a launch that is a text, an expression without a branch."""
    if hasattr(a, "least"):
        return a.least(b)
    return b.least(a) if hasattr(b, "least") else minimum(a, b)


def most(a: Any, b: Any) -> Any:
    """The larger of two sizes, as `least`."""
    if hasattr(a, "most"):
        return a.most(b)
    return b.most(a) if hasattr(b, "most") else maximum(a, b)


def reciprocal(divisor: int) -> tuple[int, int]:
    """A factor of 32 bits and a shift, by which numbers from 0 to 2**31 - 1 are divided: see
    ``quotient`` of the prelude.  After T. Granlund and P. L. Montgomery, "Division by invariant
    integers using multiplication", PLDI 1994, figure 4.1."""
    shift = (divisor - 1).bit_length()
    return (((1 << shift) - divisor) << 32) // divisor + 1, shift
