"""The exception of the first lane that fails.

Operations are done for all lanes, one after the other, so the first that fails may do so in a later
lane than the next one would, and a call of a library does not say in which.  Then parts of the
lanes are called by themselves.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from fusec.core.records import dataclass
from fusec.dispatch.function import Function
from fusec.errors import RAISED
from fusec.trace.facts.trees import flattened

from .axes import AxisLeaf, of_arguments

_NOTE = re.compile(r"in lane (\d+)")


class LaneFunction(Function):
    """A jitted function of all lanes."""

    def _call(self, args: Any, kwargs: Any) -> Any:
        try:
            return super()._call(args, kwargs)
        except Exception as error:
            self._raise_first(error, args, kwargs)
            raise

    def _raise_first(self, error: Exception, args: Any, kwargs: Any) -> None:
        """Raise what the first lane that fails does, unless that is this one or is not found."""
        if _lanes_of(error) == [0] or not _is_of_a_lane(error):
            return
        lanes = self._lanes(args, kwargs)
        first = self._within(lanes, error) if lanes is not None and lanes.count else None
        if first is not None and first is not error:
            raise first from None

    def _lanes(self, args: Any, kwargs: Any) -> _Lanes | None:
        """None where lanes may not be as many as others are."""
        made_by: Any = getattr(self.python_function, "__fusec_made_by__", None)
        f, in_axes, _, axis_size = made_by[1]
        leaves = of_arguments("vmap", f, args, kwargs, in_axes, None)
        if axis_size is not None or any(
                x.axis is not None and not isinstance(x.leaf, np.ndarray) for x in leaves):
            return None
        return _Lanes(leaves, flattened((args, kwargs))[1])

    def _within(self, lanes: _Lanes, error: Exception) -> Exception | None:
        """What the first lane raises, where all together raise ``error``; None where no lane does.

        Those before ``start`` do not fail, and those up to ``stop`` raise ``error``.
        """
        start, stop = 0, lanes.count
        while _is_of_a_lane(error):
            numbers = _lanes_of(error)
            if numbers == [0] or stop - start == 1:
                return _numbered(error, start)
            if numbers and numbers[0] >= stop - start:  # of lanes in a lane
                return None
            middle = start + (numbers[0] if numbers else (stop - start) // 2)
            before = self._error(lanes, start, middle)
            if before is None and numbers:
                return _numbered(error, middle)
            if before is None:
                start, before = middle, self._error(lanes, middle, stop)
            else:
                stop = middle
            if before is None:
                return None
            error = before
        return None

    def _error(self, lanes: _Lanes, start: int, stop: int) -> Exception | None:
        args, kwargs = lanes.part(start, stop)
        try:
            super()._call(args, kwargs)
        except Exception as error:
            return error
        return None


@dataclass
class _Lanes:
    """Arguments of all lanes."""

    leaves: list[AxisLeaf]
    structure: Any

    @property
    def count(self) -> int:
        return next((x.leaf.shape[x.axis] for x in self.leaves if x.axis is not None), 0)

    def part(self, start: int, stop: int) -> Any:
        """Those of some lanes: copies, as the function may write to them."""
        return self.structure.unflatten([
            x.leaf if x.axis is None else np.take(x.leaf, np.arange(start, stop), x.axis)
            for x in self.leaves])


def _is_of_a_lane(error: Exception) -> bool:
    """Whether compiled code raised it, and not for a lane in a lane."""
    notes = getattr(error, "__notes__", ())
    return len(_lanes_of(error)) < 2 and any(
        note.startswith(RAISED) or _NOTE.fullmatch(note) for note in notes)


def _lanes_of(error: Exception) -> list[int]:
    """The lanes that its notes name: several for a lane in a lane."""
    found = [_NOTE.fullmatch(note) for note in getattr(error, "__notes__", ())]
    return [int(match[1]) for match in found if match is not None]


def _numbered(error: Exception, lane: int) -> Exception:
    """With a note that names this lane."""
    kept = [note for note in getattr(error, "__notes__", ()) if not _NOTE.fullmatch(note)]
    error.__notes__ = [*kept, f"in lane {lane}"]
    return error
