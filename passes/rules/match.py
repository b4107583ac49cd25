"""The pattern language of the rewrite rules: one rule, one line of text.

A rule is ``"Sub(x, Neg(y)) -> Add(x, y)"``, optionally ending in `` if condition``:

* a capitalised call is an op; operands of commutative ops match in both orders;
* ``Slice[a, b, n](x)`` names the op's attributes in the order of its row;
* a lower-case name is any value (the same value wherever it recurs); ``c`` is a constant;
* a number is a constant of exactly that value (``0`` is not ``-0.0``), also when broadcast;
* a lower-case call is a function in `passes.rule_functions`, given attributes, values and the
  number behind ``c``; ``out`` is the shape of the result.

A rule applies only where its result has exactly the type of the value it replaces, so that shape
conditions need not be written out.  Rules are parsed when they are declared.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from fusec.core.records import dataclass
from fusec.ir import Node, TensorType, Value
from fusec.ops import registry

from ..rewrite import Rewriter
from .rule_functions import HELPERS

Bindings = dict[str, Any]
CONSTANT = "c"


@dataclass(frozen=True, slots=True)
class Anything:
    """Matches any value, the same one wherever ``name`` recurs; ``c`` only a constant."""

    name: str


@dataclass(frozen=True, slots=True)
class NumberPattern:
    """Matches a constant of exactly this value."""

    value: Any


@dataclass(frozen=True, slots=True)
class NodePattern:
    """Matches output 0 of a node of this op, binding its attributes to ``attrs`` by name."""

    op: str
    operands: tuple[Pattern, ...]
    attrs: tuple[str, ...]


Pattern = Anything | NumberPattern | NodePattern


@dataclass(frozen=True, slots=True)
class Rule:
    """A parsed rule; ``kinds`` are the NumPy kind letters of the operand dtypes it holds for,
    ``operands`` the ops (see `operand_ops`) that must be among those of the operands."""

    text: str
    kinds: str
    pattern: NodePattern
    result: ast.expr
    condition: ast.expr | None
    operands: frozenset[str]


def rule(text: str, kinds: str) -> Rule:
    """Parse one rule; raises ``ValueError`` for text that is none."""
    pattern, arrow, rest = text.partition("->")
    result, _, condition = rest.partition(" if ")
    left = _pattern(_expression(pattern))
    if not arrow or not isinstance(left, NodePattern):
        raise ValueError(f"internal error: not a rewrite rule: {text!r}")
    operands = (p.op if isinstance(p, NodePattern) else CONSTANT for p in left.operands
                if not isinstance(p, Anything) or p.name == CONSTANT)
    return Rule(text, kinds, left, _expression(result),
                _expression(condition) if condition else None, frozenset(operands))


def _expression(text: str) -> ast.expr:
    return ast.parse(text.strip(), mode="eval").body


def _pattern(expression: ast.expr) -> Pattern:
    if isinstance(expression, ast.Name):
        return Anything(expression.id)
    if not isinstance(expression, ast.Call):
        return NumberPattern(ast.literal_eval(expression))
    attrs = tuple(n.id for n in _bracket(expression) if isinstance(n, ast.Name))
    return NodePattern(_op(expression), tuple(_pattern(a) for a in expression.args), attrs)


def _op(call: ast.Call) -> str:
    function = call.func.value if isinstance(call.func, ast.Subscript) else call.func
    assert isinstance(function, ast.Name)
    return function.id


def _bracket(call: ast.Call) -> list[ast.expr]:
    if not isinstance(call.func, ast.Subscript):
        return []
    inside = call.func.slice
    return inside.elts if isinstance(inside, ast.Tuple) else [inside]


def index_by_op(rules: Sequence[Rule]) -> dict[str, list[Rule]]:
    """The rules for each op, in order."""
    table: dict[str, list[Rule]] = {}
    for item in rules:
        table.setdefault(item.pattern.op, []).append(item)
    return table


def operand_ops(node: Node) -> set[str]:
    """The ops of the node's operands, and `CONSTANT` where that may be one."""
    ops = {v.node.op for v in node.inputs}
    if "Const" in ops or "BroadcastTo" in ops:
        ops.add(CONSTANT)
    return ops


def apply_rule(item: Rule, node: Node, rewriter: Rewriter) -> Value | None:
    """The rule's node in the place of this one, or ``None`` when it does not apply."""
    if node.op != item.pattern.op or node.inputs[-1].dtype.kind not in item.kinds:
        return None
    bindings = _match_call(item.pattern, node, {"out": node.types[0].shape})
    if bindings is None or (item.condition and not _calculate(item.condition, bindings)):
        return None
    return _build(item.result, bindings, node, rewriter)


# --- matching ----------------------------------------------------------------------------------


