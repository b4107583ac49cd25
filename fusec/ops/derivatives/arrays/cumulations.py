"""Cumulative sums and products that NumPy computes, numbers counted into bins, tables of lines."""

from __future__ import annotations

import numpy as np

from fusec.ir import Value

from ..calls import arguments, array, by_values, call
from ..elements.widening_calls import widely
from ..matrices.matrices import as_like
from ..protocol import DIFFERENTIABLE, Cotangents, Rule, Site, Tangents, declare, linear, sum_to
from ..terms import Term, where
from .indices import counter, length
from .scans import backward_sum, product_back, product_tangent, scan


class _Cumulative:
    """One call: its operand, and the axis along which it is added or multiplied up."""

    def __init__(self, site: Site, names: str, fill: float, skips_nan: bool) -> None:
        given = arguments(site, names)
        self.x, (y,), self.site = site.operands[0], site.results, site
        self.missing = self.x.emit("IsNan") if skips_nan else None
        self.has_initial = bool(given.get("include_initial"))
        axis, x = given.get("axis"), self.x
        if isinstance(axis, tuple):
            (axis,) = axis
        if self.missing is not None:
            x = where(self.missing, fill, x)
        self.is_flat = axis is None or not x.rank  # of a number NumPy makes an axis
        self.axis = 0 if axis is None else axis % max(x.rank, 1)
        self.values = self.shaped(x).cast(y.dtype)

    def shaped(self, x: Term) -> Term:
        return x.emit("Reshape", shape=(x.value.type.size,)) if self.is_flat else x

    def back(self, ct: Term) -> Term:
        """A cotangent of the elements as one of the operand."""
        found = as_like(ct.emit("Reshape", shape=self.x.shape), self.x)
        return found if self.missing is None else where(self.missing, 0, found)

    def given(self, t: Term) -> Term:
        """A tangent of the operand as one of the elements."""
        t = t if self.missing is None else where(self.missing, 0, t)
        return self.shaped(t).cast(self.values.dtype)

    def without_initial(self, ct: Term) -> Term:
        if not self.has_initial:
            return ct
        starts = tuple(int(d == self.axis) for d in range(ct.rank))
        return ct.emit("Slice", starts=starts, steps=(1,) * ct.rank, sizes=self.values.shape)

    def with_initial(self, t: Term) -> Term:
        if not self.has_initial:
            return t
        shape = tuple(1 if d == self.axis else n for d, n in enumerate(t.shape))
        return t.number(0).emit("BroadcastTo", shape=shape).emit("Concat", t, axis=self.axis)


def _rules(names: str, is_sum: bool, skips_nan: bool) -> tuple[Rule, Rule]:
    def read(site: Site) -> _Cumulative:
        return _Cumulative(site, names, 0 if is_sum else 1, skips_nan)

    def vjp(site: Site, cotangents: Tangents) -> Cotangents:
        (ct,), found = cotangents, read(site)
        assert ct is not None
        ct = found.without_initial(ct)
        return [found.back(backward_sum(ct, found.axis) if is_sum else product_back(
            site, found.values, ct, found.axis))]

    def jvp(site: Site, tangents: Tangents) -> Tangents:
        (t,), found = tangents, read(site)
        assert t is not None
        t = found.given(t)
        return [found.with_initial(scan(t, "Add", found.axis) if is_sum else product_tangent(
            site, found.values, t, found.axis))]

    return vjp, jvp


for _op, _names in (("Cum{}", "a axis dtype"), ("Nancum{}", "a axis dtype"),
                    ("Cumulative{}", "x")):
    for _what in ("sum", "prod"):
        _name = _op.format(_what.title() if _op.startswith("Cumulative") else _what)
        _vjp, _jvp = _rules(_names, _what == "sum", _op.startswith("Nan"))
        declare(_name, vjp=_vjp, jvp=_jvp)


def _bincount(site: Site, cotangents: Tangents) -> Cotangents:
    """A weight was added to one counter."""
    (ct,), given = cotangents, arguments(site, "x weights minlength")
    assert ct is not None
    at, weights = given["x"], given["weights"]
    if not isinstance(at, Term):
        site.refuse("what is counted is a list: make it an array")
    found = as_like(ct.emit("Gather", at.cast(counter(ct, 1).dtype), axes=(0,), at=0), weights)
    return [found if x.value == weights.value else None for x in site.operands]


declare("Bincount", vjp=_bincount, jvp=linear)


def _powers(site: Site) -> tuple[Term, Term]:
    """The operand as a column, and the exponents of the columns of its Vandermonde matrix."""
    (x,), (y,) = site.operands, site.results
    exponents = counter(x, y.shape[-1])
    if not arguments(site, "x N increasing").get("increasing", False):
        exponents = y.shape[-1] - 1 - exponents
    return x.emit("ExpandDims", axes=(1,)), exponents.cast(x.dtype)


def _vander_slopes(site: Site) -> Term:
    x, exponents = _powers(site)
    none = exponents.equals(0)
    return where(none, 0, exponents * x ** where(none, 1, exponents - 1))


