"""Calls of libraries that move elements and compute nothing.

The same call of the elements' numbers says where each came from: there its cotangent is added.  The
call of the numbers' negatives beside it tells elements from what the call itself gives (``0`` in
``np.append(x, 0)``): that has the same value in both.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from .calls import array
from .indices import counter
from .protocol import DIFFERENTIABLE, Cotangents, Site, Tangents, declare
from .terms import Term, where

INT64, FLOAT64 = np.dtype(np.int64), np.dtype(np.float64)
# Functions of NumPy, and methods of arrays, that are called by name and move elements.
_MOVES = """
    append ascontiguousarray atleast_1d atleast_2d atleast_3d block broadcast_to column_stack
    compress concatenate copy delete diag diagflat diagonal dstack expand_dims extract flatten flip
    fliplr flipud hstack insert moveaxis permute_dims ravel repeat reshape resize roll rollaxis
    rot90 squeeze stack swapaxes take take_along_axis tile transpose tril triu vstack"""
MOVES = frozenset(_MOVES.split())


def _numbered(site: Site, sign: int) -> Iterator[Term]:
    """The operands with the numbers of elements, from 1 on, in the place of elements: as floats,
    beside which a call may have any number of its own."""
    first = 1
    for x in site.operands:
        if x.dtype.kind in DIFFERENTIABLE:
            size = math.prod(x.shape)
            numbers = (counter(x, size) + first) * sign
            yield numbers.cast(FLOAT64).emit("Reshape", shape=x.shape)
            first = first + size
        else:
            yield x


def _moved(site: Site, sign: int) -> Term:
    attrs = dict(site.attrs)
    attrs["results"] = tuple(array(FLOAT64, y.shape) for y in site.results)
    operands = [x.value for x in _numbered(site, sign)]
    return Term(site.builder, site.builder.emit(site.node.op, *operands, **attrs))


def _origins(site: Site) -> Term:
    """For each element of the result the number of the operands' element that it is; 0 of none."""
    one, other = _moved(site, 1), _moved(site, -1)
    return where(one.equals(-other), one, 0).cast(INT64)


def move(site: Site, cotangents: Tangents) -> Cotangents:
    """The cotangents of all operands of a call that moves elements."""
    (ct,) = cotangents
    assert ct is not None
    origins = _origins(site).emit("Reshape", shape=(math.prod(ct.shape),))
    smooth = [x for x in site.operands if x.dtype.kind in DIFFERENTIABLE]
    whole = ct.number(0).emit("BroadcastTo", shape=(1 + sum(math.prod(x.shape) for x in smooth),))
    flat = ct.emit("Reshape", shape=origins.shape)
    whole = whole.emit("Scatter", flat, origins, axes=(0,), at=0, combine="Add")
    found: list[Term | None] = []
    first = 1
    for x in site.operands:
        if x.dtype.kind not in DIFFERENTIABLE:
            found.append(None)
            continue
        size = math.prod(x.shape)
        part = whole.emit("Slice", starts=(first,), steps=(1,), sizes=(size,))
        found.append(part.emit("Reshape", shape=x.shape).cast(x.dtype))
        first = first + size
    return found


def move_jvp(site: Site, tangents: Tangents) -> Tangents:
    """Each element's tangent is that of the element that it was; of what the call gives itself 0.
    """
    (y,) = site.results
    whole = y.number(0).emit("BroadcastTo", shape=(1,))
    parts = [site.filled([t], [x])[0].cast(y.dtype).emit("Reshape", shape=(math.prod(x.shape),))
             for t, x in zip(tangents, site.operands, strict=True)
             if x.dtype.kind in DIFFERENTIABLE]
    return [whole.emit("Concat", *parts, axis=0).emit("Gather", _origins(site), axes=(0,), at=0)]


declare("GetItem", "Take", "Extract", "Compress", "Choose", "SetItem", "Copyto", "Put", "Place",
        "PutAlongAxis", vjp=move, jvp=move_jvp)
