"""Slices whose bounds only the run knows: where they begin, how long they are, and the views.

``Extent(start, stop)`` is Python's ``slice(start, stop, step).indices(size)`` as values: the first
index, and a witness, an array of no memory whose size is the length and so defines its symbol.
``Window(x, *places)`` is the view, at the places ``(*firsts, *counts, *steps)``;
``WindowUpdate(x, v, *places)`` is ``x`` with that part replaced by ``v``.  The attribute ``steps``
holds the steps that are known, and 0 for each that the run decides, which is then among the places
and at least 1.

``Reserve(x)`` is an array of a fixed shape that begins with ``x``: its capacity, where the sizes of
``x`` go up to that.  Its elements beyond are not defined.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fusec.core.records import dataclass
from fusec.ir import Node, TensorType
from fusec.ir.sizes.dims import is_static, symbol

from ..admission import row_admissions
from ..registry import Op, Types, register

_INT = TensorType(np.dtype(np.int64), (), "weak")
_BOOL = np.dtype(np.bool_)
UNLIMITED = (1 << 31) - 1  # a limit from here on bounds nothing that could be allocated


def extent_of(
    bounds: Sequence[Any], given: Sequence[bool], step: int, limit: int
) -> tuple[int, int]:
    """First index and length of a slice; ``given`` says which of start and stop ``bounds`` hold."""
    rest = iter(bounds)
    start, stop = (int(next(rest)) if is_given else None for is_given in given)
    indices = range(*slice(start, stop, step).indices(limit))
    return (indices.start if len(indices) else 0), len(indices)


def window_key(
    rank: int, axes: Sequence[int], steps: Sequence[int], firsts: Sequence[Any],
    counts: Sequence[Any],
) -> tuple[slice, ...]:
    """The basic index of a window."""
    key = [slice(None)] * rank
    for axis, step, first, count in zip(axes, steps, firsts, counts, strict=True):
        last = int(first) + int(count) * step
        key[axis] = slice(int(first), None if last < 0 else last, step)
    return tuple(key)


@dataclass(frozen=True)
class WindowView:
    """The view of a result where outputs of the graph, by their ``numbers``, say."""

    axes: tuple[int, ...]
    steps: tuple[int, ...]
    numbers: tuple[int, ...]

    def __call__(self, array: np.ndarray, outputs: Sequence[Any]) -> np.ndarray:
        return array[_key(array, [outputs[n] for n in self.numbers], self.axes, self.steps)]


def infer_extent(types: Sequence[TensorType], attrs: Mapping[str, Any]) -> Types:
    return _INT, TensorType(_BOOL, (symbol(attrs["length"]),))


def extent_reference(
    *bounds: Any, given: Any, step: int, limit: int, length: str = ""
) -> tuple[int, np.ndarray]:
    first, count = extent_of(bounds, given, step, limit)
    return first, np.broadcast_to(np.False_, (count,))


def infer_window(types: Sequence[TensorType], attrs: Mapping[str, Any]) -> Types:
    shape = list(types[0].shape)
    for axis, size in zip(attrs["axes"], attrs["sizes"], strict=True):
        shape[axis] = size
    return (TensorType(types[0].dtype, tuple(shape)),)


def infer_window_update(types: Sequence[TensorType], attrs: Mapping[str, Any]) -> Types:
    part = infer_window(types, attrs)[0]
    if types[1] != part:
        raise ValueError(f"a part {part} of {types[0]} cannot become {types[1]}")
    return (types[0],)


def _key(x: Any, places: Sequence[Any], axes: Any, steps: Any) -> tuple[slice, ...]:
    half, given = len(axes), iter(places[2 * len(axes):])
    steps = [step if step else int(next(given)) for step in steps]
    return window_key(np.ndim(x), axes, steps, places[:half], places[half: 2 * half])


def window_reference(x: Any, *places: Any, axes: Any, steps: Any, sizes: Any) -> Any:
    return np.array(x[_key(x, places, axes, steps)])


def window_update_reference(
    x: Any, value: Any, *places: Any, axes: Any, steps: Any, sizes: Any
) -> Any:
    result = np.array(x, order="K")
    result[_key(x, places, axes, steps)] = value
    return result


def infer_reserve(types: Sequence[TensorType], attrs: Mapping[str, Any]) -> Types:
    return (TensorType(types[0].dtype, attrs["shape"]),)


def reserve_reference(x: Any, *, shape: tuple[int, ...]) -> Any:
    result = np.full(shape, _undefined(x.dtype), x.dtype)
    result[tuple(map(slice, x.shape))] = x
    return result


def is_unset(node: Node) -> bool:
    """Whether nobody reads an element of the result before it is written: an array that begins with
    nothing."""
    return node.op == "Reserve" and 0 in node.inputs[0].shape


def is_made_anywhere(node: Node) -> bool:
    """Whether each device has memory of its own for it, and nothing to do: `is_unset`, of a known
    size."""
    return is_unset(node) and is_static(node.types[0].shape)


def _undefined(dtype: np.dtype) -> Any:
    """A value that shows where elements are read that nobody wrote."""
    return {"b": True, "f": np.nan, "c": np.nan}.get(dtype.kind, 77)


register(Op(
    name="Extent", kind="extern", admits=row_admissions.EXTENT, infer=infer_extent,
    reference=extent_reference,
    is_of_sizes=True, raises="never", called="slice",
    doc="First index and length of a slice; attrs: given (start, stop), step, limit, length.",
))
register(Op(
    name="Window", kind="extern", admits=row_admissions.WINDOW, infer=infer_window,
    reference=window_reference,
    shows_memory=True, picks="read", raises="never", called="x[...]",
    doc="A view at run-time slices; attrs: axes, steps, sizes.",
))
register(Op(
    name="WindowUpdate", kind="extern", admits=row_admissions.WINDOW_UPDATE,
    infer=infer_window_update, reference=window_update_reference, picks="write",
    raises="never", called="x[...] = ...",
    doc="An array with a window replaced; attrs: axes, steps, sizes.",
))
register(Op(
    name="Reserve", kind="extern", arity=1, admits=row_admissions.RESERVE, infer=infer_reserve,
    reference=reserve_reference, shows_memory=True, raises="never", called="np.empty",
    doc="An array of the attr shape whose first elements are the operand.",
))
