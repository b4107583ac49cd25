"""Boolean masks: ``x[mask]``, ``x[i, mask] = v``, sums of selected elements.

A mask's indices are found by NumPy; reading is a ``Gather`` at them, which fuses.  Masks that are
computed alike give the same indices, so ``x[m] * w[m]`` has one size and is one loop.

Where selected elements go back to their places (``x[m] += w[m]``) or are summed, no index is
needed: they are computed for all elements, and the mask chooses.  Sizes are then known, so it can
be part of a native loop.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

import numpy as np

from fusec.core.records import dataclass, field
from fusec.ir import Node, Value
from fusec.ir.text.text import print_attr
from fusec.ir.walks import nodes_behind
from fusec.ops import registry
from fusec.ops.shapes import broadcast

from ..library.calls import call_library
from ..operands.operands import as_traced, cast, is_run_time_int, truth
from ..values.array import TracedArray, from_value
from ..values.trace import Trace
from . import gathers

MOST_WORK = 100.0  # additions an element: above, only the selected elements are computed


@dataclass
class Numbering:
    """Of a trace: equal values and nodes by number, and the indices that masks select."""

    values: dict[int, int] = field(default_factory=dict)
    nodes: dict[Any, int] = field(default_factory=dict)
    masks: dict[tuple[int, int], Any] = field(default_factory=dict)


def value_number(trace: Trace, value: Value) -> tuple[int, int]:
    """Equal for values that the graph computes alike."""
    numbers = trace.part(Numbering).values
    for node in nodes_behind([value], lambda v: v.node.id in numbers):
        numbers[node.id] = trace.part(Numbering).nodes.setdefault(_key(node, numbers), node.id)
    return numbers[value.node.id], value.index


def _key(node: Node, numbers: dict[int, int]) -> Hashable:
    if node.op == "Input" or registry.get(node.op).stateful:
        return node.id
    operands = tuple((numbers[v.node.id], v.index) for v in node.inputs)
    attrs = tuple((k, print_attr(node.attrs[k], locs=False)) for k in sorted(node.attrs))
    return node.op, operands, attrs


def indices_of(trace: Trace, mask: TracedArray) -> tuple[TracedArray, ...]:
    """``np.nonzero(mask)``, one result for masks that are computed alike."""
    key = value_number(trace, mask.value)
    if key not in trace.part(Numbering).masks:
        trace.part(Numbering).masks[key] = call_library(trace, "Nonzero", (mask,), {})
    indices: tuple[TracedArray, ...] = trace.part(Numbering).masks[key]
    return indices


def is_whole_mask(array: TracedArray, key: Any) -> bool:
    """Whether a key is one mask over the array's first axes."""
    return type(key) in (TracedArray, np.ndarray) and key.dtype == np.bool_ and key.ndim > 0 and (
        key.shape == array.shape[: key.ndim])


def has_rank_0(key: Any) -> bool:
    """Whether a key is one boolean that the run computes, a scalar or an array of rank 0."""
    return type(key) in (TracedArray, np.ndarray) and key.dtype == np.bool_ and not key.ndim


def along_new_axis(
    array: TracedArray, mask: Any, part: Callable[[TracedArray, Any], TracedArray]
) -> tuple[TracedArray, TracedArray]:
    """``x[mask]`` is ``x[None][mask[None]]`` for a mask of rank 0: its array and its mask."""
    trace = array.trace
    value = truth(trace, as_traced(trace, mask).value)
    return part(array, None), from_value(trace, trace.emit("ExpandDims", value, axes=(0,)))


def get_item(array: TracedArray, mask: Any) -> TracedArray:
    """``array[mask]`` for a mask over its first axes: a fresh array."""
    trace = array.trace
    places = indices_of(trace, as_traced(trace, mask))
    value = trace.emit("Gather", array.value, *(p.value for p in places),
                       axes=tuple(range(len(places))), at=0)
    return from_value(trace, value)


def follows_integers(array: TracedArray, key: Any) -> bool:
    """Whether a key is integers, and then one mask over as many of the array's next axes."""
    if type(key) is not tuple or len(key) < 2 or not _is_mask(key[-1]):
        return False
    *integers, mask = key
    return all(map(_is_integer, integers)) and mask.shape == (
        array.shape[len(integers): len(integers) + mask.ndim])


