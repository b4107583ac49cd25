"""Functions of the order of elements: sorting, medians and quantiles.

The order does not change near the operands, so each result is a sum of elements with fixed weights.
Of equal elements, which a sort exchanges at will, the one counts that a stable sort puts there.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fusec.ir.sizes.dims import Dim
from fusec.ir.sizes.symbolic_numbers import applied, is_plain_number

from ..calls import arguments, array, call
from ..elements.widening_calls import widely
from ..matrices.matrices import as_like
from ..protocol import Cotangents, Rule, Site, Tangents, broadcast_to, declare
from ..terms import Term, where
from .reductions import expanded, total
from .scans import gathered, scattered

INT64 = np.dtype(np.int64)


def sorting(x: Term, axis: int) -> Term:
    """For each place of the sorted array where its element was: `np.argsort`."""
    return call(x, "Argsort", x, axis=axis, kind="stable", results=[array(INT64, x.shape)])[0]


def ranks(x: Term, axis: int) -> Term:
    """For each element its place in the sorted array."""
    return sorting(sorting(x, axis), axis)


# ------------------------------------------------------------------------------------ permutations


def permuted(names: str, is_sorted: bool) -> tuple[Rule, Rule]:
    """`vjp` and `jvp` of functions that sort, or partition, along an axis."""
    def origins(site: Site) -> tuple[Term, int, Term]:
        """The operand, flat where there is no axis; the axis; where each element came from."""
        given = arguments(site, names)
        x, (y,), axis = site.operands[0], site.results, given.get("axis", -1)
        if axis is None:
            x = x.emit("Reshape", shape=y.shape)
        axis = 0 if axis is None else axis % x.rank
        found = sorting(x, axis)
        # The smallest of all is the smallest of the result, wherever a partition puts it.
        return x, axis, found if is_sorted else gathered(found, ranks(y, axis), axis)

    def vjp(site: Site, cotangents: Tangents) -> Cotangents:
        (ct,), (_, axis, places) = cotangents, origins(site)
        assert ct is not None
        found = scattered(ct.filled(0), ct, places, axis)
        return [as_like(found.emit("Reshape", shape=site.operands[0].shape), site.operands[0]),
                *[None] * (len(site.operands) - 1)]

    def jvp(site: Site, tangents: Tangents) -> Tangents:
        t, (flat, axis, places) = tangents[0], origins(site)
        assert t is not None
        found = gathered(t.emit("Reshape", shape=flat.shape), places, axis)
        return [found.cast(site.results[0].dtype)]

    return vjp, jvp


for _op, _names, _is_sorted in (
        ("Sort", "a axis kind order", True), ("SortInPlace", "a axis kind order", True),
        ("Partition", "a kth axis kind", False), ("PartitionInPlace", "a kth axis kind", False)):
    _vjp, _jvp = permuted(_names, _is_sorted)
    declare(_op, vjp=_vjp, jvp=_jvp)

# --------------------------------------------------------------------------------------- quantiles


def _weights(site: Site, x: Term, axis: int, q: float, skips_nan: bool) -> Term:
    """Of each element along the axis its weight in a quantile, interpolated linearly."""
    size = x.shape[axis]
    if isinstance(size, Dim):
        site.refuse("the number of elements is known only when the code runs")
    rank = ranks(x, axis).cast(x.dtype)
    if skips_nan:
        number = x.emit("IsNan").emit("LogicalNot").cast(x.dtype)
        position = expanded(total(number, (axis,)), (axis,)) * q - q
        low = position.emit("Floor")
        part = position - low
    else:
        position = (size - 1) * q
        low = x.number(applied(math.floor, position))
        part = x.number(position) - low
    like = x.shape
    return where(rank.equals(low), broadcast_to(1 - part, like), 0) + where(
        rank.equals(low + 1), broadcast_to(part, like), 0)


def _axes(axis: Any, rank: int) -> tuple[int, ...]:
    if axis is None:
        return tuple(range(rank))
    axes = axis if isinstance(axis, tuple | list) else (axis,)
    return tuple(sorted(a % rank for a in axes))


class _Quantiles:
    """One call: the elements that it orders along the last axis, and the weights of each result."""

    def __init__(self, site: Site, names: str, scale: float, skips_nan: bool) -> None:
        given = arguments(site, names)
        self.x, self.site = site.operands[0], site
        if given.get("method", "linear") != "linear" or given.get("weights") is not None:
            site.refuse("of quantiles that are interpolated linearly, without weights, alone fusec "
                        "knows the derivative")
        q = given.get("q", 0.5 * scale)
        if self.x.dtype.kind == "c":
            site.refuse("complex numbers have no order that mathematics knows")
        self.is_one, numbers = is_plain_number(q), _numbers(site, q)
        self.axes = _axes(given.get("axis"), self.x.rank)
        kept = [d for d in range(self.x.rank) if d not in self.axes]
        self.order = (*kept, *self.axes)
        self.kept = tuple(self.x.shape[d] for d in kept)
        self.flat = self.flattened(self.x)
        self.weights = [
            _weights(site, self.flat, self.flat.rank - 1, applied(float, one) / scale, skips_nan)
            for one in numbers]

    def flattened(self, x: Term) -> Term:
        moved = x.emit("Transpose", perm=self.order)
        count = math.prod(self.x.shape[d] for d in self.axes)
        return moved.emit("Reshape", shape=(*self.kept, count))

    def back(self, x: Term) -> Term:
        moved = x.emit("Reshape", shape=tuple(self.x.shape[d] for d in self.order))
        return moved.emit("Transpose", perm=tuple(np.argsort(self.order).tolist()))

    def cotangent(self, ct: Term) -> Term:
        """Of the operand."""
        parts = ct.emit("Reshape", shape=(len(self.weights), *self.kept, 1))
        rank, found = parts.rank, None
        for k, weights in enumerate(self.weights):
            one = parts.emit("Slice", starts=(k, *[0] * (rank - 1)), steps=(1,) * rank,
                             sizes=(1, *parts.shape[1:])).emit("Squeeze", axes=(0,))
            found = one * weights if found is None else found + one * weights
        assert found is not None
        return self.back(found)

    def tangent(self, t: Term) -> Term:
        """Of the result."""
        flat = self.flattened(t)
        rows = [total(flat * w, (flat.rank - 1,)).emit("Reshape", shape=(1, *self.kept))
                for w in self.weights]
        whole = rows[0] if self.is_one else rows[0].emit("Concat", *rows[1:], axis=0)
        return whole.emit("Reshape", shape=self.site.results[0].shape)


def _numbers(site: Site, q: Any) -> list[Any]:
    numbers = list(q) if isinstance(q, tuple | list) else [q]
    if not all(map(is_plain_number, numbers)):
        site.refuse("q is an array: give numbers")
    return numbers


def _quantile(names: str, scale: float, skips_nan: bool) -> tuple[Rule, Rule]:
    def vjp(site: Site, cotangents: Tangents) -> Cotangents:
        (ct,) = cotangents
        assert ct is not None
        found = _Quantiles(site, names, scale, skips_nan)
        return [found.cotangent(ct), *[None] * (len(site.operands) - 1)]

    def jvp(site: Site, tangents: Tangents) -> Tangents:
        t = tangents[0]
        assert t is not None
        return [_Quantiles(site, names, scale, skips_nan).tangent(t)]

    return vjp, jvp


_OF_MEDIAN = "a axis out overwrite_input keepdims"
_OF_QUANTILE = "a q axis out overwrite_input method keepdims"
for _op, _names, _scale in (("Median", _OF_MEDIAN, 1.0), ("Percentile", _OF_QUANTILE, 100.0),
                            ("Quantile", _OF_QUANTILE, 1.0)):
    for _prefix in ("", "Nan"):
        _vjp, _jvp = widely(*_quantile(_names, _scale, _prefix == "Nan"))
        declare(_prefix + _op.lower() if _prefix else _op, vjp=_vjp, jvp=_jvp)

__all__ = ["permuted", "ranks", "sorting"]
