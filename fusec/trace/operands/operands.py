"""Operands as NumPy takes them: traced, cast, broadcast and stored."""

from __future__ import annotations

from array import array
from collections import UserList, deque
from typing import Any

import numpy as np

from fusec.ir import Value
from fusec.ir.sizes.dims import Size, symbols_of
from fusec.ir.sizes.symbolic_numbers import Symbolic, applied
from fusec.ops import Op, all_ops
from fusec.ops.shapes import broadcast
from fusec.state.variable import Variable

from ..facts.constant_values import is_constant
from ..facts.trees import leaves_in
from ..operands.sizes import number
from ..values.array import TracedArray, from_value
from ..values.operations import OPERATIONS
from ..values.storage import Storage
from ..values.trace import Trace
from .scalar_stores import check_number

BOOL = np.dtype(np.bool_)

PYTHON_KIND = {"b": bool, "i": int, "u": int, "f": float, "c": complex}

ROWS_OF_UFUNCS: dict[np.ufunc, Op] = {row.ufunc: row for row in all_ops() if row.ufunc is not None}


def is_operand(x: Any) -> bool:
    """Whether NumPy's operators would take it as an array or a number."""
    return type(x) is TracedArray or isinstance(x, (bool, int, float, complex, np.generic,
                                                    np.ndarray, list, tuple))


# Operands of NumPy arrays and scalars, not of Python numbers.
_SEQUENCES = (range, deque, UserList)

_BUFFERS = (array,)


def entries_of(key: Any) -> tuple[Any, ...]:
    """The entries between the brackets, as a tuple."""
    return key if isinstance(key, tuple) else (key,)


def is_run_time_int(entry: Any) -> bool:
    """Whether an entry of a key is an integer of the graph that no constant decides."""
    return type(entry) is TracedArray and not entry.ndim and entry.dtype.kind in "iu" and (
        not is_constant(entry.value))


def has_run_time_int(key: Any) -> bool:
    """Whether the key holds such an integer."""
    return any(map(is_run_time_int, entries_of(key)))


def is_operand_beside(x: TracedArray, other: Any) -> bool:
    """Whether ``other`` is an operand beside ``x``."""
    return is_operand(other) or (
        isinstance(other, (*_SEQUENCES, *_BUFFERS)) and (x.is_array or not x.type.is_weak))


def as_traced(trace: Trace, x: Any) -> TracedArray:
    """Any operand as a traced value: numbers become constants, outside arrays inputs."""
    if type(x) is TracedArray:
        return _checked_trace(trace, x)
    if isinstance(x, (bool, int, float, complex, np.generic)):
        trace.builder.loc = trace.loc
        return TracedArray(trace, None, (), trace.builder.const(_plain(x)))
    if isinstance(x, np.ndarray):
        x = trace.as_plain(x)
        traced = trace.local.memory.traced(x)
        return traced if traced is not None else OPERATIONS.captured(trace, x)
    if isinstance(x, (list, tuple, *_SEQUENCES)):
        return OPERATIONS.array_from_sequence(trace, list(x) if isinstance(x, _SEQUENCES) else x)
    if isinstance(x, _BUFFERS):
        return TracedArray(trace, trace.capture(np.array(x)))
    if isinstance(x, Variable):
        return as_traced(trace, x.read_value())
    raise trace.error(TypeError(f"unsupported operand: {type(x).__name__}"))


