"""Products of matrices: `np.matmul` and `np.dot`.

Of ``A @ B`` the cotangents are ``G @ B^H`` and ``A^H @ G`` (M. B. Giles, *Collected matrix
derivative results for forward and reverse mode algorithmic differentiation*, 2008, section 2.2.2),
summed over the axes of a stack that broadcasting made.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from ..protocol import Cotangents, Site, Tangents, declare, multilinear, sum_to
from ..terms import Term, conj


def transposed(x: Term) -> Term:
    """With its last two axes exchanged."""
    rank = x.rank
    return x.emit("Transpose", perm=(*range(rank - 2), rank - 1, rank - 2))


def conjugated(x: Term) -> Term:
    return conj(x) if x.dtype.kind == "c" else x


def adjoint(x: Term) -> Term:
    """The conjugate transpose of each matrix."""
    return transposed(conjugated(x))


def matmul(a: Term, b: Term) -> Term:
    """Of a column and a row it is their products, which a kernel computes where they are read."""
    if a.rank > 1 and b.rank > 1 and a.shape[-1] == b.shape[-2] == 1:
        return a * b
    return a.emit("MatMul", b)


def _by_left(a: Term, b: Term, ct: Term) -> Term:
    return sum_to(matmul(ct, adjoint(b)), a.shape)


def _by_right(a: Term, b: Term, ct: Term) -> Term:
    """Of one matrix for a whole stack one product: all rows of the stack at once."""
    if b.rank == 2 and a.rank > 2:
        rows = math.prod(a.shape[:-1])
        a = a.emit("Reshape", shape=(rows, a.shape[-1]))
        ct = ct.emit("Reshape", shape=(rows, ct.shape[-1]))
    return sum_to(matmul(adjoint(a), ct), b.shape)


def _matmul(site: Site, cotangents: Tangents) -> Cotangents:
    (ct,), (a, b) = cotangents, site.operands
    assert ct is not None
    return _of_product(site, a, b, ct)


def _of_product(site: Site, a: Term, b: Term, ct: Term) -> Cotangents:
    """Vectors beside stacks are matrices of one row, or one column."""
    ranks = a.rank, b.rank
    if ranks == (1, 1):
        return [ct * conjugated(b), ct * conjugated(a)]
    if ranks == (1, 2):
        return _if_wanted(
            site, lambda: matmul(conjugated(b), ct), lambda: _outer(conjugated(a), ct))
    if ranks == (2, 1):
        return _if_wanted(site, lambda: _outer(ct, conjugated(b)), lambda: matmul(adjoint(a), ct))
    left = a if a.rank > 1 else a.emit("ExpandDims", axes=(0,))
    right = b if b.rank > 1 else b.emit("ExpandDims", axes=(1,))
    whole = ct if a.rank > 1 else ct.emit("ExpandDims", axes=(ct.rank - 1,))
    whole = whole if b.rank > 1 else whole.emit("ExpandDims", axes=(whole.rank,))
    return _if_wanted(site, lambda: _shaped(_by_left(left, right, whole), a),
                      lambda: _shaped(_by_right(left, right, whole), b))


def _if_wanted(site: Site, *cotangents: Callable[[], Term]) -> Cotangents:
    return [ct() if is_wanted else None
            for ct, is_wanted in zip(cotangents, site.wanted, strict=True)]


def _outer(a: Term, b: Term) -> Term:
    """Of vectors, as a product of elements, which kernels take in."""
    return a.emit("ExpandDims", axes=(1,)) * b.emit("ExpandDims", axes=(0,))


def _shaped(term: Term, like: Term) -> Term:
    return term if term.shape == like.shape else term.emit("Reshape", shape=like.shape)


declare("MatMul", vjp=_matmul, jvp=multilinear)
