"""Fourier transforms: linear, and the transpose of one is another one.

The adjoint of the unscaled transform is the unscaled inverse: the norm ``backward`` of one is
``forward`` of the other, and ``ortho`` is itself.  A transform of another length than its operand
has pads it with zeros or cuts it, so its adjoint cuts or pads the result.  Of a real transform the
coefficients that stand for two count twice in the inverse and half in its adjoint.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fusec.ir.sizes.symbolic_numbers import is_int

from ...complex_parts import component
from ..calls import arguments, array, call
from ..matrices.matrices import as_like
from ..matrices.products import conjugated
from ..protocol import Cotangents, Rule, Site, Tangents, declare, linear
from ..terms import Term

_OPPOSITE = {None: "forward", "backward": "forward", "forward": "backward", "ortho": "ortho"}


def _swapped(norm: str | None) -> str:
    return _OPPOSITE[norm]


def _along(x: Term, op: str, axis: int, n: int, norm: str, size: int, dtype: np.dtype) -> Term:
    """One transform along an axis, which gives ``size`` elements."""
    shape = tuple(size if d == axis else m for d, m in enumerate(x.shape))
    return call(x, op, x, n=n, axis=axis, norm=norm, results=[array(dtype, shape)])[0]


def fitted(x: Term, axis: int, size: Any) -> Term:
    """The first elements along an axis, or zeros behind them."""
    own = x.shape[axis]
    shape = tuple(size if d == axis else n for d, n in enumerate(x.shape))
    zero = (0,) * x.rank
    if own == size:
        return x
    if own > size:
        return x.emit("Slice", starts=zero, steps=(1,) * x.rank, sizes=shape)
    whole = x.number(0).emit("BroadcastTo", shape=shape)
    return whole.emit("SliceUpdate", x, starts=zero, steps=(1,) * x.rank, sizes=x.shape)


def _doubled(x: Term, axis: int, n: int, factor: float) -> Term:
    """Those coefficients times a factor that stand for two of a real transform of length ``n``."""
    shape = tuple(m if d == axis else 1 for d, m in enumerate(x.shape))
    builder = x.builder
    k = Term(builder, builder.emit("Iota", size=x.shape[axis], dtype=np.dtype(np.int64)))
    last = n // 2 if n % 2 == 0 else n
    is_one = k.equals(0).emit("LogicalOr", k.equals(last)).emit("Reshape", shape=shape)
    one, other = x.number(1), x.number(factor)
    return x * is_one.emit("Where", one, other)


Step = tuple[int, int | None]  # an axis, and the length of the transform along it, if it was given


def by_complex(ct: Term, x: Term, steps: Sequence[Step], norm: str | None, back: str) -> Term:
    """The adjoint of transforms along axes: ``back`` is the op of the inverse of one of them."""
    for axis, n in steps:
        size = x.shape[axis] if n is None else n
        ct = fitted(_along(ct, back, axis, size, _swapped(norm), size, ct.dtype), axis,
                    x.shape[axis])
    return as_like(ct, x)


def by_rfft(ct: Term, x: Term, step: Step, norm: str | None, back: str) -> Term:
    """The adjoint of a transform of real numbers."""
    axis, n = step
    size = x.shape[axis] if n is None else n
    half = _doubled(ct, axis, size, 0.5)
    found = _along(half, back, axis, size, _swapped(norm), size, component(ct.dtype))
    return fitted(found, axis, x.shape[axis])


def by_irfft(ct: Term, x: Term, step: Step, norm: str | None, back: str) -> Term:
    """The adjoint of a transform to real numbers."""
    axis = step[0]
    n = ct.shape[axis]
    dtype = np.result_type(ct.dtype, np.complex64)
    found = _along(ct, back, axis, n, _swapped(norm), n // 2 + 1, dtype)
    return fitted(_doubled(found, axis, n, 2.0), axis, x.shape[axis])


def _static(site: Site) -> Term:
    x = site.operands[0]
    if not all(is_int(n) for v in (x, *site.results) for n in v.shape):
        site.refuse("a length is known only when the code runs")
    return x


def one_axis(back: str, form: Any, names: str = "a n axis norm", skipped: int = 0) -> Rule:
    """`vjp` of a transform along one axis."""
    def rule(site: Site, cotangents: Tangents) -> Cotangents:
        (ct,), x, given = cotangents, _static(site), arguments(site, names, skipped)
        assert ct is not None
        axis = given.get("axis", -1) % x.rank
        return [as_like(form(ct, x, (axis, given.get("n")), given.get("norm"), back), x)]

    return rule


def _complex_one(ct: Term, x: Term, step: Step, norm: str | None, back: str) -> Term:
    return by_complex(ct, x, [step], norm, back)


def _hermitian(ct: Term, x: Term, step: Step, norm: str | None, back: str) -> Term:
    """`hfft` is the unscaled `irfft` of the conjugate."""
    return conjugated(by_irfft(ct, x, step, _swapped(norm), back))


def _ihermitian(ct: Term, x: Term, step: Step, norm: str | None, back: str) -> Term:
    """`ihfft` is the conjugate of the scaled `rfft`."""
    return by_rfft(conjugated(ct), x, step, _swapped(norm), back)


def _steps(x: Term, given: dict[str, Any], default: Any) -> list[Step]:
    sizes, axes = given.get("s"), given.get("axes", default)
    if axes is None:
        axes = range(-len(sizes), 0) if sizes is not None else range(x.rank)
    axes = [a % x.rank for a in axes]
    lengths = [None] * len(axes) if sizes is None else [None if n == -1 else n for n in sizes]
    return list(zip(axes, lengths, strict=True))


def many_axes(
    kind: str, default: Any, names: str = "a s axes norm", skipped: int = 0,
) -> Rule:
    """`vjp` of a transform along several axes; ``kind``: fft, ifft, rfft or irfft."""
    def rule(site: Site, cotangents: Tangents) -> Cotangents:
        (ct,), x, given = cotangents, _static(site), arguments(site, names, skipped)
        assert ct is not None
        steps, norm = _steps(x, given, default), given.get("norm")
        if len({axis for axis, _ in steps}) < len(steps):
            site.refuse("an axis is transformed twice")
        return [as_like(_MANY[kind](ct, x, steps, norm), x)]

    return rule


def _many_rfft(ct: Term, x: Term, steps: Sequence[Step], norm: str | None) -> Term:
    """The last axis was transformed first, from real numbers; then the others."""
    *others, last = steps
    halves = x.cast(ct.dtype)
    between = tuple(ct.shape[d] if d == last[0] else n for d, n in enumerate(halves.shape))
    middle = Term(x.builder, halves.number(0).emit("BroadcastTo", shape=between).value)
    ct = by_complex(ct, middle, others, norm, "FftIfft")
    return by_rfft(ct, x, last, norm, "FftIrfft")


def _many_irfft(ct: Term, x: Term, steps: Sequence[Step], norm: str | None) -> Term:
    """The last axis was transformed last, to real numbers."""
    *others, last = steps
    axis, _ = last
    shape = tuple(x.shape[d] if d == axis else n for d, n in enumerate(ct.shape))
    middle = x.number(0).emit("BroadcastTo", shape=shape)
    ct = by_irfft(ct, middle, last, norm, "FftRfft")
    return by_complex(ct, x, others, norm, "FftFft")


_MANY: dict[str, Any] = {
    "fft": lambda ct, x, steps, norm: by_complex(ct, x, steps, norm, "FftIfft"),
    "ifft": lambda ct, x, steps, norm: by_complex(ct, x, steps, norm, "FftFft"),
    "rfft": _many_rfft, "irfft": _many_irfft,
}
# What SciPy's functions of the same names share: the rule's form and the op that goes back.
ONE_AXIS: dict[str, tuple[str, Any]] = {
    "fft": ("FftIfft", _complex_one), "ifft": ("FftFft", _complex_one),
    "rfft": ("FftIrfft", by_rfft), "irfft": ("FftRfft", by_irfft),
    "hfft": ("FftRfft", _hermitian), "ihfft": ("FftIrfft", _ihermitian),
}
for _name, (_back, _form) in ONE_AXIS.items():
    declare(f"Fft{_name.title()}", vjp=one_axis(_back, _form), jvp=linear)
for _name in ("fft", "ifft", "rfft", "irfft"):
    declare(f"Fft{_name.title()}2", vjp=many_axes(_name, (-2, -1)), jvp=linear)
    declare(f"Fft{_name.title()}n", vjp=many_axes(_name, None), jvp=linear)
