"""The driver of a GPU, through CuPy: its memory pool, its streams, its way to the CUDA driver.

Machine code is made by NVRTC for the GPU at hand and kept on disk (`nvrtc`).  Kernels go to one
stream, in order; those of calls with arrays of the GPU to the stream that CuPy uses there.  Nobody
waits.  Large arrays are copied beside them (`pinned_buffers`), small ones in the kernels' stream.
"""

from __future__ import annotations

import bisect
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import partial
from typing import Any, NamedTuple, TypeVar

import numpy as np

from fusec.core import gpus, locks
from fusec.core.gpus import cupy
from fusec.core.records import dataclass
from fusec.errors import FusecError, user_error
from fusec.ir.lazy_values import lazy

from ..launches import Filled, Named, function_for
from ..module import CudaKernel, CudaModule
from ..products.cublas import Cublas
from ..products.cufft import Cufft
from ..products.cusolver import Cusolver
from ..products.refusals import LibraryRefusedError
from . import nvrtc
from .arriving_memory import ArrivingMemory
from .bound_launches import BoundLaunch, JoinedLaunch
from .driver import Dim3, Flag
from .gpu_faults import Faults
from .pinned_buffers import TO_DEVICE, TO_HOST, PinnedCopies
from .stop_flags import StopFlags

R = TypeVar("R")
_ON_DEVICE = 3  # cudaMemcpyKind
_IMPATIENT = 2e-4  # seconds of asking whether work is over before others get time
_LEGACY = 1  # the largest handle of the stream that all others wait for
_WORDS: dict[str, Callable[[int], Any]] = {
    "pointer": np.uint64, "int32": np.int32, "int64": np.int64}


@dataclass(frozen=True)
class LoadedModule:
    """Machine code in the GPU's memory, and its functions by name."""

    module: Any
    functions: dict[str, Any]


class Moment(NamedTuple):
    """When a stream has done its work until then: an event, and how many kernels the GPU
    was asked for by then."""

    passed: Any
    asked: int


class Lent:
    """Memory of the GPU that is another's, as NumPy takes it over; ``owner`` is whose it is."""

    def __init__(self, owner: Any, interface: Mapping[str, Any]) -> None:
        """``interface``: its ``__cuda_array_interface__``, which may be without strides."""
        self.owner = owner
        self.__array_interface__ = self.__cuda_array_interface__ = {
            name: interface[name] for name in ("shape", "typestr", "data", "strides", "version")
            if interface.get(name) is not None}


_current: ContextVar[Any] = ContextVar("stream", default=None)


