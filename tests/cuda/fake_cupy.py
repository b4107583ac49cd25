"""The part of CuPy that the GPU's driver uses, on the emulated device; machine code is a digest."""

from __future__ import annotations

import ctypes
import sys
import types
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy as np
from fake_arrays import Functions, UnownedMemory, arrays_of, as_array
from fake_cublas import FakeCublas
from fake_cufft import FakeCufft
from fake_cusolver import FakeCusolver
from fake_streams import (
    CUDARuntimeError,
    Event,
    MemoryPointer,
    OutOfMemoryError,
    Pool,
    Stream,
    Streams,
)

from fusec.codegen import backends
from fusec.codegen.cuda.driver import nvrtc
from fusec.codegen.cuda.driver.nvrtc import Compiled
from fusec.codegen.cuda.emulation.driver import EmulatedDriver
from fusec.codegen.cuda.emulation.launches import MOST_RESIDENT, MOST_THREADS
from fusec.codegen.cuda.gpu_backend import GpuBackend
from fusec.codegen.cuda.module import CudaModule
from fusec.codegen.cuda.products import cublas, cufft, cusolver
from fusec.core import gpus
from fusec.runtime.devices import registry


class CUDADriverError(RuntimeError):
    pass


class FakeCupy:
    """A GPU with ``room`` bytes; ``calls`` are its requests, in order, ``sent`` the bytes
    of each copy."""

    def __init__(
        self, room: int = 1 << 30, capability: str = "90", count: int = 1, seed: int = 0
    ) -> None:
        self.driver, self.cached, self.calls = EmulatedDriver(seed), 0, list[str]()
        self.streams = Streams(self.driver, self.calls)
        self.cublas = FakeCublas(self.streams, self.calls)
        self.cufft = FakeCufft(self.streams, self.calls)
        self.cusolver = FakeCusolver(self.streams, self.calls)
        self.pool = Pool(self.driver, self.streams, room)
        self.pinned = PinnedPool(self.driver.mapped)
        self.modules: dict[bytes, CudaModule] = {}
        self.capability, self.count = capability, count
        runtime = types.SimpleNamespace(
            getDeviceCount=self._count, memcpyAsync=self._copy, CUDARuntimeError=CUDARuntimeError,
            memGetInfo=lambda: (self.pool.room, 1 << 30), driverGetVersion=lambda: 12000,
            getDeviceProperties=lambda number: {"name": b"Emulated GPU"},
            getDevice=lambda: 0, memsetAsync=self._set)
        self.cuda = types.SimpleNamespace(
            runtime=runtime, alloc=self.pool.alloc, Device=self._device,
            alloc_pinned_memory=self.pinned.alloc,
            Event=lambda disable_timing=False: Event(self.streams),
            Stream=NewStream(self.streams),
            memory=types.SimpleNamespace(OutOfMemoryError=OutOfMemoryError),
            driver=types.SimpleNamespace(
                CUDADriverError=CUDADriverError,
                occupancyMaxActiveBlocksPerMultiprocessor=lambda ptr, threads, shared: min(
                    MOST_RESIDENT, MOST_THREADS // threads)),
            function=types.SimpleNamespace(Module=lambda: Module(self)),
            UnownedMemory=UnownedMemory, MemoryPointer=MemoryPointer,
            get_current_stream=lambda: self.streams.current)
        self.__version__, self.sent = "0", []
        self.ndarray = arrays_of(self.pool)
        self.linalg, self.fft, of_numpy = (
            Functions(self.ndarray, m, self.calls) for m in (np.linalg, np.fft, np))
        for name in ("matmul", "dot", "einsum", "sort", "argsort", "searchsorted", "interp",
                     "nonzero", "flatnonzero", "argwhere", "unique", "bincount",
                     "ascontiguousarray", "median", "percentile", "quantile", "partition",
                     "argpartition", "isin", "union1d", "setdiff1d", "intersect1d", "setxor1d",
                     "isnan", "any", "where", "all", "less_equal", "greater_equal", "flip",
                     "subtract", "take", "nanmedian", "isfinite"):
            setattr(self, name, getattr(of_numpy, name))

    def asarray(self, x: Any) -> Any:
        if isinstance(x, np.ndarray):
            self.calls.append("asarray")
        return as_array(self.ndarray, x)

    def from_dlpack(self, x: Any) -> Any:
        return as_array(self.ndarray, x.__dlpack__())

    def compile(self, module: CudaModule, architecture: str) -> Compiled:
        """Stands for NVRTC."""
        assert architecture == f"sm_{self.capability}"
        code = module.digest.encode()
        self.modules[code] = module
        return Compiled("", code, {})

    def get_default_memory_pool(self) -> Any:
        def free_all_blocks() -> None:
            self.calls.append("free_all_blocks")
            self.pool.room, self.cached = self.pool.room + self.cached, 0

        return types.SimpleNamespace(free_all_blocks=free_all_blocks)

    def _count(self) -> int:
        if self.count < 0:
            raise CUDARuntimeError("cudaErrorInsufficientDriver")
        return self.count

    def _copy(self, to: int, source: int, nbytes: int, kind: int, stream: int) -> None:
        """``cudaMemcpyAsync``: memory that is not pinned has been read, or written, when it
        returns; pinned memory is read and written when the device comes to it."""
        name = {1: "to device", 2: "to host", 3: "copy"}[kind]
        is_pinned = kind < 3 and self.pinned.has(source if kind == 1 else to)
        self.calls.append(name + (", pinned" if is_pinned else ""))
        self.sent.append(nbytes)
        for address in {1: [to], 2: [source], 3: [to, source]}[kind]:
            if nbytes:
                self.driver._check(address, nbytes)
        of = self.streams.of(stream)
        if kind == 1 and not is_pinned:
            staged = ctypes.create_string_buffer(ctypes.string_at(source, nbytes), nbytes)
            of.does(lambda: ctypes.memmove(to, staged, nbytes))
            return
        of.does(lambda: ctypes.memmove(to, source, nbytes))
        if kind == 2 and not is_pinned:
            of.synchronize()

    def _set(self, to: int, value: int, nbytes: int, stream: int) -> None:
        self.streams.of(stream).does(lambda: ctypes.memset(to, value, nbytes))

    def _device(self, number: int) -> Any:
        return Context(compute_capability=self.capability, cublas_handle=1,
                       cusolver_handle=1,
                       attributes={"MultiProcessorCount": 1})


class Context(types.SimpleNamespace):
    def __enter__(self) -> Context:
        return self

    def __exit__(self, *error: object) -> None:
        pass


class NewStream:
    """CuPy's class of streams."""

    def __init__(self, streams: Streams) -> None:
        self._new = streams.new

    def __call__(self, non_blocking: bool = False) -> Stream:
        return self._new(non_blocking)

    begin_capture = Stream.begin_capture


class PinnedPool:
    """Pinned memory of the host; ``room`` bytes of it, ``mapped`` for kernels."""

    def __init__(self, mapped: dict[int, int]) -> None:
        self.room, self.used, self.mapped = 1 << 30, 0, mapped
        self._every: list[tuple[int, int]] = []

    def alloc(self, nbytes: int) -> Any:
        """``cupy.cuda.alloc_pinned_memory``."""
        if self.used + nbytes > self.room:
            raise CUDARuntimeError("cudaErrorMemoryAllocation: out of memory", 2)
        memory = type("PinnedMemoryPointer", (ctypes.c_uint8 * nbytes,), {})()
        memory.ptr = ctypes.addressof(memory)
        self.used += nbytes
        self._every.append((memory.ptr, memory.ptr + nbytes))
        self.mapped[memory.ptr] = memory.ptr + nbytes
        return memory

    def has(self, address: int) -> bool:
        return any(start <= address < end for start, end in self._every)


class Module:
    """CuPy's module of machine code."""

    def __init__(self, cupy: FakeCupy) -> None:
        self.cupy = cupy

    def load(self, code: bytes) -> None:
        self.module = self.cupy.modules[code]
        self.loaded = self.cupy.driver.compile(self.module)

    def get_function(self, name: str) -> Any:
        kernel = self.module.kernel(name)

        def call(
            grid: Any, block: Any, args: Any, shared_mem: int = 0, stream: Any = None,
            enable_cooperative_groups: bool = False,
        ) -> None:
            assert enable_cooperative_groups == (kernel.is_cooperative and grid[0] > 1)
            kinds = {"pointer": np.uint64, "int32": np.int32, "int64": np.int64}
            assert [type(a) for a in args] == [kinds[p.kind] for p in kernel.params]
            self.cupy.calls.append(name)
            words, driver = [int(a) for a in args], self.cupy.driver
            (stream or self.cupy.streams.current).ask(lambda queue: driver.launch(
                self.loaded, kernel, grid, block, shared_mem, words, queue))

        call.ptr = id(call)  # type: ignore[attr-defined]
        return call


@contextmanager
def installed(fake: FakeCupy, monkeypatch: Any) -> Iterator[FakeCupy]:
    """The driver finds this where it looks for CuPy and NVRTC."""
    with monkeypatch.context() as patch:
        patch.setattr(gpus, "package", lambda: fake)
        patch.setattr(nvrtc, "compile", fake.compile)
        patch.setattr(cublas, "loaded_library", lambda: fake.cublas)
        patch.setattr(cufft, "loaded_library", lambda: fake.cufft)
        patch.setattr(cusolver, "loaded_library", lambda: fake.cusolver)
        patch.setattr(gpus, "notes", [])
        cupyx: Any = types.ModuleType("cupyx")
        cupyx.errstate = lambda linalg: nullcontext(fake.calls.append(linalg))
        patch.setitem(sys.modules, "cupyx", cupyx)
        yield fake


@contextmanager
def as_gpu(monkeypatch: Any, seed: int = 0) -> Iterator[FakeCupy]:
    """A GPU of this process, ``/device:GPU:0``, and CuPy imported; the seed decides about orders.
    """
    with installed(FakeCupy(seed=seed), monkeypatch) as fake, monkeypatch.context() as patch:
        patch.setitem(sys.modules, "cupy", fake)
        patch.setitem(backends._loaded, "gpu", GpuBackend())
        registry.forget("gpu")
        try:
            yield fake
        finally:
            patch.undo()
            patch.setattr(gpus, "package", lambda: None)
            registry.forget("gpu")
