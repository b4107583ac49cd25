"""The exception of the first lane that fails.

Operations are done for all lanes, one after the other, so the first that fails may do so in a later
lane than the next one would, and a call of a library does not say in which.  Then parts of the
lanes are called by themselves.  Which of its exceptions the lane raises first Python says.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np

from fusec.core.records import dataclass
from fusec.dispatch.function import Function
from fusec.errors import RAISED
from fusec.trace.facts.trees import flattened

from .axes import AxisLeaf, of_arguments
from .plain_lane import plain_error

_NOTE = re.compile(r"in lane (\d+)")


class LaneFunction(Function):
    """A jitted function of all lanes."""

    def _call(self, args: Any, kwargs: Any) -> Any:
        try:
            return super()._call(args, kwargs)
        except Exception as error:
            failed = error
        try:
            raise self._first(failed, args, kwargs)
        finally:
            del failed

    def _first(self, error: Exception, args: Any, kwargs: Any) -> Exception:
        """What the first lane that fails raises; ``error`` where that is not found."""
        lanes = self._lanes(args, kwargs) if _is_of_a_lane(error) else None
        found = self._within(lanes, error) if lanes is not None and lanes.count else None
        if lanes is None or found is None:
            return error
        lane, first = found
        plain = plain_error(lanes.f, *lanes.one(lane))
        if plain is None:
            _number(first, lane)
            return first
        plain.add_note(f"in lane {lane}")
        return plain

    def _lanes(self, args: Any, kwargs: Any) -> _Lanes | None:
        """None where lanes may not be as many as others are."""
        made_by: Any = getattr(self.python_function, "__fusec_made_by__", None)
        f, in_axes, _, axis_size = made_by[1]
        leaves = of_arguments("vmap", f, args, kwargs, in_axes, None)
        if axis_size is not None or any(
                x.axis is not None and not isinstance(x.leaf, np.ndarray) for x in leaves):
            return None
        return _Lanes(f, leaves, flattened((args, kwargs))[1])

    def _within(self, lanes: _Lanes, error: Exception) -> tuple[int, Exception] | None:
        """The first lane that raises, and what, where all together raise ``error``; None where no
        lane does.

        Those before ``start`` do not fail, and those up to ``stop`` raise ``error``, which says in
        which lane, or does not: of lanes in lanes the number may be an inner one.
        """
        start, stop = 0, lanes.count
        while stop - start > 1:
            numbers = _lanes_of(error)
            said = numbers[-1] if numbers and numbers[-1] < stop - start else None
            middle = start + ((stop - start) // 2 if said is None else said)
            found = self._error(lanes, start, middle) if middle > start else None
            if found is not None:
                stop, error = middle, found
                continue
            if said is not None:
                found = self._error(lanes, middle, middle + 1)
                if found is not None:
                    return middle, found
                middle += 1
            found = self._error(lanes, middle, stop) if middle < stop else None
            if found is None:
                return None
            start, error = middle, found
        return start, error

    def _error(self, lanes: _Lanes, start: int, stop: int) -> Exception | None:
        args, kwargs = lanes.part(start, stop)
        try:
            super()._call(args, kwargs)
        except Exception as error:
            return error
        return None


@dataclass
class _Lanes:
    """The function of one lane, and arguments of all."""

    f: Callable[..., Any]
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

    def one(self, lane: int) -> Any:
        """Those of one lane, as the function has them."""
        return self.structure.unflatten([
            x.leaf if x.axis is None else np.take(x.leaf, lane, x.axis) for x in self.leaves])


def _is_of_a_lane(error: Exception) -> bool:
    """Whether compiled code raised it."""
    return any(note.startswith(RAISED) or _NOTE.fullmatch(note)
               for note in getattr(error, "__notes__", ()))


def _lanes_of(error: Exception) -> list[int]:
    """The lanes that its notes name: several for a lane in a lane, the innermost first."""
    found = [_NOTE.fullmatch(note) for note in getattr(error, "__notes__", ())]
    return [int(match[1]) for match in found if match is not None]


def _number(error: Exception, lane: int) -> None:
    """Let the last note of a lane by itself name its number among all."""
    notes = list(getattr(error, "__notes__", ()))
    if notes and notes[-1] == "in lane 0":
        notes.pop()
    error.__notes__ = [*notes, f"in lane {lane}"]
