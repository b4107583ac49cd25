"""Statements that copy an array; constants as libraries read them, arrays as programs do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fusec.core.records import replace
from fusec.ir import Node, Value
from fusec.ir.sizes.symbolic_sizes import is_symbolic
from fusec.ops import get

from ..backend import Strides
from ..kernels.lower import lower_copy
from ..structured.kernel_statements import RunKernel
from ..structured.memory import ConstantView, ShownAs, View
from .call_plan import contiguous_strides


def copy_of(value: Value, source: View, target: View) -> RunKernel:
    """A kernel that copies an array."""
    name = value.node.name
    kernel = lower_copy(f"{name}_writeback", value.type, value.node.loc, name)
    return RunKernel(kernel, (), [source], [target])


def view_of_constant(constant: Any, node: Node) -> Any:
    """The constant as a view node shows it; open where that depends on sizes of arguments."""
    attrs, reference = dict(node.attrs), get(node.op).reference
    shown = ShownAs(reference, attrs, node.op)
    if type(constant) is ConstantView:
        return ConstantView(constant.constant, (*constant.views, shown))
    if is_symbolic(tuple(attrs.values())):
        return ConstantView(constant, (shown,))
    return reference(constant, **attrs)


def operand_strides(node: Node, sources: Sequence[Any]) -> list[Strides]:
    """Operands whose strides are not known here are copied before a native call."""
    return [
        p.strides if isinstance(p, View) and not p.views
        else contiguous_strides(v.shape, v.dtype.itemsize)
        for p, v in zip(sources, node.inputs, strict=True)
    ]


def reshaped(dense: View, value: Value) -> View:
    """Memory in C order in another shape; libraries see it so as its sizes come."""
    shown = ShownAs(_reshaped, {"shape": value.shape}, "Reshape")
    return replace(seen_as(dense, value), views=(shown,))


def _reshaped(array: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    return array.reshape(shape)


def dense_strides(value: Value) -> Strides:
    """Those of the value's array in C order, in bytes."""
    return contiguous_strides(value.shape, value.dtype.itemsize)


def is_dense(view: View) -> bool:
    """Whether it lies in C order, without gaps."""
    return view.strides == contiguous_strides(view.shape, view.dtype.itemsize)


def seen_as(dense: View, value: Value) -> View:
    """Memory in C order as the value, another one of as many elements."""
    return View(dense.memory, value.shape, dense_strides(value), value.dtype)
