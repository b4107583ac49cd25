"""Cones of roots and costs of values, from round to round of one fusion.

A round stores a few values more.  A cone that reaches none of them, nor a value that is stored no
longer, is as it was.
"""

from __future__ import annotations

from collections.abc import Mapping

from fusec.ir import Value
from fusec.ops.regions.cones import Cone, cone, cone_cost


class KnownCones:
    """``materialised``: the values that are stored in this round; ``unrolled``: see
    `unrolled_axes`; costs are counted up to ``limit``."""

    def __init__(self, unrolled: Mapping[Value, int], limit: float) -> None:
        self.unrolled, self.limit = unrolled, limit
        self.materialised: set[Value] = set()
        self._cones: dict[Value, Cone] = {}
        self._costs: dict[Value, tuple[float, set[Value]]] = {}  # with what they depend on

    def begin_round(self, materialised: set[Value]) -> None:
        """Forget the cones that these values, instead of the last round's, change."""
        changed = self.materialised ^ materialised
        self.materialised = materialised
        self._cones = {root: reach for root, reach in self._cones.items() if not any(
            v in reach.inlined or v in reach.reads for v in changed)}
        self._costs = {v: known for v, known in self._costs.items()
                       if changed.isdisjoint(known[1])}

    def of(self, root: Value) -> Cone:
        """The cone of a root: nodes that are recomputed for it, and operands that are read."""
        reach = self._cones.get(root)
        if reach is None:
            reach = self._cones[root] = cone(root, self.materialised, self.unrolled.get(root))
        return reach

    def cost(self, value: Value) -> float:
        """The work to compute an element of the value again."""
        known = self._costs.get(value)
        if known is None:
            met: set[Value] = set()
            known = self._costs[value] = (
                cone_cost(value, self.materialised, self.limit, met), met)
        return known[0]
