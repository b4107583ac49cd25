"""One call of a program's text: its arrays on the device, its numbers, what an exit left."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from fusec.codegen.structured.interpreter import array_at
from fusec.codegen.structured.program import StructuredProgram

from ...plan.control_program import EarlyExit
from ..driver.arrays import DriverArrays
from ..driver.device_memory import DeviceMemory
from ..driver.driver import Driver
from .device_numbers import DeviceNumbers, host_number
from .launch_queue import JoinedLaunches, LaunchQueue
from .launch_sites import STATUS, LaunchSite, Need
from .settled import settle


class ExitTakenError(Exception):
    """The program leaves through an exit, with the index and size that this reports; of a kernel
    that checks, with its operands, of a library call with its error."""

    def __init__(
        self, exit_: int, index: int = 0, size: int = 0, operands: tuple[Any, ...] = (),
        error: Exception | None = None,
    ) -> None:
        self.exit, self.index, self.size, self.operands = exit_, index, size, operands
        self.error = error


class ProgramCall:
    """What the text of a program asks of the call that runs it.

    ``left``: by result, where the array is that an exit leaves there.
    """

    def __init__(
        self, joined: JoinedLaunches, operands: Sequence[Any], results: list[Any],
        sizes: Mapping[str, int],
    ) -> None:
        self.driver, self.operands, self.results = joined.driver, operands, results
        self.sizes = dict(sizes)
        self.queue, self.memory = LaunchQueue(joined), DeviceMemory(joined.driver)
        self.numbers = DeviceNumbers(joined.driver, self.memory, self.queue)
        self.left: dict[int, int] = {}
        self._places: dict[tuple[str, int], int] = {}
        self._lent: dict[LaunchSite, tuple[int, ...]] = {}
        self._open: dict[Any, tuple[int, int]] = {}  # by site and need: address, bytes
        self._rooms: dict[int, int] = {}

    def place(self, arrays: Sequence[tuple[str, int]]) -> None:
        """Find the operands' and results' arrays on the device; the host's are copied there."""
        of_kind = {"operand": self.operands, "target": self.results}
        addresses = self.memory.addresses_of([of_kind[kind][k] for kind, k in arrays])
        self._places = dict(zip(arrays, addresses, strict=True))

    def address(self, kind: str, position: int) -> int:
        """Where an operand's or result's first element is."""
        return self._places[kind, position]

    def number(self, position: int, dtype: np.dtype) -> Any:
        """The operand that is a number."""
        return host_number(self.operands[position], dtype)

    def borrowed(self, site: LaunchSite) -> tuple[int, ...]:
        """The memory that the kernels of a site need beside their arrays."""
        if not site.needs:
            return ()
        if site not in self._lent:
            self._lent[site] = tuple(
                (self.memory.zeros if slot == STATUS else self.memory.fresh)(nbytes)
                for (_, slot), nbytes in site.needs)
        return self._lent[site]

    def borrowed_for(self, site: LaunchSite, needs: Sequence[Need]) -> tuple[int, ...]:
        """The same at sizes of the run; who needs more gets more, for what follows, too."""
        for key, nbytes in needs:
            _, room = self._open.get((site, key), (0, 0))
            if room < nbytes:
                room = max(nbytes, 2 * room)
                self._open[site, key] = self.memory.fresh(room), room
        return tuple([self._open[site, key][0] for key, _ in needs])

    def lent(self, nbytes: int) -> int:
        """Memory that library calls work in, or copies go through, one after the other."""
        if nbytes not in self._rooms:
            self._rooms[nbytes] = self.memory.fresh(nbytes)
        return self._rooms[nbytes]

    def has_failed(self, site: LaunchSite) -> bool:
        """Whether a check of the kernels of a site has failed, which waits for them."""
        self.queue.flush()
        return any(self.memory.word(address) for ((_, slot), _), address in zip(
            site.needs, self.borrowed(site), strict=True) if slot == STATUS)

    def fetched(self, address: int, view: tuple[Any, Any, np.dtype]) -> np.ndarray:
        """The elements of the array at an address, by shape, strides and dtype, on the host."""
        self.queue.flush()
        return DriverArrays(self.driver).fetch(array_at(address, *view))

    def settle(self) -> None:
        """Put what an unfinished program has computed where it belongs: loops exchange addresses.
        """
        self.queue.flush()
        settle(self.driver, self.results, self._places, self.left)


class LaunchedProgram:
    """``program(operands, results, sizes)``: see `ControlCode`; ``arrays`` are the operands and
    results that the text has in memory."""

    def __init__(
        self, program: StructuredProgram, driver: Driver, text: Callable[[ProgramCall], None],
        arrays: Sequence[tuple[str, int]], most: Callable[[Mapping[str, int]], int],
    ) -> None:
        """``most``: how many launches are asked for at once, by sizes."""
        self.most = most
        self.exits, self.text, self.arrays = program.exits, text, arrays
        self._joined = JoinedLaunches(driver)
        self._written = {n for n, (kind, _) in enumerate(arrays) if kind == "target"}

    def __call__(
        self, operands: Sequence[Any], results: list[Any], sizes: Mapping[str, int]
    ) -> EarlyExit | None:
        call = ProgramCall(self._joined, operands, results, sizes)
        call.queue.most = self.most(sizes)
        try:
            call.place(self.arrays)
            try:
                with np.errstate(all="ignore"):
                    self.text(call)
                call.queue.flush()
            except ExitTakenError as taken:
                call.settle()
                return EarlyExit(self.exits[taken.exit], taken.index, taken.size,
                                 taken.operands, taken.error)
            except KeyboardInterrupt:
                call.settle()
                raise
            finally:
                call.memory.copy_back(self._written)
            return None
        finally:
            call.memory.release()
