"""What the way back needs of the way there: values that are kept, and values computed again.

The nodes of a derivative read values of the program.  Each is kept, or follows from others that are
kept or known anyway; whatever takes fewer bytes.  So an array that a loop changes is not kept for
each iteration, but the elements that products and functions of it read (the "to be recorded"
analysis of Hascoët, Naumann and Pascual, FGCS 2005, for values instead of assignments).
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Collection, Sequence

from fusec.ir import Node, Value
from fusec.ir.dims import Dim
from fusec.ir.symbolic_numbers import Symbolic
from fusec.ir.walks import nodes_behind
from fusec.ops import get
from fusec.ops.checks import has_effects

CHEAP = 8.0  # additions: what an element may cost that is computed again, rather than kept
UNKNOWN = 1 << 40  # bytes of an array whose size only the run knows
_MOVES = ("view", "gather", "piecewise")


def read_by_derivatives(roots: Sequence[Value], seeds: Collection[Value]) -> set[Value]:
    """The values that do not depend on the seeds, and that nodes which do read; or are roots."""
    given = frozenset(seeds)
    read: set[Value] = set()
    dependent: set[int] = set()
    for node in nodes_behind(roots, given.__contains__):
        if any(v in given or v.node.id in dependent for v in node.inputs):
            dependent.add(node.id)
            read.update(node.inputs)
    return {v for v in (*read, *roots) if v not in given and v.node.id not in dependent}


def kept_values(read: Collection[Value], is_known: Callable[[Value], bool]) -> list[Value]:
    """The values to keep so that all that are read can be had, the oldest first.

    ``is_known``: of parameters, whether they are there on the way back.
    """
    known = _Known(is_known)
    needed = {v for v in read if not known(v)}
    heap = [(-v.node.id, v.index, v) for v in needed]
    heapq.heapify(heap)
    while heap:
        value = heapq.heappop(heap)[2]
        instead = _operands_instead(value, needed, known)
        if instead is not None:
            needed.remove(value)
            for operand in instead:
                needed.add(operand)
                heapq.heappush(heap, (-operand.node.id, operand.index, operand))
    return sorted(needed, key=lambda v: (v.node.id, v.index))


def _operands_instead(
    value: Value, needed: set[Value], known: _Known
) -> set[Value] | None:
    """What more must be kept to compute the value again; None where that is more than itself.

    An array whose size only the run knows is always computed again: no memory could be set aside.
    """
    node = value.node
    row = get(node.op)
    if not is_of_known_size(value) and node.op != "Input" and not has_effects(node):
        return {v for v in node.inputs if not known(v) and v not in needed}
    is_view = row.kind in _MOVES or row.picks == "read"
    if not (is_view or (row.kind == "elementwise" and not row.stateful)):
        return None
    more = {v for v in node.inputs if not known(v) and v not in needed}
    if not more and (is_view or row.cost <= CHEAP):
        return more
    return more if sum(map(bytes_of, more)) < bytes_of(value) else None


class _Known:
    """Whether a value follows from what is there anyway; computed again, whatever it costs: the
    program, too, computes it in each iteration."""

    def __init__(self, is_parameter_known: Callable[[Value], bool]) -> None:
        self.is_parameter_known = is_parameter_known
        self.found: dict[Value, bool] = {}

    def __call__(self, value: Value) -> bool:
        if value in self.found:
            return self.found[value]
        for node in nodes_behind([value], self.found.__contains__):
            is_known = self._is_known(node)
            for output in node.outputs:
                self.found[output] = is_known
        return self.found[value]

    def _is_known(self, node: Node) -> bool:
        if node.op == "Input":
            return self.is_parameter_known(node.out())
        return not has_effects(node) and all(self.found[v] for v in node.inputs)


def is_of_known_size(value: Value) -> bool:
    """Whether no size of it is the run's to say."""
    return not any(isinstance(n, Dim) and n.symbols for n in value.shape)


def bytes_of(value: Value) -> int:
    """Of one copy of the value, for the sizes that are traced."""
    sizes = [n.hint if type(n) is Symbolic else n for n in value.shape]
    if any(isinstance(n, Dim) for n in sizes):
        return UNKNOWN
    return int(math.prod(sizes)) * int(value.dtype.itemsize)
