"""Partial derivatives of elementwise nodes, as both directions multiply by them."""

from __future__ import annotations

from typing import Any

from fusec.ir import Value
from fusec.ops.derivatives import Partial, Refused, Site, Term, Zero, where
from fusec.ops.derivatives.terms import conj


def partial_of(site: Site, partials: Any, number: int) -> Term | int | float | complex:
    """The derivative of the result by an operand; 0 where it is zero by nature."""
    if isinstance(partials, Refused):
        site.refuse(partials.reason)
    entry: Partial = partials[number]
    if isinstance(entry, Refused):
        site.refuse(entry.reason)
    if isinstance(entry, Zero):
        return 0
    return entry(*site.operands, *site.results)


def product(factor: Term | int | float | complex, term: Term) -> Term | None:
    """A tangent or cotangent times a partial derivative; None for zero.  It keeps its mask: where
    that is false the factor may be anything."""
    if not isinstance(factor, Term):
        return _scaled(factor, term)
    return with_mask(_chosen(factor, term), term)


def _chosen(factor: Term, term: Term) -> Term:
    """The product; where the factor is a choice of 0 it is 0, also of infinity and NaN: an
    operand that `np.maximum` did not take does not matter."""
    node = factor.value.node
    if node.op != "Where" or not any(map(_is_zero, node.inputs[1:])):
        return _times(factor.value, term)
    condition, a, b = node.inputs
    sides = [0 if _is_zero(v) else _times(v, term) for v in (a, b)]
    return where(Term(term.builder, condition), *sides)


def _times(factor: Value, term: Term) -> Term:
    is_one = factor.node.op == "Const" and factor.node.attrs["value"] == 1
    return term if is_one else Term(term.builder, term.value) * Term(term.builder, factor)


def _is_zero(value: Value) -> bool:
    return value.node.op == "Const" and not value.node.attrs["value"]


def _scaled(factor: complex, term: Term) -> Term | None:
    if factor == 0:
        return None
    if factor == 1:
        return term
    return with_mask(-term if factor == -1 else term * factor, term)


def with_mask(term: Term, like: Term) -> Term:
    """The term with the mask of another."""
    return term if like.mask is None else Term(term.builder, term.value, like.mask)


def conjugate(factor: Term | int | float | complex) -> Term | int | float | complex:
    """A complex derivative conjugated, for cotangents: see `fusec.ops.derivatives`."""
    if isinstance(factor, Term):
        return conj(factor) if factor.dtype.kind == "c" else factor
    return factor.conjugate()

