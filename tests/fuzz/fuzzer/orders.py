"""The orders in which sums and products may be taken."""

from __future__ import annotations

import ast
from typing import Any

import numpy as np


class AnyOrder(np.ndarray):
    """An array whose ``sum`` takes its elements in a random order."""

    rng = np.random.default_rng(0)

    def sum(self, axis: Any = None, **options: Any) -> Any:
        plain = self.view(np.ndarray)
        if isinstance(axis, int):
            plain = np.take(plain, self.rng.permutation(plain.shape[axis]), axis)
        elif axis is None:
            plain = self.rng.permutation(plain.ravel())
        return plain.sum(axis, **options)


def is_order_free(op: str) -> bool:
    """Whether it adds or multiplies in any order: ``np.sum``, ``x.var``, ``np.add.reduce``."""
    name = op.rpartition(".")[2].removeprefix("nan")
    return name in ("sum", "prod", "mean", "var", "std", "reduce")


def is_extremum(op: str) -> bool:
    """Whether it reduces to a largest or smallest element: ``np.amax``, ``np.fmin.reduce``."""
    name = op.rpartition(".")[2].removeprefix("nan")
    return name in ("max", "min", "amax", "amin", "reduce")


def reduced_axes(text: str, rank: int) -> list[int]:
    """The axes that a call of a reduction names, or its default; none where it is not a literal."""
    call = ast.parse(text, mode="eval").body
    if not isinstance(call, ast.Call):
        return []
    function = ast.unparse(call.func)
    first = 1 if function.startswith("np.") else 0
    given = {k.arg: k.value for k in call.keywords}.get("axis")
    given = call.args[first] if given is None and len(call.args) > first else given
    default = 0 if function.endswith(".reduce") else None
    try:
        axis = default if given is None else ast.literal_eval(given)
    except ValueError:
        return []
    axes = range(rank) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    return sorted({d % rank for d in axes if -rank <= d < rank}) if rank else []
