"""Arrays that CuPy and others have on the GPU, as arguments and results: their own memory.

The plan of a call sees them as NumPy's arrays over addresses of the GPU (see `.arrays`).  Its
results become CuPy's arrays over their memory.  All that such a call asks of the GPU
goes to the stream that is CuPy's current one where the call is made, so the program's own work
before and after needs no waiting.
"""

from __future__ import annotations

import weakref
from collections import Counter
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from fusec.errors import user_error
from fusec.ir import Node

from ...plan.call_plan import CallPlan
from ...structured.calls.call_statements import NodeCall
from ...structured.still_views import PlacesOfCall
from ..launch_segments import Prepared, why_not
from ..library_functions import REFUSALS, function_of, may_refuse, raising
from ..persistent.persistent_call import MOST_INTERRUPTS
from ..products.direct_calls import DirectCalls
from ..products.factorization import may_be_factorization
from ..products.refusals import LibraryRefusedError
from .arrays import DriverArrays
from .cupy_driver import CupyDriver, Lent
from .number_blocks import ArrayFromOutside, ConstantArray, NumberBlocks
from .replays import Replays


class CupyArrays(DriverArrays):
    """See `fusec.runtime.resident.resident_arrays.ResidentArrays`."""

    driver: CupyDriver

    @property
    def kind(self) -> type:
        """The class of CuPy's arrays."""
        kind: type = self.driver.cupy.ndarray
        return kind

    @property
    def stream(self) -> Any:
        """The stream that work goes to now."""
        return self.driver.stream

    def lent(self, array: Any) -> np.ndarray:
        """An array of a GPU as plans take it; one that has DLPack alone is CuPy's first."""
        cupy = self.driver.cupy
        own = array if isinstance(array, cupy.ndarray) else _of_cupy(cupy, array)
        number = int(own.device.id)
        if number != self.driver.number:
            raise user_error(
                ValueError, f"an argument is on GPU {number}", cure="copy it to the first GPU",
                values=[("programs use", f"GPU {self.driver.number}")])
        if not own.size:
            return np.empty(own.shape, own.dtype)
        return np.asarray(Lent(array, own.__cuda_array_interface__))

    def shown(self, value: Any) -> Any:
        """A result as the program gets it: arrays as CuPy's, an argument as it was given."""
        if type(value) is not np.ndarray:
            return value
        if type(value.base) is Lent:
            return value.base.owner
        if self.driver.address_of(value) is None:  # a constant, or nothing is in it
            with self.driver.faults.naming(), self.driver.device:
                return self.driver.cupy.asarray(value)
        return self.over(value)

    def over(self, array: np.ndarray) -> Any:
        """CuPy's array in the memory of this one, which it keeps."""
        cuda = self.driver.cupy.cuda
        low, high = np.lib.array_utils.byte_bounds(array)
        memory = cuda.UnownedMemory(low, high - low, array, self.driver.number)
        pointer = cuda.MemoryPointer(memory, array.ctypes.data - low)
        return self.driver.cupy.ndarray(array.shape, array.dtype, pointer, array.strides)

    def write(self, target: np.ndarray, source: np.ndarray) -> None:
        """Copy elements on the GPU, or to it."""
        if self.driver.address_of(source) is None and source.size:
            source = self.bring(source)
        with self.driver.faults.naming(), self.driver.device, self.driver.stream:
            self.over(target)[...] = self.over(source)

    def wait_for(self, stream: Any) -> None:
        """Until the stream has done its work."""
        with self.driver.faults.of_waiting():
            stream.synchronize()

    def brought(self, array: np.ndarray) -> Any:
        """CuPy's array of a copy on the GPU."""
        return self.over(self.bring(array))

    def constant(self, array: np.ndarray) -> ConstantArray:
        """A function that gives a copy of an array that nobody changes."""
        return ConstantArray(self.driver, self.brought, array)

    def prepared(
        self, call_plan: CallPlan, numbers: int, places: PlacesOfCall
    ) -> GpuKernels | str:
        """The kernels of a plan, or why it has something else than such of known sizes."""
        return why_not(call_plan) or GpuKernels(call_plan, numbers, places, self)

    def call(self) -> AbstractContextManager[None]:
        """Around a call: work goes to CuPy's current stream."""
        return self.driver.on_current_stream()


