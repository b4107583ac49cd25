"""Ops that hold a sub-graph."""

from __future__ import annotations

from typing import Any

from fusec.ir import TensorType

from .registry import Op, register


def infer_fused(types: Any, attrs: Any) -> tuple[TensorType, ...]:
    return tuple(v.type for v in attrs["body"].outputs)


def fused_reference(*arrays: Any, body: Any, **attrs: Any) -> Any:
    from fusec.ir.evaluate import evaluate

    return tuple(evaluate(body, arrays))


register(Op(
    name="Fused", kind="call", infer=infer_fused, reference=fused_reference,
    doc="A fusion group: one kernel. attrs: body (graph), domain, axes (reduced), boundaries.",
))
