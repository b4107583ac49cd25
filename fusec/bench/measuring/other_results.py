"""Results of other libraries and of GPUs beside fusec's or NumPy's: whether they are near, and why
there are none."""

from __future__ import annotations

from typing import Any

import numpy as np

# A peer's arithmetic is its own affair; these only tell a wrong program from a rounded one.
TOLERANCE = {4: 2e-3, 8: 1e-7}


def first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0][:80] if lines else "no message"


def is_near(got: Any, want: Any, near: float) -> bool:
    """Whether a result, of a GPU or of the host, is another one but for rounding."""
    own = got.get() if hasattr(got, "get") else got
    scale = float(np.abs(want).max(initial=1))
    return np.allclose(own, want, rtol=near, atol=near * scale, equal_nan=True)


def bytes_of(concrete: Any) -> int:
    """Bytes that its kernels read and write, each element once; 0 where the run decides that."""
    sizes = [n for k in concrete.kernels for n in (
        *k.bytes_loaded.values(), *k.bytes_stored.values())]
    return sum(sizes) if all(isinstance(n, int) for n in sizes) else 0
