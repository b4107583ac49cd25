"""SciPy's `solve_banded`: systems whose matrix is given by its diagonals.

Row ``r`` of ``ab`` (rows, n) has the matrix's elements ``M[j + r - upper, j]`` at ``j``.  As of any
system: with ``M^H back = ct`` the cotangent of ``M`` is ``-back x^H``, of which each row of ``ab``
takes one diagonal (M. Giles, NAR 08/01 (2008), section 2.3.1).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..matrices.matrices import as_like, conjugated
from ..protocol import Cotangents, Site, Tangents, sum_to
from ..terms import Term
from .scipy_calls import RULES, arguments_by_name, call_scipy, columns


def _given(site: Site) -> tuple[Term, Term, Term, int, int]:
    """The diagonals, the right-hand sides and the solution as columns, and how many diagonals are
    below and above the main one."""
    given = arguments_by_name(site, "l_and_u ab b")
    below, above = (int(number) for number in given["l_and_u"])
    x = columns(site.results[0])
    return given["ab"].cast(x.dtype), columns(given["b"]).cast(x.dtype), x, below, above


def _shifted(x: Term, by: int) -> Term:
    """``x[j + by, k]`` at ``[j, k]``, and 0 where there is none."""
    n, k = x.shape
    size = abs(by)
    if by == 0 or (isinstance(n, int) and size >= n):
        return x if by == 0 else x.filled(0)
    kept = x.emit("Slice", starts=(max(by, 0), 0), steps=(1, 1), sizes=(n - size, k))
    gap = x.number(0).emit("BroadcastTo", shape=(size, k))
    return kept.emit("Concat", gap, axis=0) if by > 0 else gap.emit("Concat", kept, axis=0)


def _rows(ab: Term) -> Iterator[Term]:
    """Each diagonal as a column (n, 1)."""
    n = ab.shape[1]
    for number in range(int(ab.shape[0])):
        row = ab.emit("Slice", starts=(number, 0), steps=(1, 1), sizes=(1, n))
        yield row.emit("Reshape", shape=(n, 1))


def _stacked(rows: list[Term]) -> Term:
    """Columns (n, 1) as the rows of an array."""
    lines = [row.emit("Reshape", shape=(1, row.shape[0])) for row in rows]
    return lines[0] if len(lines) == 1 else lines[0].emit("Concat", *lines[1:], axis=0)


def _solved(ab: Term, right: Term, below: int, above: int) -> Term:
    return call_scipy("linalg.solve_banded", ab, (below, above), ab, right, shape=right.shape)


def _solve_banded(site: Site, cotangents: Tangents) -> Cotangents:
    (ct,), (ab, _, x, below, above) = cotangents, _given(site)
    assert ct is not None
    flipped = [_shifted(row, above - number) for number, row in enumerate(_rows(conjugated(ab)))]
    back = _solved(_stacked(flipped[::-1]), columns(ct), above, below)
    products = [_shifted(back, number - above) * conjugated(x)
                for number in range(below + above + 1)]
    by_ab = _stacked([-sum_to(each, (each.shape[0], 1)) for each in products])
    given: dict[str, Any] = arguments_by_name(site, "l_and_u ab b")
    return [as_like(by_ab, given["ab"]),
            as_like(back.emit("Reshape", shape=given["b"].shape), given["b"])]


def _solve_banded_jvp(site: Site, tangents: Tangents) -> Tangents:
    ab, _, x, below, above = _given(site)
    by_ab, by_b = site.filled(tangents, site.operands)
    right = columns(by_b).cast(x.dtype)
    for number, row in enumerate(_rows(by_ab.cast(x.dtype))):
        right = right - _shifted(row * x, above - number)
    return [_solved(ab, right, below, above).emit("Reshape", shape=site.results[0].shape)]


RULES["linalg.solve_banded"] = (_solve_banded, _solve_banded_jvp)
