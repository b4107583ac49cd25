"""Work that the emulated device is asked for and does later: launches, copies, freeing memory.

A piece of work may be interrupted anywhere in Python (Ctrl-C, a time-out), by a call that wants
other work of the device.  It is begun again then: each of these may be called any number of times
and has its effect once, or the same each time.
"""

from __future__ import annotations

import copy
import ctypes
import weakref
from collections.abc import Callable, Sequence

import numpy as np

from .arena import Arena, ArenaBlock
from .faults import KernelFault, MemoryRange
from .launches import EmulatedLaunch

Around = Callable[[Callable[[], None]], None]


class EmulatedFaults:
    """The faults, and the blocks of memory that they have spoilt.

    Errors are handed out as copies: the traceback of one that is raised holds the arrays of who
    asked, and these would never be given back.
    """

    def __init__(self) -> None:
        self._spoilt: dict[int, Exception] = {}  # blocks of memory, by address
        self._untold: list[Exception] = []

    def of(self, starts: Sequence[int]) -> Exception | None:
        """The fault that has spoilt the first of these blocks that is."""
        return next((self._spoilt[s] for s in starts if s in self._spoilt), None)

    def add(self, error: Exception) -> Exception:
        """Note an error that nobody has been told of; as it is kept."""
        kept = _without_frames(error)
        self._untold.append(kept)
        return kept

    def spoil(self, starts: Sequence[int], error: Exception) -> None:
        self._spoilt.update((start, error) for start in starts)

    def forget(self, start: int) -> None:
        """The block is given back."""
        self._spoilt.pop(start, None)

    def told(self, error: Exception) -> Exception:
        """A copy to be raised."""
        self._untold = [other for other in self._untold if other is not error]
        return _without_frames(error)

    def first_untold(self) -> Exception | None:
        """The first that nobody was told of, and none of them from now on."""
        errors, self._untold = self._untold, []
        return _without_frames(errors[0]) if errors else None


def _without_frames(error: Exception) -> Exception:
    """A copy.  Where tblib has taught exceptions to be pickled, as ``distributed`` does, copies
    have the frames of what they are copies of."""
    copied = copy.copy(error).with_traceback(None)
    copied.__cause__ = copied.__context__ = None
    return copied


class EmulatedWork:
    """One piece."""

    def __call__(self) -> None:
        """Do it, or go on with it."""
        raise NotImplementedError

    def is_useless(self, unread: set[int]) -> bool:
        """Whether nobody can see its effect.  ``unread`` are the blocks that nothing reads
        afterwards, and are made those that nothing reads from before it on."""
        return False

    def give_up(self) -> None:
        """Do not do it, or not go on with it: it is useless."""


class EmulatedKernel(EmulatedWork):
    """A launch, unless an operand is spoilt; the arrays it writes may be, then."""

    def __init__(
        self, launch: EmulatedLaunch, operands: Sequence[MemoryRange], faults: EmulatedFaults,
        around: Around,
    ) -> None:
        self.launch, self.faults, self.around = launch, faults, around
        self.blocks = [o.start for o in operands]
        self.written = [o.start for o in operands if o.is_written]
        self.is_given_up = False

    def __call__(self) -> None:
        error = self.faults.of(self.blocks)
        if error is None and self.is_given_up:
            error = KernelFault(f"kernel {self.launch.kernel.name} was interrupted")
        if error is None:
            try:
                self.around(self.launch.run)
                return
            except KernelFault as raised:
                error = self.faults.add(raised)
        self.faults.spoil(self.written, error)

    def is_useless(self, unread: set[int]) -> bool:
        if unread.issuperset(self.written):
            return True
        unread.difference_update(self.blocks)
        return False

    def give_up(self) -> None:
        self.is_given_up = True
        self.launch.give_up()


class CopyIn(EmulatedWork):
    """From an array of the host's, which nobody changes."""

    def __init__(self, address: int, array: np.ndarray) -> None:
        self.address, self.array = address, array

    def __call__(self) -> None:
        ctypes.memmove(self.address, self.array.ctypes.data, self.array.nbytes)


class CopyOut(EmulatedWork):
    """To an array of the host's, while somebody holds it; ``error`` is its fault."""

    def __init__(self, array: np.ndarray, address: int, block: int, faults: EmulatedFaults) -> None:
        self.array, self.address, self.block = weakref.ref(array), address, block
        self.faults = faults
        self.error: Exception | None = None

    def __call__(self) -> None:
        array = self.array()
        self.error = self.faults.of([self.block])
        if array is not None and self.error is None:
            ctypes.memmove(array.ctypes.data, self.address, array.nbytes)

    def is_useless(self, unread: set[int]) -> bool:
        if self.array() is None:
            return True
        unread.discard(self.block)
        return False


class Release(EmulatedWork):
    """Gives a block back."""

    def __init__(self, block: ArenaBlock, arena: Arena, faults: EmulatedFaults) -> None:
        self.block, self.arena, self.faults = block, arena, faults

    def __call__(self) -> None:
        if self.arena.holds(self.block):  # else another may lie there by now
            self.faults.forget(self.block.start)
            self.arena.free(self.block)

    def is_useless(self, unread: set[int]) -> bool:
        unread.add(self.block.start)
        return False
