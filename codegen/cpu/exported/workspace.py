"""The memory of a call that its caller gives: temporaries, partial results, and what failed.

It begins with the record of a failed check, which `f_error` reads; then come blocks of 64 bytes'
alignment, whatever the alignment of the workspace itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fusec.ir.sizes.dims import Size
from fusec.ir.sizes.symbolic_numbers import stored

from ...machine_code.native_nest import RECORD
from ..emitter import LlvmEmitter

ALIGN = 64
# The words at its begin: the status of kernels, then their record.
STATUS = 0
INDEX, SIZE = (1 + RECORD.index(name) for name in ("index", "size"))
CHECK = 1 + RECORD.index("check")
RECORD_BYTES = ALIGN


class Workspace:
    """The blocks that a call needs, in order; the first holds the record where checks may fail."""

    def __init__(self) -> None:
        self.blocks: list[Size] = []
        self.may_fail = False

    def block(self, nbytes: Any) -> str:
        """The name of a block of so many bytes."""
        self.blocks.append(stored(nbytes))
        return f"%block{len(self.blocks) - 1}"

    @property
    def is_needed(self) -> bool:
        return self.may_fail or bool(self.blocks)

    def entry(self, em: LlvmEmitter, number: Callable[[Size], str]) -> None:
        """Emit the addresses of the blocks, ``%workspace`` being what the caller gave."""
        if not self.blocks:
            return
        at = em.value("ptrtoint ptr %workspace to i64")
        at = em.add(at, RECORD_BYTES + ALIGN - 1 if self.may_fail else ALIGN - 1)
        at = em.value(f"and i64 {at}, {-ALIGN}")
        for k, nbytes in enumerate(self.blocks):
            em.line(f"%block{k} = inttoptr i64 {at} to ptr")
            at = em.add(at, _rounded(em, number(nbytes)))

    def nbytes(self, em: LlvmEmitter, number: Callable[[Size], str]) -> str:
        """The bytes that a caller has to give."""
        if not self.is_needed:
            return "0"
        total = str((RECORD_BYTES if self.may_fail else 0) + (ALIGN if self.blocks else 0))
        for nbytes in self.blocks:
            total = em.add(_rounded(em, number(nbytes)), total)
        return total


def _rounded(em: LlvmEmitter, nbytes: str) -> str:
    return em.value(f"and i64 {em.add(nbytes, ALIGN - 1)}, {-ALIGN}")


__all__ = ["ALIGN", "CHECK", "INDEX", "SIZE", "STATUS", "Workspace"]