class CupyDriver:
    """See `fusec.codegen.cuda.driver.driver.Driver` and the module docstring."""

    name = "cuda"
    compiler = "nvrtc"

    def __init__(self, number: int = 0) -> None:
        self.cupy, self.number = cupy(), number
        self.device = self.cupy.cuda.Device(number)
        self.capability = int(self.device.compute_capability)
        with self.device:
            self._own_stream = self.cupy.cuda.Stream(non_blocking=True)
            self._capturing = self.cupy.cuda.Stream(non_blocking=True)
        self.launched = 0
        self._loaded: dict[str, LoadedModule] = {}
        self._memory: dict[int, Any] = {}  # CuPy's pointers, which keep their memory
        self._starts: list[int] = []  # their addresses, sorted
        self._lock, self._capture_lock = locks.Lock(), locks.Lock()
        cuda = self.cupy.cuda
        self.can_capture = hasattr(cuda.Stream, "begin_capture")
        self.is_only = cuda.runtime.getDeviceCount() == 1
        self.faults = Faults(
            number, (cuda.runtime.CUDARuntimeError, cuda.driver.CUDADriverError))
        self.copies, self.arriving = PinnedCopies(self), ArrivingMemory(self)
        self.flags = StopFlags(self)
        self._readers: dict[int, Any] = {}  # of arriving memory: the stream whose kernels read it
        self._unfilled: set[int] = set()  # arriving memory that nothing was copied to yet

    @lazy
    def cublas(self) -> Cublas:
        """Products of matrices."""
        return Cublas(self)

    @lazy
    def cufft(self) -> Cufft:
        """Fourier transforms."""
        return Cufft(self, self.cublas)

    @lazy
    def cusolver(self) -> Cusolver:
        """Equations and factors of matrices."""
        return Cusolver(self)

    @property
    def stream(self) -> Any:
        """The stream that work goes to now."""
        return _current.get() or self._own_stream

    @contextmanager
    def on_current_stream(self) -> Iterator[None]:
        """Inside the block work is asked of the stream that CuPy uses in this thread."""
        with self.device:
            token = _current.set(self.cupy.cuda.get_current_stream())
        try:
            yield
        finally:
            _current.reset(token)

    # -- kernels

    def compile(self, module: CudaModule) -> LoadedModule:
        """The module for this GPU, compiled by NVRTC or read from the disk cache."""
        loaded = self._loaded.get(module.digest)
        if loaded is None:
            code = nvrtc.compile(module, f"sm_{self.capability}").cubin
            with self.faults.naming(), self.device:
                binary = self.cupy.cuda.function.Module()
                binary.load(code)
                functions = {k.name: binary.get_function(k.name) for k in module.kernels}
            loaded = self._loaded[module.digest] = LoadedModule(binary, functions)
        return loaded

    def launch(
        self, loaded: LoadedModule, kernel: CudaKernel, grid: Dim3, block: Dim3,
        shared_bytes: int, args: Sequence[int],
    ) -> None:
        self.bound(loaded, kernel, grid, block, shared_bytes, args)()

    def bound(
        self, loaded: LoadedModule, kernel: CudaKernel, grid: Dim3, block: Dim3,
        shared_bytes: int, args: Sequence[int],
    ) -> BoundLaunch:
        """See `Driver.bound`: arguments are as CuPy takes them."""
        words = tuple(_WORDS[param.kind](arg) for param, arg in zip(
            kernel.params, args, strict=True))
        function = function_for(loaded.functions[kernel.name], kernel, grid[0])
        return BoundLaunch(self, Filled(function, grid, block, words, shared_bytes))

    def resident_blocks(
        self, loaded: LoadedModule, kernel: CudaKernel, threads: int, shared_bytes: int
    ) -> int:
        """See `Driver.resident_blocks`."""
        with self.device:
            of_each = self.cupy.cuda.driver.occupancyMaxActiveBlocksPerMultiprocessor(
                loaded.functions[kernel.name].ptr, threads, shared_bytes)
        return int(of_each) * int(self.device.attributes["MultiProcessorCount"])

    def flag(self) -> Flag:
        """See `Driver.flag`."""
        return self.flags.take()

    def joined(self, launches: Sequence[Any]) -> Callable[[], None] | None:
        """See `Driver.joined`: a CUDA graph, where CuPy makes one of these."""
        if not self.can_capture:
            return None
        try:
            graph = self.captured([launch.filled for launch in launches])
        except self.faults.kinds as error:
            self.note_no_graph(error)
            return None
        except LibraryRefusedError as error:  # launched, it has worked
            error.library.refused = ""
            self.note_no_graph(error)
            return None
        return JoinedLaunch(self, launches, graph)

    def note_no_graph(self, error: Exception) -> None:
        """For people, once: `fusec.devices()` and `fusec.explain` say it."""
        if not any(note.startswith(self._no_graph) for note in gpus.notes):
            gpus.notes.append(f"{self._no_graph}: {error}")

    @property
    def _no_graph(self) -> str:
        return f"loops on GPU {self.number} launch kernels one by one, as CUDA makes no graph"

    # -- kernels that were prepared

    def current_stream(self) -> Any:
        """That which CuPy uses in this thread."""
        return self.cupy.cuda.get_current_stream()

    def is_capturing(self, stream: Any) -> bool:
        """Whether the program captures the stream into a graph: no other graph can be
        launched in it then.  The legacy stream, which CUDA may not be asked about, cannot."""
        return stream.ptr > _LEGACY and bool(stream.is_capturing())

    def note(self, kernels: Sequence[Named], count: int) -> None:
        """These are launched, in so many launches."""
        self.launched += count
        self.faults.note(kernels)

    def captured(self, launches: Sequence[Filled]) -> Any:
        """A CUDA graph of these launches; raises CUDA's error, and a library's before it."""
        with self._capture_lock, self.device:
            stream = self._capturing
            stream.begin_capture()
            try:
                for function, grid, block, words, shared in launches:
                    function(grid, block, words, shared_mem=shared, stream=stream)
            except BaseException:
                with suppress(*self.faults.kinds):  # what was refused may have spoiled the graph
                    stream.end_capture()
                raise
            return stream.end_capture()

    def copy_there(self, target: int, source: int, nbytes: int) -> None:
        """Copy bytes on the GPU, on CuPy's current stream."""
        self.cupy.cuda.runtime.memcpyAsync(
            target, source, nbytes, _ON_DEVICE, self.current_stream().ptr)

    # -- memory

    def allocate(self, nbytes: int, arriving: bool = False) -> int:
        """From CuPy's pool, which is emptied once where the GPU has no more."""
        def ask(stream: Any = None) -> Any:
            return self.with_room(
                nbytes, lambda: self.cupy.cuda.alloc(max(nbytes, 1)), stream)

        with self.faults.naming():
            is_pinned = arriving and self.copies.is_for(nbytes)
            pointer = ask() if not is_pinned else self.arriving.borrow(
                nbytes, partial(ask, self.copies.to_device.stream))
        address = int(pointer.ptr)
        with self._lock:
            self._memory[address] = pointer
            bisect.insort(self._starts, address)
            if is_pinned:
                self._readers[address] = self.stream
                self._unfilled.add(address)
        return address

    def with_room(self, nbytes: int, ask: Callable[[], R], stream: Any = None) -> R:
        """The result of ``ask``, which takes so many bytes, for a stream (that of now); once more
        with the pool emptied."""
        full = self.cupy.cuda.memory.OutOfMemoryError
        with self.device, stream or self.stream:
            try:
                return ask()
            except full:
                self.synchronize()
                self.arriving.wait()
                self.cupy.get_default_memory_pool().free_all_blocks()
            try:
                return ask()
            except full as error:
                raise self._out_of_memory(nbytes) from error

    def _out_of_memory(self, nbytes: int) -> FusecError:
        """The error: bytes that were asked for, bytes free, and the largest arrays."""
        free, total = self.cupy.cuda.runtime.memGetInfo()
        with self._lock:
            largest = sorted((int(p.mem.size) for p in self._memory.values()), reverse=True)[:5]
        return user_error(
            MemoryError, f"GPU {self.number} has no room for {nbytes} bytes",
            values=[("free", free), ("of", total), ("largest arrays of fusec", largest)],
            cure="use smaller arrays, or let go of results that are still held")

    def free(self, address: int) -> None:
        """Back to the pool: whoever gets it next uses it on this stream, later."""
        with self._lock:
            pointer, reader = self._memory.pop(address), self._readers.pop(address, None)
            self._starts.remove(address)
            self._unfilled.discard(address)
        if reader is not None:
            self.arriving.let_go(pointer, reader)

    def address_of(self, array: Any) -> int | None:
        """Where an array's first element lies in the GPU's memory; None: it is the host's."""
        interface = getattr(array, "__cuda_array_interface__", None)
        if interface is not None:
            return int(interface["data"][0])
        address = int(array.ctypes.data)
        with self._lock:
            place = bisect.bisect_right(self._starts, address) - 1
            start = self._starts[place] if place >= 0 else 0
            inside = place >= 0 and address < start + int(self._memory[start].mem.size)
        return address if inside or _is_lent(array) else None

    def copy_in(self, address: int, array: np.ndarray) -> None:
        lying = np.ascontiguousarray(array)
        with self.device, self.faults.naming():
            if address in self._unfilled:
                self._unfilled.discard(address)
                if self.copies.send(address, lying.reshape(-1).view(np.uint8)):
                    return
                self._wait_for_copies()
            # From memory that is not pinned: it is read before this returns.
            self.cupy.cuda.runtime.memcpyAsync(
                address, lying.ctypes.data, lying.nbytes, TO_DEVICE, self.stream.ptr)

    def _wait_for_copies(self) -> None:
        """Of memory that is the copying stream's, one may be under way that was given up."""
        passed = self.cupy.cuda.Event(disable_timing=True)
        passed.record(self.copies.to_device.stream)
        self.stream.wait_event(passed)

    def moment(self, nbytes: int) -> Moment | None:
        """When the stream has done its work until now; None for small copies."""
        with self.device, self.faults.naming():
            if not self.copies.is_for(nbytes):
                return None
            passed = self.cupy.cuda.Event(disable_timing=True)
            passed.record(self.stream)
        return Moment(passed, self.faults.asked)

    def copy_out(self, array: np.ndarray, address: int, after: Moment | None = None) -> None:
        if not array.flags.c_contiguous or not array.flags.writeable:
            raise ValueError("copy_out: give a C-contiguous array that may be written")
        moment = after or self.moment(array.nbytes)
        if moment is not None:
            with self.faults.of_waiting(moment.asked):
                moment.passed.synchronize()
            with self.faults.naming():
                if self.copies.fetch(array.reshape(-1).view(np.uint8), address):
                    return
        with self.device, self.faults.naming():
            self.cupy.cuda.runtime.memcpyAsync(
                array.ctypes.data, address, array.nbytes, TO_HOST, self.stream.ptr)
        self.synchronize()

    def wait(self) -> None:
        """See `Driver.wait`: Python is asked again and again, at first without a pause."""
        self.reach(self.mark())
        self.synchronize()

    def mark(self) -> Any:
        """See `Driver.mark`: an event; None in a graph of the program's own."""
        if self.is_capturing(self.stream):
            return None
        with self.device, self.faults.naming():
            passed = self.cupy.cuda.Event(disable_timing=True)
            passed.record(self.stream)
        return passed

    def reach(self, mark: Any) -> None:
        """See `Driver.reach`."""
        start = time.perf_counter()
        with self.device, self.faults.naming():
            while mark is not None and not mark.done:
                if time.perf_counter() - start > _IMPATIENT:
                    time.sleep(_IMPATIENT / 4)

    def synchronize(self) -> None:
        """Wait for all that has been asked for; a kernel's fault is raised here."""
        with self.faults.of_waiting():
            self.stream.synchronize()


def _is_lent(array: Any) -> bool:
    """Whether an array shows memory that is lent: NumPy's views know their bases."""
    while (base := getattr(array, "base", None)) is not None:
        array = base
    return type(array) is Lent
