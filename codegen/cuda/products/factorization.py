"""Equations, inverses and factors of one matrix as cuSOLVER takes them: column by column, in
place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Literal, NamedTuple

import numpy as np

from fusec.ir import Node

from .matrix_product import MOST, Laid, letter_of

Kind = Literal["factor", "inverse", "solution"]
# By op and number of operands.
_KINDS: Mapping[tuple[str, int], Kind] = {
    ("LinalgCholesky", 1): "factor", ("LinalgInv", 1): "inverse", ("LinalgSolve", 2): "solution"}
_ALIGNMENT = 256
PIVOT = 4  # bytes


class Factorization(NamedTuple):
    """What is computed of a matrix of ``size`` rows; ``columns`` are those of the right-hand side,
    ``steps`` the operands' strides along rows and columns, in elements."""

    kind: Kind
    letter: str
    size: int
    columns: int
    steps: tuple[tuple[int, int], ...]

    @property
    def is_cholesky(self) -> bool:
        return self.kind == "factor"

    @property
    def is_turned(self) -> bool:
        """Whether the right-hand side is computed in memory of its own, column by column."""
        return self.kind == "solution" and self.columns > 1

    def room(self, work: int, itemsize: int) -> Room:
        """Where in the memory that a call borrows what is, beside ``work`` elements."""
        matrix = 0 if self.is_cholesky else self.size * self.size * itemsize
        side = self.size * self.columns * itemsize if self.is_turned else 0
        pivots = 0 if self.is_cholesky else self.size * PIVOT
        _, *starts, end = accumulate(
            (-(-nbytes // _ALIGNMENT) * _ALIGNMENT
             for nbytes in (max(work, 1) * itemsize, matrix, side, pivots)), initial=0)
        return Room(starts[0], starts[1], starts[2], end)


class Room(NamedTuple):
    """Bytes from the beginning, where the library works, to the matrix, the right-hand side and the
    rows' order; and to the end."""

    matrix: int
    side: int
    pivots: int
    end: int


def may_be_factorization(node: Node) -> bool:
    """Whether its op is one of these."""
    return any(op == node.op for op, _ in _KINDS)


def factorization_of(node: Node, laid: Sequence[Laid], dtype: np.dtype) -> Factorization | None:
    """What a node computes of operands of that dtype that lie so; None where cuSOLVER is not called
    for it: of several matrices, of small integers, with other arguments than operands."""
    letter, kind = letter_of(dtype), _KINDS.get((node.op, len(laid)))
    if letter is None or kind is None or {v.dtype for v in node.inputs} != {dtype}:
        return None
    plain = ("tuple", *(("operand", n) for n in range(len(laid))))
    if node.attrs["form"] != plain or node.attrs["named"][1:]:
        return None
    ranks = [len(x.shape) for x in laid]
    if ranks[0] != 2 or ranks[1:] not in ([], [1], [2]):
        return None
    size, columns = laid[0].shape
    if size != columns or any(x.shape[0] != size for x in laid):
        return None
    sides = laid[1].shape[1:] if len(laid) == 2 else (size,)
    columns = sides[0] if sides else 1
    if not 0 < size * max(size, columns) <= MOST:
        return None
    if any(step % dtype.itemsize for x in laid for step in x.strides):
        return None
    steps = [[step // dtype.itemsize for step in x.strides] for x in laid]
    return Factorization(kind, letter, size, columns,
                         tuple((step[0], step[1] if len(step) > 1 else 0) for step in steps))
