"""What a caller may choose about the passes."""

from __future__ import annotations

from typing import Literal

from fusec.records import dataclass

from .placement.machine import Machine

Fp = Literal["strict", "contract", "fast"]


@dataclass(frozen=True, slots=True)
class PassOptions:
    """``fp``: may a*b+c round once (contract, fast) or not (strict); ``verify`` between passes;
    ``fuse``: end with fusion (off: a graph of single ops, to look at or to evaluate);
    ``check_indices``: may an index out of range be noticed; ``machine``: the devices that nodes may
    be placed on, None where there is nothing to place."""

    fp: Fp = "contract"
    verify: bool = False
    fuse: bool = True
    check_indices: bool = True
    machine: Machine | None = None
