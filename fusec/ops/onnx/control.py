"""Branches, loops, calls and checks.

A check is an element of an array of one, read beyond its end where the check fails: ONNX has no
operator that raises, and says of Gather that such an index is an error.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fusec.ir import Node, TensorType

from .protocol import BOOL, I64, OnnxNodes, rule


def _operands(inputs: Sequence[str], given: Sequence[str]) -> list[str]:
    return [*given, *inputs[len(given):]]


@rule("Cond")
def _cond(nodes: OnnxNodes, node: Node, inputs: Sequence[str]) -> list[str]:
    test, *operands = inputs
    changed, types = node.attrs["changed"], list(node.types)
    if node.inputs[0].dtype != BOOL:
        test = nodes.cast(test, BOOL)
    sides, checks = [], []
    for side in ("then", "orelse"):
        def fill(graph: Any = node.attrs[side]) -> list[str]:
            outputs, updates = nodes.inlined(graph, operands)
            return [*outputs, *(updates.get(i, operands[i]) for i in range(changed))]

        body, is_checked = nodes.body(side, [], fill, types, "made")
        sides.append(body)
        checks.append(is_checked)
    if not types and not any(checks):
        return []
    names = nodes.node_of("If", [test], len(types) + 1, then_branch=sides[0],
                          else_branch=sides[1])
    if any(checks):
        nodes.checked_by(names[-1])
    return names[:-1]


@rule("Loop")
def _loop(nodes: OnnxNodes, node: Node, inputs: Sequence[str]) -> list[str]:
    """The test is asked before the first iteration, and at the end of each."""
    carried, body = node.attrs["carried"], node.attrs["body"]
    types = list(node.types)

    def goes_on(now: Sequence[str]) -> str:
        outputs, _ = nodes.inlined(node.attrs["test"], _operands(inputs, now))
        return outputs[0] if node.attrs["test"].outputs[0].dtype == BOOL else nodes.cast(
            outputs[0], BOOL)

    def step(number: str, condition: str, *now: str) -> list[str]:
        before = now[:carried]
        outputs, updates = nodes.inlined(body, _operands(inputs, before))
        scalars = iter(outputs)
        after = [updates.get(i, before[i]) if v.type.kind == "array" else next(scalars)
                 for i, v in enumerate(body.inputs[:carried])]
        return [goes_on(after), *after]

    given = [TensorType(I64), TensorType(BOOL), *types]
    made, is_checked = nodes.body("body", given, step, [TensorType(BOOL), *types], "carried")
    start = nodes.constant(np.zeros(1, I64))
    names = nodes.node_of("Loop", ["", goes_on(inputs[:carried]), *inputs[:carried], start],
                          len(types) + 1, body=made)
    if is_checked:
        nodes.checked_by(names[-1])
    return names[:-1]


@rule("Call")
def _call(nodes: OnnxNodes, node: Node, inputs: Sequence[str]) -> list[str]:
    """The body in place of the call."""
    outputs, _ = nodes.inlined(node.attrs["body"], inputs)
    return outputs


@rule("Check")
def _check(nodes: OnnxNodes, node: Node, inputs: Sequence[str]) -> str:
    name, arguments = node.attrs["error"][:2]
    line = f" at {node.loc}" if node.loc is not None else ""
    nodes.require(inputs[0], f"{name}: {', '.join(map(str, arguments))}{line}")
    return nodes.constant(np.bool_(True))


@rule("Ran")
def _ran(nodes: OnnxNodes, node: Node, inputs: Sequence[str]) -> str:
    return nodes.constant(np.bool_(True))

