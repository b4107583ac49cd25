"""Contractions of `np.einsum` and `np.dot` are products of matrices, or sums of products.

does:   Einsum, Dot -> MatMul of the operands' axes in the order that it wants, where both operands
        have axes that stay and one that is summed; else, and of windows and broadcast operands
        that would take much memory, Mul, and Sum over what the result lacks
needs:  nothing
leaves: operands with a diagonal, axes of length 1 that are spread along another one's label, labels
        that one of several operands has and the result lacks; three operands and more without
        ``optimize``, which NumPy multiplies at once; float16, integers and booleans
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from fusec.ir import Graph, Node, Value
from fusec.ir.sizes.bindings import typical
from fusec.ir.sizes.dims import Size
from fusec.ops import get
from fusec.ops.calls.library import decode
from fusec.ops.calls.subscripts import CONTRACTIONS, Labels, labels_of, labels_of_dot

from ..options import PassOptions
from ..rewrite import Replacement, Rewriter, rewrite

KINDS = "fdFD"  # of dtype: others have sums of their own
FEW = 4  # columns: for so many it is faster to read spread elements where they lie
WRITTEN_OUT = 2**24  # spread elements, 128 MiB of float64, that get memory for any product
SHARE = 8  # more of them get memory if they are at most so many times what else is read or written


class _Term(NamedTuple):
    """A value and a label for each of its axes."""

    value: Value
    labels: str


def contracted_axes(graph: Graph, options: PassOptions) -> Graph:
    """See the module docstring.  Sums get an order of their own, so not with ``fp="strict"``."""
    if options.fp == "strict":
        return graph
    return rewrite(graph, _visit, ops=CONTRACTIONS)


def _visit(node: Node, rewriter: Rewriter) -> Replacement:
    named = {pair[1]: decode(pair[2], node.inputs) for pair in node.attrs["named"][1:]}
    dtype = node.types[0].dtype
    if len(node.types) > 1 or dtype.char not in KINDS or named.keys() - {"optimize"}:
        return None
    named_axes = _labels(node)
    if named_axes is None or not _is_plain(*named_axes):
        return None
    labels, values = named_axes
    terms = [_Term(value, x) for value, x in zip(values, labels.operands, strict=True)]
    found = _contracted(rewriter, terms, labels.result, named.get("optimize", False))
    if found is None:
        return None
    value = _turned(rewriter, _of_dtype(rewriter, found, dtype), labels.result)
    is_copied = rewriter.old.id in rewriter.root_nodes and _needs_copy(value)
    return [rewriter.emit("Copy", value) if is_copied else value]


def _needs_copy(result: Value) -> bool:
    """Whether it is a view, or in NumPy's result may lie otherwise than products of stacks do."""
    is_of_stacks = result.node.op == "MatMul" and result.type.rank > 3
    return is_of_stacks or get(result.node.op).kind in ("view", "source")


def _contracted(
    rewriter: Rewriter, terms: Sequence[_Term], result: str, optimize: Any
) -> _Term | None:
    """Two terms at a time, each two in their own dtype, in the order that was asked for; None: it
    is left to NumPy."""
    left = list(terms)
    for pair in _path(terms, result, optimize):
        joined = [left[k] for k in pair]
        left = [term for k, term in enumerate(left) if k not in pair]
        elsewhere = result + "".join(term.labels for term in left)
        dtype = np.result_type(*(term.value.dtype for term in joined))
        if dtype.char not in KINDS:
            return None
        found = _joined(rewriter, [_of_dtype(rewriter, x, dtype) for x in joined], elsewhere)
        if found is None:
            return None
        left.append(found)
    return left[0]


def _path(terms: Sequence[_Term], result: str, optimize: Any) -> Sequence[tuple[int, ...]]:
    """Of lengths that the run decides, typical ones choose."""
    if len(terms) < 3:
        return [tuple(range(len(terms)))]
    shapes = [tuple(int(typical(n)) for n in term.value.shape) for term in terms]
    like = [np.broadcast_to(np.float64(0), shape) for shape in shapes]
    text = f"{','.join(term.labels for term in terms)}->{result}"
    return np.einsum_path(text, *like, optimize=optimize)[0][1:]


# ------------------------------------------------------------------------------------------ labels


