"""Sums of products with few columns, as a GPU's kernels compute them: a row's columns side by side.

`..gpu.narrow_products` makes them of products of matrices.  A loop nest goes over the rows and
the summed axis, and has a total for each column, so that the matrix is read once; a bias, an
activation or an update of weights is computed where the totals are.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping

from fusec.ir import Graph, Node, Value
from fusec.ir.device_names import runs_cuda
from fusec.ir.sizes.bindings import typical
from fusec.ops import get
from fusec.ops.regions.cones import Cone, cone, cone_cost, view_base, written_cost
from fusec.ops.regions.index_maps import AxisIndex, IndexMap, identity
from fusec.ops.regions.narrow_products import MAX_COLUMNS

# Of an operand that threads compute again for themselves: more is stored.
SHARED_COST = 4.0
MAX_COST = 1600.0  # of what is written out for a row
# Of all rows, by one thread each while others wait: it takes a GPU a microsecond, as a launch does.
MAX_ALONE = 1 << 20
MAX_TOTALS = 32  # of a kernel: they are a thread's registers


def is_narrow_sum(node: Node) -> bool:
    """Whether it is, on a GPU, the sum over one axis of a matrix times few columns, which are its
    last axis."""
    if node.op != "Sum" or not runs_cuda(node.device):
        return False
    product, axes = node.inputs[0], node.attrs["axes"]
    columns = product.shape[-1] if product.shape else 0
    if product.node.op != "Mul" or len(axes) != 1 or axes[0] == len(product.shape) - 1:
        return False
    return isinstance(columns, int) and 2 <= columns <= MAX_COLUMNS and any(
        _lacks(v, len(product.shape) - 1) for v in product.node.inputs)


def _lacks(value: Value, axis: int) -> bool:
    """Whether a factor is the same along an axis of the product."""
    node = value.node
    return node.op == "ExpandDims" and axis in node.attrs["axes"]


def is_short_product(node: Node) -> bool:
    """Whether it is, on a GPU, a product of matrices over so short an axis that it is written
    out."""
    if node.op != "Fold" or node.attrs["of"] != "Sum" or not runs_cuda(node.device):
        return False
    product = node.inputs[0].node
    return product.op == "Mul" and all(v.node.op == "ExpandDims" for v in product.inputs)


def shared_factors(graph: Graph) -> Iterator[Value]:
    """Factors that many threads need, and that cost too much to be computed by each."""
    for node in graph.nodes:
        of_sum = is_narrow_sum(node)
        if not of_sum and not is_short_product(node):
            continue
        product = node.inputs[0]
        for factor in product.node.inputs:
            base = view_base(factor)
            if not (of_sum and _lacks(factor, len(product.shape) - 1)) and cone_cost(
                    base, set(), SHARED_COST + 1) > SHARED_COST:
                yield base


def narrow_axes(
    needed: Collection[Value], reductions: Iterable[Value], unrolled: Mapping[Value, int]
) -> dict[Value, int]:
    """The short last axis, of the iteration domain, of roots that belong to such sums: these
    themselves, results of their totals, and sums over the rows of values with such an axis."""
    found = dict(unrolled)
    roots = [v for v in {*needed, *reductions} if runs_cuda(v.node.device) and v not in found]
    for root in sorted(roots, key=lambda v: v.node.id):
        kind = get(root.node.op).kind
        if kind == "reduce" and (is_narrow_sum(root.node) or _sums_rows(root, found)):
            found[root] = len(root.node.inputs[0].shape) - 1
        elif kind == "elementwise" and _follows(root, needed, found):
            found[root] = len(root.shape) - 1
    return found


def _sums_rows(root: Value, found: Mapping[Value, int]) -> bool:
    """Whether it sums over the rows of a value that is computed in parts."""
    operand, axes = root.node.inputs[0], root.node.attrs["axes"]
    axis = len(operand.shape) - 1
    return found.get(operand) == axis and axis not in axes and not root.node.op.startswith("Arg")


def _follows(root: Value, needed: Collection[Value], found: Mapping[Value, int]) -> bool:
    """Whether it is computed of totals, column by column, in few operations."""
    if not root.shape or not isinstance(root.shape[-1], int) or not (
            2 <= root.shape[-1] <= MAX_COLUMNS):
        return False
    reach, axis = cone(root, set(needed)), len(root.shape) - 1
    whole = identity(root.shape)
    totals = [v for v in reach.reads if v in found and get(v.node.op).kind == "reduce"]
    if not totals or reach.piecewise or any(reach.reads[v] != {whole} for v in totals):
        return False
    cost = written_cost(root, MAX_COST, axis)
    rows = int(typical(math.prod(root.shape[:-1]))) if any(map(_shares_rows, totals)) else 1
    return cost < MAX_COST and rows * cost <= MAX_ALONE


def _shares_rows(totals: Value) -> bool:
    """Whether it sums along rows of the matrix: several threads share one (a warp, or one of each
    group of columns' threads), and a single one of them computes of its totals."""
    node = totals.node
    return bool(node.attrs["axes"] == (len(node.inputs[0].shape) - 2,))


def totals_of(root: Value, reach: Cone) -> int:
    """How many totals a root with such columns has, on a GPU."""
    if reach.unrolled is None or get(root.node.op).kind != "reduce" or not runs_cuda(
            root.node.device):
        return 0
    return root.shape[-1] * (2 if root.dtype.kind == "c" else 1)


def is_a_total(totals: Value, index: IndexMap) -> bool:
    """Whether a row's point reads one of its totals."""
    return index[:-1] == identity(totals.shape[:-1]) and (
        index[-1] == AxisIndex(-1, 0, index[-1].start))
