"""Nests as functions of a persistent kernel: texts, arguments, the grids of their own."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from fusec.codegen.structured.not_native import NotNativeError
from fusec.core.records import dataclass, replace
from fusec.ir.lazy_values import lazy
from fusec.ir.sizes.bindings import Bindings
from fusec.ir.sizes.bounds import range_of
from fusec.ir.sizes.dims import Size

from ...kernels.specialise import LoopForm
from ..compiled_nests import CudaForm, code_key, fixed_argument, raw_bits
from ..kernels.kernel_functions import as_function
from ..kernels.kernel_sources import WrittenKernel, write_form
from ..kernels.launch_plan import Layout, Slot
from ..kernels.partitioned_stores import is_partitioned
from ..kernels.reductions.long_scans import is_long_scan
from ..kernels.reductions.rows import ON_CHIP
from ..module import WARP

_HERE = {
    "threadIdx.x": "here.x", "threadIdx.y": "here.y", "blockIdx.x": "here.block",
    "gridDim.x": "here.blocks", "blockDim.x": "here.size_x", "blockDim.y": "here.size_y",
    "__syncthreads()": "__barrier_sync_count(1, here.size_x * here.size_y)"}

LEAST_BLOCK = 256  # threads of a launch's blocks
_ARRAY = re.compile(r"__shared__ (\w+) (\w+)\[(\d+)\];")
_SIZES = {f"{kind}{bits}": bits // 8 for kind in "iuf" for bits in (8, 16, 32, 64)}


@dataclass(frozen=True)
class DeviceNest:
    """A kernel of a nest as a function."""

    written: WrittenKernel

    @property
    def name(self) -> str:
        return self.written.kernel.name

    @property
    def text(self) -> str:
        return self._placed[0]

    @property
    def shared_bytes(self) -> int:
        """Of its arrays in shared memory; behind them lies what a launch would say."""
        return self._placed[1]

    @lazy
    def _placed(self) -> tuple[str, int]:
        """The text, whose arrays in shared memory lie where those of other nests lie."""
        text = as_function(self.written.text, "const Here here", _HERE)
        end = 0

        def placed(found: re.Match[str]) -> str:
            nonlocal end
            kind, name, count = found.groups()
            start, end = end, end + -(-int(count) * _SIZES[kind] // 16) * 16
            return f"{kind} *const {name} = in_shared<{kind}>({start});"

        text = _ARRAY.sub(placed, text)
        return text.replace(ON_CHIP, f"u64 *const on_chip = in_shared<u64>({end});"), end

    @property
    def has_barriers(self) -> bool:
        return self.written.kernel.has_barriers


class NestFunctions:
    """The functions of a program's nests; nests of one structure share theirs."""

    def __init__(self, stem: str = "") -> None:
        self._stem, self._known = stem, dict[tuple, list[DeviceNest]]()

    def of(self, form: CudaForm) -> list[DeviceNest]:
        """Those of a nest, in their order; raises `NotNativeError` for kernels that have to be
        launched."""
        if is_partitioned(form.loops):
            raise NotNativeError("stores that are sorted first")
        if is_long_scan(form.loops):
            raise NotNativeError("long scans, whose blocks wait for each other")
        key = code_key(form)
        if key not in self._known:
            self._known[key] = [DeviceNest(written) for written in write_form(
                form.loops, form.index, f"{self._stem}nest_{len(self._known)}")]
        return self._known[key]

    def __iter__(self) -> Any:
        return (function for each in self._known.values() for function in each)


class NestGrid:
    """The grid of a nest's function, and its arguments that are numbers, at sizes.

    ``limits``: upper bounds of sizes that the kernel itself knows only while it runs; None where a
    call knows all.  ``is_repeated``: it is inside a loop.
    """

    def __init__(
        self, form: CudaForm, function: DeviceNest, limits: Bindings | None = None,
        is_repeated: bool = True,
    ) -> None:
        self.form, self.function, self.limits = form, function, limits
        self.is_repeated = is_repeated
        self._last: tuple[LoopForm, Layout] | None = None

    @property
    def is_of_call(self) -> bool:
        """Whether a call has to say its sizes."""
        return not self.form.is_static and self.limits is None

    @lazy
    def of_run(self) -> Layout:
        """The layout as expressions of sizes that the kernel computes."""
        return self.function.written.geometry(self.form.loops)

    @lazy
    def largest(self) -> Layout:
        """At least what any of its sizes needs."""
        limits, at, written = self.limits or {}, self.of_run, self.function.written.kernel

        def most(size: Size) -> int:
            return range_of(size, limits)[1]

        threads = min(written.max_threads, most(at.threads[0] * at.threads[1]))
        return replace(at, blocks=most(at.blocks), threads=(threads, 1), work=most(at.work),
                       scratch=most(at.scratch), partials=most(at.partials))

    def layout(self, sizes: Bindings) -> Layout:
        """How a launch of its own would be laid out; the largest of what the kernel decides."""
        if self.limits is not None:
            return self.largest
        if self.form.is_static and self._last is not None:
            return self._last[1]
        loops = self.loops(sizes)
        layout = self.function.written.geometry(loops)
        threads = layout.threads[0] * layout.threads[1]
        if self.function.has_barriers and threads % WARP:
            raise NotNativeError("a kernel with barriers of parts of warps")
        self._last = loops, layout
        return layout

    def loops(self, sizes: Bindings) -> LoopForm:
        """Its loops; of sizes that the call knows these are numbers."""
        return self.form.loops if self.form.is_static else self.form.loops.at_sizes(sizes)

    def shared_bytes(self, sizes: Bindings) -> int:
        """Shared memory that a block needs."""
        return self.function.shared_bytes + self.layout(sizes).shared

    def divides_blocks(self, sizes: Bindings) -> bool:
        """Whether blocks of any power of two have the threads of whole blocks of the nest's."""
        threads = self.layout(sizes).threads
        return LEAST_BLOCK % (threads[0] * threads[1]) == 0

    def size_for(self, slot: Slot) -> Size:
        """The number for a slot, as an expression of sizes that the kernel computes."""
        return fixed_argument(slot, self.form.loops, (), self.of_run)

    def argument(self, slot: Slot, sizes: Bindings) -> int:
        """The number for a slot."""
        layout = self.layout(sizes)
        assert self._last is not None
        return fixed_argument(slot, self._last[0], self._params(sizes), layout)

    def _params(self, sizes: Bindings) -> Sequence[int]:
        return [raw_bits(param, sizes) for param in self.form.kernel.params]
