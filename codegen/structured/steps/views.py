"""View ops on arrays: other offsets and strides, nothing computed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fusec.codegen.structured.not_native import NotNativeError
from fusec.ir import Node
from fusec.ir.sizes.dims import Dim, Size

from ..builder import Builder
from ..memory import Location, View


def viewed(builder: Builder, node: Node, source: Location) -> Location:
    """The result of a view node; a scalar seen as a rank-0 array stays in its register."""
    shape = node.types[0].shape
    if not isinstance(source, View):
        return source
    rule = _VIEWS.get(node.op)
    if rule is None:
        raise NotNativeError(f"{node.op} of an array in memory", node.loc)
    start, strides = rule(source, node.attrs, shape)
    return _moved(builder, source, start, shape, strides)


def slice_of(
    builder: Builder, source: View, where: Mapping[str, Any], shape: Sequence[Size]
) -> View:
    """The part of an array at ``starts``, with ``steps``."""
    start, strides = _slice(source, where, shape)
    return _moved(builder, source, start, shape, strides)


def _moved(
    builder: Builder, source: View, start: Size, shape: Sequence[Size], strides: tuple[int, ...]
) -> View:
    offset = source.offset
    if isinstance(start, Dim) or start:
        offset = builder.further(offset, builder.number(start))
    return View(source.memory, tuple(shape), strides, source.dtype, offset, source.element)


def _slice(view: View, attrs: Any, shape: Any) -> tuple[int, tuple[int, ...]]:
    start = sum(a * s for a, s in zip(attrs["starts"], view.strides, strict=True))
    return start, tuple(k * s for k, s in zip(attrs["steps"], view.strides, strict=True))


def _transpose(view: View, attrs: Any, shape: Any) -> tuple[int, tuple[int, ...]]:
    return 0, tuple(view.strides[p] for p in attrs["perm"])


def _squeeze(view: View, attrs: Any, shape: Any) -> tuple[int, tuple[int, ...]]:
    return 0, tuple(s for i, s in enumerate(view.strides) if i not in attrs["axes"])


def _expand(view: View, attrs: Any, shape: Any) -> tuple[int, tuple[int, ...]]:
    strides = list(view.strides)
    for axis in attrs["axes"]:
        strides.insert(axis, 0)
    return 0, tuple(strides)


def broadcast_strides(view: View, shape: Sequence[Size]) -> tuple[int, ...]:
    """The strides with which an array is seen in a larger shape."""
    lead = len(shape) - len(view.shape)
    inner = (0 if a == 1 and b != 1 else s
             for a, b, s in zip(view.shape, shape[lead:], view.strides, strict=True))
    return ((0,) * lead + tuple(inner))


def _broadcast(view: View, attrs: Any, shape: Any) -> tuple[int, tuple[int, ...]]:
    return 0, broadcast_strides(view, shape)


_VIEWS: dict[str, Any] = {
    "Slice": _slice, "Transpose": _transpose, "Squeeze": _squeeze, "ExpandDims": _expand,
    "BroadcastTo": _broadcast,
}
