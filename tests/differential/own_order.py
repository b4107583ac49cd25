"""Results that may differ between devices: sums and products of floats, each device's in an order
of its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from tolerance import Tolerance, Ulp

from fusec.codegen.cuda.library_functions import is_called_on_gpu, may_refuse
from fusec.dispatch.jit import Function
from fusec.ir import Graph, Node
from fusec.ir.device_names import runs_cuda
from fusec.ops import get
from fusec.ops.regions.small_products import is_opened
from fusec.passes.fusion.narrow_sums import is_short_product


def has_own_order(graph: Graph, is_inside: bool = False) -> bool:
    """Whether anything in the graph adds up, or multiplies, floats along an axis; inside of
    branches and loops small products of matrices do, which a device has as sums there.  Outside of
    them it has narrow products as sums; those that are written out add up in another order than
    the CPU's library."""
    return any(_node_has(node, is_inside) for node in graph.nodes)


def _node_has(node: Node, is_inside: bool) -> bool:
    inner = [value for value in node.attrs.values() if isinstance(value, Graph)]
    adds = node.op in ("Sum", "Prod", "Scan") or (is_inside and is_opened(node)) or (
        is_short_product(node) or _is_by_a_vector(node))
    return (adds and node.out().dtype.kind in "fc") or any(
        has_own_order(graph, is_inside or get(node.op).is_control)
        for graph in (*inner, *node.graphs))


def _is_by_a_vector(node: Node) -> bool:
    """Whether it may be, on a GPU, a product of a matrix by a vector that is written out."""
    if node.op != "Fold" or not runs_cuda(node.device) or node.inputs[0].node.op != "Mul":
        return False
    left, right = node.inputs[0].node.inputs
    return left.type.rank == right.type.rank + 1


@dataclass(frozen=True)
class OwnOrder(Ulp):
    """Terms may have cancelled: the unit is that of the largest element that NumPy gives, or of
    ``scale``, which a test gives where the terms that cancel are known."""

    ulp: float = 64.0
    factor: float = 16.0

    def check(self, got: np.ndarray, want: np.ndarray, wide: Any, what: str) -> None:
        if want.dtype.kind not in "fc":
            Tolerance.check(self, got, want, None, what)
            return
        largest = float(np.abs(want[np.isfinite(want)]).max(initial=self.scale))
        near = Ulp(self.ulp, self.factor, largest)
        if want.dtype.kind == "f":
            near.check(got, want, wide, what)
        else:
            near.check(got.real, want.real, None, what)
            near.check(got.imag, want.imag, None, what)


@dataclass(frozen=True)
class OtherFactors(Tolerance):
    """Of cuSOLVER beside LAPACK: it rounds, and chooses signs of vectors, in ways of its own."""

    def check(self, got: np.ndarray, want: np.ndarray, wide: Any, what: str) -> None:
        if want.dtype.kind not in "fc":
            Tolerance.check(self, got, want, None, what)
            return
        near = 1000 * np.finfo(want.dtype).eps
        largest = float(np.abs(want[np.isfinite(want)]).max(initial=1.0))
        np.testing.assert_allclose(
            np.abs(got), np.abs(want), rtol=near, atol=near * largest, err_msg=what)


def _factors_on_gpu(graph: Graph) -> bool:
    return any("GPU" in n.device and may_refuse(n) and is_called_on_gpu(n) for n in graph.nodes)


def settled(function: Function, tolerance: Tolerance) -> Tolerance:
    """The tolerance for a function that has run: laxer where its device has an order of its own."""
    elsewhere = [t.optimized_graph for t in function.traces if t.build.call_plan.is_partitioned]
    if any(map(_factors_on_gpu, elsewhere)):
        return OtherFactors()
    is_lax = isinstance(tolerance, OwnOrder) or not any(map(has_own_order, elsewhere))
    if is_lax:
        return tolerance
    return OwnOrder(scale=tolerance.scale if isinstance(tolerance, Ulp) else 0.0)
