"""Values in no blocks that a written-out iteration hands to the next one: sums of blocks, and
results that earlier iterations made of those.

A task that needs such a value computes it again, of every iteration's sums.  Stored once an
iteration it has a short way, and stages of iterations that are alike have one graph.
"""

from __future__ import annotations

from fusec.ir import Value

from ..split_states import SplitStates, is_kept


def is_chain(states: SplitStates, value: Value, begun: int) -> bool:
    """Whether a value in no blocks is made of values known when node ``begun`` was the next one:
    of barriers and stored values that are older."""
    if not states.is_whole(value) or value in states.barriers:
        return False
    stack, seen = [value], set[Value]()
    while stack:
        v = stack.pop()
        if v in seen or not states.stages[v]:
            continue
        seen.add(v)
        if v not in states.barriers and not is_kept(v.node):
            stack += v.node.inputs
        elif v.node.id < begun:
            return True
    return False


__all__ = ["is_chain"]
