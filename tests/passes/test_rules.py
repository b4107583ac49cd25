"""Every arithmetic and logical rule: it applies, and keeps every bit on special values."""

from __future__ import annotations

import numpy as np
import pytest
from random_graphs import SPECIAL, input_value, same_bits

from fusec.ir import Graph, TensorType, Value
from fusec.ir.text.parse import parse_graph
from fusec.ops import Builder
from fusec.ops.graphs.evaluate import evaluate
from fusec.ops.graphs.verify import verify
from fusec.passes.rewrite import Rewriter, rewrite
from fusec.passes.rules.match import (
    Anything,
    NodePattern,
    NumberPattern,
    Pattern,
    Rule,
    apply_rule,
    rule,
)
from fusec.passes.rules.rules import ARITHMETIC, BITS, LOGIC, LOGICAL, RULES
from fusec.passes.rules.simplify import simplify

DTYPES = {"f": ["f8", "f4"], "i": ["i8", "i1"], "u": ["u8", "u1"], "b": ["?"], "c": ["c16"]}
INTEGERS = [0, 1, -1, 2, 3, 7, -8, 100, 127, -128, 2**63 - 1, -(2**63)]
# Rules whose left side is a power: NumPy's pow may be an ulp off the correctly rounded square.
INEXACT_SOURCE = ("Pow(x, 2)", "Pow(x, -1)")


def numbers(dtype: np.dtype) -> np.ndarray:
    if dtype.kind == "f":
        with np.errstate(all="ignore"):
            return np.array(SPECIAL, dtype)
    if dtype.kind == "b":
        return np.array([True, False])
    limits = np.iinfo(dtype)
    kept = [n for n in INTEGERS if limits.min <= n <= limits.max] + [limits.max, limits.min]
    return np.array(kept, dtype)


class Example:
    """The left side of a rule as a graph over one-dimensional parameters."""

    def __init__(self, item: Rule, dtype: np.dtype, constant: float) -> None:
        self.builder = Builder()
        self.dtype, self.constant = dtype, constant
        self.inputs: dict[str, Value] = {}
        self.graph = self.build(item)

    def build(self, item: Rule) -> Graph:
        result = self.value(item.pattern, self.dtype)
        return Graph.build(self.inputs.values(), [result])

    def value(self, pattern: Pattern, dtype: np.dtype) -> Value:
        if isinstance(pattern, NumberPattern):
            return self.builder.const(np.asarray(pattern.value, dtype)[()])
        if isinstance(pattern, Anything):
            return self.leaf(pattern.name, dtype)
        kinds = self.operand_dtypes(pattern, dtype)
        operands = [self.value(p, d) for p, d in zip(pattern.operands, kinds, strict=True)]
        return self.builder.emit(pattern.op, *operands)

    def leaf(self, name: str, dtype: np.dtype) -> Value:
        if name == "c":
            return self.builder.const(np.asarray(self.constant, dtype)[()])
        if name not in self.inputs:
            index = len(self.inputs)
            count = len(numbers(dtype))
            self.inputs[name] = input_value(index, TensorType(dtype, (count,) + (1,) * index))
            self.builder.namer.fresh(self.inputs[name].node.name)
        return self.inputs[name]

    @staticmethod
    def operand_dtypes(pattern: NodePattern, dtype: np.dtype) -> list[np.dtype]:
        if pattern.op == "Where":
            return [np.dtype(bool), dtype, dtype]
        if pattern.op in ("Less", "LessEqual", "Greater", "GreaterEqual", "Equal", "NotEqual"):
            return [np.dtype("i8") if dtype.kind == "b" else dtype] * 2
        return [dtype] * len(pattern.operands)


def cases() -> list[tuple[Rule, str]]:
    rules = [*ARITHMETIC, *LOGICAL]
    return [(item, name) for item in rules for kind in item.kinds for name in DTYPES[kind]
            if makes_sense(item, name)]


def makes_sense(item: Rule, dtype: str) -> bool:
    """-1 and -0.0 are no numbers of an unsigned type; complex has no order of its own."""
    unsigned = dtype.startswith("u") and ("-1" in item.text or "-0.0" in item.text)
    return not unsigned and dtype != "c16"


@pytest.mark.parametrize(("item", "name"), cases(), ids=lambda p: getattr(p, "text", p))
def test_rule_applies_and_keeps_every_bit(item: Rule, name: str) -> None:
    graph = Example(item, np.dtype(name), 4).graph
    verify(graph)
    after = rewrite(graph, lambda node, rewriter: one(apply_rule(item, node, rewriter)))
    # A result may not become an argument, so look at what the rule makes, not at what is accepted.
    made = apply_rule(item, graph.outputs[0].node, _rewriter(graph))
    assert made is not None and made.type.dtype == graph.outputs[0].type.dtype
    verify(after)
    replaced = Graph.build(graph.inputs, [made])
    arrays = [numbers(v.dtype).reshape(v.shape) for v in graph.inputs]
    (old,), (new,) = evaluate(graph, arrays), evaluate(replaced, arrays)
    new = np.broadcast_to(new, np.shape(old))
    if item.text.startswith(INEXACT_SOURCE):
        np.testing.assert_array_max_ulp(old[np.isfinite(old)], new[np.isfinite(old)], 1)
    else:
        assert same_bits(old, new)


def one(value: Value | None) -> list[Value] | None:
    return None if value is None else [value]


def _rewriter(graph: Graph) -> Rewriter:
    rewriter = Rewriter(graph)
    rewriter.stand_for(graph.outputs[0].node)
    return rewriter


WRONG = [
    "Add(%x, %zero)", "Mul(%x, %zero)", "Sub(%x, %x)", "Div(%x, %x)", "Sub(%zero, %x)",
    "Sub(%x, %negative_zero)", "Pow(%x, %half)", "Div(%x, %three)", "Less(%x, %nan)",
    "Equal(%x, %x)", "Mul(%x, %nan)",
]


@pytest.mark.parametrize("call", WRONG)
def test_tempting_float_rewrites_are_not_made(call: str) -> None:
    kind = "bool" if call.startswith(("Less", "Equal")) else "f64"
    graph = parse_graph(f"""graph main(x: f64[3]) {{
      %zero = Const {{value=f64(0.0)}} : f64
      %negative_zero = Const {{value=f64(-0.0)}} : f64
      %half = Const {{value=f64(0.5)}} : f64
      %three = Const {{value=f64(3.0)}} : f64
      %nan = Const {{value=f64(nan)}} : f64
      %y = {call} : {kind}[3]
      return %y
    }}""")
    assert simplify(graph) is graph


def test_rules_are_data_without_duplicates() -> None:
    texts = [(item.text, item.kinds) for item in RULES]
    assert len(set(texts)) == len(texts)
    assert set(map(id, BITS + LOGIC)) <= set(map(id, RULES))


@pytest.mark.parametrize("text", ["Add(x, y)", "x -> y", "1 -> x"])
def test_a_rule_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a rewrite rule"):
        rule(text, "f")
