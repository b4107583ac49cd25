"""Gathers and scatters: elements at computed indices, as index functions.

``Gather`` reads its source where its index operands say; ``Scatter`` replaces elements of its
target there.  Indices are integers in range: a program's own go through ``CheckIndex``,
which wraps negative ones and raises NumPy's ``IndexError``, so nothing outside an array is touched.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from fusec.ir import Graph, Node, TensorType, Value
from fusec.ir.sizes.symbolic_sizes import plain_int

from .. import registry
from ..admission import row_admissions
from ..calls import checks
from ..regions.index_maps import COMPUTED, AxisIndex, IndexMap, is_affine, pull
from ..registry import Op, Types, register
from ..shapes import broadcast

INDEX = np.dtype(np.int64)


def infer_check(types: Sequence[TensorType], attrs: Mapping[str, Any]) -> Types:
    index = types[0]
    if index.dtype != INDEX:
        raise TypeError(f"CheckIndex: indices are {index.dtype}, int64 is needed")
    kind = "scalar" if index.is_weak else index.kind
    return (TensorType(INDEX, index.shape, kind),)


def check_reference(index: Any, size: Any, axis: int = 0, lanes: int = 0) -> Any:
    """Indices of an axis of length ``size``, negative ones wrapped.

    Raises ``IndexError`` as NumPy does, for the first one that is out of range; a note names its
    lane, where so many of the first axes count lanes.
    """
    wrapped = np.where(np.less(index, 0), np.add(index, size), index)
    bad = (wrapped < 0) | (wrapped >= size)
    if bad.any():
        place = tuple(np.argwhere(bad)[0])
        index, size = (np.broadcast_to(np.asarray(x), bad.shape)[place] for x in (index, size))
        error = out_of_bounds(index, axis, size)
        for lane in reversed(place[:lanes]):
            error.add_note(f"in lane {lane}")
        raise error
    return wrapped[()]


def bounds_check_reference(index: Any, size: Any, axis: int = 0, lanes: int = 0) -> Any:
    """True; raises ``IndexError`` as `check_reference` does."""
    check_reference(index, size, axis, lanes)
    return np.bool_(True)


def kernel_checks(graph: Graph) -> list[Node]:
    """The nodes of a kernel's body that check their operands, in order: compiled code names a
    failed one by its place."""
    return [node for node in graph.nodes if node.op in ("CheckIndex", "Verify")]


def out_of_bounds(index: int, axis: int, size: int) -> IndexError:
    """NumPy's error for an index out of range."""
    return IndexError(f"index {index} is out of bounds for axis {axis} with size {size}")


def _index_shape(types: Sequence[TensorType]) -> tuple[int, ...]:
    return tuple(broadcast([t.shape for t in types[1:]]))


def infer_gather(types: Sequence[TensorType], attrs: Mapping[str, Any]) -> Types:
    source, axes, at = types[0], attrs["axes"], attrs["at"]
    if len(types) != len(axes) + 1 or any(t.dtype != INDEX for t in types[1:]):
        raise TypeError("Gather: one int64 operand is needed for each of its axes")
    rest = [size for axis, size in enumerate(source.shape) if axis not in axes]
    rest[at:at] = _index_shape(types)
    return (TensorType(source.dtype, tuple(rest), attrs.get("kind", "array")),)


def gather_reference(
    source: Any, *indices: Any, axes: Sequence[int], at: int, kind: str = "array"
) -> Any:
    """``source`` at the indices along ``axes``; their axes stand at position ``at``."""
    indices = tuple(np.broadcast_arrays(*indices)) if len(indices) > 1 else indices
    rest = [axis for axis in range(np.ndim(source)) if axis not in axes]
    elements = np.transpose(source, (*axes, *rest))[tuple(np.asarray(i) for i in indices)]
    rank = np.ndim(indices[0])
    result = np.moveaxis(elements, range(rank), range(at, at + rank))
    return np.asarray(result) if kind == "array" else result[()]


register(Op(
    name="CheckIndex", kind="elementwise", arity=2, scalar="check_index", infer=infer_check,
    reference=check_reference, cost=3.0, may_raise=True, checks="index", takes="i",
    admits=row_admissions.CHECK_INDEX, attrs_since=(("lanes", 2),),
    doc="Indices of an axis whose length is operand 1, wrapped; raises IndexError. attrs axis; "
        "lanes: how many of its first axes count lanes of fusec.vmap, which the error names.",
))
register(Op(
    name="BoundsCheck", kind="extern", arity=2, infer=checks.infer_check,
    reference=bounds_check_reference, stateful=True, may_raise=True, checks="index",
    takes="i", admits=row_admissions.CHECK_INDEX, attrs_since=(("lanes", 2),),
    doc="Raises IndexError where indices of an axis of length operand 1 are out of range, though "
        "no element is needed; attrs axis, lanes of CheckIndex.",
))
register(Op(
    name="Gather", kind="gather", infer=infer_gather, reference=gather_reference, cost=6.0,
    numpy=(np.take, np.take_along_axis), admits=row_admissions.GATHER,
    doc="Operand 0 at the indices that the others are, in range, along attrs axes; attrs at: where "
        "the indices' axes stand in the result.",
))


