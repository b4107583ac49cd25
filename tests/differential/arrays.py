"""Arguments of the differential tests: every dtype, special values, every memory layout."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

DTYPES = ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8"]
SPECIAL = [
    0.0, -0.0, 1, -1, 2, -2, 0.5, -0.5, 1.5, 2.5, -2.5, 3.7, np.nan, np.inf, -np.inf, 1e-300,
    5e-324, 1e300, -1e300, 1e-40, 3e38, 1e5, 123.456, -7.25, np.pi, 710.0, -745.5, 88.9, 0.1,
    2.0**31, -(2.0**31) - 1, 2.0**63, 1e19,
]
COUNT = len(SPECIAL)


def specials(dtype: str) -> np.ndarray:
    """`COUNT` values of a dtype, its extremes and awkward ones among them."""
    kind = np.dtype(dtype)
    with np.errstate(all="ignore"):
        if kind.kind == "f":
            return np.array(SPECIAL).astype(kind)
        if kind.kind == "c":
            both = np.array(SPECIAL, np.complex128)
            both.imag = np.roll(SPECIAL, 5)
            return both.astype(kind)
    if kind.kind == "b":
        return np.array(([False, True] * COUNT)[:COUNT])
    info = np.iinfo(kind)
    wanted = [0, 1, 2, 3, 5, 7, 8, 15, 31, 32, 33, 63, 64, 65, 100, info.max, info.max - 1,
              info.min, info.min + 1, info.max // 2, info.min // 2, -1, -2, -3, -7, -8]
    inside = [n for n in wanted if info.min <= n <= info.max]
    return np.array((inside * 3)[:COUNT], kind)


def pairs(a: str, b: str) -> tuple[np.ndarray, np.ndarray]:
    """Every special value of one dtype with every one of another."""
    return np.repeat(specials(a), COUNT), np.tile(specials(b), COUNT)


def ordinary(dtype: str, *shape: int, seed: int = 0) -> np.ndarray:
    """Small numbers of a dtype, C order."""
    rng = np.random.default_rng(seed)
    kind = np.dtype(dtype)
    if kind.kind == "f":
        return np.asarray(rng.standard_normal(shape) * 3, kind)
    low = 0 if kind.kind in "bu" else -20
    return np.asarray(rng.integers(low, 2 if kind.kind == "b" else 20, shape)).astype(kind)


def _broadcast(dtype: str) -> np.ndarray:
    return np.broadcast_to(ordinary(dtype, 5), (4, 5))


LAYOUTS: dict[str, Callable[[str], np.ndarray]] = {
    "contiguous": lambda d: ordinary(d, 4, 5),
    "strided": lambda d: ordinary(d, 8, 15)[::2, ::3],
    "transposed": lambda d: ordinary(d, 5, 4).T,
    "reversed": lambda d: ordinary(d, 4, 5)[::-1, ::-1],
    "reversed rows": lambda d: ordinary(d, 4, 10)[::-1, ::2],
    "broadcast": _broadcast,
    "broadcast columns": lambda d: np.broadcast_to(ordinary(d, 4, 1), (4, 5)),
    "one column": lambda d: ordinary(d, 4, 1),
    "one row": lambda d: ordinary(d, 1, 5),
    "one element": lambda d: ordinary(d, 1, 1),
    "offset": lambda d: ordinary(d, 6, 7)[1:5, 1:6],
    "vector": lambda d: ordinary(d, 5),
    "strided vector": lambda d: ordinary(d, 15)[::-3],
    "rank 0": lambda d: ordinary(d),
    "rank 3": lambda d: ordinary(d, 5, 2, 4).transpose(1, 2, 0),
    "fortran rank 3": lambda d: np.asfortranarray(ordinary(d, 2, 4, 5)),
    "no rows": lambda d: ordinary(d, 0, 5),
    "no columns": lambda d: ordinary(d, 4, 0),
    "nothing": lambda d: ordinary(d, 0),
}