def _match(pattern: Pattern, value: Value, bindings: Bindings) -> Bindings | None:
    """``bindings`` with the pattern's own, or ``None``; never changed in place."""
    if isinstance(pattern, NodePattern):
        if pattern.op != value.node.op or value.index:
            return None
        return _match_call(pattern, value.node, bindings)
    if isinstance(pattern, NumberPattern):
        return bindings if _is_number(uniform_constant(value), pattern.value) else None
    if pattern.name == CONSTANT and uniform_constant(value) is None:
        return None
    return bindings | {pattern.name: value} if bindings.get(pattern.name, value) == value else None


def _match_call(pattern: NodePattern, node: Node, bindings: Bindings) -> Bindings | None:
    """Binds attributes and operands; the op is known to be the pattern's."""
    attrs = _match_attrs(pattern, node)
    if attrs is None or len(node.inputs) != len(pattern.operands):
        return None
    for operands in _orders(node):
        result = _match_operands(pattern.operands, operands, bindings | attrs)
        if result is not None:
            return result
    return None


def _orders(node: Node) -> tuple[tuple[Value, ...], ...]:
    inputs = node.inputs
    both = registry.get(node.op).commutative and len(inputs) == 2
    return (inputs, inputs[::-1]) if both else (inputs,)


def _match_operands(
    patterns: Sequence[Pattern], operands: Sequence[Value], bindings: Bindings
) -> Bindings | None:
    result: Bindings | None = bindings
    for pattern, value in zip(patterns, operands, strict=True):
        if result is None:
            return None
        result = _match(pattern, value, result)
    return result


def _match_attrs(pattern: NodePattern, node: Node) -> Bindings | None:
    """The attributes by the names the pattern gives them; ``kind`` is part of the type."""
    if not node.attrs:
        return None if pattern.attrs else {}
    keys = registry.get(node.op).attrs if pattern.attrs else ()
    if not set(node.attrs) <= {*keys, "kind"}:
        return None
    return {name: node.attrs[key] for name, key in zip(pattern.attrs, keys, strict=True)}


def uniform_constant(value: Value) -> Any:
    """The number that fills the value: a ``Const``, also broadcast; ``None`` when it is neither."""
    node = value.node
    while node.op == "BroadcastTo":
        node = node.inputs[0].node
    return node.attrs["value"] if node.op == "Const" else None


def _is_number(constant: Any, number: complex) -> bool:
    """Whether a constant is this number, the sign of a floating-point zero included."""
    if constant is None or isinstance(constant, (complex, np.complexfloating)):
        return False
    same = bool(constant == number)
    if same and constant == 0 and isinstance(constant, (float, np.floating)):
        return math.copysign(1.0, constant) == math.copysign(1.0, float(number.real))
    return same


# --- results -----------------------------------------------------------------------------------


def _build(result: ast.expr, bindings: Bindings, node: Node, rewriter: Rewriter) -> Value:
    if isinstance(result, ast.Name):
        return bindings[result.id]
    if not isinstance(result, ast.Call):
        return emit_filled(rewriter, ast.literal_eval(result), node.types[0])
    if _op(result) in HELPERS:
        return emit_filled(rewriter, _calculate(result, bindings), bindings[CONSTANT].node.types[0])
    operands = [_build(a, bindings, node, rewriter) for a in result.args]
    values = [_calculate(e, bindings) for e in _bracket(result)]
    attrs = dict(zip(registry.get(_op(result)).attrs, values, strict=True)) if values else {}
    return rewriter.emit(_op(result), *operands, **attrs)


def emit_filled(rewriter: Rewriter, number: Any, like: TensorType) -> Value:
    """A constant of the type ``like``, broadcast when that has axes."""
    if like.is_weak:
        return rewriter.emit("Const", value=np.asarray(number, like.dtype).item(), kind="weak")
    kind = "scalar" if like.shape else like.kind
    value = rewriter.emit("Const", value=np.asarray(number, like.dtype)[()], kind=kind)
    return rewriter.emit("BroadcastTo", value, shape=like.shape) if like.shape else value


def _calculate(expression: ast.expr, bindings: Bindings) -> Any:
    """An attribute or a condition: names, calls of `HELPERS`, ``==``, ``not`` and ``and``."""
    if isinstance(expression, ast.Name):
        value = bindings[expression.id]
        return uniform_constant(value) if expression.id == CONSTANT else value
    if isinstance(expression, ast.Call):
        return HELPERS[_op(expression)](*(_calculate(a, bindings) for a in expression.args))
    if isinstance(expression, ast.Compare):
        right = expression.comparators[0]
        return _calculate(expression.left, bindings) == _calculate(right, bindings)
    if isinstance(expression, ast.UnaryOp) and isinstance(expression.op, ast.Not):
        return not _calculate(expression.operand, bindings)
    if isinstance(expression, ast.BoolOp) and isinstance(expression.op, ast.And):
        return all(_calculate(e, bindings) for e in expression.values)
    return ast.literal_eval(expression)
