"""Calls whose results are more precise than their operands: `np.interp` of float32 is float64.

Rules compute in the precision of the results; their cotangents have the dtypes of the operands.
"""

from __future__ import annotations

import numpy as np

from fusec.core.records import dataclass

from ...complex_parts import component
from ..matrices.matrices import as_like
from ..protocol import DIFFERENTIABLE, Addend, Cotangents, Rule, Site, Tangents
from ..terms import Term


@dataclass(frozen=True, slots=True)
class WideSite(Site):
    """A site whose operands are ``given`` in the precision of its results."""

    given: tuple[Term, ...] = ()

    @property
    def operands(self) -> tuple[Term, ...]:
        return self.given


def _size(dtype: np.dtype) -> int:
    return component(dtype).itemsize if dtype.kind == "c" else dtype.itemsize


def _widened(site: Site) -> Site:
    """The site itself where nothing is to be widened."""
    size = max((_size(y.dtype) for y in site.results if y.dtype.kind in DIFFERENTIABLE), default=0)
    operands = site.operands
    if all(x.dtype.kind not in DIFFERENTIABLE or _size(x.dtype) >= size for x in operands):
        return site
    given = tuple(x.cast(_of_size(x.dtype, size)) if x.dtype.kind in DIFFERENTIABLE else x
                  for x in operands)
    return WideSite(site.builder, site.node, site.wanted, given)


def _of_size(dtype: np.dtype, size: int) -> np.dtype:
    return np.dtype(f"c{2 * size}") if dtype.kind == "c" else np.dtype(f"f{size}")


def widely(vjp: Rule, jvp: Rule) -> tuple[Rule, Rule]:
    """Rules that are written for operands as precise as the results, for any."""
    assert callable(vjp) and callable(jvp)

    def wide_vjp(site: Site, cotangents: Tangents) -> Cotangents:
        found = vjp(_widened(site), cotangents)
        return [g if g is None or isinstance(g, Addend) else as_like(g, x)
                for g, x in zip(found, site.operands, strict=True)]

    def wide_jvp(site: Site, tangents: Tangents) -> Tangents:
        wide = _widened(site)
        given = [None if t is None else t.cast(x.dtype)
                 for t, x in zip(tangents, wide.operands, strict=True)]
        found = jvp(wide, given)
        return [t.cast(y.dtype) if isinstance(t, Term) else None
                for t, y in zip(found, site.results, strict=True)]

    return wide_vjp, wide_jvp
