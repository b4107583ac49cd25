"""Forming fused multiply-adds: a*b + c rounded once.

does:   Add(Mul(a, b), c) -> Fma(a, b, c); Sub(Mul(a, b), c) -> Fma(a, b, Neg(c));
        Sub(c, Mul(a, b)) -> Fma(Neg(a), b, c); Square(a) counts as Mul(a, a).
        float32 and float64 only, and only under fp="contract" or "fast".
needs:  simplified and pruned graphs: x*x as Square, no dead users of a product.
leaves: a product with another user, which sees it rounded; and a sum of two products: in
        sqrt(a*a - b*b) contraction rounds one of two equal products and not the other, so that
        a == b gives NaN.  Products are recognised through negation, casts and views.  Under
        fp="fast" nothing is left.

The graph decides, not the back end: a value then has the same bits wherever it is recomputed.  Nor
do devices decide: where the program puts product and sum on two, both are on that of the sum; where
it says nothing of the sum, on that of the product.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from fusec.ir import Graph, Node, Value
from fusec.ir.uses import use_counts
from fusec.ops import registry

from ..cse import equal_anywhere, local_key
from ..options import PassOptions
from ..rewrite import Replacement, Rewriter, rewrite


def form_fmas(graph: Graph, options: PassOptions) -> Graph:
    """The graph with its contractible sums as ``Fma`` nodes; itself under fp="strict"."""
    if options.fp == "strict":
        return graph
    sums = {op for op in graph.ops if registry.get(op).is_sum}
    if not sums or not any(registry.get(op).is_product for op in graph.ops):
        return graph
    if options.fp == "fast":
        return rewrite(graph, _visit_any, ops=sums)
    single = single_use(graph)

    def visit(node: Node, rewriter: Rewriter) -> Replacement:
        return _visit(node, rewriter, lambda value: value.node.name in single)

    return rewrite(graph, visit, ops=sums)


def single_use(graph: Graph) -> set[str]:
    """Names of the nodes whose value one operand reads; results of the graph count as read.

    Sums that are equal are one reader: `cse` leaves them where both are results, which have memory
    of their own, and with the product in both they are equal still.  Where devices are named all
    equal nodes count as one: a node computed on two is computed once on one, and has those bits.
    """
    if any(node.device for node in graph.nodes):
        return _single_anywhere(graph)
    twins = _twins(graph)
    uses = Counter[str]()
    for value, count in use_counts(
            (n for n in graph.nodes if n.id not in twins), graph.roots).items():
        uses[value.node.name] += count
    return {name for name, count in uses.items() if count == 1}


def _twins(graph: Graph) -> set[int]:
    """The ids of results that are sums and equal to an earlier one."""
    sums = {v.node.id: v.node for v in graph.roots if registry.get(v.node.op).is_sum}
    first = {local_key(node): number for number, node in sorted(sums.items(), reverse=True)}
    return sums.keys() - first.values() if len(first) < len(sums) else set()


def _single_anywhere(graph: Graph) -> set[str]:
    first = equal_anywhere(graph)
    uses = Counter[int]()
    for value, count in use_counts(
            (n for n in graph.nodes if first[n.id] == n.id), graph.roots).items():
        uses[first[value.node.id]] += count
    return {node.name for node in graph.nodes if uses[first[node.id]] == 1}


def _visit(node: Node, rewriter: Rewriter, is_single: Callable[[Value], bool]) -> Replacement:
    if not registry.get(node.op).is_sum or not is_contractible(node):
        return None
    left, right = node.inputs
    if is_product(left) and not is_product_through(right) and is_single(left):
        return _with_left(node, rewriter)
    if is_product(right) and not is_product_through(left) and is_single(right):
        return _with_right(node, rewriter)
    return None


def _visit_any(node: Node, rewriter: Rewriter) -> Replacement:
    """Under fp="fast" of every product, the first of two."""
    if not registry.get(node.op).is_sum or not is_contractible(node):
        return None
    if is_product(node.inputs[0]):
        return _with_left(node, rewriter)
    return _with_right(node, rewriter) if is_product(node.inputs[1]) else None


def _with_left(node: Node, rewriter: Rewriter) -> Replacement:
    left, right = node.inputs
    a, b = _factors(left)
    rewriter.stand_for(rewriter.old)
    rewriter.device = node.device or left.node.device
    return [rewriter.emit("Fma", a, b, _negated(right, rewriter, node.op == "Sub"))]


def _with_right(node: Node, rewriter: Rewriter) -> Replacement:
    left, right = node.inputs
    a, b = _factors(right)
    rewriter.stand_for(rewriter.old)
    rewriter.device = node.device or right.node.device
    return [rewriter.emit("Fma", *_signed(a, b, rewriter, node.op == "Sub"), left)]


def is_contractible(node: Node) -> bool:
    kind = node.types[0]
    return kind.dtype.kind == "f" and kind.dtype.itemsize >= 4 and not kind.is_weak


def is_product(value: Value) -> bool:
    return registry.get(value.node.op).is_product


def is_product_through(value: Value) -> bool:
    """Whether the value is a product, perhaps negated, cast or seen through views."""
    node = value.node
    while (row := registry.get(node.op)).shows_product or row.kind == "view":
        node = node.inputs[0].node
    return row.is_product


def _factors(product: Value) -> tuple[Value, Value]:
    inputs = product.node.inputs
    return (inputs[0], inputs[0]) if product.node.op == "Square" else (inputs[0], inputs[1])


def _signed(a: Value, b: Value, rewriter: Rewriter, negate: bool) -> tuple[Value, Value]:
    """The factors with one negated; a constant for preference, since that folds."""
    if b.node.op == "Const":
        return a, _negated(b, rewriter, negate)
    return _negated(a, rewriter, negate), b


def _negated(value: Value, rewriter: Rewriter, negate: bool) -> Value:
    return rewriter.emit("Neg", value) if negate else value
