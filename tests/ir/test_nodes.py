"""Copies of nodes: what is not changed is the node's own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fusec.ir import Loc, Node, TensorType

F8 = TensorType(np.dtype("f8"), (3,))
X = Node("Input", (), (F8,), {"index": 0}, name="x")
BEFORE = Node("Neg", (X.out(),), (F8,))
NODE = Node("Sum", (X.out(),), (F8,), {"axes": (0,)}, name="s", loc=Loc("p.py", 3),
            control_inputs=(BEFORE,), device="/device:CPU:1")
FIELDS = [name for name in Node.__slots__ if name != "id"]


def fields(node: Node) -> dict[str, Any]:
    return {name: getattr(node, name) for name in FIELDS}


def test_a_copy_without_changes_is_a_node_of_its_own() -> None:
    copy = NODE.with_()
    assert copy is not NODE and copy.id > NODE.id and fields(copy) == fields(NODE)


@pytest.mark.parametrize(("field", "value"), [
    ("op", "Prod"), ("inputs", (BEFORE.out(),)), ("types", (F8, F8)), ("attrs", {"axes": ()}),
    ("attrs", {}), ("name", "t"), ("loc", None), ("control_inputs", ()), ("device", ""),
])
def test_one_field_is_changed_and_no_other(field: str, value: Any) -> None:
    assert fields(NODE.with_(**{field: value})) == fields(NODE) | {field: value}


def test_every_field_can_be_changed() -> None:
    assert set(Node.with_.__kwdefaults__) == {*FIELDS}


def test_attributes_of_a_copy_are_its_own() -> None:
    attrs = {"axes": (1,)}
    copy = NODE.with_(attrs=attrs)
    attrs["axes"] = (2,)
    assert copy.attrs == {"axes": (1,)}


def test_a_copy_comes_after_nodes_that_its_operands_make() -> None:
    made: list[Node] = []

    def operand() -> Any:
        made.append(BEFORE.with_())
        return made[0].out()

    assert NODE.with_(inputs=(operand() for _ in range(1))).id > made[0].id


def test_the_same_operands_need_no_copy() -> None:
    assert NODE.with_inputs(NODE.inputs) is NODE
    assert fields(NODE.with_inputs([BEFORE.out()], ())) == fields(NODE) | {
        "inputs": (BEFORE.out(),), "control_inputs": ()}
