"""The exception of the first lane that fails.

Operations are done for all lanes, one after the other, so the first that fails may do so in a later
lane than the next one would.  Then the lanes before that one are called by themselves.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from fusec.dispatch.function import Function
from fusec.trace.facts.trees import flattened

from .axes import of_arguments

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
        """Raise what an earlier lane does, where one fails."""
        lane = _lane_of(error)
        before = self._lanes_before(lane, args, kwargs) if lane else None
        if before is None:
            return
        try:
            self(*before[0], **before[1])
        except Exception as first:
            if _lane_of(first) is not None:
                raise first from None

    def _lanes_before(self, lane: int, args: Any, kwargs: Any) -> Any:
        """The arguments with copies of the lanes before that one; None where these may not be as
        many as others are."""
        made_by: Any = getattr(self.python_function, "__fusec_made_by__", None)
        f, in_axes, _, axis_size = made_by[1]
        leaves = of_arguments("vmap", f, args, kwargs, in_axes, None)
        if axis_size is not None or any(
                x.axis is not None and not isinstance(x.leaf, np.ndarray) for x in leaves):
            return None
        return flattened((args, kwargs))[1].unflatten([
            x.leaf if x.axis is None else np.take(x.leaf, np.arange(lane), x.axis)
            for x in leaves])


def _lane_of(error: Exception) -> int | None:
    """The lane that it is of; None where it is of none, or of a lane in a lane."""
    found = [_NOTE.fullmatch(note) for note in getattr(error, "__notes__", ())]
    lanes = [int(match[1]) for match in found if match is not None]
    return lanes[0] if len(lanes) == 1 else None
