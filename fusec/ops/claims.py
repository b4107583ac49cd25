"""Which dtypes each row takes: NumPy's own answer where there is one, else this table.

A dtype joins all tables by joining `DTYPES`.
"""

from __future__ import annotations

import functools

import numpy as np

from .registry import Op

DTYPES: tuple[np.dtype, ...] = tuple(map(np.dtype, (
    "?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16")))
REAL = "?iuf"
# Kinds of dtypes, for rows that are no ufunc and do not take every dtype.
_KINDS: dict[str, str] = {
    "ArgMax": REAL, "ArgMin": REAL, "Max": REAL, "Min": REAL,
    "Fma": "f", "Any": "?", "All": "?", "PopulationCount": "u",
    "Real": "c", "Imag": "c", "Conj": "c", "WithReal": "c", "WithImag": "c",
    "CheckIndex": "i", "BoundsCheck": "i", "Check": "?", "Verify": "?", "Size": "i", "Iota": "i",
    "ScalarCall": "f", "HostCall": "i",
    "Poly": REAL, "Reinterpret": "iuf", "Mean": "fc", "NumPy": "c", "Var": "f", "Std": "f",
}
# Single dtypes: what an algorithm is made for.
_ONLY: dict[str, tuple[str, ...]] = {
    "MulHigh": ("u4",), "Counters": ("i8",), "SortComplex": ("c8", "c16"),
    "Histogram2d": ("f4", "f8"),
    **dict.fromkeys(("Erf", "Erfc", "Gammaln", "Expit", "Logit", "Ndtr", "LogNdtr", "Exp10"),
                    ("f4", "f8")),
}


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
    if row.name in _ONLY:
        return tuple(map(np.dtype, _ONLY[row.name]))
    kinds = _KINDS.get(row.name, REAL + "c")
    return tuple(d for d in DTYPES if (d.kind if d.kind != "b" else "?") in kinds)


__all__ = ["DTYPES", "claimed_dtypes"]
