"""Sparse matrices as CSR arrays, looped over by hand."""

from __future__ import annotations

import numpy as np


def csr_matvec(data, indices, indptr, x):
    """y = A x, a row at a time, an entry at a time."""
    y = np.zeros(len(indptr) - 1)
    for i in range(len(y)):
        for k in range(indptr[i], indptr[i + 1]):
            y[i] += data[k] * x[indices[k]]
    return y


def csr_matvec_slices(data, indices, indptr, x):
    """The same with a dot product of the row's slice."""
    n = indptr.shape[0] - 1
    y = np.empty(n, dtype=x.dtype)
    for i in range(n):
        row = slice(indptr[i], indptr[i + 1])
        y[i] = np.dot(data[row], x[indices[row]])
    return y


def csr_gauss_seidel(data, indices, indptr, b, tolerance):
    """Gauss-Seidel sweeps until the update is small.

    Source: Y. Saad, Iterative Methods for Sparse Linear Systems, 2nd ed., section 4.1.
    """
    n = len(b)
    x = np.zeros(n)
    sweeps = 0
    change = np.inf
    while change > tolerance:
        change = 0.0
        for i in range(n):
            total = b[i]
            diagonal = 1.0
            for k in range(indptr[i], indptr[i + 1]):
                j = indices[k]
                if j == i:
                    diagonal = data[k]
                else:
                    total -= data[k] * x[j]
            new = total / diagonal
            change = max(change, abs(new - x[i]))
            x[i] = new
        sweeps += 1
        if sweeps > 200:
            raise RuntimeError("no convergence")
    return x, sweeps


def csr_transpose(data, indices, indptr, columns):
    """CSR of the transpose by counting.

    Source: F. G. Gustavson, Two fast algorithms for sparse matrices, ACM Trans. Math. Softw. 4
    (1978) 250.
    """
    rows = len(indptr) - 1
    nonzeros = len(data)
    counts = np.zeros(columns + 1, dtype=indptr.dtype)
    for k in range(nonzeros):
        counts[indices[k] + 1] += 1
    new_indptr = np.cumsum(counts)
    place = new_indptr[:-1].copy()
    new_data = np.empty_like(data)
    new_indices = np.empty_like(indices)
    for i in range(rows):
        start, stop = indptr[i], indptr[i + 1]
        for k in range(start, stop):
            j = indices[k]
            at = place[j]
            new_data[at] = data[k]
            new_indices[at] = i
            place[j] += 1
    # every row's indices must come out sorted
    for j in range(columns):
        a, b = new_indptr[j], new_indptr[j + 1]
        assert np.all(np.diff(new_indices[a:b]) > 0)
    return new_data, new_indices, new_indptr


def csr_product(a_data, a_indices, a_indptr, b_data, b_indices, b_indptr, columns):
    """C = A B, dense rows as accumulators, the result trimmed.

    Source: Gustavson 1978, as above.
    """
    rows = len(a_indptr) - 1
    accumulator = np.zeros(columns)
    marker = np.full(columns, -1)
    capacity = rows * columns
    c_data = np.zeros(capacity)
    c_indices = np.zeros(capacity, dtype=np.int64)
    c_indptr = np.zeros(rows + 1, dtype=np.int64)
    used = 0
    for i in range(rows):
        first = used
        for ka in range(a_indptr[i], a_indptr[i + 1]):
            j = a_indices[ka]
            v = a_data[ka]
            for kb in range(b_indptr[j], b_indptr[j + 1]):
                k = b_indices[kb]
                if marker[k] != i:
                    marker[k] = i
                    c_indices[used] = k
                    used += 1
                    accumulator[k] = v * b_data[kb]
                else:
                    accumulator[k] += v * b_data[kb]
        c_indices[first:used] = np.sort(c_indices[first:used])
        c_data[first:used] = accumulator[c_indices[first:used]]
        c_indptr[i + 1] = used
    return c_data[:used], c_indices[:used], c_indptr


def pagerank(indices, indptr, damping, tolerance):
    """Power iteration with dangling nodes.

    Source: S. Brin, L. Page, Computer Networks 30 (1998) 107.
    """
    n = len(indptr) - 1
    degree = indptr[1:] - indptr[:-1]
    dangling = degree == 0
    share = np.where(dangling, 0.0, 1.0 / np.maximum(degree, 1))
    source = np.repeat(np.arange(n), degree)
    rank = np.ones(n) / n
    for iteration in range(1, 101):
        new = np.zeros(n)
        np.add.at(new, indices, rank[source] * share[source])
        new = damping * (new + rank[dangling].sum() / n) + (1 - damping) / n
        change = np.abs(new - rank).sum()
        rank = new
        if change < tolerance:
            break
    return rank, iteration, np.argsort(-rank)[:5]


def breadth_first(indices, indptr, root):
    """Levels of a breadth-first search with an array for the queue (E. F. Moore, 1959)."""
    n = len(indptr) - 1
    level = np.full(n, -1, dtype=np.int32)
    queue = np.zeros(n, dtype=np.int32)
    head, tail = 0, 1
    queue[0] = root
    level[root] = 0
    while head < tail:
        u = queue[head]
        head += 1
        for v in indices[indptr[u] : indptr[u + 1]]:
            if level[v] == -1:
                level[v] = level[u] + 1
                queue[tail] = v
                tail += 1
    return level, queue[:tail]


def csr(n, m, density=0.3, seed=0):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, m)) * (rng.random((n, m)) < density)
    rows, indices = np.nonzero(A)
    indptr = np.searchsorted(rows, np.arange(n + 1))
    return A[rows, indices], indices, indptr


def dominant(n):
    data, indices, indptr = csr(n, n, min(0.4, 8 / n))
    A = np.zeros((n, n))
    A[np.repeat(np.arange(n), np.diff(indptr)), indices] = data
    A[np.arange(n), np.arange(n)] = 1 + np.abs(A).sum(axis=1)
    rows, indices = np.nonzero(A)
    return A[rows, indices], indices, np.searchsorted(rows, np.arange(n + 1))


PROGRAMS = (
    (csr_matvec, lambda n: (*csr(n, n + 2), np.arange(n + 2.0)), 9, 250, ""),
    (csr_matvec_slices, lambda n: (*csr(n, n + 2), np.arange(n + 2.0)), 9, 1500, ""),
    (csr_gauss_seidel, lambda n: (*dominant(n), np.ones(n), 1e-8), 8, 800,
     "published data-loop"),
    (csr_transpose, lambda n: (*csr(n, n + 1), n + 1), 8, 200, "published"),
    (csr_product, lambda n: (*csr(n, n + 1), *csr(n + 1, n, 0.3, 1), n), 7, 60, "published"),
    (pagerank, lambda n: (*csr(n, n, min(0.3, 6 / n))[1:], 0.85, 1e-9), 12, 3000,
     "data-loop"),
    (breadth_first, lambda n: (*csr(n, n, min(0.3, 4 / n))[1:], 0), 12, 3000, "data-loop"),
)
