"""Small arrays of numbers that follow from sizes of arguments: ``np.array([1, len(x) // 2])``.

Constants of one call, but not of the next.  They are computed on arrays of symbolic numbers, so
that a question about one (``pad < 0``) limits a trace no more than if a number were asked.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fusec.ir import Node, TensorType
from fusec.ir.sizes.symbolic_numbers import Symbolic, applied
from fusec.ir.sizes.symbolic_sizes import is_symbolic, plain, plain_int

from ..registry import get
from ..rows.sizes import SIZE_ARITHMETIC

_OBJECT = np.dtype(object)
_COMPUTED: dict[str, Callable[..., Any]] = {
    **SIZE_ARITHMETIC,
    "Less": operator.lt, "LessEqual": operator.le, "Greater": operator.gt,
    "GreaterEqual": operator.ge, "Equal": operator.eq, "NotEqual": operator.ne,
}


def holds_sizes(x: Any) -> bool:
    """Whether it is a symbolic number, or an array of such."""
    return type(x) is Symbolic or (type(x) is np.ndarray and x.dtype == _OBJECT)


def of_sizes(node: Node, operands: Sequence[Any]) -> Any:
    """The result of a node of one, on symbolic numbers; None where it is none of them, or needs
    the numbers themselves."""
    if node.op == "Const":
        value = node.attrs["value"]
        return value if type(value) is Symbolic and type(value.hint) in (int, np.int64) else None
    if not any(map(holds_sizes, operands)) or is_symbolic((*node.attrs.values(),)):
        return None
    if node.op == "Cast" and node.types[0].dtype.num == np.dtype(np.int64).num:
        return _of_type(operands[0], node.types[0])
    if node.op == "Copy" or get(node.op).kind in ("view", "piecewise"):
        result = get(node.op).reference(*map(_as_objects, operands), **node.attrs)
        return _of_type(result, node.types[0])
    if node.op in ("Min", "Max", "Sum", "Prod") and node.inputs[0].dtype.kind == "i":
        return _of_type(get(node.op).reference(operands[0], **node.attrs), node.types[0])
    function = _COMPUTED.get(node.op)
    if function is None or any(v.dtype.kind != "i" for v in node.inputs):
        return None
    result = np.frompyfunc(function, len(operands), 1)(*map(_as_objects, operands))
    return _of_type(result, node.types[0])


def plain_result(x: Any, type_: TensorType) -> Any:
    """The numbers themselves, to which the trace is limited then."""
    if not holds_sizes(x):
        return x
    return plain(x) if type(x) is Symbolic else np.array(
        [plain(n) for n in x.flat], type_.dtype).reshape(x.shape)


def _as_objects(x: Any) -> np.ndarray:
    if type(x) is np.ndarray:
        return x.astype(_OBJECT)
    result = np.empty(1, _OBJECT)
    result[0] = plain_int(x)  # NumPy would ask a symbolic number for its value in any other way
    return result.reshape(())


def _of_type(x: Any, type_: TensorType) -> Any:
    """An array of symbolic numbers; an ordinary one, or a number, where none is symbolic."""
    flat = [x] if type(x) is not np.ndarray else list(x.flat)
    if not any(type(n) is Symbolic for n in flat):
        array = np.array(flat, type_.dtype).reshape(np.shape(x))
        return array if type_.kind == "array" else array[()] if type_.kind == "scalar" else (
            array.item())
    if type_.kind == "array":
        return x if type(x) is np.ndarray else _as_objects(x)
    return applied(int if type_.is_weak else np.int64, flat[0])
