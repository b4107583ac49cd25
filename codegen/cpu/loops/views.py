"""View ops on arrays in a native loop: other offsets and strides, nothing computed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fusec.codegen.backend import NotNativeError
from fusec.codegen.cpu.emitter import Operand
from fusec.ir import Node
from fusec.ir.dims import Dim, Size

from .arrays import ArrayRef, Location
from .frame import Frame


def viewed(frame: Frame, node: Node, source: Location) -> Location:
    """The result of a view node; a scalar seen as a rank-0 array stays in its register."""
    shape = node.types[0].shape
    if isinstance(source, Operand):
        return source
    view = _VIEWS.get(node.op)
    if view is None:
        raise NotNativeError(f"{node.op} of an array in memory", node.loc)
    start, strides = view(source, node.attrs, shape)
    return _moved(frame, source, start, shape, strides)


def slice_of(
    frame: Frame, source: ArrayRef, where: Mapping[str, Any], shape: Sequence[Size]
) -> ArrayRef:
    """The part of an array at ``starts``, with ``steps``."""
    start, strides = _slice(source, where, shape)
    return _moved(frame, source, start, shape, strides)


def _moved(
    frame: Frame, source: ArrayRef, start: Size, shape: Sequence[Size], strides: tuple[int, ...]
) -> ArrayRef:
    offset = source.offset
    if isinstance(start, Dim) or start:
        moved = frame.number(start)
        offset = moved if offset == "0" else frame.em.add(offset, moved)
    return ArrayRef(source.token, tuple(shape), strides, source.dtype, offset, source.element)


def _slice(ref: ArrayRef, attrs: Any, shape: Any) -> tuple[int, tuple[int, ...]]:
    start = sum(a * s for a, s in zip(attrs["starts"], ref.strides, strict=True))
    return start, tuple(k * s for k, s in zip(attrs["steps"], ref.strides, strict=True))


def _transpose(ref: ArrayRef, attrs: Any, shape: Any) -> tuple[int, tuple[int, ...]]:
    return 0, tuple(ref.strides[p] for p in attrs["perm"])


def _squeeze(ref: ArrayRef, attrs: Any, shape: Any) -> tuple[int, tuple[int, ...]]:
    return 0, tuple(s for i, s in enumerate(ref.strides) if i not in attrs["axes"])


def _expand(ref: ArrayRef, attrs: Any, shape: Any) -> tuple[int, tuple[int, ...]]:
    strides = list(ref.strides)
    for axis in attrs["axes"]:
        strides.insert(axis, 0)
    return 0, tuple(strides)


def broadcast_strides(ref: ArrayRef, shape: Sequence[Size]) -> tuple[int, ...]:
    """The strides with which an array is seen in a larger shape."""
    lead = len(shape) - len(ref.shape)
    inner = (0 if a == 1 and b != 1 else s
             for a, b, s in zip(ref.shape, shape[lead:], ref.strides, strict=True))
    return ((0,) * lead + tuple(inner))


def _broadcast(ref: ArrayRef, attrs: Any, shape: Any) -> tuple[int, tuple[int, ...]]:
    return 0, broadcast_strides(ref, shape)


_VIEWS: dict[str, Any] = {
    "Slice": _slice, "Transpose": _transpose, "Squeeze": _squeeze, "ExpandDims": _expand,
    "BroadcastTo": _broadcast,
}
