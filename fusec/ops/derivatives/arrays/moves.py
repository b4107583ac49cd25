"""Calls of libraries that move elements and compute nothing.

The same call of the elements' numbers says where each came from: there its cotangent is added.  The
call of the numbers' negatives beside it tells elements from the call's own constants (``0`` in
``np.append(x, 0)``): that has the same value in both.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from fusec.ir.sizes.dims import Dim, Size

from ...rows.sizes import size_value
from ..calls import array
from ..protocol import DIFFERENTIABLE, Cotangents, Site, Tangents, declare
from ..terms import Term, where
from .indices import counter

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
    first: Size = 1
    chosen = _moved_operands(site)
    for k, x in enumerate(site.operands):
        if k in chosen:
            size = math.prod(x.shape)
            numbers = (counter(x, size) + _number(site, first)) * sign
            yield numbers.cast(FLOAT64).emit("Reshape", shape=x.shape)
            first = first + size
        else:
            yield x


def _number(site: Site, size: Size) -> Term | int:
    """A size beside integers: that only the run knows, as a value."""
    if not isinstance(size, Dim):
        return size
    return site.term(size_value(site.builder, size, site.node.inputs)).cast(INT64)


def _moved_operands(site: Site) -> list[int]:
    """The operands whose elements are moved: those that say which are, floats too, are none."""
    op, form = site.node.op, site.attrs["form"]
    name = str(form[1]) if op in ("Numpy", "Method") else op.lower()
    place = {"compress": 1, "extract": 1, "place": 2}.get(name, 0) + (op in ("Numpy", "Method"))
    if op == "Method" and name == "compress":
        place = 3
    condition = form[place] if name in ("compress", "extract", "place") else None
    return [k for k, x in enumerate(site.operands)
            if x.dtype.kind in DIFFERENTIABLE and not (
                type(condition) is tuple and condition == ("operand", k))]


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
    chosen = _moved_operands(site)
    smooth = [site.operands[k] for k in chosen]
    whole = ct.number(0).emit("BroadcastTo", shape=(1 + sum(math.prod(x.shape) for x in smooth),))
    flat = ct.emit("Reshape", shape=origins.shape)
    whole = whole.emit("Scatter", flat, origins, axes=(0,), at=0, combine="Add")
    found: list[Term | None] = []
    first: Size = 1
    for k, x in enumerate(site.operands):
        if k not in chosen:
            found.append(None)
            continue
        size = math.prod(x.shape)
        part = whole.emit("Slice", starts=(first,), steps=(1,), sizes=(size,))
        found.append(part.emit("Reshape", shape=x.shape).cast(x.dtype))
        first = first + size
    return found


def move_jvp(site: Site, tangents: Tangents) -> Tangents:
    """Each element's tangent is that of the element that it was; of the call's own constants 0.
    """
    (y,) = site.results
    whole = y.number(0).emit("BroadcastTo", shape=(1,))
    both = [(tangents[k], site.operands[k]) for k in _moved_operands(site)]
    parts = [site.filled([t], [x])[0].cast(y.dtype).emit("Reshape", shape=(math.prod(x.shape),))
             for t, x in both]
    return [whole.emit("Concat", *parts, axis=0).emit("Gather", _origins(site), axes=(0,), at=0)]


declare("GetItem", "Take", "Extract", "Compress", "Choose", "SetItem", "Copyto", "Put", "Place",
        "PutAlongAxis", vjp=move, jvp=move_jvp)
