"""How one call of NVIDIA's libraries is asked for, at any addresses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from fusec.ir import Node

from .cusolver import WORDS
from .direct_calls import Libraries
from .factorization import factorization_of, may_be_factorization
from .matrix_product import Laid
from .refusals import DirectLibrary
from .transform import may_be_transform, transform_of


class DirectCall(NamedTuple):
    """``ask(stream, *operands, result, room)``: addresses, the last of so many bytes; behind it,
    where there are any, that of ``words`` of 32 bits for what is refused, which are 0 before."""

    ask: Callable[..., None]
    nbytes: int
    library: DirectLibrary
    words: int = 0


def direct_call(
    libraries: Libraries, node: Node, operands: Sequence[Laid], dtype: np.dtype,
    result: tuple[Laid, np.dtype],
) -> DirectCall | None:
    """Of a node whose operands lie so, the first of that dtype; None: it is CuPy's."""
    if node.op == "MatMul":
        left, right = operands
        if not result[0].shape or {v.dtype for v in node.inputs} != {result[1]}:
            return None
        cublas = libraries.cublas
        product = cublas.product(result[1], left, right, result[0], "estimated" in node.attrs)
        return product and DirectCall(partial(cublas.call, product), cublas.workspace, cublas)
    if may_be_transform(node):
        transform, cufft = transform_of(node, operands[0], dtype), libraries.cufft
        room = None if transform is None else cufft.workspace(transform)
        return None if transform is None or room is None else DirectCall(
            partial(cufft.call, transform), room, cufft)
    if may_be_factorization(node):
        made, cusolver = factorization_of(node, operands, result[1]), libraries.cusolver
        room = None if made is None else cusolver.workspace(made)
        return None if made is None or room is None else DirectCall(
            partial(cusolver.call, made), room, cusolver, WORDS)
    return None