def infer_scatter(types: Sequence[TensorType], attrs: Mapping[str, Any]) -> Types:
    target, value = types[:2]
    (part,) = infer_gather((target, *types[2:]), {k: attrs[k] for k in ("axes", "at")})
    if (value.shape, value.dtype) != (part.shape, part.dtype):
        raise TypeError(f"Scatter: the value is {value}, the indices select {part}")
    return (target,)


def scatter_reference(
    target: Any, value: Any, *indices: Any, axes: Sequence[int], at: int, combine: str = "",
    chunk: int = 0,
) -> Any:
    """``target`` with ``value`` at the indices; of equal indices the last counts.

    With ``combine``, the name of a binary op, each element is combined with the one there, equal
    indices one after another.
    """
    result = np.array(target)
    indices = tuple(np.broadcast_arrays(*indices)) if len(indices) > 1 else indices
    rank = np.ndim(indices[0])
    rest = [axis for axis in range(result.ndim) if axis not in axes]
    part = np.transpose(result, (*axes, *rest))
    # One flat list of indices, so that they are taken in order.
    index = tuple(np.ravel(i) for i in indices)
    values = np.moveaxis(np.asarray(value), range(at, at + rank), range(rank))
    values = values.reshape((index[0].size, *part.shape[len(axes):]))
    if combine:
        registry.get(combine).reference.at(part, index, values)  # type: ignore[attr-defined]
    else:
        part[index] = values
    return result


register(Op(
    name="Scatter", kind="piecewise", infer=infer_scatter, reference=scatter_reference,
    numpy=(np.put_along_axis,), admits=row_admissions.SCATTER, is_estimated=True,
    doc="Operand 0 with operand 1 at the indices that the others are: attrs axes, at as of Gather; "
        "combine: a binary op that joins each element with what is there; chunk: blocks of so many "
        "elements have no place in common, so they may be done at the same time.",
))


def gather_operands(node: Node, index: IndexMap) -> Iterator[tuple[Value, IndexMap]]:
    """The operands of a ``Gather`` and their index maps, when its output is read at ``index``."""
    yield node.inputs[0], gathered_map(node, node.inputs[1:], index)
    yield from index_operands(node, node.inputs[1:], index)


def index_operands(
    node: Node, indices: Sequence[Value], index: IndexMap
) -> Iterator[tuple[Value, IndexMap]]:
    """The index operands of a gather or scatter when the selected part is read at ``index``."""
    at = node.attrs["at"]
    rank = max(v.type.rank for v in indices)
    return ((v, _aligned(index[at: at + rank], v.shape)) for v in indices)


def gathered_map(
    node: Node, indices: Sequence[Value], index: IndexMap, affine: bool = True
) -> IndexMap:
    """Where in the array the selected part at ``index`` lies; ``affine``: by loops where it can."""
    axes, at = node.attrs["axes"], node.attrs["at"]
    rank = max(v.type.rank for v in indices)
    rest = iter((*index[:at], *index[at + rank:]))
    where = dict(zip(axes, index_operands(node, indices, index), strict=True))
    return tuple(
        _axis_index(where[axis], affine) if axis in where else next(rest)
        for axis in range(node.inputs[0].type.rank)
    )


def _aligned(index: IndexMap, shape: Sequence[int]) -> IndexMap:
    kept = index[len(index) - len(shape):] if shape else ()
    return tuple(AxisIndex(-1, 0, 0) if n == 1 else i for i, n in zip(kept, shape, strict=True))


def _axis_index(whole: tuple[Value, IndexMap], affine: bool) -> AxisIndex:
    """Along one axis: constants and counters are affine, everything else is computed."""
    value, index = whole
    if not affine:
        return AxisIndex(COMPUTED, 1, 0, whole)
    while registry.get(value.node.op).kind == "view" and is_affine(value.node):
        value, index = value.node.inputs[0], pull(value.node, 0, index)
    if value.node.op == "Const":
        return AxisIndex(-1, 0, plain_int(value.node.attrs["value"]))
    if value.node.op == "Iota":
        return index[0]
    return AxisIndex(COMPUTED, 1, 0, whole)
