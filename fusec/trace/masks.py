"""Reading through boolean masks: ``x[mask]``, and ``nonzero`` of equal masks once.

A mask's indices are found by NumPy; reading is a ``Gather`` at them, which fuses.  Masks that are
computed alike give the same indices, so ``x[m] * w[m]`` has one size and is one loop.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np

from fusec.ir import Node, Value
from fusec.ir.text import print_attr
from fusec.ops import registry

from .array import TracedArray, from_value
from .context import Trace
from .library import call_library
from .ufuncs import as_traced


def value_number(trace: Trace, value: Value) -> tuple[int, int]:
    """Equal for values that the graph computes alike."""
    stack = [value.node]
    numbers = trace.value_numbers
    while stack:
        node = stack[-1]
        missing = [v.node for v in node.inputs if v.node.id not in numbers]
        if node.id in numbers or missing:
            stack = [*stack, *missing] if missing else stack[:-1]
            continue
        numbers[node.id] = trace.node_numbers.setdefault(_key(node, numbers), node.id)
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
    if key not in trace.mask_indices:
        trace.mask_indices[key] = call_library(trace, "Nonzero", (mask,), {})
    found: tuple[TracedArray, ...] = trace.mask_indices[key]
    return found


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
