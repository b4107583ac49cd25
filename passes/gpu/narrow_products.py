"""Products of few columns, of a vector or over a short axis are sums of products on a GPU, where
that pays: they are parts of the kernels around them then.

does:   MatMul(a, b) -> Sum(Mul(a, b)), whose columns `..fusion.narrow_sums` keeps side by side
needs:  the devices of nodes; `kernel_products`, which runs before these are known, what the program
        says of them
leaves: products that a library does better (`fusec.ops.regions.narrow_products`), alone or because
        the graph is sooner through without their sums
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial
from typing import Literal

from fusec.core.records import dataclass
from fusec.ir import Graph, Node
from fusec.ir.device_names import emulates_cuda, runs_cuda
from fusec.ir.sizes.bindings import typical
from fusec.ops.regions.narrow_products import (
    BYTES_PER_US,
    LAUNCH_US,
    has_library,
    is_narrow,
    may_pay,
    sizes_of,
)

from ..fusion.fusion import fuse
from ..rewrite import Replacement, Rewriter, rewrite
from .sums_of_products import sum_of_products

# Each trial fuses the graph: beyond these sizes each product is chosen by its own figures.
MAX_TRIALS, MAX_NODES = 8, 300

forced: Literal["", "library"] = ""  # by tests


@dataclass(frozen=True)
class ProductChoice:
    """Of one product; ``us``: what the graph is estimated to take, with cuBLAS for this product
    and with a kernel, where both were tried."""

    node: Node
    is_kernel: bool
    us: tuple[float, float] | None = None

    def __str__(self) -> str:
        sizes = sizes_of(self.node)
        way = "sums in a kernel" if self.is_kernel else "cuBLAS"
        text = (f"{self.node.name} at {self.node.loc}: {way}; of {sizes.rows} x {sizes.summed} x "
                f"{sizes.columns}, estimated at {sizes.alone_us:.1f} us as a kernel of its own, "
                f"{sizes.library_us:.1f} us by cuBLAS")
        if self.us is None:
            return text
        return (f"{text}; all kernels and products of the graph at {self.us[1]:.1f} us with it as "
                f"sums, {self.us[0]:.1f} us without")


def product_lines(asked: Graph, placed: Graph) -> list[str]:
    """What was chosen for each product, and why, for people; by the graphs that `kernel_products`
    and `narrow_products` got."""
    return [*(f"{n.name} at {n.loc}: sums in a kernel; the device has no library for it"
              for n in without_library(asked)), *map(str, choices(placed))]


def kernel_products(graph: Graph) -> Graph:
    """The graph with sums for the products for which their device has no library."""
    return _lowered(graph, {n.name for n in without_library(graph)})


def without_library(graph: Graph) -> list[Node]:
    """The products that `kernel_products` replaces; the emulated device could leave all of its own
    to the CPU, so there the same figures decide."""
    if "MatMul" not in graph.ops or forced == "library":
        return []
    return [n for n in graph.nodes if is_narrow(n) and not has_library(n) and (
        may_pay(n) or not emulates_cuda(n.device))]


def narrow_products(graph: Graph) -> Graph:
    """See the module docstring."""
    return _lowered(graph, {c.node.name for c in choices(graph) if c.is_kernel})


def choices(graph: Graph) -> list[ProductChoice]:
    """What is chosen for each product that could be sums."""
    if "MatMul" not in graph.ops or forced == "library":
        return []
    able = [n for n in graph.nodes if is_narrow(n)]
    paying = [n for n in able if may_pay(n)]
    if len(paying) > MAX_TRIALS or len(graph.nodes) > MAX_NODES:
        return [ProductChoice(n, sizes_of(n).alone_us <= sizes_of(n).library_us) for n in able]
    chosen, us = _tried(graph, paying)
    return [ProductChoice(n, n.name in chosen, us.get(n.name)) for n in able]


def _tried(
    graph: Graph, products: Sequence[Node]
) -> tuple[set[str], dict[str, tuple[float, float]]]:
    """Names of the products without any of which, as sums, the graph would take longer, and for
    each the two estimates."""
    chosen = {n.name for n in products}
    us: dict[str, tuple[float, float]] = {}
    if not chosen:
        return chosen, us
    best = _graph_us(graph, products, chosen)
    for node in products:
        without = _graph_us(graph, products, chosen - {node.name})
        us[node.name] = without, best
        if without < best:
            chosen, best = chosen - {node.name}, without
    return chosen, us


def _graph_us(graph: Graph, products: Sequence[Node], chosen: Collection[str]) -> float:
    """Of a graph's kernels and products of matrices, those that are chosen as sums."""
    inside = sum(sizes_of(n).beside_memory_us for n in products if n.name in chosen)
    return inside + sum(map(_node_us, fuse(_lowered(graph, chosen)).nodes))


def _node_us(node: Node) -> float:
    if node.op == "MatMul":
        plain = max(len(v.shape) for v in node.inputs) <= 2
        return sizes_of(node).library_us if plain else 0.0
    if node.op != "Fused" or not runs_cuda(node.device):
        return 0.0
    types = (*(v.type for v in node.inputs), *node.types)
    return LAUNCH_US + sum(int(typical(t.size)) * t.dtype.itemsize for t in types) / BYTES_PER_US


def _lowered(graph: Graph, names: Collection[str]) -> Graph:
    return rewrite(graph, partial(_visit, names=names), ops=("MatMul",)) if names else graph


def _visit(node: Node, rewriter: Rewriter, names: Collection[str]) -> Replacement:
    return [sum_of_products(node, rewriter)] if node.name in names else None