def joined_operands(trace: Trace, fn: Any, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """The operands of a ufunc, or of a method of one.  NumPy does not dispatch on traced values in
    lists: where all are in lists, these become traced arrays."""
    ufunc = fn if isinstance(fn, np.ufunc) else getattr(fn, "__self__", None)
    count = ufunc.nin if fn is ufunc else _OPERANDS.get(getattr(fn, "__name__", ""), 0)
    if any(type(x) is TracedArray for x in args[:count]):
        return args
    return tuple(as_traced(trace, x) if k < count and holds_traced(x) else x
                 for k, x in enumerate(args))


_OPERANDS = {"reduce": 1, "accumulate": 1, "reduceat": 1, "outer": 2}


def holds_traced(x: Any) -> bool:
    """Whether a list or tuple has traced values in it."""
    return type(x) in (list, tuple) and any(type(item) is TracedArray for item in leaves_in(x))


def _plain(x: Any) -> Any:
    """A number whose class derives from Python's as a plain Python number."""
    if type(x) in _PLAIN or isinstance(x, np.generic):
        return x
    return next(kind(x) for kind in _PLAIN if isinstance(x, kind))


_PLAIN: tuple[Any, ...] = (int, float, complex, bool, Symbolic)


def _checked_trace(trace: Trace, x: TracedArray) -> TracedArray:
    """The operand; a value of another trace raises, with where it was made."""
    if x.trace is not trace and x.value is not None:
        raise trace.error(TypeError("a traced value of another trace in progress is used here"))
    return x


def cast(trace: Trace, value: Value, dtype: np.dtype, kind: str | None = None) -> Value:
    """The value in ``dtype``; constants convert now, with NumPy's overflow errors."""
    if value.dtype == dtype and not (value.type.is_weak and kind != "weak"):
        return value
    if kind != "weak":
        check_number(trace, value, dtype)
    if value.node.op == "Const" and kind is None and value.type.is_weak:
        return trace.builder.const(_converted_constant(value, dtype))
    attrs: dict[str, Any] = {"dtype": dtype}
    if kind is not None:
        attrs["kind"] = kind
    return trace.emit("Cast", value, **attrs)


def _converted_constant(value: Value, dtype: np.dtype) -> Any:
    number = value.node.attrs["value"]
    if type(number) is Symbolic:
        return applied(dtype.type, number)
    with np.errstate(all="ignore"):
        return np.asarray(number, dtype)[()] if dtype.kind in "iu" else dtype.type(number)


def truth(trace: Trace, value: Value) -> Value:
    """The value as booleans."""
    kind = "weak" if value.type.is_weak and value.node.op != "Const" else None
    return cast(trace, value, BOOL, kind)


def check_cast(trace: Trace, target: TracedArray, value: Value, casting: Any, what: str) -> None:
    """Raise unless the array may be written, with this dtype; ``what`` is from NumPy's message."""
    target.check_writeable()
    source: Any = value.dtype
    if value.type.is_weak and value.dtype != BOOL:
        source = np.result_type(target.dtype, PYTHON_KIND[value.dtype.kind](0))
    if not np.can_cast(source, target.dtype, casting):
        raise trace.error(TypeError(
            f"Cannot cast {what.format(repr(value.dtype), repr(target.dtype))} {casting!r}"
        ), [value, target.value], ("result", "target"))


def store(trace: Trace, target: TracedArray, value: Value, casting: Any, what: str) -> None:
    """Write ``value`` into an array: checked cast, checked shape, broadcast."""
    check_cast(trace, target, value, casting, f"{what} from {{}} to {{}} with casting rule")
    shape = target.shape
    try:
        joint = broadcast([value.shape, shape])
    except ValueError as error:
        raise trace.error(error, [value, target.value], ("result", "target")) from None
    if joint != shape:
        own, whole = (str(s).replace(" ", "") for s in (shape, joint))
        raise trace.error(ValueError(
            f"non-broadcastable output operand with shape {own} doesn't match the broadcast "
            f"shape {whole}"
        ), [value, target.value], ("result", "target"))
    target.write(spread(trace, cast(trace, value, target.dtype), shape))


def spread(trace: Trace, value: Value, shape: tuple[int, ...]) -> Value:
    """The value as an array of this shape."""
    if value.shape == shape and value.type.kind == "array":
        return value
    if symbols_of(shape) - symbols_of(value.shape):
        return _fill(trace, value, shape)
    return trace.emit("BroadcastTo", value, shape=shape)


def _fill(trace: Trace, value: Value, shape: tuple[Size, ...]) -> Value:
    """`spread` where the shape has symbols that the value's has not: it takes them as operands."""
    return trace.emit("Fill", value, *dims_of(trace, shape), shape=shape)


def dims_of(trace: Trace, shape: tuple[Size, ...]) -> list[Value]:
    """Sizes as operands of `Fill`."""
    return [cast(trace, as_traced(trace, number(trace, s)).value, np.dtype(np.int64), "weak")
            for s in shape]


def spread_scalar(x: TracedArray) -> TracedArray:
    """A scalar as a rank-0 array."""
    if x.is_array:
        return x
    return TracedArray(x.trace, Storage(spread(x.trace, x.value, ())))


def strong(trace: Trace, x: Any) -> TracedArray:
    """The operand; a Python number as the NumPy scalar that ``np.asarray`` makes of it."""
    array = as_traced(trace, x)
    return from_value(trace, cast(trace, array.value, array.dtype)) if array.type.is_weak else array
