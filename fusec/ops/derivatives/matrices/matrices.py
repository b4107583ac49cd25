"""The vocabulary of rules of linear algebra: triangles, mirrors, inverses of matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from fusec.ir.sizes.dims import Dim

from ..arrays.scans import index_along
from ..calls import array, call
from ..protocol import sum_to
from ..terms import Term, conj, imag, real, where
from .products import adjoint, conjugated, matmul, transposed


def as_like(term: Term, like: Term) -> Term:
    """A cotangent of the dtype of its operand: of a real operand the real part."""
    if term.dtype.kind == "c" and like.dtype.kind != "c":
        term = real(term)
    return term.cast(like.dtype)


def as_complex(term: Term, dtype: np.dtype) -> Term:
    """A term in the dtype that it is multiplied in."""
    return term.cast(dtype)


def column(x: Term) -> Term:
    """``x[..., None]``"""
    return x.emit("ExpandDims", axes=(x.rank,))


def row(x: Term) -> Term:
    """``x[..., None, :]``"""
    return x.emit("ExpandDims", axes=(x.rank - 1,))


def _indices(x: Term) -> tuple[Term, Term]:
    return index_along(x, x.rank - 2), index_along(x, x.rank - 1)


def strictly_lower(x: Term) -> Term:
    """The elements below the diagonals, 0 elsewhere."""
    i, j = _indices(x)
    return where(i > j, x, 0)


def lower(x: Term) -> Term:
    """The elements below the diagonals and on them."""
    i, j = _indices(x)
    return where(i >= j, x, 0)


def upper(x: Term) -> Term:
    """The elements above the diagonals and on them."""
    i, j = _indices(x)
    return where(i <= j, x, 0)


def on_diagonal(x: Term, others: Term | float = 0) -> Term:
    """The elements on the diagonals; ``others`` elsewhere."""
    i, j = _indices(x)
    return where(i.equals(j), x, others)


def diagonal(x: Term) -> Term:
    """The diagonals, along the last axis."""
    return x.emit("Diagonal", axes=(x.rank - 2, x.rank - 1), offset=0)


def with_diagonal(d: Term) -> Term:
    """The diagonal matrices that have these diagonals."""
    size = d.shape[-1]
    return on_diagonal(column(d).emit("BroadcastTo", shape=(*d.shape, size)))


def real_part(x: Term) -> Term:
    """In the same dtype."""
    return real(x).cast(x.dtype) if x.dtype.kind == "c" else x


def imaginary_part(x: Term) -> Term:
    """``i * Im(x)``; 0 of real numbers."""
    return x - real_part(x)


def mirrored(x: Term, is_lower: bool) -> Term:
    """The Hermitian matrices that have this triangle, as LAPACK reads a matrix."""
    half = strictly_lower(x) if is_lower else adjoint(strictly_lower(adjoint(x)))
    return half + adjoint(half) + on_diagonal(real_part(x))


def of_triangle(g: Term, is_lower: bool) -> Term:
    """The cotangent of a matrix of which the function reads one triangle, given that of the whole:
    the transpose of `mirrored`."""
    both = g + adjoint(g)
    half = strictly_lower(both) if is_lower else adjoint(strictly_lower(both))
    return half + on_diagonal(real_part(g))


def inverse(a: Term) -> Term:
    return call(a, "LinalgInv", a, results=[array(a.dtype, a.shape)])[0]


def solved(a: Term, b: Term) -> Term:
    """``a^-1 @ b`` of stacks of matrices; ``b`` has columns."""
    stack = np.broadcast_shapes(*(_plain(x) for x in (a, b))) if _is_plain(a, b) else b.shape[:-2]
    return call(a, "LinalgSolve", a, b, results=[array(a.dtype, (*stack, *b.shape[-2:]))])[0]


def _is_plain(*terms: Term) -> bool:
    return not any(isinstance(n, Dim) for x in terms for n in x.shape)


def _plain(x: Term) -> Any:
    return x.shape[:-2]


__all__ = [
    "adjoint", "as_complex", "as_like", "column", "conj", "conjugated", "diagonal", "imag",
    "imaginary_part", "inverse", "lower", "matmul", "mirrored", "of_triangle",
    "on_diagonal", "real", "real_part", "row", "solved", "strictly_lower", "sum_to", "transposed",
    "upper", "where", "with_diagonal",
]
