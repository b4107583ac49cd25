"""Products of matrices and vectors."""

from __future__ import annotations

from collections.abc import Callable

from fusec.ir import TensorType, Value

from .diagonals import with_diagonals
from .protocol import AloneError, LaneSite, declare


def _column(site: LaneSite, value: Value, axis: int) -> Value:
    return site.emit("ExpandDims", value, axes=(axis,))


def _squeezed(site: LaneSite, value: Value, *axes: int) -> Value:
    return site.emit("Squeeze", value, axes=axes)


def _matmul(site: LaneSite) -> list[Value]:
    ranks = tuple(v.type.rank for v in site.node.inputs)
    rule = _BY_RANK.get(ranks + site.has_lanes)
    return [rule(site, *site.given) if rule is not None else _stacked(site, *ranks)]


def _rows_by_matrix(site: LaneSite, a: Value, b: Value) -> Value:
    """A vector a lane, times one matrix: one product of matrices."""
    return site.emit("MatMul", a, b)


def _matrix_by_rows(site: LaneSite, a: Value, b: Value) -> Value:
    """One matrix times a vector a lane: the lanes' vectors are rows of one product."""
    return site.emit("MatMul", b, site.emit("Transpose", a, perm=(1, 0)))


def _matrices_by_matrix(site: LaneSite, a: Value, b: Value) -> Value:
    """A matrix a lane, times one matrix: all rows of all lanes in one product."""
    lanes, rows, inner = a.shape
    flat = site.emit("Reshape", a, shape=(lanes * rows, inner))
    product = site.emit("MatMul", flat, b)
    return site.emit("Reshape", product, shape=(lanes, rows, b.shape[1]))


def _vectors(site: LaneSite, a: Value, b: Value) -> Value:
    """A vector a lane, times another one of the lane."""
    if a.dtype.kind == "b":
        return site.emit("Any", site.emit("LogicalAnd", a, b), axes=(1,))
    return site.emit("Sum", site.emit("Mul", a, b), axes=(1,))


_BY_RANK: dict[tuple[int | bool, ...], Callable[[LaneSite, Value, Value], Value]] = {
    (1, 2, True, False): _rows_by_matrix, (2, 1, False, True): _matrix_by_rows,
    (2, 2, True, False): _matrices_by_matrix, (1, 1, True, True): _vectors,
    (1, 1, True, False): _rows_by_matrix,
    (1, 1, False, True): lambda site, a, b: site.emit("MatMul", b, a),
}


def _stacked(site: LaneSite, left: int, right: int) -> Value:
    """A stack of products: vectors are matrices of one row or column in it."""
    a, b = site.given
    rank = max(left, right, 2)
    a = _column(site, a, a.type.rank - 1) if left == 1 else a
    b = _column(site, b, b.type.rank) if right == 1 else b
    a, b = (_lifted(site, v, max(own, 2), rank, has)
            for v, own, has in zip((a, b), (left, right), site.has_lanes, strict=True))
    product = site.emit("MatMul", a, b)
    gone = [product.type.rank - 2] * (left == 1) + [product.type.rank - 1] * (right == 1)
    return _squeezed(site, product, *gone) if gone else product


def _lifted(site: LaneSite, value: Value, own: int, rank: int, has_lanes: bool) -> Value:
    if not has_lanes or own == rank:
        return value
    return site.emit("ExpandDims", value, axes=tuple(range(1, 1 + rank - own)))


def _dot(site: LaneSite) -> list[Value]:
    """`np.dot` of at most two axes each is the product; of more it sums other axes."""
    form, named = site.attrs["form"], site.attrs["named"]
    ranks = [v.type.rank for v in site.node.inputs]
    plain = ("tuple", ("operand", 0), ("operand", 1))
    if form != plain or len(named) > 1 or not all(0 < rank <= 2 for rank in ranks) or len(
            {v.dtype for v in site.node.inputs}) > 1:
        raise AloneError("np.dot of these operands")
    return list(with_diagonals(_matmul)(site))


def _einsum(site: LaneSite) -> list[Value]:
    """One more letter: that of lanes, before those of the operands that have them."""
    form, named = site.attrs["form"], site.attrs["named"]
    if len(form) < 2 or not isinstance(form[1], str) or "." in form[1]:
        raise AloneError("np.einsum without a formula of letters alone")
    operands, (inputs, arrow, output) = form[2:], form[1].replace(" ", "").partition("->")
    letters = inputs.split(",")
    if any(op != ("operand", k) for k, op in enumerate(operands)) or len(letters) != len(operands):
        raise AloneError("np.einsum of operands that are no arrays")
    lane = next(c for c in "ZYXWVUTSRQPONMLKJIHGFEDCBAzyxwvutsrqponmlkjihgfedcba"
                if c not in inputs)
    if not arrow:
        flat = inputs.replace(",", "")
        output = "".join(sorted(c for c in set(flat) if flat.count(c) == 1))
    new = ",".join(lane * has + text for text, has in zip(letters, site.has_lanes, strict=True))
    formula = f"{new}->{lane}{output}"
    return site.again(*site.given, form=("tuple", formula, *operands), named=named,
                      results=lane_results(site))


def lane_results(site: LaneSite) -> tuple[TensorType, ...]:
    """The types of a call's results for all lanes."""
    return tuple(TensorType(t.dtype, (site.lanes, *t.shape)) for t in site.attrs["results"])


declare(with_diagonals(_matmul), "MatMul")
declare(_dot, "Dot")
declare(_einsum, "Einsum")
