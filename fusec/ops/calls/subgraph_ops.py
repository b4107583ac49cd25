"""Ops that hold sub-graphs: fusion groups, branches, loops.

``Cond(test, *operands)`` runs ``then`` or ``orelse`` on the operands.  ``Loop(*carried, *others)``
runs ``body`` while ``test`` holds, both on all operands.  Sub-graphs change carried arrays by their
updates, as a whole graph changes its arguments.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fusec.ir import Node, TensorType

from ..admission.admission import BY_PASSES
from ..admission.row_admissions import COND, LOOP
from ..graphs import evaluate
from ..registry import Op, get, register

Sizes = Mapping[str, int]  # of what is around a branch or loop
_NONE: Sizes = {}


def infer_fused(types: Any, attrs: Any) -> tuple[TensorType, ...]:
    return tuple(v.type for v in attrs["body"].outputs)


def fused_reference(*arrays: Any, body: Any, **attrs: Any) -> Any:
    return tuple(evaluate.evaluate(body, arrays))


register(Op(
    name="Fused", kind="call", admits=BY_PASSES, infer=infer_fused, reference=fused_reference,
    doc="A fusion group: one kernel. attrs: body (graph), domain, axes (reduced), boundaries.",
))


def infer_cond(types: Any, attrs: Any) -> tuple[TensorType, ...]:
    then, orelse = ([v.type for v in attrs[side].outputs] for side in ("then", "orelse"))
    if then != orelse:
        raise TypeError(f"the sides of a branch give {then} and {orelse}")
    return (*then, *types[1: 1 + attrs["changed"]])


def cond_reference(
    test: Any, *operands: Any, then: Any, orelse: Any, changed: int, sizes: Sizes = _NONE,
    extends: str = "",
) -> Any:
    side = then if bool(test) else orelse
    outputs, updates = evaluate.evaluate_all(side, operands, dict(sizes))
    new = dict(updates)
    return (*outputs, *(new.get(i, operands[i]) for i in range(changed)))


def infer_loop(types: Any, attrs: Any) -> tuple[TensorType, ...]:
    carried = types[: attrs["carried"]]
    scalars = [t for t in carried if t.kind != "array"]
    if scalars != [v.type for v in attrs["body"].outputs]:
        raise TypeError(f"a loop carries {scalars}, its body gives "
                        f"{[v.type for v in attrs['body'].outputs]}")
    return tuple(carried)


def loop_reference(
    *operands: Any, test: Any, body: Any, carried: int, names: Any = (), sizes: Sizes = _NONE,
    extends: str = "", lanes: bool = False,
) -> Any:
    now, others = list(operands[:carried]), operands[carried:]
    while bool(evaluate.evaluate_all(test, [*now, *others], dict(sizes))[0][0]):
        outputs, updates = evaluate.evaluate_all(body, [*now, *others], dict(sizes))
        changed, scalars = dict(updates), iter(outputs)
        now = [
            changed.get(i, now[i]) if v.type.kind == "array" else next(scalars)
            for i, v in enumerate(body.inputs[:carried])
        ]
    return tuple(now)


register(Op(
    name="Cond", kind="call", admits=COND, infer=infer_cond, reference=cond_reference,
    is_control=True, may_raise=True, raises="often",
    doc="A branch on the first operand. attrs: then, orelse: graphs over the other operands; "
        "changed: how many of these are arrays that the graphs update. Results: the graphs' "
        "outputs, then the updated arrays.",
))
register(Op(
    name="Loop", kind="call", admits=LOOP, infer=infer_loop, reference=loop_reference,
    is_control=True, repeats=True, may_raise=True, raises="often",
    doc="A loop. attrs: carried: how many operands go from iteration to iteration; test, body: "
        "graphs over all operands; the body's outputs are the carried scalars, its updates the "
        "carried arrays that change; names: of what is carried; lanes: whether each iteration "
        "writes elements of its own, at the first carried number, and reads none that others "
        "write, while that number is below the first operand that is not carried.",
))


def is_region(node: Node) -> bool:
    """Whether it is a branch or a loop."""
    return node.op in ("Cond", "Loop")


def changed_operands(node: Node) -> list[int]:
    """For each result the operand that it is a changed copy of, or -1."""
    if node.op == "Loop":
        return [i if t.kind == "array" else -1 for i, t in enumerate(node.types)]
    changed = node.attrs.get("changed", 0)
    return [-1] * (len(node.types) - changed) + [1 + i for i in range(changed)]


def lane_operands(node: Node) -> tuple[int, ...]:
    """The operands of a loop over lanes that say which lanes: the first, and where to stop."""
    return (0, node.attrs["carried"]) if node.attrs.get("lanes") else ()


def lane_count(node: Node) -> int:
    """How many lanes a loop has; 0: it is none over lanes, or only its call knows."""
    stop = node.inputs[lane_operands(node)[1]].node if lane_operands(node) else node
    return int(stop.attrs["value"]) if stop.op == "Const" else 0


def has_placed_parts(node: Node) -> bool:
    """Whether anything in a branch or loop is placed by itself: not where the whole is."""
    return get(node.op).is_control and any(
        inner.device or has_placed_parts(inner) for graph in node.graphs for inner in graph.nodes)
