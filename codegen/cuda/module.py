"""CUDA C++ as the back end makes it and as a driver gets it: source text and its kernels.

Guarantees for a driver (see `driver`):

- The source includes nothing and needs no library: NVRTC compiles it as C++17 without headers, and
  a host compiler does behind a header that supplies the words below.  All of it but the kernels
  lies in ``namespace fusec``, so that it meets nothing of a host's headers.
- Kernels are ``extern "C" __global__ void name(...)`` with `CudaParam` parameters: pointers
  (``char *`` or ``const char *``) and signed integers of 32 or 64 bits.  Constants of a
  program come as the bits of an integer.  They are one-dimensional in the grid (``gridDim.x``) and
  have ``blockDim.x`` and ``blockDim.y`` threads.
- Of CUDA it uses nothing but: ``threadIdx``, ``blockIdx``, ``blockDim``, ``gridDim``;
  ``__shared__`` arrays, and one ``extern __shared__`` array of ``unsigned long long``;
  ``__syncthreads``, ``__barrier_sync_count``, ``__threadfence``; ``__shfl_sync``,
  ``__shfl_up_sync``, ``__shfl_down_sync`` and ``__shfl_xor_sync`` of 32- and 64-bit integers;
  ``__ballot_sync``, ``__any_sync``, ``__match_any_sync``, ``__syncwarp``; ``__ffs``;
  ``atomicAdd``, ``atomicMax``, ``atomicMin``, ``atomicOr``, ``atomicAnd``, ``atomicExch`` and
  ``atomicCAS`` of ``int``, ``unsigned`` and ``unsigned long long``, ``atomicAdd`` of ``float`` and
  ``double``; inline PTX for ``max.NaN`` and ``min.NaN``, behind ``__CUDA_ARCH__``;
  ``fma``, ``sqrt``, ``fabs``, ``floor``, ``ceil``, ``trunc``, ``rint``, ``copysign``, ``fmod`` of
  double and, with an f, of float; ``__double_as_longlong``, ``__longlong_as_double``,
  ``__float_as_int``, ``__int_as_float``; ``__popc``, ``__popcll``, ``__clzll``; ``__restrict__``,
  ``__launch_bounds__``, ``__forceinline__``, ``__noinline__``, ``__device__``, ``__constant__``;
  ``unsigned __int128`` (NVRTC's ``-device-int128``); ``#pragma unroll``.
- It is compiled without contraction (``-fmad=false``, ``-ffp-contract=off``) and with IEEE
  division, square roots and subnormals: a fused multiply-add is where the source says ``fma``.
"""

from __future__ import annotations

import hashlib
from typing import Literal

from fusec.core.records import dataclass

ParamKind = Literal["pointer", "int32", "int64"]
WARP = 32
MAX_BLOCK = 1024


@dataclass(frozen=True, slots=True)
class CudaParam:
    """A parameter of a kernel; ``is_written`` says of a pointer whether the kernel stores to it."""

    name: str
    kind: ParamKind
    is_written: bool = False


@dataclass(frozen=True, slots=True)
class CudaKernel:
    """A kernel of a module: its name there, its parameters, and the bounds of its launches.

    ``max_threads``: the most threads of a block (its ``__launch_bounds__``).  ``has_barriers``:
    whether its threads wait for each other in a block or a warp; without, they may run one after
    the other.  ``static_shared``: bytes of its ``__shared__`` arrays; more come with a launch.
    ``is_cooperative``: whether its blocks wait for each other, and so have to be there at once.
    """

    name: str
    params: tuple[CudaParam, ...]
    max_threads: int = MAX_BLOCK
    has_barriers: bool = False
    static_shared: int = 0
    is_cooperative: bool = False


@dataclass(frozen=True, slots=True)
class CudaModule:
    """Source text with its kernels: compiled, kept and loaded as one."""

    source: str
    kernels: tuple[CudaKernel, ...]

    @property
    def digest(self) -> str:
        """Names the source: equal sources have equal digests."""
        return hashlib.sha256(self.source.encode()).hexdigest()

    def kernel(self, name: str) -> CudaKernel:
        """The kernel of that name; raises ``KeyError``."""
        for kernel in self.kernels:
            if kernel.name == name:
                return kernel
        raise KeyError(name)
