"""Products of matrices as GEMM takes them: column by column, transposed or not.

An array in C order is, column by column, its own transpose: ``c = a @ b`` in C order is computed
as ``c.T = b.T @ a.T``, and nothing is copied for transposes.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

_LETTERS = {"f4": "S", "f8": "D", "c8": "C", "c16": "Z"}  # of BLAS functions
MOST = (1 << 31) - 1  # sizes are int32


def letter_of(dtype: np.dtype) -> str | None:
    """The one that BLAS and LAPACK have for these numbers."""
    return _LETTERS.get(dtype.str[1:]) if dtype.isnative else None


class Laid(NamedTuple):
    """An array: its sizes and strides, in bytes."""

    shape: Sequence[int]
    strides: Sequence[int]


class ProductSide(NamedTuple):
    """An operand, column by column: whether that is its transpose, the elements from one column to
    the next, and from one matrix of the batch to the next."""

    is_transposed: bool
    leading: int
    batch_stride: int


class MatrixProduct(NamedTuple):
    """``[rows, inner] @ [inner, columns]``, ``batch`` times; ``swapped``: GEMM's first operand is
    the right one."""

    letter: str
    rows: int
    columns: int
    inner: int
    first: ProductSide
    second: ProductSide
    leading: int
    batch: int
    batch_stride: int
    swapped: bool
    is_tf32: bool = False  # operands may be rounded to 10 bits behind the point


class _Matrices(NamedTuple):
    """A batch of matrices: sizes, strides in elements."""

    rows: int
    columns: int
    row_stride: int
    column_stride: int
    batch_strides: tuple[int, ...]

    @property
    def transposed(self) -> _Matrices:
        return _Matrices(self.columns, self.rows, self.column_stride, self.row_stride,
                         self.batch_strides)


def matrix_product(dtype: np.dtype, left: Laid, right: Laid, result: Laid) -> MatrixProduct | None:
    """The product that writes ``result``, all of one dtype; None: GEMM cannot, as where neither
    rows nor columns lie together."""
    letter = letter_of(dtype)
    if letter is None or min(len(left.shape), len(right.shape)) < 1 or (
            len(left.shape) == len(right.shape) == 1):
        return None
    shapes = (left.shape, right.shape, result.shape)
    if any(0 in shape or max(shape, default=1) > MOST for shape in shapes) or any(
            s % dtype.itemsize for laid in (left, right, result) for s in laid.strides):
        return None
    is_row, is_column = len(left.shape) == 1, len(right.shape) == 1
    batch = tuple(result.shape[:len(result.shape) - 2 + is_row + is_column])
    a, b, c = (_matrices(laid, dtype.itemsize, len(batch), row, column) for laid, row, column in (
        (left, is_row, False), (right, False, is_column), (result, is_row, is_column)))
    return _of_matrices(letter, batch, a, b, c)


def _matrices(laid: Laid, itemsize: int, batch: int, is_row: bool, is_column: bool) -> _Matrices:
    """``batch``: so many axes come before those of the matrices, after broadcasting."""
    shape, strides = [*laid.shape], [s // itemsize for s in laid.strides]
    at = len(shape) - is_row
    if is_row or is_column:
        shape.insert(at, 1)
        strides.insert(at, 0)
    before = [0 if n == 1 else s for n, s in zip(shape[:-2], strides[:-2], strict=True)]
    (rows, columns), (row_stride, column_stride) = shape[-2:], strides[-2:]
    return _Matrices(
        rows, columns, row_stride, column_stride, (*[0] * (batch - len(before)), *before))


def _of_matrices(
    letter: str, batch: tuple[int, ...], a: _Matrices, b: _Matrices, c: _Matrices
) -> MatrixProduct | None:
    strides = _one_stride(batch, (a.batch_strides, b.batch_strides, c.batch_strides))
    if strides is None:
        return None
    count, (of_a, of_b, of_c) = int(np.prod(batch)), strides
    if count > 1 and of_b == 0 and of_a == a.rows * a.row_stride and (
            of_c == c.rows * c.row_stride) and count * a.rows <= MOST:  # rows of one matrix
        a, c = a._replace(rows=count * a.rows), c._replace(rows=count * c.rows)
        count, of_a, of_c = 1, 0, 0
    made = _side(c, of_c)
    if made is None:
        return None
    if made.is_transposed:
        a, b, c, of_a, of_b = b.transposed, a.transposed, c.transposed, of_b, of_a
    first, second = _side(a, of_a), _side(b, of_b)
    if first is None or second is None:
        return None
    return MatrixProduct(letter, c.rows, c.columns, a.columns, first, second, made.leading,
                         count, of_c, made.is_transposed)


def _side(m: _Matrices, batch_stride: int) -> ProductSide | None:
    """How it lies column by column, by itself or transposed; None: neither."""
    for is_transposed, (rows, columns, step, leading, _) in enumerate((m, m.transposed)):
        leading = leading if columns > 1 else max(rows, 1)
        if (step == 1 or rows == 1) and max(rows, 1) <= leading <= MOST and batch_stride >= 0:
            return ProductSide(bool(is_transposed), leading, batch_stride)
    return None


def _one_stride(
    batch: Sequence[int], strides: Sequence[tuple[int, ...]]
) -> tuple[int, ...] | None:
    """The stride of each over all matrices of a batch as one axis; None where there is none."""
    axes = [(n, steps) for n, *steps in zip(batch, *strides, strict=True) if n > 1]
    if not axes:
        return tuple(0 for _ in strides)
    if any(outer != [n * step for step in inner] for (_, outer), (n, inner) in pairwise(axes)):
        return None
    return tuple(axes[-1][1])
