"""What functions of one library do to each other's state that no struct tells: arrays that lie in
one memory, which a struct would keep apart, and code that is made for a value which changes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from .refusals import Refusal
from .states import StateCells, TraceState

MOST_WORK: Any = 10_000  # of `np.shares_memory`; where it needs more, memory is shared


def refusals_of(states: Sequence[TraceState], cells: StateCells) -> Iterator[Refusal]:
    """Of all functions together."""
    yield from _values(states)
    yield from _arrays(states)
    yield from _memory(states, cells)
    yield from _one_array(states, cells)


def _places(state: TraceState, number: int) -> set[object]:
    return {key for key in state.keys[number] if key[0] != "memory"}


def _values(states: Sequence[TraceState]) -> Iterator[Refusal]:
    assigned = {key for state in states for n in state.assigned for key in _places(state, n)}
    for state in states:
        for key in state.guarded.keys() & assigned:
            yield Refusal(f"{state.guarded[key]}, which one function assigns, and whose value code "
                          "of another is made for", None)


def _arrays(states: Sequence[TraceState]) -> Iterator[Refusal]:
    """Arrays of which a trace knows more than types and sizes."""
    assigned = [state.arrays[n] for state in states for n in state.assigned if n in state.arrays]
    written = [state.arrays[n] for state in states for n in state.written if n in state.arrays]
    for state in states:
        for array, name in (*state.held, *state.contents):
            if any(array is other for other in assigned):
                yield Refusal(f"assigning to {name} or to another name of its array", None)
        for array, name in state.contents:
            if any(_lie_together(array, other) for other in written):
                yield Refusal(f"writing {name}, whose elements code is made for", None)


def _memory(states: Sequence[TraceState], cells: StateCells) -> Iterator[Refusal]:
    """Arrays that a call writes in place, in whose memory others lie."""
    assigned = {cells.find(state.own_keys(n)) for state in states for n in state.assigned}
    inputs = [(state, n) for state in states for n in state.arrays]
    for state in states:
        for n in state.written:
            cell = cells.find(state.own_keys(n))
            for other, k in inputs:
                is_one = cells.find(other.own_keys(k)) == cell and (
                    cell not in assigned or _places(state, n) & _places(other, k))
                if n in state.arrays and not is_one and _lie_together(
                        state.arrays[n], other.arrays[k]):
                    yield Refusal(f"writing {state.names[n]}, in whose memory {other.names[k]} "
                                  "lies", None)


def _lie_together(a: np.ndarray, b: np.ndarray) -> bool:
    try:
        return bool(np.shares_memory(a, b, max_work=MOST_WORK))
    except np.exceptions.TooHardError:
        return True


def _one_array(states: Sequence[TraceState], cells: StateCells) -> Iterator[Refusal]:
    """Places that are one array after a call, of which a call writes one in place."""
    written = {cells.find(state.own_keys(n)) for state in states for n in state.written}
    for state in states:
        places: dict[int, list[int]] = defaultdict(list)
        for n, value in state.values.items():
            if n in state.arrays:
                places[value].append(n)
        for group in places.values():
            if len(group) > 1 and any(cells.find(state.own_keys(n)) in written for n in group):
                names = " and ".join(state.names[n] for n in group)
                yield Refusal(f"assigning one array to {names}, which a call writes in place", None)


__all__ = ["refusals_of"]
