"""Boolean masks: ``x[mask]``, ``x[i, mask] = v``, sums of selected elements.

A mask's indices are found by NumPy; reading is a ``Gather`` at them, which fuses.  Masks that are
computed alike give the same indices, so ``x[m] * w[m]`` has one size and is one loop.

Where what was selected goes back to its places (``x[m] += w[m]``) or is summed, no index is needed:
it is computed for all elements, and the mask chooses.  Sizes are then known, so it can be part of a
native loop.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

import numpy as np

from fusec.ir import Node, Value
from fusec.ir.text import print_attr
from fusec.ir.walks import nodes_behind
from fusec.ops import registry
from fusec.ops.shapes import broadcast
from fusec.records import dataclass, field

from ..library.calls import call_library
from ..operands.operands import as_traced, cast, is_run_time_int, truth
from ..values.array import TracedArray, from_value
from ..values.trace import Trace

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


def get_item(array: TracedArray, mask: Any) -> TracedArray:
    """``array[mask]`` for a mask over its first axes: a fresh array."""
    trace = array.trace
    places = indices_of(trace, as_traced(trace, mask))
    value = trace.emit("Gather", array.value, *(p.value for p in places),
                       axes=tuple(range(len(places))), at=0)
    return from_value(trace, value)


# ------------------------------------------------------------------------- without any indices


def set_item(
    array: TracedArray, key: Any, value: Any, part: Callable[[TracedArray, Any], TracedArray]
) -> bool:
    """``array[mask] = value`` and ``array[i, mask] = value`` as a choice for each element.

    False where the value is not a number, a row for each element, or computed from what equal
    masks select.  ``part`` is the view at integers.
    """
    trace, entries = array.trace, key if type(key) is tuple else (key,)
    if not entries or not _is_mask(entries[-1]) or not all(map(_is_integer, entries[:-1])):
        return False
    *integers, mask = entries
    places = array.shape[len(integers): len(integers) + mask.ndim]
    if mask.shape != places or not array.value.type.is_static:
        return False
    whole = _for_all(trace, as_traced(trace, value).value, as_traced(trace, mask), array.ndim
                     - len(integers))
    if whole is None or not _spreads(whole, array.shape[len(integers):]):
        return False
    target = part(array, tuple(integers)) if integers else array
    chosen = _widened(trace, truth(trace, as_traced(trace, mask).value), target.ndim)
    target.write(trace.emit("Where", chosen, cast(trace, whole, array.dtype), target.value,
                            kind="array"))
    return True


def _is_mask(entry: Any) -> bool:
    return type(entry) in (TracedArray, np.ndarray) and entry.dtype == np.bool_ and entry.ndim > 0


def _is_integer(entry: Any) -> bool:
    return is_run_time_int(entry) or (
        isinstance(entry, (int, np.integer)) and not isinstance(entry, (bool, np.bool_)))


def _for_all(trace: Trace, value: Value, mask: TracedArray, rank: int) -> Value | None:
    """The value that is assigned, for the elements that the mask leaves out as well."""
    if value.type.is_static:
        return value if value.type.rank <= rank - mask.ndim else None
    unmasked = _unmasked(trace, value)
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


def _unmasked(trace: Trace, value: Value) -> tuple[Value, Value] | None:
    """What the value would be for every element, and the mask that selects its elements from that.

    None where it is not computed element by element from what one mask selects, or at high cost.
    """
    unmasking = _Unmasking(trace, value.shape[0])
    whole = unmasking.of(value) if value.type.rank else None
    if whole is None or unmasking.places is None or unmasking.work > MOST_WORK:
        return None
    return whole, unmasking.places.inputs[0]


class _Unmasking:
    """One value computed for all elements: the ``Nonzero`` behind it, and its work."""

    def __init__(self, trace: Trace, size: Any) -> None:
        self.trace, self.size = trace, size
        self.places: Node | None = None
        self.work = 0.0
        self.done: dict[Value, Value | None] = {}

    def of(self, value: Value) -> Value | None:
        if value not in self.done:
            self.done[value] = self._of(value)
        return self.done[value]

    def _of(self, value: Value) -> Value | None:
        node = value.node
        if node.op == "Gather":
            return self._gathered(node)
        row = registry.get(node.op)
        self.work += row.cost
        if self.work > MOST_WORK or value.type.rank == 0 or value.shape[0] != self.size:
            return None
        if node.op == "ExpandDims" and 0 not in node.attrs["axes"]:
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
        if operand.type.rank < result.type.rank and operand.type.is_static:
            return operand
        return self.of(operand)

    def _gathered(self, node: Node) -> Value | None:
        source, *indices = node.inputs
        places = indices[0].node
        whole = places.op == "Nonzero" and [*places.outputs] == indices and node.attrs == {
            **node.attrs, "axes": tuple(range(len(indices))), "at": 0}
        if not whole or not source.type.is_static or self.places not in (None, places):
            return None
        self.places = places
        return source

    def _expanded(self, node: Node) -> Value | None:
        inner = self.of(node.inputs[0])
        if inner is None:
            return None
        extra = inner.type.rank - node.inputs[0].type.rank
        axes = tuple(a + extra for a in node.attrs["axes"])
        return self.trace.emit("ExpandDims", inner, axes=axes)
