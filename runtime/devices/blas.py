"""How many threads NumPy's linear algebra uses, which are its own."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable

from numpy.linalg import _umath_linalg  # type: ignore[attr-defined, unused-ignore]

# Of OpenBLAS as NumPy's wheels have it, as systems have it, and of MKL.
_NAMES = ("scipy_openblas_get_num_threads64_", "scipy_openblas_get_num_threads",
          "openblas_get_num_threads64_", "openblas_get_num_threads", "MKL_Get_Max_Threads")


@functools.cache
def _asking() -> Callable[[], int] | None:
    """The library's function; the loader finds it among libraries of NumPy's module."""
    try:
        library = ctypes.CDLL(_umath_linalg.__file__)
    except OSError:  # another way of loading than a file
        return None
    name = next((name for name in _NAMES if hasattr(library, name)), None)
    if name is None:
        return None
    function = getattr(library, name)
    function.restype = ctypes.c_int
    asking: Callable[[], int] = function
    return asking


def blas_threads() -> int | None:
    """Threads of a product of matrices, say; None where the library does not tell."""
    ask = _asking()
    return None if ask is None else ask()
