"""Rules of batching: the column of the registry that `fusec.passes.batching` reads.

A rule says what a node of one lane is for all lanes.  It fills the column ``batching`` when this
package is imported, which only programs with `fusec.vmap` do, and has one of these forms:

a function of a `LaneSite`: nodes that do it for all lanes at once.  Operands that differ from lane
to lane have the lanes as their first axis, and so has every result.  It raises `AloneError` where
there are no such nodes for the attributes at hand;

`Alone`: the node is done in a loop over lanes, each lane's by itself;

`InGraph`: the node holds a graph that is batched too;

`NoLanes`: the program is refused, with the user's line.

``None`` says that nobody has written the rule, and refuses too.
"""

from . import elements, library_calls, moves, picks, products, rest
from .protocol import (
    Alone,
    AloneError,
    BatchRule,
    InGraph,
    LaneRule,
    LaneSite,
    NoLanes,
    declare,
    described,
    refusal,
)

__all__ = [
    "Alone",
    "AloneError",
    "BatchRule",
    "InGraph",
    "LaneRule",
    "LaneSite",
    "NoLanes",
    "declare",
    "described",
    "elements",
    "library_calls",
    "moves",
    "picks",
    "products",
    "refusal",
    "rest",
]
