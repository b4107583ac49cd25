"""Cofactors of square matrices: the derivative of a determinant.

Jacobi's formula has ``det(a) * inv(a).T``, where there is an inverse.  Of a singular matrix they
are those of its factors, as the cofactors of a product are the product of the cofactors: with
``a = u @ diag(s) @ vh`` they are ``det(u) det(vh) conj(u) @ diag(p) @ conj(vh)``, where ``p[i]`` is
the product of all ``s`` but the i-th.
"""

from __future__ import annotations

from typing import Any

import numpy as np


def cofactors(a: Any, det: Any) -> Any:
    """The cofactors of matrices (..., n, n), whose determinants (...) are known.

    By the inverse where half of the digits are left, by the factors elsewhere.  Raises
    `numpy.linalg.LinAlgError` for a singular matrix that is not finite.
    """
    a, det = np.asarray(a), np.asarray(det)
    is_singular = det == 0
    known = np.where(is_singular[..., None, None], np.eye(a.shape[-1], dtype=a.dtype), a)
    inverse = np.linalg.inv(known)
    lost = np.linalg.norm(a, axis=(-2, -1)) * np.linalg.norm(inverse, axis=(-2, -1))
    ill = is_singular | ((lost > np.finfo(a.dtype).eps ** -0.5) & np.isfinite(lost))
    out = np.asarray(_transposed(inverse) * det[..., None, None])
    if ill.any():
        out[ill] = _of_factors(a[ill])
    return out


def _transposed(a: Any) -> Any:
    return np.swapaxes(a, -2, -1)


def _of_factors(a: Any) -> Any:
    """Those of a unitary matrix are its conjugate times its determinant."""
    u, s, vh = np.linalg.svd(a)
    others = np.where(np.eye(a.shape[-1], dtype=bool), s.dtype.type(1), s[..., None, :])
    products = np.prod(others, axis=-1)[..., None, :]
    sign = np.linalg.det(u) * np.linalg.det(vh)
    return sign[..., None, None] * (np.conj(u) * products @ np.conj(vh))