def follows_slices(array: TracedArray, key: Any) -> bool:
    """Whether a key is slices, and then one mask over as many of the array's next axes."""
    if type(key) is not tuple or len(key) < 2 or not _is_mask(key[-1]):
        return False
    *slices, mask = key
    return all(map(_is_known_slice, slices)) and mask.shape == (
        array.shape[len(slices): len(slices) + mask.ndim])


def _is_known_slice(entry: Any) -> bool:
    return isinstance(entry, slice) and all(
        x is None or isinstance(x, int) for x in (entry.start, entry.stop, entry.step))


def get_after_slices(
    array: TracedArray, key: Any, part: Callable[[TracedArray, Any], TracedArray]
) -> TracedArray:
    """``array[:, mask]``: by NumPy's definition ``array[:, *np.nonzero(mask)]``."""
    *slices, mask = key
    source = part(array, tuple(slices))
    places = indices_of(array.trace, as_traced(array.trace, mask))
    return gathers.at_places(source, places, len(slices))


# ------------------------------------------------------------------------- without any indices


def set_item(
    array: TracedArray, key: Any, value: Any, part: Callable[[TracedArray, Any], TracedArray]
) -> bool:
    """``array[mask] = value``, and with integers or slices before the mask, by choosing elements.

    False where the value is not a number, a row for each element, or computed from elements that
    equal masks select.  ``part`` is the view at integers and slices.
    """
    trace, entries = array.trace, key if type(key) is tuple else (key,)
    after_slices = follows_slices(array, key)
    if not entries or not _is_mask(entries[-1]) or not (
            after_slices or all(map(_is_integer, entries[:-1]))):
        return False
    *first, mask = entries
    places = array.shape[len(first): len(first) + mask.ndim]
    if mask.shape != places or not array.value.type.is_static:
        return False
    before, after = len(first) if after_slices else 0, array.ndim - len(first) - mask.ndim
    whole = _for_all(trace, as_traced(trace, value).value, as_traced(trace, mask), before, after)
    target = part(array, tuple(first)) if after_slices else array
    if whole is None or not _spreads(whole, target.shape[len(first) - before:]):
        return False
    target = part(array, tuple(first)) if first and not after_slices else target
    chosen = _widened(trace, truth(trace, as_traced(trace, mask).value), mask.ndim + after)
    target.write(trace.emit("Where", chosen, cast(trace, whole, array.dtype), target.value,
                            kind="array"))
    return True


def _is_mask(entry: Any) -> bool:
    return type(entry) in (TracedArray, np.ndarray) and entry.dtype == np.bool_ and entry.ndim > 0


def _is_integer(entry: Any) -> bool:
    return is_run_time_int(entry) or (
        isinstance(entry, (int, np.integer)) and not isinstance(entry, (bool, np.bool_)))


def _for_all(
    trace: Trace, value: Value, mask: TracedArray, before: int, after: int
) -> Value | None:
    """The value that is assigned, for the elements that the mask leaves out as well: of so many
    axes before that of the selected elements, and after it, at most."""
    if value.type.is_static:
        return value if value.type.rank <= after else None
    if value.type.rank > before + 1 + after:
        return None
    unmasked = _unmasked(trace, value, value.type.rank - 1 - after)
    if unmasked is None or value_number(trace, unmasked[1]) != value_number(trace, mask.value):
        return None
    return unmasked[0]


def _spreads(value: Value, shape: tuple[Any, ...]) -> bool:
    try:
        return broadcast([value.shape, tuple(shape)]) == tuple(shape)
    except ValueError:
        return False


def _widened(trace: Trace, mask: Value, rank: int) -> Value:
    """The mask with an axis of length 1 for each that it does not cover."""
    axes = tuple(range(mask.type.rank, rank))
    return trace.emit("ExpandDims", mask, axes=axes) if axes else mask


