"""`TensorSpec`: what an argument must be."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


class TensorSpec:
    """A dtype and shape that arguments must have; ``None`` in the shape is any size."""

    def __init__(
        self, shape: Sequence[int | None], dtype: Any = np.float64, name: str | None = None,
    ) -> None:
        self.shape, self.dtype, self.name = tuple(shape), np.dtype(dtype), name

    def admits(self, arg: Any) -> bool:
        """Whether an argument has this dtype and shape."""
        found = np.asarray(arg)
        return found.dtype == self.dtype and len(found.shape) == len(self.shape) and all(
            s is None or s == d for s, d in zip(self.shape, found.shape, strict=True))

    def example(self) -> np.ndarray:
        """An array of this type; unknown sizes are 2."""
        return np.zeros(tuple(2 if d is None else d for d in self.shape), self.dtype)

    def __repr__(self) -> str:
        dims = ", ".join("?" if d is None else str(d) for d in self.shape)
        return f"TensorSpec([{dims}], {self.dtype})"
