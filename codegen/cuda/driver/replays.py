"""Launching a plan's kernels again: arguments are kept by address, several launches as one graph.

Programs that run in circles get the same memory from CuPy's pool again, so that nothing but
addresses has to be looked up: the arguments of a launch are as CuPy takes them.  A launch at
the same addresses again, of more than one kernel, is captured into a CUDA graph, which is
launched from then on.  Captured are kernels and products and nothing else: no memory is allocated,
nothing is copied, nobody waits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..launches import Filled, Segment
from ..products.refusals import LibraryRefusedError

if TYPE_CHECKING:
    from .cupy_driver import CupyDriver

MOST = 16  # addresses of one segment that are remembered
FEWEST = 2  # launches that are worth a graph
_USES = 2  # of the same addresses, the last of which makes the graph


class _Known:
    """Launches at some addresses, how often they were asked for, and their graph."""

    __slots__ = ("graph", "launches", "uses")

    def __init__(self, launches: Sequence[Filled]) -> None:
        self.launches, self.uses = launches, 0
        self.graph: Any = None


class Replays:
    """``replays(*addresses)`` launches the kernels of a segment of a plan, with its bases at these
    addresses."""

    def __init__(self, segment: Segment, driver: CupyDriver) -> None:
        self.segment, self.driver = segment, driver
        self._known: dict[tuple[int, ...], _Known] = {}
        self.refused = _why_not(segment, driver)

    def __call__(self, *addresses: int) -> None:
        known, driver = self._known.pop(addresses, None), self.driver
        if known is None:
            known = self._new(addresses)
        self._known[addresses] = known  # the latest is the last
        driver.note(self.segment.kernels, len(known.launches))
        try:
            if (known.graph is not None or self._is_worth_a_graph(known)) and self._replay(known):
                return
            for function, grid, block, words, shared in known.launches:
                function(grid, block, words, shared_mem=shared)
        except driver.faults.kinds as error:
            raise driver.faults.of(error, self.segment.kernels) from error

    def _replay(self, known: _Known) -> bool:
        """Launch its graph, where the stream does not make one of the program's own and CUDA has
        the memory for it."""
        stream = self.driver.current_stream()
        if self.driver.is_capturing(stream):
            return False
        try:
            known.graph.launch(stream)
        except self.driver.faults.kinds as error:
            if not self.driver.faults.is_for_memory(error):
                raise
            known.graph, self.refused = None, f"CUDA has no memory for one: {error}"
        return known.graph is not None

    def _new(self, addresses: tuple[int, ...]) -> _Known:
        if len(self._known) >= MOST:
            for oldest in [*self._known][:1]:
                self._known.pop(oldest, None)  # another thread may have
        where = dict(zip(self.segment.bases, addresses, strict=True))
        return _Known([launch.filled(where) for launch in self.segment.launches])

    def _is_worth_a_graph(self, known: _Known) -> bool:
        """Whether these addresses have come again; then there is a graph."""
        known.uses += 1
        if self.refused or known.uses < _USES:
            return False
        try:
            known.graph = self.driver.captured(known.launches)
        except self.driver.faults.kinds as error:
            self.refused = f"CUDA refuses to make one: {error}"
        except LibraryRefusedError as error:  # launched, it has worked
            self.refused = f"{error.name} refuses to be in one: {error}"
            error.library.refused = ""
        return known.graph is not None


def _why_not(segment: Segment, driver: CupyDriver) -> str:
    """Why no graph is made of a segment's launches; empty where one is."""
    if len(segment.launches) < FEWEST:
        return "one kernel is launched as quickly"
    return "" if driver.can_capture else "this CuPy cannot capture graphs"
