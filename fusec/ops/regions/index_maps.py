"""Index functions: which element of each input an element of a node's output reads.

An `IndexMap` gives, per axis of a value, the affine expression ``start + step * i[loop]`` over the
counters of an iteration domain; ``loop == -1`` means the constant ``start``, ``loop == COMPUTED``
an index that is itself a value (a gather).  Pulling a map through an op turns "the output at these
indices" into "the input at those indices".
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from fusec.ir import Node

from .. import registry

COMPUTED = -2
EACH = -3  # every index of a short axis, which no loop steps through


class AxisIndex(NamedTuple):
    """``start + step * i[loop]``; ``loop == -1``: just ``start``.

    With ``loop == COMPUTED`` the counter is ``computed``: in a graph the pair (value, its
    own map), in the loop IR the number of the load's operand.  ``loop == EACH`` stands for as many
    maps as the axis has elements, where which of them it is makes no difference.
    """

    loop: int
    step: int
    start: int
    computed: Any = None

    @property
    def loops(self) -> Iterator[int]:
        """The loops it depends on."""
        if self.loop >= 0:
            yield self.loop
        elif self.computed is not None:
            for i in self.computed[1]:
                yield from i.loops


IndexMap = tuple[AxisIndex, ...]
ZERO = AxisIndex(-1, 0, 0)


def identity(shape: Sequence[int]) -> IndexMap:
    """The map of a value over a domain of its own shape; axes of length 1 have index 0."""
    return tuple(ZERO if size == 1 else AxisIndex(d, 1, 0) for d, size in enumerate(shape))


def _aligned(index: IndexMap, source: Sequence[int]) -> IndexMap:
    """Broadcasting: trailing axes align, axes of length 1 are read at 0."""
    if not source:
        return ()
    if len(source) == len(index) and 1 not in source:
        return index
    kept = index[len(index) - len(source):]
    return tuple(ZERO if size == 1 else i for i, size in zip(kept, source, strict=True))


def _slice(node: Node, index: IndexMap) -> IndexMap:
    attrs = node.attrs
    return tuple(
        AxisIndex(i.loop, i.step * step, start + step * i.start, i.computed)
        for i, start, step in zip(index, attrs["starts"], attrs["steps"], strict=True)
    )


def _transpose(node: Node, index: IndexMap) -> IndexMap:
    result = [ZERO] * len(index)
    for out_axis, in_axis in enumerate(node.attrs["perm"]):
        result[in_axis] = index[out_axis]
    return tuple(result)


def _expand_dims(node: Node, index: IndexMap) -> IndexMap:
    return tuple(i for axis, i in enumerate(index) if axis not in node.attrs["axes"])


def _squeeze(node: Node, index: IndexMap) -> IndexMap:
    result = list(index)
    for axis in sorted(node.attrs["axes"]):
        result.insert(axis, ZERO)
    return tuple(result)


def _diagonal(node: Node, index: IndexMap) -> IndexMap:
    """The last counter walks both axes."""
    (first, second), offset = node.attrs["axes"], node.attrs["offset"]
    along = index[-1]
    result = list(index[:-1])
    starts = {first: max(-offset, 0), second: max(offset, 0)}
    for axis in sorted(starts):
        result.insert(axis, along._replace(start=along.start + starts[axis]))
    return tuple(result)


_VIEWS = {
    "Diagonal": _diagonal,
    "Slice": _slice,
    "Transpose": _transpose,
    "BroadcastTo": lambda node, index: _aligned(index, node.inputs[0].shape),
    "ExpandDims": _expand_dims,
    "Squeeze": _squeeze,
}


def without_loop(index: IndexMap, loop: int, at: int | None) -> IndexMap:
    """The map in a domain without that loop, at one of its points; ``None``: at each of them."""
    def fixed(i: AxisIndex) -> AxisIndex:
        if i.computed is not None:
            value, inner = i.computed
            i = i._replace(computed=(value, without_loop(inner, loop, at)))
        if i.loop == loop:
            return i._replace(loop=EACH) if at is None else AxisIndex(-1, 0, i.start + i.step * at)
        return i._replace(loop=i.loop - 1) if i.loop > loop else i

    return tuple(map(fixed, index))


def fold_maps(node: Node, index: IndexMap) -> Iterator[IndexMap]:
    """The maps at which a ``Fold`` reads its operand, in C order."""
    axes, shape = node.attrs["axes"], node.inputs[0].shape
    for point in itertools.product(*(range(shape[axis]) for axis in axes)):
        yield with_axes(index, axes, [AxisIndex(-1, 0, at) for at in point])


def with_axes(index: IndexMap, axes: Sequence[int], entries: Sequence[AxisIndex]) -> IndexMap:
    """The map with these entries at these axes of the result, which are ascending."""
    result = list(index)
    for axis, entry in zip(axes, entries, strict=True):
        result.insert(axis, entry)
    return tuple(result)


def is_affine(node: Node) -> bool:
    """Whether every input of the node is read through an affine map of the output's indices."""
    return node.op in _VIEWS or registry.get(node.op).kind == "elementwise"


def pull(node: Node, operand: int, index: IndexMap) -> IndexMap:
    """The map of input ``operand`` when the output is read at ``index``; see `is_affine`."""
    view = _VIEWS.get(node.op)
    if view is not None:
        return _normal(view(node, index), node.inputs[0].shape)
    return _aligned(index, node.inputs[operand].shape)


def _normal(index: IndexMap, shape: Sequence[int]) -> IndexMap:
    return tuple(ZERO if size == 1 else i for i, size in zip(index, shape, strict=True))
