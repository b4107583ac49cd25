"""The number of lanes of a vector."""

from __future__ import annotations

from fusec.codegen.structured import statements as s
from fusec.codegen.vecmath import FUNCTIONS

from ...machine_code.llvm import has_feature
from .divergence import walked

LANES = 16  # as many as fusec's own functions take at once: several registers, whose work overlaps
WIDE = 32  # where four registers are, of 32: divisions and roots of two do not overlap enough
MANY = 256  # fewer lanes would leave wide vectors half empty too often


def lanes_of_vectors(body: s.Block, count: int) -> int:
    """For the body of so many lanes; 0: nobody knows how many."""
    calls = any(isinstance(x, s.Let) and x.op in FUNCTIONS and x.op != "sqrt" for x in walked(body))
    return WIDE if count >= MANY and not calls and has_feature("avx512f") else LANES