def _labels(node: Node) -> tuple[Labels, Sequence[Value]] | None:
    """None where an operand is a number or a list of the program's text."""
    given = [decode(form, node.inputs) for form in node.attrs["form"][1:]]
    if node.op == "Dot":
        is_of_two = len(given) == 2 and all(isinstance(x, Value) for x in given)
        return (labels_of_dot(*(x.type.rank for x in given)), given) if is_of_two else None
    operands = given[1:] if isinstance(given[0], str) else given[:len(given) // 2 * 2:2]
    if not all(isinstance(x, Value) for x in operands):
        return None
    return labels_of(given, Value, lambda value: value.type.rank)


def _is_plain(labels: Labels, values: Sequence[Value]) -> bool:
    """Whether each label stands for one length, which the run may decide, and at most once in each
    operand."""
    sizes: dict[str, Size] = {}
    for value, own in zip(values, labels.operands, strict=True):
        if len(set(own)) < len(own):
            return False
        if any(sizes.setdefault(x, n) != n for x, n in zip(own, value.shape, strict=True)):
            return False
    return True


# ------------------------------------------------------------------------------------ contractions


def _joined(rewriter: Rewriter, terms: Sequence[_Term], elsewhere: str) -> _Term | None:
    """The product of one term or two, summed over what is nowhere else."""
    if len(terms) == 1:
        return _summed(rewriter, terms[0], elsewhere)
    if len(terms) > 2 or any(x not in elsewhere for x in set(terms[0].labels) ^ set(
            terms[1].labels)):
        return None
    a, b = terms
    shared = [x for x in a.labels if x in b.labels]
    summed = "".join(x for x in shared if x not in elsewhere)
    batch = "".join(x for x in shared if x in elsewhere)
    rows, columns = ("".join(x for x in term.labels if x not in shared) for term in terms)
    is_of_vectors = not (rows and columns)
    is_sum = is_of_vectors and max(map(len, (batch + summed, rows, columns))) > 1
    spread = [x.labels for x, y in ((a, b), (b, a)) if summed and _stays_spread(x, y, batch)]
    if not summed or is_sum or spread:
        product = _multiplied(rewriter, a, b, spread[0] if spread else "")
        return _summed(rewriter, product, elsewhere)
    if batch and (a.labels[-1] in batch or b.labels[-1] in batch):
        return None  # of matrices that lie so no library takes products without a copy
    if rows and columns and elsewhere.index(columns[0]) < elsewhere.index(rows[0]):
        a, b, rows, columns = b, a, columns, rows
    return _matrix_product(rewriter, (a, b), batch, (rows, summed, columns))


def _summed(rewriter: Rewriter, term: _Term, kept: str) -> _Term:
    axes = tuple(k for k, x in enumerate(term.labels) if x not in kept)
    if not axes:
        return term
    return _Term(rewriter.emit("Sum", term.value, axes=axes),
                 "".join(x for x in term.labels if x in kept))


def _multiplied(rewriter: Rewriter, a: _Term, b: _Term, first: str) -> _Term:
    """Axes are in the order of the operand with more of them, that of its memory; or are ``first``,
    which the columns that a spread element is multiplied by follow."""
    longer, shorter = (a, b) if len(a.labels) >= len(b.labels) else (b, a)
    every = "".join(x for x in shorter.labels if x not in longer.labels) + longer.labels
    if first:
        every = first + "".join(x for x in every if x not in first)
    left, right = (_spread(rewriter, term, every) for term in (a, b))
    return _Term(rewriter.emit("Mul", left, right), every)


def _spread(rewriter: Rewriter, term: _Term, every: str) -> Value:
    """The value with an axis for each label; of length 1 where it has none."""
    value = _turned(rewriter, term, "".join(x for x in every if x in term.labels))
    missing = tuple(k for k, x in enumerate(every) if x not in term.labels)
    return rewriter.emit("ExpandDims", value, axes=missing) if missing else value


def _matrix_product(
    rewriter: Rewriter, terms: tuple[_Term, _Term], batch: str, groups: tuple[str, str, str]
) -> _Term:
    """``groups``: rows, the summed axes, and columns; each is one axis of the matrices."""
    rows, summed, columns = groups
    sizes = {x: n for term in terms for x, n in zip(term.labels, term.value.shape, strict=True)}
    left = _grouped(rewriter, terms[0], [*batch, *filter(None, (rows, summed))], sizes)
    right = _grouped(rewriter, terms[1], [*batch, *filter(None, (summed, columns))], sizes)
    labels = batch + rows + columns
    product = rewriter.emit("MatMul", left, right)
    if max(len(rows), len(columns)) > 1:
        product = rewriter.emit("Reshape", product, shape=tuple(sizes[x] for x in labels))
    return _Term(product, labels)


def _grouped(
    rewriter: Rewriter, term: _Term, groups: Sequence[str], sizes: Mapping[str, Size]
) -> Value:
    """The value with one axis for each group of labels."""
    value = _turned(rewriter, term, "".join(groups))
    if all(len(group) == 1 for group in groups):
        return value
    return rewriter.emit("Reshape", value, shape=tuple(
        math.prod(sizes[x] for x in group) for group in groups))


def _turned(rewriter: Rewriter, term: _Term, labels: str) -> Value:
    if labels == term.labels:
        return term.value
    perm = tuple(term.labels.index(x) for x in labels)
    return rewriter.emit("Transpose", term.value, perm=perm)


def _of_dtype(rewriter: Rewriter, term: _Term, dtype: np.dtype) -> _Term:
    if term.value.dtype == dtype:
        return term
    return _Term(rewriter.emit("Cast", term.value, dtype=dtype), term.labels)


# ------------------------------------------------------------------------------- spread elements


def _stays_spread(term: _Term, other: _Term, batch: str) -> bool:
    """Whether the term's matrices have elements many times that are better not written out."""
    axes = frozenset(k for k, x in enumerate(term.labels) if x not in batch)
    if not _is_spread(term.value, axes):
        return False
    lengths = {x: int(typical(n)) for each in (term, other)
               for x, n in zip(each.labels, each.value.shape, strict=True)}
    free = set(other.labels) - set(term.labels)
    written, read, columns = (math.prod(lengths[x] for x in labels)
                              for labels in (term.labels, other.labels, free))
    result = math.prod(lengths[x] for x in {*batch, *(set(term.labels) ^ set(other.labels))})
    return columns <= FEW or written > max(WRITTEN_OUT, SHARE * (read + result))


def _is_spread(value: Value, axes: frozenset[int]) -> bool:
    """Whether elements are along these axes more often than in memory: windows, lengths of 1."""
    node = value.node
    if node.op == "Transpose":
        return _is_spread(node.inputs[0], frozenset(node.attrs["perm"][k] for k in axes))
    if node.op == "Cast":
        return _is_spread(node.inputs[0], axes)
    if node.op == "BroadcastTo":
        missing = value.type.rank - node.inputs[0].type.rank
        short = (1,) * missing + tuple(node.inputs[0].shape)
        return any(short[k] != value.shape[k] for k in axes)
    return node.op == "Gather" and _elements(node.inputs[0]) < _elements(value)


def _elements(value: Value) -> int:
    return math.prod(int(typical(n)) for n in value.shape)
