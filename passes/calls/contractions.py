"""Which calls that share a body would have other products contracted with it in their places.

`form_fmas` contracts a product that one operand reads.  Where bodies stand in the places of their
calls, equal products of two calls become one, which two operands read, and sums meet products
across the border of a call.  So all nodes are numbered as value numbering would number them with
every body in its place (a number for each value, no node is made), and `form_fmas`' question is
asked of both: of the graph, or body, by itself, and of the numbers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence

from fusec.core.records import dataclass, field
from fusec.ir import Graph, Node, Value
from fusec.ir.lazy_values import asked_once
from fusec.ir.uses import readers
from fusec.ops import registry
from fusec.ops.calls.recursion import is_repeated

from ..cse import value_key
from ..rewrite import Rewriter, is_movable
from ..rules.fma import is_contractible, is_product, is_product_through, single_use
from ..rules.match import NodePattern, apply_rule
from ..rules.rules import RULES
from ..rules.simplify import BY_OP

PAIRS = frozenset((outer.op, inner.op) for outer in (r.pattern for r in RULES)
                  for inner in outer.operands if isinstance(inner, NodePattern))


@dataclass(frozen=True)
class _Sum:
    """A sum, its operands' numbers, and the product that is contracted with it where it stands."""

    call: Node | None  # that it is made for: the outermost; None: it is the graph's own
    operands: tuple[int, int]
    contracted: int


@dataclass
class _Numbers:
    """The values of a graph with all bodies in place."""

    known: dict[Hashable, list[int]] = field(default_factory=dict)
    uses: Counter[int] = field(default_factory=Counter)
    products: set[int] = field(default_factory=set)
    seen_through: set[int] = field(default_factory=set)  # products, or seen through views
    sums: list[_Sum] = field(default_factory=list)
    told: set[Node | None] = field(default_factory=set)  # calls in which operands become equal
    count: int = 0

    def graph(self, graph: Graph, operands: Sequence[int], call: Node | None) -> list[int]:
        """The numbers of the graph's results."""
        single = singles(graph)
        numbers: dict[Value, int] = dict(zip(graph.inputs, operands, strict=True))
        for node in graph.nodes:
            if node.op == "Input":
                continue
            read = [numbers[v] for v in node.inputs]
            if is_repeated(node):
                results = self.graph(node.attrs["body"], read, call or node)
            else:
                results = self._node(node, read)
                if len(set(read)) < len(set(node.inputs)):
                    self.told.add(call)
                if registry.get(node.op).is_sum and is_contractible(node):
                    self.sums.append(_Sum(call, (read[0], read[1]), _contracted(
                        [is_product(v) for v in node.inputs],
                        [is_product_through(v) for v in node.inputs],
                        [v.node.name in single for v in node.inputs])))
            numbers.update(zip(node.outputs, results, strict=True))
        return [numbers[v] for v in graph.roots]

    def fresh(self, count: int) -> list[int]:
        self.count += count
        return list(range(self.count - count, self.count))

    def _node(self, node: Node, operands: list[int]) -> list[int]:
        key = _key(node, operands)
        results = self.known.get(key)
        if results is None:
            results = self.known[key] = self.fresh(len(node.types))
            self.uses.update(operands)
            self._note_product(node, operands, results)
        return results

    def _note_product(self, node: Node, operands: list[int], results: list[int]) -> None:
        row = registry.get(node.op)
        if row.is_product:
            self.products.update(results)
        if row.is_product or ((row.shows_product or row.kind == "view") and (
                operands[0] in self.seen_through)):
            self.seen_through.update(results)

    def contracted(self, operands: Sequence[int]) -> int:
        """The product that is contracted with a sum of these numbers."""
        return _contracted([x in self.products for x in operands],
                           [x in self.seen_through for x in operands],
                           [self.uses[x] == 1 for x in operands])


def differing_calls(graph: Graph) -> list[Node]:
    """The repeated calls that have to give way to their bodies; all of them where the graph's own
    nodes would be others."""
    calls = [node for node in graph.nodes if is_repeated(node)]
    numbers = _Numbers()
    results = numbers.graph(graph, numbers.fresh(len(graph.inputs)), None)
    numbers.uses.update(results)
    told = numbers.told | {
        s.call for s in numbers.sums if numbers.contracted(s.operands) != s.contracted}
    if not numbers.sums:  # nothing can be contracted
        return []
    # Equal results keep memory of their own: `cse` leaves two nodes, which both read a product.
    if None in told or len(set(results)) < len(set(graph.roots)):
        return calls
    read_by = readers(graph.nodes)
    return [node for node in calls if node in told or _rules_look_across(node, graph, read_by)]


def _rules_look_across(call: Node, graph: Graph, read_by: dict[Value, list[Node]]) -> bool:
    """Whether `simplify` or `prune` may find more with the body in place: a rule that matches a
    node and its operand, of which one is in the body, constants, or results that nobody reads."""
    body = call.attrs["body"]
    inside = readers(body.nodes)
    if _has_simple_results(body) or any(
            value not in read_by and value not in graph.roots for value in call.outputs):
        return True
    pairs = [(user.op, _made_by(operand)) for parameter, operand in zip(
        body.inputs, call.inputs, strict=True) for user in inside.get(parameter, ())]
    pairs += [(user.op, _made_by(value)) for value in call.outputs
              for user in read_by.get(value, ())]
    return any(pair in PAIRS or is_given(pair[1]) for pair in pairs)


@asked_once
def _has_simple_results(body: Graph) -> bool:
    """Whether a rule matches a result: it must not become a parameter, but in its place it may."""
    rewriter = Rewriter(body)
    for value in body.outputs:
        rewriter.stand_for(value.node)
        if any(apply_rule(rule, value.node, rewriter) is not None
               for rule in BY_OP.get(value.node.op, ())):
            return True
    return False


def is_given(op: str) -> bool:
    """Whether nodes of the op are folded, or dropped where they are read."""
    return op == "BroadcastTo" or (registry.get(op).kind == "source" and op != "Input")


def _made_by(value: Value) -> str:
    """The op that makes the value, in a body if need be."""
    while is_repeated(value.node):
        value = value.node.attrs["body"].outputs[value.index]
    return value.node.op


def _contracted(
    products: Sequence[bool], seen_through: Sequence[bool], single: Sequence[bool]
) -> int:
    """Which of two operands of a sum is a product that is contracted with it: 1, 2, 0 for none."""
    if products[0] and not seen_through[1] and single[0]:
        return 1
    return 2 if products[1] and not seen_through[0] and single[1] else 0


def _key(node: Node, operands: list[int]) -> Hashable:
    if not is_movable(node):
        return node.id, tuple(operands)
    return value_key(node, operands)


@asked_once
def singles(graph: Graph) -> set[str]:
    """See `single_use`."""
    return single_use(graph)
