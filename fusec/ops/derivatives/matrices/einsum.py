"""`np.einsum` and `np.dot`: multilinear, so the cotangent of an operand is an einsum of the others.

Labels of an operand that nothing else has were summed there alone: their cotangent is the same
along these axes.  A label that an operand has twice walks its diagonal: the cotangent lies there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...calls import subscripts
from ...calls.library import decode
from ...calls.subscripts import Labels
from ..arrays.indices import counter
from ..calls import arguments, array, call
from ..protocol import Cotangents, Site, Tangents, broadcast_to, declare, multilinear, sum_to
from ..terms import Term
from .matrices import as_like
from .products import conjugated


def labels_of(site: Site) -> tuple[Labels, list[Term]]:
    given = [decode(form, site.operands) for form in site.attrs["form"][1:]]
    return subscripts.labels_of(given, Term, lambda term: term.rank)


def einsum(labels: Labels, terms: Sequence[Term]) -> Term:
    """The einsum of terms of one dtype."""
    sizes = sizes_of(labels.operands, terms)
    shape = tuple(sizes[x] for x in labels.result)
    return call(terms[0], "Einsum", f"{','.join(labels.operands)}->{labels.result}", *terms,
                results=[array(terms[0].dtype, shape)])[0]


def sizes_of(operands: Sequence[str], terms: Sequence[Term]) -> dict[str, Any]:
    """The length of each label; an axis of length 1 may meet another one."""
    sizes: dict[str, Any] = {}
    for labels, term in zip(operands, terms, strict=True):
        for label, size in zip(labels, term.shape, strict=True):
            if sizes.get(label, 1) == 1:
                sizes[label] = size
    return sizes


def _by_operand(labels: Labels, terms: Sequence[Term], number: int, ct: Term) -> Term:
    own, like = labels.operands[number], terms[number]
    single = "".join(dict.fromkeys(own))
    others = [k for k in range(len(terms)) if k != number]
    elsewhere = set(labels.result).union(*(labels.operands[k] for k in others))
    kept = "".join(x for x in single if x in elsewhere)
    factors = [ct, *(conjugated(terms[k].cast(ct.dtype)) for k in others)]
    names = [labels.result, *(labels.operands[k] for k in others)]
    found = ct if len(names) == 1 and names[0] == kept else einsum(Labels(names, kept), factors)
    sizes = sizes_of(labels.operands, terms)
    missing = tuple(k for k, x in enumerate(single) if x not in kept)
    found = found.emit("ExpandDims", axes=missing) if missing else found
    lengths = tuple(like.shape[own.index(x)] for x in single)
    whole = broadcast_to(found, tuple(
        sizes[x] if x in kept else n for x, n in zip(single, lengths, strict=True)))
    return as_like(_on_diagonals(sum_to(whole, lengths), single, own, like), like)


def _on_diagonals(found: Term, single: str, own: str, like: Term) -> Term:
    """Where labels are there twice the elements with equal indices, zeros elsewhere."""
    if single == own:
        return found
    numbers = []
    for label in own:
        size = like.shape[own.index(label)]
        shape = tuple(size if x == label else 1 for x in single)
        numbers.append(counter(found, size).emit("Reshape", shape=shape))
    zeros = like.filled(0).cast(found.dtype)
    return zeros.emit("Scatter", found, *numbers, axes=tuple(range(len(own))), at=0,
                      combine="Add")


def _einsum(site: Site, cotangents: Tangents) -> Cotangents:
    (ct,), (labels, terms) = cotangents, labels_of(site)
    assert ct is not None
    found: dict[Any, Term] = {}
    for number, term in enumerate(terms):
        position = site.node.inputs.index(term.value)
        if site.wanted[position]:
            part = _by_operand(labels, terms, number, ct)
            found[position] = found[position] + part if position in found else part
    return [found.get(k) for k in range(len(site.node.inputs))]


def _one_dtype(site: Site, tangents: Tangents) -> Tangents:
    """The sum over operands, each tangent in its operand's place."""
    (y,) = site.results
    return [None if t is None else t.cast(y.dtype) for t in multilinear(site, tangents)]


declare("Einsum", vjp=_einsum, jvp=_one_dtype)


def _dot_labels(site: Site) -> tuple[Labels, list[Term]]:
    """`np.dot` of stacks: every row of one by every column of the other."""
    given = arguments(site, "a b")
    a, b = given["a"], given["b"]
    if not isinstance(a, Term) or not isinstance(b, Term):
        site.refuse("an operand is a list: make it an array")
    return subscripts.labels_of_dot(a.rank, b.rank), [a, b]


def _dot(site: Site, cotangents: Tangents) -> Cotangents:
    (ct,), (labels, terms) = cotangents, _dot_labels(site)
    assert ct is not None
    parts = [_by_operand(labels, terms, k, ct) for k in range(2)]
    if len(site.node.inputs) == 1:
        return [parts[0] + parts[1]]
    return parts


declare("Dot", vjp=_dot, jvp=_one_dtype)
