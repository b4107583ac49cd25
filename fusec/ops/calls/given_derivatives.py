"""Values whose derivative the program gives: `fusec.custom_vjp` and `fusec.custom_jvp`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fusec.core.records import dataclass
from fusec.ir import Node, TensorType, Value

from ..admission.admission import GRAPH, INT, TEXT, Admission, require
from ..registry import Op, Types, register

GIVEN = "GivenDerivative"


@dataclass(frozen=True)
class RuleOperands:
    """The operands of a node by their use."""

    values: Sequence[Value]  # which the node's results are
    read: Sequence[Value]  # by the rule, beside its directions
    closed: Sequence[Value]  # read from outside by what computed the values
    primals: Sequence[Value]  # by which the rule gives derivatives

    @classmethod
    def of(cls, node: Node) -> RuleOperands:
        a = len(node.types)
        b = a + node.attrs["read"]
        c = b + node.attrs["closed"]
        inputs = node.inputs
        return cls(inputs[:a], inputs[a:b], inputs[b:c], inputs[c:])


def infer_given(types: Sequence[TensorType], attrs: Mapping[str, Any]) -> Types:
    return tuple(types[: attrs["values"]])


def given_reference(*operands: Any, values: int, **attrs: Any) -> tuple[Any, ...]:
    return operands[:values]


def _admitted(node: Node) -> None:
    attrs, rule = node.attrs, node.attrs["rule"]
    primals = len(node.inputs) - attrs["values"] - attrs["read"] - attrs["closed"]
    require(attrs["direction"] in ("back", "forward") and primals >= 0, "its operands are missing")
    ways = (attrs["values"], primals) if attrs["direction"] == "back" else (
        primals, attrs["values"])
    require((len(rule.inputs) - attrs["read"], len(rule.outputs)) == ways,
            "its rule is one of other values")


register(Op(
    name=GIVEN, kind="call", infer=infer_given, reference=given_reference, raises="never",
    takes="fc",
    called="a function with a rule of its own",
    admits=Admission({"rule": GRAPH, "direction": TEXT, "values": INT, "read": INT, "closed": INT},
                     rule=_admitted),
    doc="The first operands, with a derivative of their own. attrs: values, read, closed: how many "
        "operands are the values, what the rule reads, and what these depend on beside the primals,"
        " which are the others; rule: a graph over cotangents of the values (direction back) or "
        "tangents of the primals (forward) and what it reads, which gives those of the others.",
))
