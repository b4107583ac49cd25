"""Functions as CUDA sources; apart from `exports`, for it loads CUDA's printer."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from fusec.compiled.exports.cuda_library import CudaLibrary, write_cuda_library

from .exports import compiler_of


def export_cuda(
    functions: Mapping[str, tuple[Any, Sequence[Any]]], path: str | os.PathLike[str],
    arch: str = "sm_90",
) -> CudaLibrary:
    """Write functions as CUDA sources: ``<name>.cu``, ``<name>.hpp`` and ``<name>.<arch>.ptx``.

    ``functions`` and ``path`` are as for `export_c`.  The header has a function for each, which
    launches the kernels of its plan in a stream; it needs C++11 and the CUDA driver alone, and
    allocates nothing.  ``arch``: the architecture of the PTX, which NVRTC makes where it is
    installed; without it there are the sources, and ``.ptx`` of the result is None.

    Raises `UnsupportedError` with every part, of all functions, that is no kernel: library calls,
    callbacks, state; `ValueError` for names and architectures that there are not, and the
    functions' own errors.  docs/export-cuda.md has more.
    """
    compiled = {name: compiler_of(given) for name, given in functions.items()}
    return write_cuda_library(compiled, path, arch)
