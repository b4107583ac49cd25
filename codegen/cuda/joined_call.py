"""One launch of all nests of a kernel, at the addresses of its buffers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from .compiled_nests import CudaForm, fixed_argument, raw_bits
from .driver.driver import Driver
from .kernels.joined_nests import JoinedKernel


class JoinedCall:
    """The nests of ``forms`` as the kernel that they are joined to, loaded."""

    def __init__(
        self, forms: Sequence[CudaForm], joined: JoinedKernel, loaded: Any, driver: Driver
    ) -> None:
        self.joined, self.loaded, self.driver = joined, loaded, driver
        layouts = [part.geometry(form.loops)
                   for part, form in zip(joined.parts, forms, strict=True)]
        self._counts = [layout.blocks for layout in layouts]
        (self._threads,) = {layout.threads for layout in layouts}
        self._args: list[Any] = []  # numbers, and for addresses a buffer and bytes after it
        for part, form, layout in zip(joined.parts, forms, layouts, strict=True):
            params = [raw_bits(p, {}) for p in form.kernel.params]
            for slot in part.slots:
                if slot[0] == "operand":
                    operand = form.loops.operands[int(slot[1])]
                    self._args.append((operand.buffer, operand.offset))
                else:
                    self._args.append(fixed_argument(slot, form.loops, params, layout))

    def bound(self, addresses: Sequence[int]) -> Iterator[Callable[[], None]]:
        """The launch at these addresses of the kernel's buffers."""
        args = [addresses[a[0]] + a[1] if isinstance(a, tuple) else a for a in self._args]
        yield self.driver.bound(self.loaded, self.joined.kernel, (sum(self._counts), 1, 1),
                                (*self._threads, 1), 0, [*self._counts, *args])
