"""The objects that stand for sparse arrays of SciPy's in a trace.

They consist of the arrays of the sparse one, and of one without memory that has its shape, so that
sizes are those of arguments: another number of elements needs no other trace.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fusec.core.code_roles import CONVERTED

from .kernels import (
    checked_indices,
    checked_single,
    checked_starts,
    expanded,
    products_of_rows,
    scattered,
    sums_of_row_vectors,
    sums_of_rows,
)
from .refusals import (
    Refusing,
    check_length,
    class_of,
    is_dense,
    is_number,
    line_of,
    note_made,
    refuse,
    unknown_name,
)

FUSEC_ROLE = CONVERTED
_TRANSPOSED = {"csr": "csc", "csc": "csr", "coo": "coo"}


class SparseArray(Refusing):
    """``parts``: data, indices and indptr, or data, row and col of a COO array.  ``extent`` has its
    shape.  ``kind``: of SciPy's classes "array" or "matrix"."""

    # Bound once, in `__init__`; the program's own attributes would not reach the caller's array.
    KEPT_ATTRIBUTES = ("format", "kind", "parts", "extent")
    __array_ufunc__ = None  # NumPy's operators leave it to the methods here

    @property  # type: ignore[misc]
    def __class__(self) -> Any:  # what `isinstance` and `scipy.sparse.issparse` ask
        return class_of(self)

    def __init__(self, format: str, kind: str, parts: Any, extent: Any) -> None:
        self.format, self.kind, self.parts, self.extent = format, kind, parts, extent
        note_made(self, parts)

    # -- what it is

    @property
    def data(self) -> Any:
        return self.parts[0]

    @data.setter
    def data(self, value: Any) -> None:
        if value is not self.parts[0]:  # as it is in A.data *= 2
            refuse("assigning to .data of a sparse array", "change its elements: A.data[:] = y")

    @property
    def indices(self) -> Any:
        return self._part(1, "csr csc", "indices")

    @property
    def indptr(self) -> Any:
        return self._part(2, "csr csc", "indptr")

    @property
    def row(self) -> Any:
        return self._part(1, "coo", "row")

    @property
    def col(self) -> Any:
        return self._part(2, "coo", "col")

    @property
    def coords(self) -> Any:
        return self._part(1, "coo", "coords"), self.parts[2]

    def _part(self, number: int, formats: str, name: str) -> Any:
        if self.format not in formats:
            raise AttributeError(f"'{self.format}_{self.kind}' object has no attribute '{name}'")
        return self.parts[number]

    @property
    def shape(self) -> Any:
        return self.extent.shape

    @property
    def ndim(self) -> int:
        return 2

    @property
    def dtype(self) -> Any:
        return self.parts[0].dtype

    @property
    def nnz(self) -> Any:
        return self.parts[0].shape[0]

    @property
    def size(self) -> Any:
        return self.parts[0].shape[0]

    def __getattr__(self, name: str) -> Any:
        return unknown_name(self, name)

    # -- the same elements

    def _with(self, data: Any) -> Any:
        parts = (data, self.parts[1].copy(), self.parts[2].copy())
        return SparseArray(self.format, self.kind, parts, self.extent)

    def _places(self) -> Any:
        """The row and the column of each element, checked."""
        rows, columns = self.extent.shape
        first, second = self.parts[1], self.parts[2]
        if self.format == "coo":
            return checked_indices(first, rows), checked_indices(second, columns)
        lines = expanded(checked_starts(second, self.nnz), first)
        if self.format == "csr":
            return lines, checked_indices(first, columns)
        return checked_indices(first, rows), lines

    @property
    def T(self) -> Any:
        return self.transpose()

    def transpose(self) -> Any:
        data, first, second = self.parts
        parts = (data, second, first) if self.format == "coo" else self.parts
        return SparseArray(_TRANSPOSED[self.format], self.kind, parts, self.extent.T)

    def copy(self) -> Any:
        return self._with(self.data.copy())

    def astype(self, dtype: Any) -> Any:
        data = self.data.astype(dtype)
        if data.dtype.kind == "b" and self.dtype.kind != "b":
            rows, columns = self._places()
            checked_single(rows, columns, self.shape[1])
        return self._with(data)

    def conj(self) -> Any:
        return self._with(np.conj(self.data)) if self.dtype.kind == "c" else self.copy()

    conjugate = conj

    def tocoo(self) -> Any:
        rows, columns = self._places()
        return SparseArray("coo", self.kind, (self.data.copy(), rows.copy(), columns.copy()),
                           self.extent)

    def toarray(self) -> Any:
        rows, columns = self._places()
        if self.dtype.kind == "b":
            return scattered(self.shape, (rows, columns), self.data.astype(np.int64)) != 0
        return scattered(self.shape, (rows, columns), self.data)

    def todense(self) -> Any:
        self._check_no_matrix("todense()", "toarray()")
        return self.toarray()

    def _check_no_matrix(self, what: str, cure: str) -> None:
        if self.kind == "matrix":
            refuse(f"{what} of a {self.format}_matrix, an np.matrix,",
                   f"pass scipy.sparse.{self.format}_array(A), or take {cure}")

    # -- products

    def __matmul__(self, other: Any) -> Any:
        if not is_dense(other):
            return refuse("a product of two sparse arrays, whose structure data decide,",
                          "multiply them outside, or take B.toarray()")
        check_length(self.shape[1], other, 0)
        dtype = np.result_type(self.dtype, other.dtype)
        if dtype.kind == "b":
            return (self.astype(np.int64) @ other) != 0
        data, dense = self.data.astype(dtype), other.astype(dtype)
        return self._by_vector(data, dense) if other.ndim == 1 else self._by_matrix(data, dense)

    def _by_vector(self, data: Any, vector: Any) -> Any:
        if self.format == "csr":
            starts = checked_starts(self.indptr, self.nnz)
            columns = checked_indices(self.indices, self.shape[1])
            if data.dtype.kind == "f":
                return products_of_rows(starts, columns, data, vector)
            return sums_of_rows(starts, data * vector[columns])
        rows, columns = self._places()
        sums = scattered(self.shape[0], rows, data * vector[columns])
        is_number = self.format == "coo" and self.kind == "array" and self.shape[0] == 1
        return sums[0] if is_number else sums

    def _by_matrix(self, data: Any, dense: Any) -> Any:
        if self.format == "csr":
            starts = checked_starts(self.indptr, self.nnz)
            columns = checked_indices(self.indices, self.shape[1])
            return sums_of_row_vectors(starts, columns, data, dense)
        rows, columns = self._places()
        return scattered((self.shape[0], dense.shape[1]), rows, data[:, None] * dense[columns])

    def __rmatmul__(self, other: Any) -> Any:
        if not is_dense(other):
            return refuse("a product of a sparse array with what is no array",
                          "multiply by an array of rank 1 or 2")
        return (self.transpose() @ other.T).T

    def dot(self, other: Any) -> Any:
        return self * other if is_number(other) else self @ other

    # -- scaling

    def __mul__(self, other: Any) -> Any:
        if self.kind == "matrix" and not is_number(other):
            return refuse(f"* of a {self.format}_matrix, which is a product of matrices,",
                          "write A @ x, or A.multiply(x)")
        return self.multiply(other)

    def __rmul__(self, other: Any) -> Any:
        return self * other

    def multiply(self, other: Any) -> Any:
        if is_number(other):
            return self._with(self.data * other)
        return self._elementwise(other, False)

    def __imul__(self, other: Any) -> Any:
        if not is_number(other):
            return self * other
        self.data[:] *= other
        return self

    def __itruediv__(self, other: Any) -> Any:
        if not is_number(other):
            return self / other
        self.data[:] *= 1.0 / other
        return self

    def __truediv__(self, other: Any) -> Any:
        if is_number(other):
            return self._divided(other)
        return self._elementwise(other, True)

    def _divided(self, number: Any) -> Any:
        if self.dtype.kind == "c":
            return self._with(self.data * (1.0 / number))
        return self._with(self.data.astype(np.float64) * (1.0 / number))

    def _elementwise(self, other: Any, divides: bool) -> Any:
        if not is_dense(other):
            return refuse("two sparse arrays element by element", "take B.toarray()")
        if self.format == "coo":
            return refuse("a COO array times an array, for which its elements are put in order,",
                          "pass A.tocsr()")
        factors = 1.0 / other if divides else other
        if other.size == 1:
            return self._with(self.data * factors.ravel()[0])
        rows, columns = self._places()
        data = self.data * np.broadcast_to(factors, self.shape)[rows, columns]
        return SparseArray("coo", self.kind, (data, rows.copy(), columns.copy()), self.extent)

    def __getitem__(self, index: Any) -> Any:
        return refuse("an item or a part of a sparse array", "take it outside, or of A.toarray()")

    def __neg__(self) -> Any:
        return self._with(-self.data)

    # -- sums

    def _check_summand(self, other: Any) -> None:
        self._check_no_matrix("the sum with an array", "A.toarray() + x")
        if not is_dense(other):
            refuse("a sum of a sparse array with what is no array",
                   "take A.toarray(); structure that data decide is made outside")

    def __add__(self, other: Any) -> Any:
        self._check_summand(other)
        dtype = np.result_type(self.dtype, other.dtype)
        total = np.broadcast_to(other, self.shape).astype(dtype)
        np.add.at(total, self._places(), self.data.astype(dtype))
        return total

    def __radd__(self, other: Any) -> Any:
        return self + other

    # Of dense arrays, as SciPy's: in unsigned or narrow types the negative may be another number.
    def __sub__(self, other: Any) -> Any:
        self._check_summand(other)
        return self.toarray() - np.broadcast_to(other, self.shape)

    def __rsub__(self, other: Any) -> Any:
        self._check_summand(other)
        return np.broadcast_to(other, self.shape) - self.toarray()

    def sum(self, axis: Any = None, dtype: Any = None, out: None = None) -> Any:
        if out is not None:
            return refuse("out= of a sparse array's sum", "assign the result: y[:] = A.sum(axis)")
        if axis is None:
            return self.data.sum(dtype=dtype)
        self._check_no_matrix("the sum along an axis", "np.ones(A.shape[0]) @ A or A @ ones")
        wide = self.data.sum(dtype=dtype).dtype
        data, line = self.data.astype(wide), line_of(axis)
        if (self.format, line) in (("csr", 1), ("csc", 0)):
            return sums_of_rows(checked_starts(self.indptr, self.nnz), data)
        return scattered(self.shape[1 - line], self._places()[1 - line], data)

    def mean(self, axis: Any = None) -> Any:
        count = self.shape[0] * self.shape[1] if axis is None else self.shape[line_of(axis)]
        data = self.data if self.dtype.kind in "fc" else self.data.astype(np.float64)
        return self._with(data * (1.0 / count)).sum(axis, self.data.dtype
                                                    if self.dtype.kind in "fc" else np.float64)

    def diagonal(self, k: int = 0) -> Any:
        rows, columns = self._places()
        height, width = self.shape
        length = max(min(height + min(k, 0), width - max(k, 0)), 0)
        here = columns - rows == k
        data = self.data.astype(np.int64) if self.dtype.kind == "b" else self.data
        places = np.where(here, np.minimum(rows, columns), length)  # others: in one place behind
        found = scattered(length + 1, places, data)[:length]
        return found != 0 if self.dtype.kind == "b" else found

    def trace(self, offset: int = 0) -> Any:
        return self.diagonal(offset).sum()


__all__ = ["SparseArray"]
