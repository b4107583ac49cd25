"""Ops that read or replace the part of an array at indices known only at run time.

``Pick(x, i, j, axes=(0, 2))`` is ``x[i, :, j]``; ``PickUpdate(x, v, i, j, axes=(0, 2))`` is ``x``
with that part replaced by ``v``.  Indices are int64 scalars; negative ones count from the end; one
out of range raises NumPy's ``IndexError``.  ``safe`` lists the axes whose index is known to be in
``[0, size)``; with ``unchecked`` indices out of range are not noticed in native loops.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fusec.core.records import dataclass
from fusec.ir import Node, TensorType, Value

from ..admission.row_admissions import PICK, PICK_UPDATE
from ..registry import Op, Types, register

PICKS = frozenset({"Pick", "PickUpdate"})


def picked_axes(node: Node) -> list[tuple[int, Value]]:
    """The axes that a `Pick` or `PickUpdate` has an index for, each with its index."""
    axes = node.attrs["axes"]
    return list(zip(axes, node.inputs[len(node.inputs) - len(axes):], strict=True))


def rest_of(shape: Sequence[int], axes: Sequence[int]) -> tuple[int, ...]:
    """The shape less the picked axes."""
    return tuple(size for axis, size in enumerate(shape) if axis not in axes)


def pick_key(rank: int, axes: Sequence[int], indices: Sequence[Any]) -> tuple[Any, ...]:
    """The basic index that picks."""
    key: list[Any] = [slice(None)] * rank
    for axis, index in zip(axes, indices, strict=True):
        key[axis] = int(index)
    return tuple(key)


@dataclass(frozen=True)
class PickView:
    """The view of a result at indices that outputs of the graph hold, by their ``numbers``."""

    axes: tuple[int, ...]
    numbers: tuple[int, ...]

    def __call__(self, array: np.ndarray, outputs: Sequence[Any]) -> np.ndarray:
        return array[pick_key(array.ndim, self.axes, [outputs[n] for n in self.numbers])]


def infer_pick(types: Sequence[TensorType], attrs: Mapping[str, Any]) -> Types:
    shape = rest_of(types[0].shape, attrs["axes"])
    return (TensorType(types[0].dtype, shape, attrs.get("kind", "array")),)


def infer_pick_update(types: Sequence[TensorType], attrs: Mapping[str, Any]) -> Types:
    shape = rest_of(types[0].shape, attrs["axes"])
    if types[1].shape != shape or types[1].dtype != types[0].dtype:
        raise ValueError(f"a part of {types[0]} at {attrs['axes']} cannot become {types[1]}")
    return (types[0],)


def pick_reference(
    x: Any, *indices: Any, axes: Any, safe: Any = (), kind: str = "array", unchecked: bool = False,
) -> Any:
    elements = x[pick_key(np.ndim(x), axes, indices)]
    return np.array(elements) if kind == "array" else elements


def pick_update_reference(
    x: Any, value: Any, *indices: Any, axes: Any, safe: Any = (), unchecked: bool = False,
) -> Any:
    result = np.array(x, order="K")
    result[pick_key(np.ndim(x), axes, indices)] = value
    return result


register(Op(
    name="Pick", kind="extern", infer=infer_pick, reference=pick_reference, may_raise=True,
    shows_memory=True, picks="read", called="x[...]", admits=PICK,
    doc="Part of an array at run-time indices; attrs: axes, safe, kind, unchecked.",
))
register(Op(
    name="PickUpdate", kind="extern", infer=infer_pick_update, reference=pick_update_reference,
    may_raise=True, picks="write", called="x[...] = ...", admits=PICK_UPDATE,
    doc="An array with a part replaced; attrs: axes, safe, unchecked.",
))
