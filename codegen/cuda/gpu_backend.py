"""The CUDA back end on GPUs, through CuPy."""

from __future__ import annotations

from .backend import CudaBackend
from .cupy_driver import CupyDriver

BACKEND = CudaBackend("cuda", CupyDriver)
