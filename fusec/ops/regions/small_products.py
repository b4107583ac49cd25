"""Products of a vector, a row or a column, or of small matrices: in loops they are sums of
products, which fuse."""

from __future__ import annotations

import math

from fusec.ir import Node
from fusec.ir.sizes.dims import is_static

SMALL_PRODUCT = 40**3  # multiplications of a product of matrices that is open-coded


def is_opened(node: Node) -> bool:
    """Whether the node is a product that becomes a sum of products."""
    if node.op != "MatMul":
        return False
    a, b = node.inputs
    if max(a.type.rank, b.type.rank) > 2:
        return False
    are_matrices = a.type.rank == b.type.rank == 2 and 1 not in (a.shape[0], b.shape[1])
    return not are_matrices or not _is_large((*a.shape, b.shape[1]))


def _is_large(sizes: tuple[int, ...]) -> bool:
    """Whether the library does it better."""
    return is_static(sizes) and math.prod(sizes) > SMALL_PRODUCT
