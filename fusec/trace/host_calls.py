"""Emitting calls of the user's own objects: random generators and prints, in program order.

The order is a storage of its own: each call reads and replaces it, as if it wrote to an array, so
branches and loops carry it like any other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fusec.ir import TensorType, Value
from fusec.ops.host_calls import ORDER, HostObject

from .context import Trace
from .control.regions import assign


def call_host(
    trace: Trace, action: str, target: HostObject, method: str, operands: Sequence[Value] = (),
    form: Any = ("tuple",), named: Any = ("tuple",), types: Sequence[TensorType] = (),
) -> tuple[Value, ...]:
    """The results of a call that the run makes of the user's object; see `fusec.ops.host_calls`."""
    trace.calls_host = True
    first = trace.emit(
        "HostCall", trace.order.value, *operands, action=action, target=target, method=method,
        form=form, named=named, results=(*types, ORDER))
    *results, order = first.node.outputs
    assign(trace, trace.order, order)
    trace.checks.append(first.node)
    return tuple(results)
