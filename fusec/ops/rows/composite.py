"""Composite ops stay whole in traces and are rewritten into primitive ops by decomposition."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from fusec.ir import Node, Value
from fusec.ir.sizes.dims import Dim, maximum
from fusec.ir.sizes.symbolic_numbers import applied

from ..admission.row_admissions import REDUCTION, SPREAD
from ..build import Builder
from ..registry import Op, register
from .reductions import _infer
from .sizes import size_value


def count_of(builder: Builder, x: Value, axes: Sequence[int], less: float = 0) -> Value:
    """The number of reduced elements less ``less``, at least 0, in x's dtype."""
    size = math.prod(x.shape[a] for a in axes)
    if float(less).is_integer():  # sizes that the run decides are ints
        count = maximum(size - int(less), 0)
    elif not isinstance(size, Dim):
        count = max(size - less, 0)
    else:
        number = builder.cast(size_value(builder, size, [x]), np.dtype(np.float64))
        rest = builder.emit("Sub", number, builder.const(np.float64(less)))
        least = builder.emit("Maximum", rest, builder.const(np.float64(0)))
        return builder.cast(least, x.dtype)
    if isinstance(count, Dim):
        return builder.cast(size_value(builder, count, [x]), x.dtype)
    return builder.const(applied(x.dtype.type, count))


def decompose_mean(builder: Builder, node: Node) -> list[Value]:
    """The sum by the count, an int64, by which NumPy divides complex64 in complex128."""
    (x,), axes = node.inputs, node.attrs["axes"]
    total = builder.emit("Sum", x, axes=axes)
    if x.dtype != np.complex64:
        return [builder.emit("Div", total, count_of(builder, x, axes))]
    wide = builder.cast(total, np.dtype(np.complex128))
    count = builder.cast(count_of(builder, x, axes), wide.dtype)
    return [builder.cast(builder.emit("Div", wide, count), x.dtype)]


def decompose_var(builder: Builder, node: Node) -> list[Value]:
    """Two passes, as NumPy: the mean, then the mean squared distance from it."""
    (x,), axes, ddof = node.inputs, node.attrs["axes"], node.attrs["ddof"]
    mean = builder.emit("Div", builder.emit("Sum", x, axes=axes), count_of(builder, x, axes))
    centred = builder.emit("Sub", x, builder.emit("ExpandDims", mean, axes=axes))
    total = builder.emit("Sum", builder.emit("Square", centred), axes=axes)
    return [builder.emit("Div", total, count_of(builder, x, axes, ddof))]


def decompose_std(builder: Builder, node: Node) -> list[Value]:
    return [builder.emit("Sqrt", decompose_var(builder, node)[0])]


register(Op(
    name="Mean", kind="composite", arity=1, admits=REDUCTION, infer=_infer,
    decompose=decompose_mean, takes="fc",
    reference=lambda x, axes: np.mean(x, axis=tuple(axes), dtype=np.asarray(x).dtype),
    doc="Arithmetic mean over attr axes, in the dtype given.",
))
register(Op(
    name="Var", kind="composite", arity=1, admits=SPREAD, infer=_infer,
    decompose=decompose_var, takes="f",
    reference=lambda x, axes, ddof: np.var(x, axis=tuple(axes), ddof=ddof),
    doc="Mean squared distance from the mean, in two passes; attrs: axes, ddof.",
))
register(Op(
    name="Std", kind="composite", arity=1, admits=SPREAD, infer=_infer,
    decompose=decompose_std, takes="f",
    reference=lambda x, axes, ddof: np.std(x, axis=tuple(axes), ddof=ddof),
    doc="Square root of Var; attrs: axes, ddof.",
))
