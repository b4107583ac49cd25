"""Traced values that depend on no argument: what they are, so that plain NumPy can use them."""

from __future__ import annotations

from typing import Any

import numpy as np

from fusec.ir import Node, Value
from fusec.ir.evaluate import apply
from fusec.ops.checks import has_effects

_MOST_NODES = 1_000
_MOST_ELEMENTS = 1 << 20


def known(value: Value) -> Any:
    """The ndarray, NumPy scalar or Python number that a value is in every call; None if unknown.

    Only small values of short histories are computed; arrays are read-only.
    """
    order = _history(value)
    if order is None:
        return None
    table: dict[Value, Any] = {}
    for node in order:
        results = apply(node, [table[v] for v in node.inputs])
        table.update(zip(node.outputs, results, strict=True))
    result = table[value]
    if isinstance(result, np.ndarray):
        result = result.copy()
        result.flags.writeable = False
    return result


def _history(value: Value) -> list[Node] | None:
    """Every node behind a value, operands first; None when an input or effect is among them."""
    order: list[Node] = []
    done: set[int] = set()
    todo = [value.node]
    while todo:
        node = todo[-1]
        waiting = [v.node for v in node.inputs if v.node.id not in done]
        if node.op == "Input" or has_effects(node) or len(done) > _MOST_NODES or any(
                not t.is_static or t.size > _MOST_ELEMENTS for t in node.types):
            return None
        if waiting:
            todo += waiting
            continue
        todo.pop()
        if node.id not in done:
            done.add(node.id)
            order.append(node)
    return order
