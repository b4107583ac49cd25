"""Notes what the program has assigned, where it may raise: see `states`."""

from __future__ import annotations

from typing import Any

from fusec.ir import Node

from ..choice.flat_results import flat_results
from ..guards.places import Places
from ..places.shared_results import linked
from ..values.array import TracedArray
from ..values.operations import operation
from ..values.states import Computed, State, States
from ..values.trace import Trace


@operation
def note_state(trace: Trace, node: Node, state: State | None = None) -> None:
    """``node`` may raise: what the program has assigned by now, or in ``state``, stays so.

    A node in a branch or loop that data decides is none of the graph's own: there it is what was
    assigned before the outermost one."""
    found = state_now(trace) if state is None else state
    if found is not None:
        trace.part(States).noted.append((node, found))


def state_now(trace: Trace) -> State | None:
    """What has been assigned by now; None: nothing, or the place is inside of several branches."""
    world = trace.world
    changed = trace.part(Places).before or world.containers.held
    if len(trace.record.regions) > 1 or not (changed or trace.record.journal):
        return None
    effects = world.containers.effects()
    written = [(s.origin, s.value) for s in trace.feeds.storages
               if s is not None and s.version > 0 and s.origin is not None]
    if not effects and not written:
        return None
    values, _ = linked(trace, [value for _, value in effects], None)
    assigned = []
    for (assignment, _), value in zip(effects, values, strict=True):
        leaves, tree = flat_results(trace, value)
        assigned.append((assignment, tree, [_noted(x) for x in leaves]))
    return State(assigned, written)


def _noted(leaf: Any) -> Any:
    return Computed(leaf.value, leaf.is_array) if type(leaf) is TracedArray else leaf
