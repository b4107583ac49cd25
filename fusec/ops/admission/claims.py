"""Which dtypes each row takes: NumPy's own answer where there is one, else the row's.

A dtype joins all tables by joining `DTYPES`.
"""

from __future__ import annotations

import functools

import numpy as np

from ..registry import Op

DTYPES: tuple[np.dtype, ...] = tuple(map(np.dtype, (
    "?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16")))


def _ufunc_takes(ufunc: np.ufunc, dtype: np.dtype) -> bool:
    try:
        ufunc.resolve_dtypes((*[dtype] * ufunc.nin, *[None] * ufunc.nout))
    except TypeError:
        return False
    return True


@functools.cache
def claimed_dtypes(row: Op) -> tuple[np.dtype, ...]:
    """The dtypes of operands (for `Cast` and sources: of results) that a program may use.

    A library row claims every dtype: it answers, or raises, as NumPy does.
    """
    if row.ufunc is not None:
        return tuple(d for d in DTYPES if _ufunc_takes(row.ufunc, d))
    if isinstance(row.takes, tuple):
        return tuple(map(np.dtype, row.takes))
    return tuple(d for d in DTYPES if (d.kind if d.kind != "b" else "?") in row.takes)


__all__ = ["DTYPES", "claimed_dtypes"]