def add_up(trace: Trace, op: str, value: Value, axes: tuple[int, ...]) -> Value | None:
    """The ``Sum`` or ``Mean`` of selected elements, without selecting; None for other values."""
    unmasked = None if value.type.is_static or 0 not in axes else _unmasked(trace, value)
    if unmasked is None:
        return None
    whole, mask = unmasked
    own = tuple(range(mask.type.rank))
    others = tuple(a + mask.type.rank - 1 for a in axes if a)
    zero = trace.builder.const(whole.dtype.type(0))
    kept = trace.emit("Where", _widened(trace, mask, whole.type.rank), whole, zero)
    total = trace.emit("Sum", kept, axes=(*own, *others))
    if op == "Sum":
        return total
    count = trace.emit("Sum", cast(trace, mask, np.dtype(np.int64)), axes=own)
    for axis in others:
        size = trace.builder.const(np.int64(whole.shape[axis]))
        count = trace.emit("Mul", count, size)
    return trace.emit("Div", total, cast(trace, count, total.dtype))


def _unmasked(trace: Trace, value: Value, axis: int = 0) -> tuple[Value, Value] | None:
    """The value computed for every element, and the mask that selects its elements from that;
    ``axis``: that of the selected elements.

    None where it is not elementwise in the elements that one mask selects, or at high cost.
    """
    if not 0 <= axis < value.type.rank:
        return None
    unmasking = _Unmasking(trace, value.shape[axis], value.type.rank - 1 - axis)
    whole = unmasking.of(value)
    if whole is None or unmasking.places is None or unmasking.work > MOST_WORK:
        return None
    return whole, unmasking.places.inputs[0]


class _Unmasking:
    """One value computed for all elements: the ``Nonzero`` behind it, and its work.

    ``after``: how many axes follow that of the selected elements, which has the size ``size``.
    """

    def __init__(self, trace: Trace, size: Any, after: int) -> None:
        self.trace, self.size, self.after = trace, size, after
        self.places: Node | None = None
        self.work = 0.0
        self.done: dict[Value, Value | None] = {}

    def of(self, value: Value) -> Value | None:
        if value not in self.done:
            self.done[value] = self._of(value)
        return self.done[value]

    def _of(self, value: Value) -> Value | None:
        node, axis = value.node, value.type.rank - 1 - self.after
        row = registry.get(node.op)
        self.work += row.cost
        if self.work > MOST_WORK or axis < 0 or value.shape[axis] != self.size:
            return None
        if node.op == "Gather":
            return self._gathered(node, axis)
        if node.op == "ExpandDims" and axis == 0 and 0 not in node.attrs["axes"]:
            return self._expanded(node)
        raises = row.may_raise or node.op == "ScalarCall" or (
            node.op == "Pow" and value.dtype.kind in "iu")
        if row.kind != "elementwise" or row.stateful or raises:
            return None
        operands = [self._operand(v, value) for v in node.inputs]
        if any(v is None for v in operands):
            return None
        return self.trace.emit(node.op, *operands, **node.attrs)  # type: ignore[arg-type]

    def _operand(self, operand: Value, result: Value) -> Value | None:
        """An operand for all elements; numbers and rows are the same for each."""
        if operand.type.rank <= self.after and operand.type.is_static:
            return operand
        return self.of(operand)

    def _gathered(self, node: Node, axis: int) -> Value | None:
        """The elements that a mask selects; or other rows of it, ``x[:, mask][rows]``."""
        source, *indices = node.inputs
        places = indices[0].node
        if places.op != "Nonzero":
            return self._rows(node, axis)
        axes = tuple(range(axis, axis + len(indices)))
        whole = [*places.outputs] == indices and (node.attrs["axes"], node.attrs["at"]) == (
            axes, axis)
        if not whole or not source.type.is_static or self.places not in (None, places):
            return None
        self.places = places
        return source

    def _rows(self, node: Node, axis: int) -> Value | None:
        """The same rows of all elements."""
        source, *indices = node.inputs
        (at,) = node.attrs["axes"] if len(indices) == 1 else (axis,)
        if at >= axis or node.attrs["at"] != at or indices[0].type.rank != 1:
            return None
        whole = self.of(source)
        return None if whole is None else self.trace.emit(
            "Gather", whole, *indices, **node.attrs)

    def _expanded(self, node: Node) -> Value | None:
        inner = self.of(node.inputs[0])
        if inner is None:
            return None
        extra = inner.type.rank - node.inputs[0].type.rank
        axes = tuple(a + extra for a in node.attrs["axes"])
        return self.trace.emit("ExpandDims", inner, axes=axes)
