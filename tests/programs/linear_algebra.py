"""Factorisations and iterative solvers written out by hand."""

from __future__ import annotations

import numpy as np


def lu_solve(A, b):
    """Gaussian elimination with partial pivoting and both substitutions.

    Source: G. H. Golub, C. F. Van Loan, Matrix Computations, 4th ed., algorithm 3.4.1.
    """
    A = A.copy()
    x = b.copy()
    n = A.shape[0]
    pivots = np.arange(n)
    for k in range(n - 1):
        p = k + np.argmax(np.abs(A[k:, k]))
        if A[p, k] == 0:
            continue
        if p != k:
            A[[k, p]] = A[[p, k]]
            pivots[[k, p]] = pivots[[p, k]]
        A[k + 1:, k] /= A[k, k]
        A[k + 1:, k + 1:] -= np.outer(A[k + 1:, k], A[k, k + 1:])
    x = x[pivots]
    for i in range(1, n):
        x[i] -= A[i, :i] @ x[:i]
    for i in range(n - 1, -1, -1):
        x[i] = (x[i] - A[i, i + 1:] @ x[i + 1:]) / A[i, i]
    determinant = 1.0
    for i in range(n):
        determinant *= A[i, i]
    return x, pivots, determinant


def cholesky(A):
    """Cholesky-Banachiewicz, row by row.

    Source: W. H. Press et al., Numerical Recipes, 3rd ed., section 2.9.
    """
    n = A.shape[0]
    L = np.zeros_like(A)
    for i in range(n):
        for j in range(i + 1):
            s = A[i, j] - L[i, :j] @ L[j, :j]
            if i == j:
                if s <= 0:
                    raise np.linalg.LinAlgError("not positive definite")
                L[i, i] = np.sqrt(s)
            else:
                L[i, j] = s / L[j, j]
    return L


def householder_least_squares(A, b):
    """QR by Householder reflections, Q accumulated, and the least-squares solution.

    Source: A. S. Householder, J. ACM 5 (1958) 339; Golub and Van Loan, algorithm 5.2.1.
    """
    m, n = A.shape
    R = A.astype(float)
    Q = np.eye(m)
    for k in range(min(m - 1, n)):
        x = R[k:, k]
        alpha = np.sqrt(np.sum(x * x))
        if alpha == 0.0:
            continue
        v = x.copy()
        if v[0] > 0:
            v[0] += alpha
        else:
            v[0] -= alpha
        v /= np.sqrt(np.sum(v * v))
        R[k:, k:] -= 2.0 * np.outer(v, v @ R[k:, k:])
        Q[:, k:] -= 2.0 * np.outer(Q[:, k:] @ v, v)
    # clear what rounding left under the diagonal
    for k in range(n):
        R[k + 1:, k] = 0.0
    y = Q.T @ b
    x = np.zeros(n)
    for k in reversed(range(n)):
        x[k] = (y[k] - np.dot(R[k, k + 1:], x[k + 1:])) / R[k, k]
    return x, Q, R


def gram_schmidt(A):
    """Modified Gram-Schmidt through views of the columns."""
    Q = A.astype(np.float64)
    n = Q.shape[1]
    R = np.zeros((n, n))
    columns = Q.T
    for j in range(n):
        q = columns[j]
        for i in range(j):
            R[i, j] = columns[i] @ q
            q -= R[i, j] * columns[i]
        R[j, j] = np.sqrt(q @ q)
        q /= R[j, j]
    return Q, R


def jacobi_eigenvalues(A, tolerance):
    """Classical Jacobi rotations on the largest off-diagonal element.

    Source: C. G. J. Jacobi (1846); H. Rutishauser, Numer. Math. 9 (1966) 1.
    """
    A = A.copy()
    n = len(A)
    V = np.identity(n)
    rotations = 0
    while rotations < 100 * n:
        off = np.abs(np.triu(A, 1))
        k = int(np.argmax(off))
        p, q = k // n, k % n
        if off[p, q] < tolerance:
            break
        theta = (A[q, q] - A[p, p]) / (2.0 * A[p, q])
        t = 1.0 / (abs(theta) + np.sqrt(theta * theta + 1.0))
        if theta < 0:
            t = -t
        c = 1.0 / np.sqrt(t * t + 1.0)
        s = t * c
        row_p, row_q = A[p].copy(), A[q].copy()
        A[p] = c * row_p - s * row_q
        A[q] = s * row_p + c * row_q
        col_p, col_q = A[:, p].copy(), A[:, q].copy()
        A[:, p] = c * col_p - s * col_q
        A[:, q] = s * col_p + c * col_q
        v_p, v_q = V[:, p].copy(), V[:, q].copy()
        V[:, p] = c * v_p - s * v_q
        V[:, q] = s * v_p + c * v_q
        rotations += 1
    return np.diag(A).copy(), V, rotations


