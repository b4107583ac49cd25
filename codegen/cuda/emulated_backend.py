"""The CUDA back end on the emulated device: the same source, compiled for this machine's CPU."""

from __future__ import annotations

from .backend import CudaBackend
from .emulation.driver import EmulatedDriver

BACKEND = CudaBackend("cudahost", EmulatedDriver)
