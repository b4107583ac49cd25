"""Functions of ``scipy.special`` that have a scalar op: elementwise, float32 and float64.

SciPy is not needed to compile them; the rows' references import it when first used, except where
Python's own ``math`` has the function.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ..admission.admission import PLAIN
from ..registry import Op, register
from .elementwise import infer_same


def _of_math(function: Callable[[float], float]) -> Callable[..., Any]:
    """Python's function for each element; poles and overflow are infinite."""
    def number(x: float) -> float:
        if math.isinf(x) and function is math.lgamma:
            return x  # SciPy's value; C's is inf
        try:
            return function(x)
        except (ValueError, OverflowError):
            return math.inf

    def reference(x: Any) -> Any:
        array = np.asarray(x)
        values = [number(float(v)) for v in array.ravel()]
        with np.errstate(over="ignore"):
            return np.array(values, np.float64).astype(array.dtype).reshape(array.shape)[()]

    return reference


def _of_scipy(name: str) -> Callable[..., Any]:
    def reference(x: Any) -> Any:
        import scipy.special

        return getattr(scipy.special, name)(x)

    return reference


def _row(name: str, scipys: str, reference: Callable[..., Any], cost: float) -> tuple[str, Op]:
    return scipys, register(Op(
        name=name, kind="elementwise", arity=1, scalar=scipys, infer=infer_same,
        reference=reference, cost=cost, takes=("f4", "f8"), admits=PLAIN,
        doc=f"scipy.special.{scipys}; method and bound in codegen/vecmath and "
            "docs/accuracy.md.",
    ))


# SciPy's name → row
SPECIAL: dict[str, Op] = dict((
    _row("Erf", "erf", _of_math(math.erf), 30),
    _row("Erfc", "erfc", _of_math(math.erfc), 50),
    _row("Gammaln", "gammaln", _of_math(math.lgamma), 110),
    _row("Expit", "expit", _of_scipy("expit"), 26),
    _row("Logit", "logit", _of_scipy("logit"), 36),
    _row("Ndtr", "ndtr", _of_scipy("ndtr"), 50),
    _row("LogNdtr", "log_ndtr", _of_scipy("log_ndtr"), 90),
    _row("Exp10", "exp10", _of_scipy("exp10"), 18),
))

__all__ = ["SPECIAL"]
