"""Rules of derivatives: their three forms, their arguments, and how rows get theirs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

from fusec.core.records import dataclass
from fusec.errors import unsupported
from fusec.ir import Node, Value
from fusec.ir.sizes.dims import Size

from .. import registry
from ..build import Builder
from ..calls.users_names import users_name
from .terms import Number, Term

SHORT = 16  # elements of an axis that is summed first
DIFFERENTIABLE = "fc"  # kinds of dtypes that have tangents and cotangents; others have none


MASKED: list[object] = []  # rules whose cotangents may have masks: see `Term`


class Zero:
    """The derivative is zero by nature: of `np.floor`, of a comparison, of an index."""

    def __repr__(self) -> str:
        return "ZERO"


ZERO = Zero()


@dataclass(frozen=True, slots=True)
class Refused:
    """There is no derivative, and why; where one is asked for, the program is refused."""

    reason: str


Partial = Callable[..., Term | Number] | Zero | Refused
# Of an elementwise row: for each operand the derivative of the result's element by the operand's,
# ``partial(*operands, result)``; one entry for all where it is zero or refused.
Partials = tuple[Partial, ...] | Zero | Refused


@dataclass(frozen=True, slots=True)
class Addend:
    """A cotangent that is zero but for a part of the array, as a function that adds it to another
    one: so that reading elements one by one does not add up an array for each."""

    add_to: Callable[[Term], Term]


Tangents = Sequence[Term | None]  # None: zero
Cotangents = Sequence[Term | Addend | None]
Rule = Callable[["Site", Tangents], Cotangents] | Zero | Refused


@dataclass(frozen=True, slots=True)
class Site:
    """The node that is differentiated, as a rule sees it; nodes that it makes go to ``builder``.

    ``wanted``: for each operand whether its cotangent is needed (`vjp` may give None for others).
    """

    builder: Builder
    node: Node
    wanted: tuple[bool, ...]

    @property
    def operands(self) -> tuple[Term, ...]:
        return tuple(Term(self.builder, value) for value in self.node.inputs)

    @property
    def results(self) -> tuple[Term, ...]:
        return tuple(Term(self.builder, value) for value in self.node.outputs)

    @property
    def attrs(self) -> Mapping[str, Any]:
        return self.node.attrs

    def term(self, value: Value) -> Term:
        return Term(self.builder, value)

    def again(self, *operands: Term, result: int = 0) -> Term:
        """The same node of other operands: of a linear op the tangent of its result."""
        first = self.builder.emit(
            self.node.op, *(x.value for x in operands), **self.node.attrs)
        return Term(self.builder, first.node.out(result))

    def filled(self, terms: Tangents, likes: Sequence[Term]) -> list[Term]:
        """The terms, zeros for those that are None; ``likes`` have their shapes and dtypes."""
        return [like.filled(0) if term is None else term
                for term, like in zip(terms, likes, strict=True)]

    def masked(self, term: Term, condition: Term) -> Term:
        """A cotangent that is zero where the condition, of its shape, is false: see `Term`."""
        mask = condition.value if term.mask is None else self.builder.emit(
            "LogicalAnd", term.mask, condition.value)
        return Term(self.builder, term.value, mask)

    def refuse(self, reason: str) -> NoReturn:
        """There is no derivative of this node, for this reason: ``UnsupportedError``."""
        raise refusal(self.node, reason)


def refusal(node: Node, reason: str, cure: str = "") -> Exception:
    """The error for a node that has no derivative."""
    return unsupported(
        f"the derivative of {users_name(node)}", loc=node.loc, notes=(reason,),
        cure=cure or "give the derivative of a function that does it with fusec.custom_vjp; or, "
                     "where it is to count as a constant, fusec.stop_gradient(x)")


def sum_to(term: Term, shape: Sequence[Size]) -> Term:
    """The sum of a cotangent over the axes that broadcasting ``shape`` made: its transpose."""
    if term.shape == tuple(shape):
        return term
    added = term.rank - len(shape)
    axes = tuple(d for d in range(term.rank)
                 if d < added or (shape[d - added] == 1 and term.shape[d] != 1))
    total = summed(term, axes)
    kept = tuple(d - added for d in axes if d >= added)
    return total.emit("ExpandDims", axes=kept) if kept else total


def summed(term: Term, axes: Sequence[int]) -> Term:
    """The sum over axes; over a short last one first, which kernels do in registers."""
    if not axes:
        return term
    last = term.rank - 1
    if len(axes) > 1 and last in axes and type(term.shape[last]) is int and (
            2 <= term.shape[last] <= SHORT):
        term, axes = term.emit("Sum", axes=(last,)), tuple(d for d in axes if d != last)
    return term.emit("Sum", axes=tuple(axes))


def broadcast_to(term: Term, shape: Sequence[Size]) -> Term:
    """The term with that shape, to which it broadcasts."""
    same = term.shape == tuple(shape)
    return term if same else term.emit("BroadcastTo", shape=tuple(shape))


def takes_masks(rule: Rule) -> Rule:
    """The `vjp` below is given cotangents with their masks, where they have any."""
    MASKED.append(rule)
    return rule


def linear(site: Site, tangents: Tangents) -> Tangents:
    """The `jvp` of an op that is linear in its differentiable operands taken together: the op of
    their tangents, beside its other operands."""
    operands = [
        like if like.dtype.kind not in DIFFERENTIABLE else
        like.filled(0) if tangent is None else tangent
        for tangent, like in zip(tangents, site.operands, strict=True)]
    first = site.again(*operands).value.node
    return [site.term(value) for value in first.outputs]


def multilinear(site: Site, tangents: Tangents) -> Tangents:
    """The `jvp` of an op of one result that is linear in each operand: a sum over operands."""
    total: Term | None = None
    for k, tangent in enumerate(tangents):
        if tangent is not None:
            operands = list(site.operands)
            operands[k] = tangent
            part = site.again(*operands)
            total = part if total is None else total + part
    return [total]


def declare(
    *names: str, partials: Partials | None = None, vjp: Rule | None = None,
    jvp: Rule | None = None,
) -> None:
    """Give rows their rules.  Raises ``ValueError`` for a row that has one of them already."""
    for name in names:
        row = registry.get(name)
        for column, rule in (("partials", partials), ("vjp", vjp), ("jvp", jvp)):
            if rule is None:
                continue
            if getattr(row, column) is not None:
                raise ValueError(f"internal error: the {column} of {name} are declared twice")
            object.__setattr__(row, column, rule)


def zero_by_nature(*names: str) -> None:
    """Rows whose derivative is zero: elementwise ones, and others."""
    _same(names, ZERO)


def refused(reason: str, *names: str) -> None:
    """Rows that have no derivative, for this reason."""
    _same(names, Refused(reason))


def _same(names: Sequence[str], rule: Zero | Refused) -> None:
    for name in names:
        if registry.get(name).kind == "elementwise":
            declare(name, partials=rule)
        else:
            declare(name, vjp=rule, jvp=rule)


__all__ = [
    "DIFFERENTIABLE", "MASKED", "ZERO", "Addend", "Cotangents", "Partial", "Partials", "Refused",
    "Rule", "Site", "Tangents", "Zero", "broadcast_to", "declare", "linear", "multilinear",
    "refusal", "refused", "sum_to", "summed", "takes_masks", "zero_by_nature",
]
