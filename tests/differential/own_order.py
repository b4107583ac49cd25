"""What may differ between devices: sums and products of floats, each device's in an order of its
own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from tolerance import Tolerance, Ulp

from fusec.ir import Graph, Node
from fusec.jit import Function


def has_own_order(graph: Graph) -> bool:
    """Whether anything in the graph adds up, or multiplies, floats along an axis."""
    return any(map(_node_has, graph.nodes))


def _node_has(node: Node) -> bool:
    inner = [value for value in node.attrs.values() if isinstance(value, Graph)]
    own = node.op in ("Sum", "Prod", "Scan") and node.out().dtype.kind in "fc"
    return own or any(map(has_own_order, [*inner, *node.graphs]))


@dataclass(frozen=True)
class OwnOrder(Ulp):
    """Terms may have cancelled: the unit is that of the largest element that NumPy gives."""

    ulp: float = 64.0
    factor: float = 16.0

    def check(self, got: np.ndarray, want: np.ndarray, wide: Any, what: str) -> None:
        finite = want[np.isfinite(want)] if want.dtype.kind in "fc" else want[:0]
        scale = float(np.abs(finite).max(initial=0.0)) if finite.dtype.kind in "fc" else 0.0
        parts = [(got, want, wide)]
        if want.dtype.kind == "c":
            parts = [(got.real, want.real, None), (got.imag, want.imag, None)]
        for one, other, more in parts:
            Ulp(self.ulp, self.factor, scale).check(one, other, more, what)


def settled(function: Function, tolerance: Tolerance) -> Tolerance:
    """What to ask of a function that has run: laxer where its device has an order of its own."""
    traces = [t for t in function.traces if t.build.schedule.is_partitioned]
    if not isinstance(tolerance, OwnOrder) and any(has_own_order(t.graph) for t in traces):
        return OwnOrder()
    return tolerance
