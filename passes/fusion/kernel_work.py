"""How much one kernel computes: beyond a bound it is cut, so that compiling stays linear.

LLVM's time for a loop grows with the square of its body, and a body that is too long for the
registers runs slower too: 400 sines in one loop took 2.8 times as long to compile as in eight, and
1.7 times as long to run.  A store and a load at each cut cost a few percent of the work between.

Where many values are in use, as halfway through a gradient, each of them is stored at a cut, and
memory takes longer than recomputation: there a kernel may compute more, up to another bound.  A
gradient of Black-Scholes prices took 85 ms in four kernels that exchange 43 values, 2 ms in one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from fusec.ir import Graph, Value
from fusec.ir.uses import use_counts
from fusec.ops import get
from fusec.ops.regions.cones import fold_count, is_boundary

MAX_WORK = 300.0  # in additions, each operand that is read counts as one
MAX_ENTANGLED_WORK = 8 * MAX_WORK  # where kernels would exchange more than `MAX_EXCHANGED` values
MAX_EXCHANGED = 4  # their stores and loads take a third of the time of `MAX_WORK`


def work_of(value: Value) -> float:
    """Scalar work of the value's own op, for one element."""
    row = get(value.node.op)
    if row.kind == "fold":
        return float(fold_count(value.node))
    return row.cost if row.kind in ("elementwise", "gather") else 0.0


def cuts(graph: Graph, stored: Collection[Value]) -> set[Value]:
    """Values to store as well, so that no kernel has more than `MAX_WORK`.

    Nothing is stored that is larger than the arrays in memory anyway: operands of a reduction,
    computed from a few rows, may be too large.
    """
    if sum(1 + work_of(node.out()) for node in graph.nodes if len(node.outputs) == 1) <= MAX_WORK:
        return set()
    return _Cutter(graph, stored).run()


class _Cutter:
    """Walks the nodes in order and keeps, for each value, the kernel that would compute it.

    A kernel is the work of each value in it; a value that is stored counts as one, its load.
    """

    def __init__(self, graph: Graph, stored: Collection[Value]) -> None:
        self.graph, self.stored = graph, set(stored)
        self.shapes = {v.shape for v in (*graph.inputs, *stored)}
        self.readers = use_counts(graph.nodes)
        self.kernels: dict[Value, dict[Value, float]] = {}

    def run(self) -> set[Value]:
        cut: set[Value] = set()
        for node in self.graph.nodes:
            kernel = self._joined(node.inputs)
            if is_boundary(node) or node.op == "Const" or node.out() in self.stored:
                continue
            value = node.out()
            kernel[value] = work_of(value)
            total = sum(kernel.values())
            if total > MAX_WORK and self._may_store(value) and (
                    total > MAX_ENTANGLED_WORK or self._exchanged(kernel) <= MAX_EXCHANGED):
                cut.add(value)
                self.stored.add(value)
            elif total <= MAX_ENTANGLED_WORK:
                self.kernels[value] = kernel
            # else: too large, but it may not be stored.  It is dropped and counts as one for its
            # readers: to copy an ever larger kernel to each would be quadratic.
        return cut

    def _exchanged(self, kernel: Iterable[Value]) -> int:
        """How many of its values others read, that are in no memory yet."""
        return sum(1 for v in kernel if self.readers[v] > 0 and v not in self.stored and (
            not is_boundary(v.node)))

    def _may_store(self, value: Value) -> bool:
        return get(value.node.op).kind == "elementwise" and value.shape in self.shapes

    def _joined(self, values: Iterable[Value]) -> dict[Value, float]:
        """The union of the values' kernels; one is dropped after its value's last reader."""
        joined: dict[Value, float] = {}
        for value in values:
            self.readers[value] -= 1
            if value.node.op == "Const":
                continue
            kernel = self.kernels.get(value)
            joined.update(kernel or {value: 1.0})
            if kernel and not self.readers[value]:
                del self.kernels[value]
        return joined
