"""Emitting calls of the user's own objects: random generators and prints, in program order.

Their order is a storage of its own: each call reads and replaces it, as if it wrote to an array,
so branches and loops carry it like any other.  Draws have one and prints another, so that neither
waits for the other; two generators may share their bits, and two files their text.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fusec.core.records import dataclass, field
from fusec.errors import unsupported
from fusec.ir import TensorType, Value
from fusec.ops.calls.host_calls import ORDER, SHOWN, HostObject

from ..facts.trees import flattened
from ..values.array import TracedArray
from ..values.storage import Storage
from ..values.trace import Trace, assign
from .arguments import Encoder


@dataclass
class HostCalls:
    """Of a trace: calls of the user's objects, their orders, and generators made in it."""

    orders: dict[str, Storage]
    any: bool = False
    generators: dict[int, HostObject] = field(default_factory=dict)
    slots: int = 0

    @classmethod
    def begun(cls, trace: Trace) -> HostCalls:
        """Those of a trace that begins."""
        return cls({action: Storage(trace.builder.emit(
            "Const", name=name, value=np.int64(0), kind="array"), ())
            for action, name in (("draw", "order"), ("print", "print_order"))})


def call_host(
    trace: Trace, action: str, target: HostObject, method: str, operands: Sequence[Value] = (),
    form: Any = ("tuple",), named: Any = ("tuple",), types: Sequence[TensorType] = (),
) -> tuple[Value, ...]:
    """The results of a call that the run makes of the user's object; see `host_calls`."""
    calls = trace.part(HostCalls)
    calls.any = True
    kept = calls.orders["print" if action in SHOWN else "draw"]
    first = trace.emit("HostCall", kept.value, *operands, action=action, target=target,
                       method=method, form=form, named=named, results=(*types, ORDER))
    *results, order = first.node.outputs
    assign(trace, kept, order)
    trace.record.checks.append(first.node)
    return tuple(results)


def printed(trace: Trace, args: Sequence[Any], options: dict[str, Any]) -> None:
    """``print`` at run time; other objects are printed as they are then."""
    encoder = Encoder(trace, "fusec.print")
    form = ("tuple", *[_printable(encoder, x) for x in args])
    named = ("tuple", *[("tuple", name, _printable(encoder, x)) for name, x in options.items()])
    call_host(trace, "print", HostObject.of("print"), "print",
              [x.value for x in encoder.operands], form, named)


def _printable(encoder: Encoder, x: Any) -> Any:
    if type(x) in (tuple, list):
        return (type(x).__name__, *[_printable(encoder, item) for item in x])
    if type(x) in (TracedArray, np.ndarray):
        return encoder.encode(x, True)
    if x is None or type(x) in (bool, int, float, str):
        return x
    if any(type(leaf) is TracedArray for leaf in flattened(x)[0]):
        raise unsupported(f"fusec.print of a {type(x).__name__} that holds traced values",
                          loc=encoder.trace.loc, cure="print its items")
    return HostObject.of(type(x).__name__, held=x)