class GpuKernels(Prepared):
    """The names in the text of a call: see `fusec.runtime.resident.gpu_calls`.

    ``launch0(*addresses)`` and so on of each segment, ``given(bytes)``, ``clear(address, nbytes)``,
    ``computed(address, words)`` and ``copy(to, of, nbytes)``; of CuPy's ``kind`` (of arrays),
    ``stream_now()``, ``contiguous``, ``alloc`` and ``full`` (its exception); where there are
    several GPUs, ``device_now()`` and ``device``; ``faults``, CUDA's exceptions, and
    ``told(error)``, the program's error for one.  A library call that raises one of ``refused``,
    or a launch that raises ``no_product``, makes the call a MISS.
    """

    def __init__(
        self, call_plan: CallPlan, numbers: int, places: PlacesOfCall, arrays: CupyArrays
    ) -> None:
        self._stop: Any = None  # the flag that ends loops
        self._arrays, driver = arrays, arrays.driver
        super().__init__(call_plan, numbers, DirectCalls(driver, places))
        self._cupy = driver.cupy
        cuda, blocks = driver.cupy.cuda, NumberBlocks(driver)
        self.replays = [Replays(segment, driver) for segment in self.segments]
        self.names: dict[str, Any] = {
            "given": blocks.given, "clear": blocks.clear, "computed": blocks.computed,
            "copy": driver.copy_there, "kind": driver.cupy.ndarray, "alloc": cuda.alloc,
            "full": cuda.memory.OutOfMemoryError, "stream_now": driver.current_stream,
            "no_product": LibraryRefusedError, "refused": (*REFUSALS, cuda.memory.OutOfMemoryError),
            "contiguous": driver.cupy.ascontiguousarray,
            "faults": driver.faults.kinds, "told": driver.faults.told, "wait": self._wait,
            "end_loops": self._end_loops}
        self.names |= {f"launch{n}": replay for n, replay in enumerate(self.replays)}
        if not driver.is_only:
            self.names |= {"device_now": cuda.runtime.getDevice, "device": driver.number}

    @property
    def flag(self) -> int:
        if self._stop is None:
            self._stop = self._arrays.driver.flag()
            weakref.finalize(self, self._stop.give_back).atexit = False
        return int(self._stop.address)

    @property
    def is_watched(self) -> bool:
        """Whether a loop may run long, and looks at the flag."""
        return any(loop.is_watched for loop in self.loops.values())

    def _wait(self) -> None:
        """For all that was asked for."""
        with self._arrays.driver.on_current_stream():
            self._arrays.driver.wait()

    def _end_loops(self) -> None:
        """Have loops that run end, whoever interrupts that; then others may run."""
        for _ in range(MOST_INTERRUPTS):
            try:
                self._stop.raise_it()
                self._wait()
                self._stop.lower()
                return
            except BaseException:
                continue

    def function(self, node: Node) -> Any:
        """CuPy's function for a library call."""
        return function_of(node, self._cupy)

    def around(self, node: Node) -> Any:
        """The maker of a context for its call; None: it needs none."""
        return raising if may_refuse(node) else None

    def outside(self, is_packed: bool) -> Any:
        """A function that gives CuPy's pointer to a copy of one array from outside."""
        arrays = self._arrays
        return ArrayFromOutside(arrays.driver, arrays.brought if is_packed else (
            lambda array: arrays.over(arrays.bring_as_it_lies(array))), is_packed)

    def constant(self, array: np.ndarray) -> Any:
        """One that gives CuPy's array of a constant."""
        known = self._arrays.constant(array)

        def constant() -> Any:
            with self._arrays.driver.on_current_stream():
                return known()

        return constant

    def over(self, array: np.ndarray) -> Any:
        """CuPy's array in the same memory."""
        return self._arrays.over(array)

    @property
    def text(self) -> str:
        """How they are launched, for people."""
        count = sum(len(segment.launches) for segment in self.segments)
        nodes = [part.node for part in self.parts if isinstance(part, NodeCall)]
        ops = [node.op for node in nodes]
        calls = f"{', '.join(ops)} of CuPy, " if ops else ""
        driver = self._arrays.driver
        if any(op.startswith("Fft") for op in ops) and (reason := driver.cufft.refused):
            calls += f"as cuFFT cannot be called ({reason}), "
        if any(map(may_be_factorization, nodes)) and (reason := driver.cusolver.refused):
            calls += f"as cuSOLVER cannot be called ({reason}), "
        if "MatMul" in ops and (reason := driver.cublas.refused):
            calls += f"as cuBLAS cannot be called ({reason}), "
        libraries = Counter(one.by for one in self.products.values())
        by_blas = "".join(f", {n} of them by {name}" for name, n in libraries.items())
        beside = dict.fromkeys(f", {one.by} beside graphs, as {one.outside}"
                               for one in self.products.values() if one.outside)
        launches = (f"{calls}{count} prepared launch{'' if count == 1 else 'es'}{by_blas}"
                    f"{''.join(beside)}")
        graphs = sum(not replay.refused for replay in self.replays)
        if graphs:
            return (f"{launches}, {'one CUDA graph' if graphs == 1 else f'{graphs} CUDA graphs'} "
                    f"where memory is the same again")
        refused = dict.fromkeys(replay.refused for replay in self.replays)
        return f"{launches}, no CUDA graph: {'; '.join(refused)}" if refused else launches


def _of_cupy(cupy: Any, array: Any) -> Any:
    """Another library's array as CuPy's, in the same memory."""
    if hasattr(array, "__cuda_array_interface__"):
        return cupy.asarray(array)
    return cupy.from_dlpack(array)
