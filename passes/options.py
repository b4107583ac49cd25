"""Options of the passes that a caller may choose."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from fusec.core.records import dataclass
from fusec.ir import Graph

Fp = Literal["strict", "contract", "fast"]


@dataclass(frozen=True, slots=True)
class PassOptions:
    """``fp``: may a*b+c round once (contract, fast) or not (strict); ``verify`` between passes;
    ``fuse``: end with fusion (off: a graph of single ops, to look at or to evaluate);
    ``check_indices``: may an index out of range be noticed; ``constrain``: resolves where nodes are
    to run, None where there is nothing to place."""

    fp: Fp = "contract"
    verify: bool = False
    fuse: bool = True
    check_indices: bool = True
    constrain: Callable[[Graph], Graph] | None = None
