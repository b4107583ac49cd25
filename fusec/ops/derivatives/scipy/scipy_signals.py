"""SciPy's convolutions, filters, transforms and distances."""

from __future__ import annotations

from typing import Any

from fusec.ir.sizes.symbolic_numbers import is_int

from ..arrays.fourier import ONE_AXIS, many_axes, one_axis
from ..arrays.scans import flipped
from ..matrices.matrices import as_like, column, matmul, transposed
from ..matrices.products import conjugated
from ..protocol import Cotangents, Rule, Site, Tangents, linear, multilinear
from ..terms import Term, where
from .scipy_calls import RULES, arguments_by_name, call_scipy

# ------------------------------------------------------------------------------------- transforms

for _name, (_back, _form) in ONE_AXIS.items():
    RULES[f"fft.{_name}"] = (one_axis(_back, _form, skipped=1), linear)
for _name in ("fft", "ifft", "rfft", "irfft"):
    RULES[f"fft.{_name}2"] = (many_axes(_name, (-2, -1), skipped=1), linear)
    RULES[f"fft.{_name}n"] = (many_axes(_name, None, skipped=1), linear)


def _cosine(name: str, back: str) -> Rule:
    """Of a transform that is orthogonal: its inverse is its transpose."""
    def rule(site: Site, cotangents: Tangents) -> Cotangents:
        (ct,), given = cotangents, arguments_by_name(site, "x type n axis norm")
        assert ct is not None
        x = site.operands[0]
        if given.get("norm") != "ortho" or given.get("n") is not None or (
                given.get("orthogonalize") is False or given.get("s") is not None):
            site.refuse(f"of {name} with norm='ortho', of the operand's own length, alone fusec "
                        "knows the derivative")
        kept = {k: v for k, v in given.items() if k in ("type", "axis", "axes", "norm")}
        return [call_scipy(f"fft.{back}", ct, ct, shape=x.shape, **kept)]

    return rule


for _name, _back in (("dct", "idct"), ("dst", "idst")):
    for _tail in ("", "n"):
        RULES[f"fft.{_name}{_tail}"] = (_cosine(_name + _tail, _back + _tail), linear)
        RULES[f"fft.{_back}{_tail}"] = (_cosine(_back + _tail, _name + _tail), linear)

# ----------------------------------------------------------------------------------- convolutions


def _all_flipped(x: Term) -> Term:
    for axis in range(x.rank):
        x = flipped(x, axis)
    return conjugated(x)


