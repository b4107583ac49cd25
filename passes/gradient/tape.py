"""Values of the forward pass for the backward pass: those that are kept, and those recomputed.

The nodes of a derivative read values of the program.  Each is kept, or follows from others that are
kept or known anyway; whatever takes fewer bytes.  So an array that a loop changes is not kept for
each iteration, but the elements that products and functions of it read (the "to be recorded"
analysis of Hascoët, Naumann and Pascual, FGCS 2005, for values instead of assignments), or the few
from which all of these follow.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence

from fusec.core.records import dataclass
from fusec.ir import Node, Value
from fusec.ir.sizes.dims import Dim
from fusec.ir.sizes.symbolic_numbers import Symbolic
from fusec.ir.walks import nodes_behind
from fusec.ops import get
from fusec.ops.calls.checks import has_effects

from .cuts import INFINITE, Network

OVERHEAD = 4  # bytes that keeping a value by itself is worth, beside its own
CHEAP = 8.0  # additions: what an element may cost that is computed again, rather than kept
CARRIED, WHOLE = 3, 4  # the part of a byte that one of an array counts for which a loop carries
OF_A_NODE, OF_A_BYTE = 256, 24  # bytes, and additions, that are written and done in the same time
OF_A_LOOP = 1 << 16  # bytes that a loop's results may have to be kept
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
    """The values to keep so that all that are read can be had, the oldest first: the cut of least
    bytes between these and values that cannot be recomputed.

    ``is_known``: of parameters, whether they are there in the backward pass.
    """
    known = _Known(is_known)
    needed = [v for v in read if not known(v)]
    cone = _values_behind(needed, known)
    least = _least(cone, needed, bytes_of)
    if not any(map(_is_carried, cone)):
        return least.kept
    other = _least(cone, needed, _bytes_written)
    gains = other.carried - least.carried >= other.work - least.work
    return (other if gains else least).kept


@dataclass(frozen=True)
class _Cut:
    """The values that are kept, oldest first, and those that are computed again of them."""

    kept: list[Value]
    again: list[Value]

    @property
    def carried(self) -> int:
        """Bytes that need no copy to be kept: see `_bytes_written`."""
        return sum(bytes_of(v) for v in self.kept if _is_carried(v))

    @property
    def work(self) -> float:
        """The cost of recomputation, in bytes that are written meanwhile."""
        rows = ((v, get(v.node.op)) for v in self.again)
        return sum(OF_A_NODE + (bytes_of(v) * row.cost / OF_A_BYTE) * (row.kind == "elementwise")
                   for v, row in rows)


def _least(
    cone: Sequence[Value], needed: Sequence[Value], cost: Callable[[Value], int]
) -> _Cut:
    """The cut of the least costs."""
    network = Network(2 + 2 * len(cone))
    number = {v: 2 + 2 * k for k, v in enumerate(cone)}
    for value in cone:
        network.add(number[value], number[value] + 1, cost(value) + OVERHEAD)
        if not _is_computed_again(value):
            network.add(0, number[value], INFINITE)
            continue
        for operand in dict.fromkeys(value.node.inputs):
            if operand in number:
                network.add(number[operand] + 1, number[value], INFINITE)
    for value in needed:
        network.add(number[value] + 1, 1, INFINITE)
    network.saturate()
    behind = network.sink_side()
    kept = sorted((v for v in cone if number[v] not in behind and number[v] + 1 in behind),
                  key=lambda v: (v.node.id, v.index))
    return _Cut(kept, [v for v in cone if number[v] in behind])


def _is_carried(value: Value) -> bool:
    return value.node.op == "Input" and bool(value.shape)


def _bytes_written(value: Value) -> int:
    """Carried values are computed where they are kept (`codegen.structured.entries`), and so
    written once; anything else is once more than the program writes it."""
    return bytes_of(value) * (CARRIED if _is_carried(value) else WHOLE) // WHOLE


def _values_behind(needed: Collection[Value], known: _Known) -> list[Value]:
    """These, and all of which they may be computed again."""
    found = dict.fromkeys(needed)
    stack = list(found)
    while stack:
        value = stack.pop()
        if _is_computed_again(value):
            more = [v for v in value.node.inputs if v not in found and not known(v)]
            found.update(dict.fromkeys(more))
            stack += more
    return list(found)


def _is_computed_again(value: Value) -> bool:
    """Whether it may be: an array whose size only the run knows always is, for no memory could be
    set aside."""
    node = value.node
    row = get(node.op)
    if node.op == "Input" or has_effects(node):
        return False
    if not is_of_known_size(value) or row.kind in _MOVES or row.picks == "read":
        return True
    if row.kind != "elementwise":
        return False
    return row.cost <= CHEAP or sum(map(bytes_of, node.inputs)) < bytes_of(value)


class _Known:
    """Whether a value follows from those there anyway; computed again, whatever it costs, but for
    short loops: the program, too, computes it in each iteration."""

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
        return not (has_effects(node) or _is_short_loop(node)) and all(
            self.found[v] for v in node.inputs)


def _is_short_loop(node: Node) -> bool:
    """Whether it is a loop of results so small that keeping them, which takes a copy, is quicker
    than to run it again: each of its iterations waits for the one before."""
    return get(node.op).repeats and all(map(is_of_known_size, node.outputs)) and (
        sum(map(bytes_of, node.outputs)) <= OF_A_LOOP)


def is_of_known_size(value: Value) -> bool:
    """Whether no size of it is the run's to say."""
    return not any(isinstance(n, Dim) and n.symbols for n in value.shape)


def bytes_of(value: Value) -> int:
    """Of one copy of the value, for the sizes that are traced."""
    sizes = [n.hint if type(n) is Symbolic else n for n in value.shape]
    if any(isinstance(n, Dim) for n in sizes):
        return UNKNOWN
    return int(math.prod(sizes)) * int(value.dtype.itemsize)
