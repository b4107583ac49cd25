"""When two floats count as equal.

`EXACT`: bit for bit (any NaN is any NaN, but -0.0 is not 0.0).  `Ulp`: against the same program run
in extended precision, no further than a few ulp of the magnitudes involved and a small multiple of
NumPy's own error; without a wider run against NumPy itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import optree


class Tolerance:
    """Bit equality; the base of laxer ones."""

    needs_wide = False

    def check(self, got: np.ndarray, want: np.ndarray, wide: Any, what: str) -> None:
        """Raise ``AssertionError`` where an element differs; dtypes and shapes are equal."""
        bad = ~same_bits(got, want)
        assert not bad.any(), _message(got, want, bad, what)

    def widened(self, args: Sequence[Any], kwargs: Any) -> tuple[Any, Any]:
        """Arguments with every float in ``np.longdouble``."""
        def one(leaf: Any) -> Any:
            if isinstance(leaf, np.ndarray) and leaf.dtype.kind == "f":
                return leaf.astype(np.longdouble)
            return np.longdouble(leaf) if isinstance(leaf, np.floating) else leaf

        return optree.tree_map(one, (tuple(args), dict(kwargs or {})), none_is_leaf=True)


@dataclass(frozen=True)
class Ulp(Tolerance):
    """``|got - truth| <= factor * max |numpy - truth| + ulp`` units in the last place.

    The unit is that of the truth, or of ``scale`` where terms cancel.
    """

    ulp: float = 4.0
    factor: float = 4.0
    scale: float = 0.0
    needs_wide = True

    def check(self, got: np.ndarray, want: np.ndarray, wide: Any, what: str) -> None:
        if want.dtype.kind != "f":
            Tolerance.check(self, got, want, None, what)
            return
        truth = want if wide is None or wide.shape != want.shape else wide
        truth = truth.astype(np.longdouble)
        with np.errstate(all="ignore"):
            finite = np.isfinite(want)
            unit = np.spacing(np.maximum(np.abs(want), want.dtype.type(self.scale)))
            own = np.abs(want - truth)[finite & np.isfinite(truth)].max(initial=0)
            allowed = self.factor * own + self.ulp * unit.astype(np.longdouble)
            near = np.abs(got - truth) <= allowed
        bad = np.where(finite, ~near, ~same_bits(got, want)) & ~same_bits(got, want)
        assert not bad.any(), _message(got, want, bad, what)


def same_bits(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Elementwise: equal, with the sign of zero; NaN equals NaN, in each part of its own."""
    if a.dtype.kind == "c":
        return same_bits(a.real, b.real) & same_bits(a.imag, b.imag)
    if a.dtype.kind != "f":
        return a == b
    return np.isnan(a) & np.isnan(b) | (a == b) & (np.signbit(a) == np.signbit(b))


def _message(got: np.ndarray, want: np.ndarray, bad: np.ndarray, what: str) -> str:
    at = tuple(int(i) for i in np.argwhere(bad)[0]) if bad.ndim else ()
    return (f"{what}: {int(bad.sum())} of {bad.size} elements differ, the first at {at}: "
            f"{got[at]!r} is not {want[at]!r}")


EXACT = Tolerance()
NEAR = Ulp()