def _starts(mode: str, a: Term, b: Term, rounds_up: bool) -> tuple[int, ...]:
    """Where a result begins in the full one; ``same`` is centred about the first operand, of
    `correlate2d` up to one element further than of the others."""
    if mode == "full":
        return (0,) * a.rank
    if mode == "same":
        return tuple((m - 1 + rounds_up) // 2 for m in b.shape)
    return tuple(min(n, m) - 1 for n, m in zip(a.shape, b.shape, strict=True))


def _by_factors(a: Term, b: Term, ct: Term, starts: tuple[int, ...]) -> tuple[Term, Term]:
    """The cotangents of both factors of a convolution whose result begins there."""
    if 0 in (*a.shape, *b.shape):
        return a.filled(0), b.filled(0)
    shape = tuple(n + m - 1 for n, m in zip(a.shape, b.shape, strict=True))
    whole = ct.number(0).emit("BroadcastTo", shape=shape).emit(
        "SliceUpdate", ct, starts=starts, steps=(1,) * ct.rank, sizes=ct.shape)

    def by(own: Term, other: Term) -> Term:
        found = call_scipy("signal.correlate", whole, whole, other.cast(ct.dtype), mode="valid",
                           shape=own.shape)
        return as_like(found, own)

    return by(a, b), by(b, a)


def _convolution(is_correlation: bool, is_plane: bool) -> Rule:
    def rule(site: Site, cotangents: Tangents) -> Cotangents:
        (ct,) = cotangents
        assert ct is not None
        names = "a b mode boundary fillvalue" if is_plane else "a b mode method"
        given = arguments_by_name(site, names)
        given = {{"in1": "a", "in2": "b"}.get(k, k): v for k, v in given.items()}
        a, b, mode = given["a"], given["b"], given.get("mode", "full")
        _check(site, a, b, given)
        starts = _starts(mode, a, b, is_correlation and is_plane)
        if not is_correlation:
            by_a, by_b = _by_factors(a, b, ct, starts)
        else:
            by_a, by_b = _by_factors(a, _all_flipped(b), ct, starts)
            by_b = as_like(_all_flipped(by_b), b)
        if len(site.operands) == 1:
            return [by_a + by_b]
        return [by_a, by_b]

    return rule


def _check(site: Site, a: Any, b: Any, given: dict[str, Any]) -> None:
    if not isinstance(a, Term) or not isinstance(b, Term) or not all(
            is_int(n) for x in (a, b) for n in x.shape):
        site.refuse("an operand is a list, or has a length that only the run knows")
    if given.get("boundary", "fill") != "fill" or given.get("fillvalue", 0) != 0:
        site.refuse("boundary: pad the array first (np.pad)")
    if given.get("axes") is not None:
        site.refuse("axes: convolve along all of them")
    if given.get("mode", "full") == "valid" and any(
            n < m for n, m in zip(a.shape, b.shape, strict=True)):
        site.refuse("with mode='valid' and the larger array second: exchange them")


for _name in ("convolve", "fftconvolve", "oaconvolve", "convolve2d"):
    RULES[f"signal.{_name}"] = (_convolution(False, _name == "convolve2d"), multilinear)
for _name in ("correlate", "correlate2d"):
    RULES[f"signal.{_name}"] = (_convolution(True, _name == "correlate2d"), multilinear)


def _lfilter(site: Site, cotangents: Tangents) -> Cotangents:
    """The transpose of a filter from rest runs it from the end."""
    ct, given = cotangents[0], _filter_given(site)
    assert ct is not None
    axis = given.get("axis", -1) % ct.rank
    back = call_scipy("signal.lfilter", ct, given["b"], given["a"], flipped(ct, axis), axis=axis,
                      shape=ct.shape)
    return [flipped(back, axis) if v.value == given["x"].value else None for v in site.operands]


def _filter_given(site: Site) -> dict[str, Any]:
    given = arguments_by_name(site, "b a x axis zi")
    coefficients = {given[k].value for k in "ba" if isinstance(given[k], Term)}
    if given.get("zi") is not None:
        site.refuse("with zi: filter from rest")
    if any(is_wanted and v in coefficients
           for v, is_wanted in zip(
               (x.value for x in site.operands), site.wanted, strict=True)):
        site.refuse("by its coefficients: of the signal alone fusec knows the derivative")
    return given


def _lfilter_jvp(site: Site, tangents: Tangents) -> Tangents:
    given = _filter_given(site)
    t = next(t for t, v in zip(tangents, site.operands, strict=True)
             if v.value == given["x"].value)
    assert t is not None
    return [call_scipy("signal.lfilter", t, given["b"], given["a"], t, axis=given.get("axis", -1),
                       shape=t.shape)]


RULES["signal.lfilter"] = (_lfilter, _lfilter_jvp)

# ---------------------------------------------------------------------------------------- distances


def _pair_weights(site: Site) -> tuple[Term, Term, Term]:
    """Both sets of points, and the derivative of each distance by the coordinates' differences."""
    given = arguments_by_name(site, "a b metric")
    given = {{"XA": "a", "XB": "b"}.get(k, k): v for k, v in given.items()}
    metric, (d,) = given.get("metric", "euclidean"), site.results
    if metric == "sqeuclidean":
        return given["a"], given["b"], d.filled(2)
    if metric != "euclidean":
        site.refuse(f"with metric={metric!r}: of euclidean and sqeuclidean distances alone fusec "
                    "knows the derivative")
    nothing = d.equals(0)
    return given["a"], given["b"], where(nothing, 0, 1 / where(nothing, 1, d))


def _from_pairs(weights: Term, a: Term, b: Term) -> Term:
    """``sum(w[i, j] * (a[i] - b[j]))`` over ``j``, for each ``i``."""
    return column(weights.emit("Sum", axes=(1,))) * a - matmul(weights, b)


def _cdist(site: Site, cotangents: Tangents) -> Cotangents:
    (ct,), (a, b, weights) = cotangents, _pair_weights(site)
    assert ct is not None
    scaled = ct * weights
    by_a, by_b = _from_pairs(scaled, a, b), _from_pairs(transposed(scaled), b, a)
    return [by_a + by_b] if len(site.operands) == 1 else [by_a, by_b]


def _cdist_jvp(site: Site, tangents: Tangents) -> Tangents:
    a, b, weights = _pair_weights(site)
    given = {x.value: t for x, t in zip(site.operands, tangents, strict=True)}
    by_a, by_b = (v.filled(0) if given[v.value] is None else given[v.value] for v in (a, b))
    assert by_a is not None and by_b is not None
    own, other = (column((x * t).emit("Sum", axes=(1,))) for x, t in ((a, by_a), (b, by_b)))
    cross = matmul(by_a, transposed(b)) + matmul(a, transposed(by_b))
    return [weights * (own + transposed(other) - cross)]


RULES["spatial.distance.cdist"] = (_cdist, _cdist_jvp)


def _block_diagonal(site: Site, cotangents: Tangents) -> Cotangents:
    """Each block is where it was put."""
    (ct,), at = cotangents, (0, 0)
    assert ct is not None
    found: list[Term | None] = []
    for form in site.attrs["form"][2:]:
        block = site.operands[form[1]] if type(form) is tuple and form[0] == "operand" else None
        if block is None or block.rank != 2:
            site.refuse("a block is no matrix")
        part = ct.emit("Slice", starts=at, steps=(1, 1), sizes=block.shape)
        found.append(as_like(part, block))
        at = (at[0] + block.shape[0], at[1] + block.shape[1])
    if len(found) != len(site.operands):
        site.refuse("a block is there twice: copy it")
    return found


RULES["linalg.block_diag"] = (_block_diagonal, linear)
