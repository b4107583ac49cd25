"""Reverse mode: from cotangents of results to those of the variables.

The nodes are visited once, the last first; cotangents from several users of a value are added up
(Griewank and Walther, *Evaluating Derivatives*, 2nd edition, section 3.2).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from fusec import config
from fusec.core.locations import of_gradient
from fusec.errors import InternalError
from fusec.ir import Node, Value
from fusec.ops import Builder, get
from fusec.ops.derivatives import MASKED, Addend, Refused, Site, Term, refusal, sum_to
from fusec.ops.derivatives.arrays.padded_sums import added

from .dependents import Dependents, dependents
from .factors import factored
from .loops.stacks import LoopContext
from .partial_rules import conjugate, partial_of, product, with_mask

Cotangent = Term | Addend | None
# Of nodes that run graphs: adds to the totals of a node's operands, given its results' cotangents.
ControlRule = Callable[["Reverse", Node, Sequence[Term | None]], None]
CONTROL: dict[str, ControlRule] = {}


def control_rule(op: str) -> Callable[[ControlRule], ControlRule]:
    """The function below is that of nodes of this op."""
    def registered(rule: ControlRule) -> ControlRule:
        CONTROL[op] = rule
        return rule

    return registered


def pull(
    builder: Builder, results: Mapping[Value, Term], variables: Sequence[Value],
    inside: LoopContext | None = None,
) -> list[Term | None]:
    """The variables' cotangents, given those of results; None where they are zero.

    ``inside``: of a loop's body the facts there, and the values that loops in it keep.

    New nodes go to the builder, each at the line of the node that it is the derivative of.  Raises
    ``UnsupportedError``, at the user's line, for nodes that have no derivative.
    """
    reverse = Reverse(builder, dependents(list(results), variables), inside)
    for value, ct in results.items():
        if value in reverse.dependents.values:
            reverse.add(value, ct)
    reverse.run(frozenset(variables))
    return [reverse.total(value) for value in variables]


class Reverse:
    """The cotangents so far: of a value that was reached, the total of those that arrived."""

    def __init__(self, builder: Builder, found: Dependents, inside: LoopContext | None) -> None:
        self.builder, self.dependents, self.inside = builder, found, inside
        self.totals: dict[Value, Term] = {}
        # Nodes with greater numbers are of the way back.
        self.newest = max((node.id for node in found.nodes), default=-1)
        # Bytes that loops may still keep for the way back.
        self.budget = config.gradient_memory if inside is None else inside.budget

    def run(self, kept: frozenset[Value]) -> None:
        """Visit all nodes; the totals of values that are not kept are forgotten on the way."""
        for node in reversed(self.dependents.nodes):
            given = [self.totals.get(v) for v in node.outputs]
            if any(ct is not None for ct in given):
                self.builder.loc, self.builder.device = of_gradient(node.loc), node.device
                self._visit(node, given)
            for value in node.outputs:
                if value not in kept:
                    self.totals.pop(value, None)

    def total(self, value: Value) -> Term | None:
        """The total of a value so far, zeros where its mask is false."""
        ct = self.totals.get(value)
        return None if ct is None else ct.settled()

    def _visit(self, node: Node, given: Sequence[Term | None]) -> None:
        rule = CONTROL.get(node.op)
        if rule is not None:
            rule(self, node, _settled(given))
            return
        for value, ct in zip(node.inputs, self._operands(node, given), strict=True):
            if value in self.dependents.values:
                self.add(value, ct)

    def add(self, value: Value, ct: Cotangent) -> None:
        """One more cotangent of the value."""
        if ct is None:
            return
        total = self.totals.get(value)
        if isinstance(ct, Addend):
            like = Term(self.builder, value)
            total = ct.add_to(like.filled(0) if total is None else total.settled())
        else:
            total = ct if total is None else _sum(total, ct)
        _check(value, total)
        self.totals[value] = total

    def _operands(self, node: Node, given: Sequence[Term | None]) -> Sequence[Cotangent]:
        """The cotangents of a node's operands."""
        row = get(node.op)
        site = Site(self.builder, node, tuple(v in self.dependents.values for v in node.inputs))
        if row.partials is not None:
            return _elementwise(site, row.partials, given[0], self.newest)
        if isinstance(row.vjp, Refused):
            raise refusal(node, row.vjp.reason)
        if row.vjp is not None:
            cotangents: Sequence[Cotangent] = row.vjp(
                site, given if row.vjp in MASKED else _settled(given))
            return cotangents
        if row.decompose is not None:
            values = row.decompose(self.builder, node)
            return self._of_parts(site, dict(zip(values, _settled(given), strict=True)))
        raise refusal(node, "fusec has no rule for it")

    def _of_parts(self, site: Site, results: Mapping[Value, Term | None]) -> Sequence[Cotangent]:
        """Of a node that stands for others: through these."""
        given = {value: ct for value, ct in results.items() if ct is not None}
        wanted = [v for v, is_wanted in zip(site.node.inputs, site.wanted, strict=True)
                  if is_wanted]
        found = iter(pull(site.builder, given, wanted, self.inside))
        return [next(found) if is_wanted else None for is_wanted in site.wanted]


def _elementwise(
    site: Site, partials: object, ct: Term | None, newest: int
) -> list[Cotangent]:
    """The cotangent times each partial derivative, summed where the operand was broadcast."""
    assert ct is not None
    result: list[Cotangent] = []
    for number, (operand, is_wanted) in enumerate(zip(site.operands, site.wanted, strict=True)):
        part = None
        if is_wanted:
            part = product(conjugate(partial_of(site, partials, number)), ct)
        result.append(None if part is None else _unbroadcast(part, operand, newest))
    return result


def _settled(given: Sequence[Term | None]) -> list[Term | None]:
    return [None if ct is None else ct.settled() for ct in given]


def _unbroadcast(term: Term, operand: Term, newest: int) -> Term:
    """See `sum_to`.  Numbers that all summands are multiplied by are multiplied with the sum: so
    sums that differ by them only are one."""
    if term.shape == operand.shape:
        return term
    core, numbers = factored(term.settled(), newest)
    total = sum_to(core, operand.shape)
    for number in numbers:
        total = -total if number is None else total * number
    return total


def _sum(a: Term, b: Term) -> Term:
    """Two cotangents of one value; it counts where either does."""
    if a.mask is not None and a.mask == b.mask:
        return with_mask(a + b, a)
    total = added(a.settled(), b.settled())
    if a.mask is None or b.mask is None:
        return total
    return Term(a.builder, total.value, a.builder.emit("LogicalOr", a.mask, b.mask))


def _check(value: Value, ct: Term) -> None:
    if ct.dtype != value.dtype or ct.shape != value.shape:
        raise InternalError(f"the cotangent of {value} is {ct.value.type}", loc=value.node.loc)
