"""Unit vectors as lanes: lane ``k`` of a value holds a number at place ``k``, and zeros elsewhere.

`fusec.jacobian` has such lanes, one for each direction.  A product of a matrix with them is its
rows, each times a number: no product of matrices is done for it, and what is infinite in a row
stays in its place.
"""

from __future__ import annotations

from fusec.ir import Value

from .protocol import BatchRule, LaneSite

_OF_ONE = frozenset(("Neg", "Pos", "Cast", "Copy"))
_OF_BOTH = frozenset(("Add", "Sub"))


def numbers_of(site: LaneSite) -> Value | None:
    """The numbers that stand on the diagonal of the node's result; None where it is none."""
    op, given = site.node.op, site.diagonals
    known = [d is not None for d in given]
    if not any(known) or any(d is not None and site.node.types[0].shape != d.shape for d in given):
        return None
    is_scaled = (op == "Mul" and site.has_lanes.count(True) == 1) or (
        op == "Div" and site.has_lanes == (True, False))
    if not (op in _OF_ONE or is_scaled or (op in _OF_BOTH and all(known))):
        return None
    attrs = {name: x for name, x in site.attrs.items() if name != "kind"}
    return site.emit(op, *(v if d is None else d for v, d in zip(
        site.given, given, strict=True)), **attrs)


def _product(site: LaneSite) -> list[Value] | None:
    """Of a vector that is a diagonal's with a matrix or vector that is the same in each lane."""
    if site.has_lanes.count(True) != 1 or len({v.dtype for v in site.node.inputs}) > 1:
        return None
    place = site.has_lanes.index(True)
    numbers, other = site.diagonals[place], site.given[1 - place]
    if numbers is None or other.type.rank > 2 or numbers.dtype.kind == "b":
        return None
    if other.type.rank == 2:
        numbers = site.emit("ExpandDims", numbers, axes=(1,))
        other = site.emit("Transpose", other, perm=(1, 0)) if place else other
    return [site.emit("Mul", numbers, other)]


def with_diagonals(rule: BatchRule) -> BatchRule:
    """The rule of a product, which makes no product of what is a diagonal."""

    def product(site: LaneSite) -> list[Value]:
        found = _product(site) if any(d is not None for d in site.diagonals) else None
        return list(rule(site)) if found is None else found

    return product


__all__ = ["numbers_of", "with_diagonals"]
