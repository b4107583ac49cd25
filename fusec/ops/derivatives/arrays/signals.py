"""Convolutions and correlations of lines: bilinear, and the transpose of one is the other.

A result in the mode ``same`` or ``valid`` is a part of the full one; elements outside have the
cotangent 0.
"""

from __future__ import annotations

from typing import Any

from fusec.ir.sizes.symbolic_numbers import is_int

from ..calls import arguments, array, call
from ..matrices.matrices import as_like
from ..matrices.products import conjugated
from ..protocol import Cotangents, Site, Tangents, declare, multilinear
from ..terms import Term
from .scans import flipped

_MODES = ("valid", "same", "full")


def _mode(given: dict[str, Any], default: str) -> str:
    mode = given.get("mode", default)
    return mode if isinstance(mode, str) else _MODES[mode]


def correlated(x: Term, y: Term) -> Term:
    """``sum(x[k + i] * conj(y[i]))`` for each place ``k`` of the shorter ``y`` in ``x``."""
    size = x.shape[0] - y.shape[0] + 1
    return call(x, "Correlate", x, y, mode="valid", results=[array(x.dtype, (size,))])[0]


def in_full(ct: Term, first: int, size: Any) -> Term:
    """A cotangent of a part of a line as one of the line: zeros around it."""
    if ct.shape[0] == size:
        return ct
    whole = ct.number(0).emit("BroadcastTo", shape=(size,))
    return whole.emit("SliceUpdate", ct, starts=(first,), steps=(1,), sizes=ct.shape)


def first_of(mode: str, n: int, m: int) -> int:
    """Where a convolution of lines of these lengths begins in the full one, as NumPy has it."""
    shorter = min(n, m)
    return {"full": 0, "same": (shorter - 1) // 2, "valid": shorter - 1}[mode]


def by_factors(a: Term, v: Term, ct: Term, first: int) -> tuple[Term, Term]:
    """The cotangents of both lines of a convolution whose result begins there."""
    dtype = ct.dtype
    whole = in_full(ct, first, a.shape[0] + v.shape[0] - 1)
    return tuple(as_like(correlated(whole, other.cast(dtype)), own)  # type: ignore[return-value]
                 for own, other in ((a, v), (v, a)))


def _convolve(site: Site, cotangents: Tangents) -> Cotangents:
    (ct,), given = cotangents, arguments(site, "a v mode")
    assert ct is not None
    a, v = _line(site, given["a"]), _line(site, given["v"])
    found = by_factors(a, v, ct, first_of(_mode(given, "full"), a.shape[0], v.shape[0]))
    return _placed(site, (given["a"], given["v"]), found)


def _line(site: Site, x: Any) -> Term:
    if not isinstance(x, Term) or not all(map(is_int, x.shape)):
        site.refuse("an operand is a list, or has a length that only the run knows")
    return x if x.rank else x.emit("ExpandDims", axes=(0,))


def _placed(site: Site, given: tuple[Term, Term], found: tuple[Term, Term]) -> Cotangents:
    parts = [g.emit("Reshape", shape=x.shape) for g, x in zip(found, given, strict=True)]
    return [parts[0] + parts[1]] if len(site.node.inputs) == 1 else parts


def _correlate(site: Site, cotangents: Tangents) -> Cotangents:
    """The convolution with the conjugate of the reversed line, or, where that is the longer one,
    NumPy's result for the exchanged lines: reversed and conjugated."""
    (ct,), given = cotangents, arguments(site, "a v mode")
    assert ct is not None
    a, v = _line(site, given["a"]), _line(site, given["v"])
    n, m = a.shape[0], v.shape[0]
    first = first_of(_mode(given, "valid"), n, m)
    if n < m:
        ct = flipped(ct, 0)
        by_v, by_a = by_factors(v, conjugated(flipped(a, 0)), conjugated(ct), first)
        return _placed(site, (given["a"], given["v"]), (conjugated(flipped(by_a, 0)), by_v))
    by_a, by_v = by_factors(a, conjugated(flipped(v, 0)), ct, first)
    return _placed(site, (given["a"], given["v"]), (by_a, conjugated(flipped(by_v, 0))))


def _correlate_jvp(site: Site, tangents: Tangents) -> Tangents:
    """Linear in both over the reals: the second one is conjugated."""
    return multilinear(site, tangents)


declare("Convolve", vjp=_convolve, jvp=multilinear)
declare("Correlate", vjp=_correlate, jvp=_correlate_jvp)