def _vander(site: Site, cotangents: Tangents) -> Cotangents:
    (ct,) = cotangents
    assert ct is not None
    slopes = _vander_slopes(site)
    slopes = slopes.emit("Conj") if slopes.dtype.kind == "c" else slopes
    return [(ct * slopes).emit("Sum", axes=(1,))]


def _vander_jvp(site: Site, tangents: Tangents) -> Tangents:
    (t,) = tangents
    assert t is not None
    return [t.emit("ExpandDims", axes=(1,)) * _vander_slopes(site)]


_vander_wide, _vander_wide_jvp = widely(_vander, _vander_jvp)
declare("Vander", vjp=_vander_wide, jvp=_vander_wide_jvp)

# ------------------------------------------------------------------------------------------ Interp


_FLOAT64 = np.dtype(np.float64)


class _Interpolation:
    """One call of `np.interp`: at a knot the slope is that of the piece behind it.

    A single knot is both ends of its piece.  As at equal knots the values jump there, or stay: the
    slope is 0.
    """

    def __init__(self, site: Site) -> None:
        given = arguments(site, "x xp fp left right period")
        x, self.xp, self.fp = (given[k] for k in ("x", "xp", "fp"))
        if isinstance(x, int | float) and isinstance(self.xp, Term):
            x = self.xp.cast(_FLOAT64).number(x)
        if not all(isinstance(v, Term) for v in (x, self.xp, self.fp)):
            site.refuse("an operand is a list or a number: make it an array")
        if any(given.get(k) is not None for k in ("left", "right", "period")):
            site.refuse("left, right and period: write them with np.where, or np.mod of x")
        if site.results[0].dtype.kind == "c":
            site.refuse("the values are complex: interpolate both parts")
        self.x: Term = x
        self._find(self.xp.cast(_FLOAT64), x.cast(_FLOAT64))

    def _find(self, knots: Term, x: Term) -> None:
        """The pieces in which the queries lie; integers are compared as floats, as by NumPy."""
        last = length(knots, 0) - 1
        before = (_searched(knots, x) - 1).emit("Minimum", last - 1).emit("Maximum", 0)
        after = (before + 1).emit("Minimum", last)
        self.ends = before, after
        low, high = (self.read(knots, k) for k in (0, 1))
        width = where(before.equals(after), 0, high - low)  # also of an infinite knot
        none = width.equals(0)
        width = where(none, 1, width)
        self.slope = where(none, 0, (self.read(self.fp, 1) - self.read(self.fp, 0)) / width)
        part = where(none, (x >= low).cast(x.dtype), (x - low) / width)
        self.part = part.emit("Maximum", 0).emit("Minimum", 1)
        self.inside = part.equals(self.part)

    def read(self, line: Term, end: int) -> Term:
        """The elements of a line of knots or values at one end of the pieces, as floats."""
        found = line.emit("Gather", self.ends[end], axes=(0,), at=0)
        return found.cast(_FLOAT64)

    def added(self, line: Term, low: Term, high: Term) -> Term:
        """A cotangent of a line of knots or values, given those of both ends of the pieces."""
        whole = line.filled(0).cast(low.dtype)
        for at, part in zip(self.ends, (low, high), strict=True):
            whole = whole.emit("Scatter", part, at, axes=(0,), at=0, combine="Add")
        return whole


def _searched(line: Term, x: Term) -> Term:
    at = [array(np.dtype(np.int64), x.shape)]
    return call(line, "Searchsorted", line, x, side="right", results=at)[0]


def _interp(site: Site, cotangents: Tangents) -> Cotangents:
    (ct,), at = cotangents, _Interpolation(site)
    assert ct is not None
    by_x = where(at.inside, ct * at.slope, 0)
    found: dict[Value, Term] = {}
    for term, part in (
            (at.x, sum_to(by_x, at.x.shape)),
            (at.xp, at.added(at.xp, -by_x * (1 - at.part), -by_x * at.part)),
            (at.fp, at.added(at.fp, ct * (1 - at.part), ct * at.part))):
        if term.dtype.kind in DIFFERENTIABLE:
            found[term.value] = found[term.value] + part if term.value in found else part
    return by_values(site, found)


def _interp_jvp(site: Site, tangents: Tangents) -> Tangents:
    at = _Interpolation(site)
    given = {x.value: t for x, t in zip(site.operands, tangents, strict=True)}
    by_x, by_xp, by_fp = (
        v.cast(_FLOAT64).filled(0) if given.get(v.value) is None else given[v.value]
        for v in (at.x, at.xp, at.fp))

    def between(line: Term) -> Term:
        return at.read(line, 0) * (1 - at.part) + at.read(line, 1) * at.part

    assert by_x is not None and by_xp is not None and by_fp is not None
    return [where(at.inside, at.slope * (by_x - between(by_xp)), 0) + between(by_fp)]


_interp_wide, _interp_wide_jvp = widely(_interp, _interp_jvp)
declare("Interp", vjp=_interp_wide, jvp=_interp_wide_jvp)