def conjugate_gradients(A, b, tolerance):
    """Conjugate gradients with Jacobi's preconditioner and the residual's history.

    Source: M. R. Hestenes, E. Stiefel, J. Res. NBS 49 (1952) 409; preconditioned as in
    Y. Saad, Iterative Methods for Sparse Linear Systems, 2nd ed., algorithm 9.1.
    """
    inverse_diagonal = 1.0 / np.diag(A)
    x = np.zeros_like(b)
    r = b - A @ x
    z = inverse_diagonal * r
    p = z.copy()
    rz = r @ z
    history = np.zeros(2 * len(b))
    k = 0
    while k < len(history):
        history[k] = np.sqrt(r @ r)
        k += 1
        if history[k - 1] < tolerance:
            break
        Ap = A @ p
        alpha = rz / (p @ Ap)
        x += alpha * p
        r -= alpha * Ap
        z = inverse_diagonal * r
        new = r @ z
        p = z + new / rz * p
        rz = new
    return x, k, history


def power_iteration(A, v, tolerance):
    """Largest eigenvalue by repeated products, then deflation for the second."""
    A = A.copy()
    found = []
    for _ in range(2):
        x = v / np.linalg.norm(v)
        value, previous = 0.0, np.inf
        while abs(value - previous) > tolerance:
            previous = value
            y = A @ x
            value = x @ y
            x = y / np.linalg.norm(y)
        found.append(value)
        A -= value * np.outer(x, x)
    return np.array(found)


def gauss_jordan_inverse(A):
    """Inverse by Gauss-Jordan on the augmented matrix, pivot rows swapped.

    Source: Press et al., Numerical Recipes, 3rd ed., section 2.1.
    """
    n = A.shape[0]
    M = np.hstack([A, np.eye(n)])
    for column in range(n):
        pivot = column
        for row in range(column + 1, n):
            if abs(M[row, column]) > abs(M[pivot, column]):
                pivot = row
        if abs(M[pivot, column]) < 1e-14:
            return None
        if pivot != column:
            saved = M[column].copy()
            M[column] = M[pivot]
            M[pivot] = saved
        M[column] /= M[column, column]
        for row in range(n):
            if row != column:
                M[row] -= M[row, column] * M[column]
    return M[:, n:]


def levinson_durbin(r, order):
    """Toeplitz normal equations of linear prediction.

    Source: N. Levinson, J. Math. Phys. 25 (1946) 261; J. Durbin, Rev. Int. Stat. 28 (1960) 233.
    """
    a = np.zeros(order + 1)
    reflection = np.zeros(order)
    a[0] = 1.0
    error = r[0]
    for i in range(1, order + 1):
        acc = r[i]
        for j in range(1, i):
            acc += a[j] * r[i - j]
        k = -acc / error
        reflection[i - 1] = k
        half = a.copy()
        for j in range(1, i):
            half[j] = a[j] + k * a[i - j]
        half[i] = k
        a = half
        error *= 1.0 - k * k
    frequencies = np.linspace(0.0, np.pi, 16)
    spectrum = np.zeros(16)
    for i, w in enumerate(frequencies):
        response = np.sum(a * np.exp(-1j * w * np.arange(order + 1)))
        spectrum[i] = error / np.abs(response) ** 2
    return a, reflection, spectrum


def matrix(n, m=None, seed=0):
    return np.random.default_rng(seed).standard_normal((n, m or n))


def definite(n):
    A = matrix(n)
    return A @ A.T + n * np.eye(n)


PROGRAMS = (
    (lu_solve, lambda n: (matrix(n), matrix(1, n, 1)[0]), 8, 150, "published views"),
    (cholesky, lambda n: (definite(n),), 8, 120, "views"),
    (householder_least_squares, lambda n: (matrix(n + 2, n), matrix(1, n + 2, 4)[0]), 6, 120,
     "published views"),
    (gram_schmidt, lambda n: (matrix(n + 3, n),), 6, 120, "views"),
    (jacobi_eigenvalues, lambda n: (definite(n), 1e-9), 5, 24, "published data-loop"),
    (conjugate_gradients, lambda n: (definite(n), matrix(1, n, 2)[0], 1e-8), 10, 400,
     "published data-loop"),
    (power_iteration, lambda n: (definite(n), np.ones(n), 1e-6), 6, 100, "data-loop"),
    (gauss_jordan_inverse, lambda n: (matrix(n),), 6, 80, ""),
    (levinson_durbin, lambda n: (0.9 ** np.arange(n + 1.0) * (1 + 0.1 * np.cos(np.arange(n + 1))),
                                 n), 8, 200, "published"),
)
