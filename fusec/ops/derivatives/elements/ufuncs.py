"""Ufuncs that have no row of their own: the library's formulas, by name.

Formulas: Abramowitz and Stegun, *Handbook of Mathematical Functions*, chapters 5, 6, 7, 9; those of
entropies and penalties follow from their definitions in SciPy's manual.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from fusec.ir import TensorType
from fusec.ir.sizes.dims import Dim

from ...calls.library import called_name, decode
from ...shapes import broadcast
from ..arrays.indices import counter, length
from ..arrays.reductions import expanded, total
from ..calls import call
from ..formulas import SLOPES, power_of_two, share
from ..matrices.matrices import as_like
from ..matrices.products import conjugated
from ..protocol import Cotangents, Site, Tangents, broadcast_to, declare, linear, sum_to
from ..terms import Number, Term, cos, exp, log, sign, sin, square, where

Entry = Callable[..., Term | Number] | None  # None: there is none, or nobody has written it
_INT64 = np.dtype(np.int64)
_TWO_BY_ROOT_PI = 2 / math.sqrt(math.pi)


def ufunc(name: str, *operands: Term | Number) -> Term:
    """A ufunc of the library, of terms of one dtype."""
    like = next(x for x in operands if isinstance(x, Term))
    terms = [x if isinstance(x, Term) else like.number(x) for x in operands]
    shape = tuple(broadcast([x.shape for x in terms]))
    kind = "array" if any(x.value.type.kind == "array" for x in terms) else "scalar"
    result = TensorType(like.dtype, shape, kind if not shape else "array")  # type: ignore[arg-type]
    return call(like, "Ufunc", f"special.{name}", "__call__", *terms, results=[result])[0]


def psi(x: Term) -> Term:
    return ufunc("psi", x)


def _gradually(y: Term, x: Term, at_zero: float) -> Term:
    """``y / x``, and its limit at 0."""
    nothing = x.equals(0)
    return where(nothing, at_zero, y / where(nothing, 1, x))


def _gammainc(a: Term, x: Term) -> Term:
    """The density of the gamma distribution."""
    return exp((a - 1) * log(x) - x - ufunc("gammaln", a))


def _inverse_boxcox(base: Term, p: Term, y: Term) -> Term:
    """``y / base``; where that is 0 the power that it stands for."""
    nothing = base.equals(0)
    return where(nothing, where(nothing, base, 1) ** (1 / where(nothing, p, 1) - 1),
                 y / where(nothing, 1, base))


def _spence(x: Term) -> Term:
    """``log(x) / (1 - x)``; near 1 the series ``-sum((1 - x)**n / (n + 1))``."""
    near = (x - 1).emit("Abs") < 0.25
    rest = where(near, 1 - x, 0)
    series = rest * 0
    for n in range(26, -1, -1):
        series = series * rest - 1 / (n + 1)
    far = where(near, 2, x)
    return where(near, series, log(far) / (1 - far))


def _exprel(x: Term, y: Term) -> Term:
    """``(exp(x) - exprel(x)) / x``; near 0 the series ``sum(x**n / (n! (n + 2)))``."""
    near = x.emit("Abs") < 1
    inner = where(near, x, 0)
    series = inner * 0
    for n in range(17, -1, -1):
        series = series * inner + 1 / (math.factorial(n) * (n + 2))
    far = where(near, 1, x)
    return where(near, series, (exp(far) - y) / far)


def _beta_density(a: Term, b: Term, x: Term) -> Term:
    return exp((a - 1) * log(x) + (b - 1) * (1 - x).emit("Log") - ufunc("betaln", a, b))


def _between(name: str) -> Callable[..., Term]:
    """Half the difference of the orders beside it."""
    return lambda n, x, y: 0.5 * (ufunc(name, n - 1, x) - ufunc(name, n + 1, x))


# Of SciPy's ufuncs, ``special.`` before the name: entries as of partials, an operand each.
_SPECIAL: dict[str, tuple[Entry, ...]] = {
    # gamma functions
    "gamma": (lambda x, y: y * psi(x),), "loggamma": (lambda x, y: psi(x),),
    "gammaln": (lambda x, y: psi(x),), "rgamma": (lambda x, y: -y * psi(x),),
    "psi": (lambda x, y: ufunc("zeta", 2, x),), "digamma": (lambda x, y: ufunc("zeta", 2, x),),
    "zeta": (None, lambda s, q, y: -s * ufunc("zeta", s + 1, q)),
    "beta": (lambda a, b, y: y * (psi(a) - psi(a + b)), lambda a, b, y: y * (psi(b) - psi(a + b))),
    "betaln": (lambda a, b, y: psi(a) - psi(a + b), lambda a, b, y: psi(b) - psi(a + b)),
    "poch": (lambda a, m, y: y * (psi(a + m) - psi(a)), lambda a, m, y: y * psi(a + m)),
    "binom": (lambda n, k, y: y * (psi(n + 1) - psi(n - k + 1)),
              lambda n, k, y: y * (psi(n - k + 1) - psi(k + 1))),
    "gammainc": (None, lambda a, x, y: _gammainc(a, x)),
    "gammaincc": (None, lambda a, x, y: -_gammainc(a, x)),
    "betainc": (None, None, lambda a, b, x, y: _beta_density(a, b, x)),
    # error functions and normal distributions
    "erfi": (lambda x, y: _TWO_BY_ROOT_PI * exp(square(x)),),
    "erfcx": (lambda x, y: 2 * x * y - _TWO_BY_ROOT_PI,),
    "dawsn": (lambda x, y: 1 - 2 * x * y,),
    "erfinv": (lambda x, y: (1 / _TWO_BY_ROOT_PI) * exp(square(y)),),
    "erfcinv": (lambda x, y: (-1 / _TWO_BY_ROOT_PI) * exp(square(y)),),
    "ndtri": (lambda x, y: math.sqrt(2 * math.pi) * exp(0.5 * square(y)),),
    "ndtri_exp": (lambda x, y: math.sqrt(2 * math.pi) * exp(0.5 * square(y) + x),),
    "log_expit": (lambda x, y: (-x).emit("Expit"),),
    # exponential integrals
    "expi": (lambda x, y: exp(x) / x,), "exp1": (lambda x, y: -exp(-x) / x,),
    "spence": (lambda x, y: _spence(x),), "exprel": (_exprel,),
    "cosm1": (lambda x, y: -sin(x),),
    # Bessel functions
    "j0": (lambda x, y: -ufunc("j1", x),), "y0": (lambda x, y: -ufunc("y1", x),),
    "j1": (lambda x, y: ufunc("j0", x) - _gradually(y, x, 0.5),),
    "y1": (lambda x, y: ufunc("y0", x) - y / x,),
    "i0": (lambda x, y: ufunc("i1", x),), "k0": (lambda x, y: -ufunc("k1", x),),
    "i1": (lambda x, y: ufunc("i0", x) - _gradually(y, x, 0.5),),
    "k1": (lambda x, y: -ufunc("k0", x) - y / x,),
    "i0e": (lambda x, y: ufunc("i1e", x) - sign(x) * y,),
    "i1e": (lambda x, y: ufunc("i0e", x) - _gradually(y, x, 0.5) - sign(x) * y,),
    "k0e": (lambda x, y: y - ufunc("k1e", x),),
    "k1e": (lambda x, y: y - ufunc("k0e", x) - y / x,),
    "jv": (None, _between("jv")), "yv": (None, _between("yv")), "jn": (None, _between("jv")),
    "iv": (None, lambda n, x, y: 0.5 * (ufunc("iv", n - 1, x) + ufunc("iv", n + 1, x))),
    "kv": (None, lambda n, x, y: -0.5 * (ufunc("kv", n - 1, x) + ufunc("kv", n + 1, x))),
    # entropies and penalties
    **{name: SLOPES[name] for name in (
        "entr", "rel_entr", "kl_div", "xlogy", "xlog1py", "pseudo_huber")},
    "huber": (lambda d, r, y: where(r.emit("Abs") <= d, 0, r.emit("Abs") - d),
              lambda d, r, y: r.emit("Minimum", d).emit("Maximum", -d)),
    "boxcox": (lambda x, p, y: x ** (p - 1), None),
    "boxcox1p": (lambda x, p, y: (1 + x) ** (p - 1), None),
    "inv_boxcox": (lambda x, p, y: _inverse_boxcox(1 + p * x, p, y), None),
    "sindg": (lambda x, y: (math.pi / 180) * cos(x * (math.pi / 180)),),
    "cosdg": (lambda x, y: (-math.pi / 180) * sin(x * (math.pi / 180)),),
}
PARTIALS: dict[str, tuple[Entry, ...]] = {
    **{f"special.{name}": entries for name, entries in _SPECIAL.items()},
    "logaddexp": SLOPES["logaddexp"], "logaddexp2": SLOPES["logaddexp2"],
    "ldexp": (lambda x, n, y: power_of_two(n), None),
}
# Rows of their own, where sizes are known.
_OF_KNOWN_SIZES = {"add", "subtract", "multiply", "divide", "true_divide", "power", "matmul"}
# What is constant but for jumps: nothing, by nature.
_CONSTANT = {"special.round", "spacing"}


def _entry(site: Site, number: int) -> Callable[..., Term | Number]:
    name, method = site.attrs["form"][1:3]
    entries = PARTIALS.get(name, ())
    entry = entries[number] if number < len(entries) else None
    if method != "__call__" or entry is None or site.attrs["named"][1:] or (
            len(site.results) > 1):
        sizes = [n for x in site.operands for n in x.shape]
        if name in _OF_KNOWN_SIZES and any(isinstance(n, Dim) for n in sizes):
            site.refuse("an operand has a size that only the run knows: of arrays of known sizes "
                        f"fusec knows the derivative of np.{name}")
        which = "" if number >= len(entries) else f" by argument {number}"
        site.refuse(f"fusec has no formula for the derivative of "
                    f"{called_name('Ufunc', site.attrs['form'])}{which}"
                    f"{' with keyword arguments' if site.attrs['named'][1:] else ''}")
    return entry


def _partial(site: Site, position: int) -> list[Term | Number]:
    """The derivatives by an operand, for each argument that it is."""
    result: Term = site.results[0]
    given = [decode(form, site.operands) for form in site.attrs["form"][3:]]
    wide = [x.cast(result.dtype) if isinstance(x, Term) else result.number(x) for x in given]
    return [_entry(site, number)(*wide, result)
            for number, form in enumerate(site.attrs["form"][3:])
            if type(form) is tuple and form == ("operand", position)]


def _ufunc(site: Site, cotangents: Tangents) -> Cotangents:
    ct = cotangents[0]
    if site.attrs["form"][2] == "reduce":
        return _reduced(site, ct)
    if site.attrs["form"][2] == "reduceat":
        return _reduced_at(site, ct)
    if site.attrs["form"][1] in _CONSTANT or ct is None:
        return [None] * len(site.operands)
    found: list[Term | None] = []
    for position, x in enumerate(site.operands):
        whole: Term | None = None
        for factor in _partial(site, position) if site.wanted[position] else ():
            factor = conjugated(factor) if isinstance(factor, Term) else factor
            part = ct * factor
            whole = part if whole is None else whole + part
        found.append(None if whole is None else as_like(sum_to(whole, x.shape), x))
    return found


def _ufunc_jvp(site: Site, tangents: Tangents) -> Tangents:
    (y,), whole = site.results[:1], None
    if site.attrs["form"][2] == "reduce":
        return _reduced_jvp(site, tangents)
    if site.attrs["form"][2] == "reduceat":
        _slices(site)
        return linear(site, tangents)
    for position, t in enumerate(tangents):
        if t is not None and site.attrs["form"][1] not in _CONSTANT:
            for factor in _partial(site, position):
                part = t.cast(y.dtype) * factor
                whole = part if whole is None else whole + part
    return [None if whole is None else broadcast_to(whole, y.shape),
            *[None] * (len(site.results) - 1)]


# ----------------------------------------------------------------------------------------- reduce


def _slopes(site: Site) -> tuple[Term, tuple[int, ...]]:
    """The derivative of a reduction by each element, and the axes."""
    name, (x, *others), y = site.attrs["form"][1], site.operands, site.results[0]
    named = {pair[1]: decode(pair[2], site.operands) for pair in site.attrs["named"][1:]}
    axis = named.pop("axis", site.attrs["form"][4] if len(site.attrs["form"]) > 4 else 0)
    keeps = named.pop("keepdims", False)
    if others or len(site.attrs["form"]) > 5 or named:
        site.refuse("with other arguments than axis and keepdims")
    if name not in _REDUCED:
        site.refuse(f"fusec has no formula for the derivative of "
                    f"{called_name('Ufunc', site.attrs['form'])}")
    axes = tuple(range(x.rank)) if axis is None or not x.rank else tuple(
        sorted(a % x.rank for a in (axis if isinstance(axis, tuple) else (axis,))))
    whole = y if keeps else expanded(y, axes)
    return _REDUCED[name](x, whole), axes


def _unit(x: Term, size: Term) -> Term:
    nothing = size.equals(0)
    return where(nothing, 0, x / where(nothing, 1, size))


_REDUCED: dict[str, Callable[[Term, Term], Term]] = {
    "hypot": _unit, "logaddexp": share,
    "logaddexp2": lambda x, y: share(x, y, power_of_two),
}


def _reduced(site: Site, ct: Term | None) -> Cotangents:
    assert ct is not None
    slopes, axes = _slopes(site)
    if ct.rank < slopes.rank:
        ct = expanded(ct, axes)
    return [ct * slopes]


def _reduced_jvp(site: Site, tangents: Tangents) -> Tangents:
    slopes, axes = _slopes(site)
    (t,), (y,) = tangents, site.results
    assert t is not None
    return [total(slopes * t, axes).emit("Reshape", shape=y.shape)]


def _slices(site: Site) -> tuple[Any, int]:
    """Where the slices of ``np.add.reduceat`` start, and along which axis they are."""
    given = [decode(form, site.operands) for form in site.attrs["form"][1:]]
    named = {pair[1]: decode(pair[2], site.operands) for pair in site.attrs["named"][1:]}
    name, _, x, starts, *rest = given
    axis = named.pop("axis", rest.pop(0) if rest else 0)
    if name != "add" or rest or named:
        site.refuse("of np.add.reduceat with an axis alone fusec knows the derivative")
    return starts, axis % x.rank


def _reduced_at(site: Site, ct: Term | None) -> Cotangents:
    """An element has the cotangent of the slice that it lies in.  Indices that do not grow make
    slices of one element, which others may hold too: elements between two ends are counted up."""
    assert ct is not None
    (starts, axis), x = _slices(site), site.operands[0]
    if isinstance(starts, Term):
        starts = starts.cast(_INT64)
        found = where(_grows(starts), _of_slices(ct, x, starts, axis),
                      _between_ends(ct, x, starts, axis))
    elif all(a < b for a, b in pairwise(starts)):
        found = _of_slices(ct, x, starts, axis)
    else:
        site.refuse("its indices are a list that does not grow: make it an array")
    return [as_like(found, x), *[None] * (len(site.operands) - 1)]


def _of_slices(ct: Term, x: Term, starts: Any, axis: int) -> Term:
    """Of growing indices."""
    element = counter(ct, x.shape[axis])
    before = call(ct, "Searchsorted", starts, element, side="right",
                  results=[TensorType(_INT64, element.shape)])[0]
    return _zero(ct, axis).emit("Concat", ct, axis=axis).emit(
        "Gather", before, axes=(axis,), at=axis)  # also where there is no slice


def _zero(like: Term, axis: int) -> Term:
    """One layer of zeros along an axis."""
    return like.number(0).emit("BroadcastTo", shape=tuple(
        1 if d == axis else n for d, n in enumerate(like.shape)))


def _between_ends(ct: Term, x: Term, starts: Term, axis: int) -> Term:
    size, at = x.shape[axis], {"axes": (axis,), "at": axis, "combine": "Add"}
    following = _following(starts, length(x, axis))
    ends = where(following > starts, following, starts + 1)
    room = x.filled(0).cast(ct.dtype)
    edges = room.emit("Concat", _zero(room, axis), axis=axis).emit("Scatter", ct, starts, **at)
    counted = edges.emit("Scatter", -ct, ends, **at).emit("Scan", combine="Add", axes=(axis,))
    return counted.emit("Slice", starts=(0,) * x.rank, steps=(1,) * x.rank, sizes=tuple(
        size if d == axis else n for d, n in enumerate(x.shape)))


def _following(starts: Term, last: Term) -> Term:
    """The next of each."""
    ends = starts.emit("Concat", last.emit("Reshape", shape=(1,)), axis=0)
    return ends.emit("Slice", starts=(1,), steps=(1,), sizes=starts.shape)


def _grows(starts: Term) -> Term:
    largest = starts.number(np.iinfo(_INT64).max)
    return (_following(starts, largest) > starts).emit("All", axes=(0,))


declare("Ufunc", vjp=_ufunc, jvp=_ufunc_jvp)


def _ufunc_at(site: Site, cotangents: Tangents) -> Cotangents:
    """Of elements added at indices; kernels do it themselves where they know the indices."""
    (ct,), (_, name, key, *rest) = cotangents, (
        decode(form, site.operands) for form in site.attrs["form"][1:])
    assert ct is not None
    if name not in ("add", "subtract") or not rest or not isinstance(rest[0], Term):
        site.refuse(f"of np.add.at and np.subtract.at alone, not of np.{name}.at, fusec knows the "
                    "derivative")
    value = rest[0]
    if not isinstance(key, Term) or key.rank != 1 or key.dtype.kind == "b":
        site.refuse("the indices are not one array of integers of one axis")
    index = key.cast(_INT64).emit("CheckIndex", length(ct, 0), axis=0)  # wraps negative ones
    found = ct.emit("Gather", index, axes=(0,), at=0)
    found = _sum_to_operand(site, found if name == "add" else -found, value)
    return [ct if k == 0 else found if x.value == value.value else None
            for k, x in enumerate(site.operands)]


def _sum_to_operand(site: Site, term: Term, operand: Term) -> Term:
    """`sum_to` an operand of which the run alone may know whether it was broadcast: elements
    behind its last one are added to that."""
    added = term.rank - operand.rank
    unclear = [d for d, (n, m) in enumerate(zip(term.shape[added:], operand.shape, strict=True))
               if n != m and m != 1]
    if not unclear:
        return sum_to(term, operand.shape)
    if len(unclear) > 1:
        site.refuse("two of its axes have sizes that only the run knows")
    (axis,) = unclear
    summed = sum_to(term, (*operand.shape[:axis], term.shape[added + axis],
                           *operand.shape[axis + 1:]))
    place = counter(term, summed.shape[axis]).emit("Minimum", length(operand, axis) - 1)
    return operand.filled(0).emit("Scatter", summed, place, axes=(axis,), at=axis, combine="Add")


def _is_linear_at(site: Site, tangents: Tangents) -> Tangents:
    if site.attrs["form"][2] not in ("add", "subtract"):
        site.refuse("of np.add.at and np.subtract.at alone fusec knows the derivative")
    return linear(site, tangents)


declare("UfuncAt", vjp=_ufunc_at, jvp=_is_linear_at)

__all__: list[Any] = ["psi", "ufunc"]
