"""Values that may be absent: both sides of a branch brought into one form, and what is known of
them by the tests around what is being traced.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import optree

from fusec.ir import TensorType, Value
from fusec.records import dataclass

from ..facts.constant_values import constant_value
from ..facts.layout import Strides
from ..facts.trees import NAMESPACE, mapped
from ..guards.container_changes import items_in
from ..guards.places import UNBOUND, Absent
from ..values.array import TracedArray, from_value
from ..values.trace import Trace
from .choice import Choice

_PLAIN = (list, tuple, dict)


class Assumed(dict[Value, bool]):
    """Of a trace: booleans that tests around it decided."""


@dataclass(frozen=True)
class Like:
    """What a traced value is, to make zeros like it once it is gone."""

    type: TensorType
    strides: Strides


def likeness(x: Any) -> Any:
    """``x`` with its traced values as `Like`."""
    if type(x) is TracedArray:
        return Like(x.type, x.strides)
    if type(x) is Choice:
        return Choice(x.test, x.then, likeness(x.orelse))
    return _mapped(likeness, x)


def _mapped(f: Callable[[Any], Any], x: Any) -> Any:
    return _like(x, {k: f(y) for k, y in items_in(x)}) if type(x) in _PLAIN else x


def _like(x: Any, parts: dict[Any, Any]) -> Any:
    """A list, tuple or dict as ``x`` is one, of these parts."""
    return parts if type(x) is dict else type(x)(parts.values())


def aligned(trace: Trace, a: Any, b: Any) -> tuple[Any, Any]:
    """Both as optional wherever one of them is, or is None and the other is something else."""
    if a is b:
        return a, b
    if type(a) is type(b) and type(a) in _PLAIN and (
            [k for k, _ in items_in(a)] == [k for k, _ in items_in(b)]):
        pairs = {key: aligned(trace, x, b[key]) for key, x in items_in(a)}
        if all(x is a[k] and y is b[k] for k, (x, y) in pairs.items()):
            return a, b  # the program's own
        return tuple(_like(a, {k: pair[i] for k, pair in pairs.items()}) for i in (0, 1))
    if not (Choice in (type(a), type(b)) or (a is None) != (b is None)):
        return a, b
    absent = next(filter(None, (x.then for x in (a, b) if type(x) is Choice)), None)
    a, b = or_absent(trace, a, b, absent), or_absent(trace, b, a, absent)
    held = aligned(trace, a.orelse, b.orelse)
    return Choice(a.test, absent, held[0]), Choice(b.test, absent, held[1])


def or_absent(trace: Trace, x: Any, like: Any, absent: Absent | None) -> Choice:
    """``x`` as what may be absent; where it is, with zeros like those of ``like``."""
    if type(x) is Choice and x.then == absent:
        return x
    if x is UNBOUND or x is absent:
        is_one = type(like) is Choice and like.then == absent
        return Choice(True, absent, zeros_like(trace, like.orelse if is_one else like))
    return Choice(False, absent, x)


def zeros_like(trace: Trace, like: Any) -> Any:
    """What stands for a value that is not there; what no graph holds stands for itself."""
    if type(like) is Choice:
        return Choice(True, like.then, zeros_like(trace, like.orelse))
    if type(like) not in (TracedArray, Like):
        return _mapped(lambda x: zeros_like(trace, x), like)
    type_ = like.type
    if type_.kind != "array":
        return type_.zero
    # Sizes of one side's own mean nothing on the other one; the merge says that they differ.
    shape = type_.shape if type_.is_static else (0,) * len(type_.shape)
    value = trace.emit("BroadcastTo", trace.builder.const(type_.zero), shape=shape)
    return from_value(trace, value, like.strides if type_.is_static else None)


def bound(trace: Trace, results: Any) -> Any:
    """The results with checks that all of their variables have a value."""
    hooks: Any = trace.hooks
    leaves = optree.tree_leaves(
        results, none_is_leaf=True, namespace=NAMESPACE, is_leaf=_is_variable)
    if not any(map(_is_variable, leaves)):
        return results  # the lists and dicts in it are those of the program
    return mapped(lambda x: hooks.bound(hooks.where, x), results, _is_variable)


def _is_variable(x: Any) -> bool:
    return type(x) is Choice and bool(x.name)


def settled(trace: Trace, x: Any) -> Any:
    """None or the value where it is known which; otherwise ``x``."""
    if type(x) is not Choice:
        return x
    absent = is_absent(trace, x)
    if absent is None or (absent and x.name):
        return x
    return None if absent else settled(trace, x.orelse)


def is_absent(trace: Trace, x: Choice) -> bool | None:
    """Whether it is None; None where data decides."""
    if type(x.test) is not TracedArray:
        return bool(x.test)
    answer = _assumed(trace, x.test.value)
    if answer is None:
        answer = constant_value(x.test.value)
    return None if answer is None else bool(answer)


def _assumed(trace: Trace, value: Value) -> bool | None:
    """What a boolean is, by the tests around what is being traced."""
    assumed = trace.part(Assumed).get(value)
    node = value.node
    if assumed is None and node.op in ("LogicalNot", "Cast") and node.inputs[0].dtype == np.bool_:
        inner = _assumed(trace, node.inputs[0])
        return inner if inner is None or node.op == "Cast" else not inner
    return assumed


@contextmanager
def assuming(trace: Trace, test: Value | None = None, truth: bool = True) -> Iterator[None]:
    """What is traced runs only where the test has this truth."""
    before = trace.part(Assumed)
    trace.put(Assumed(before))
    if test is not None:
        trace.part(Assumed).update(_facts(test, truth))
    try:
        yield
    finally:
        trace.put(before)


def _facts(test: Value, truth: bool) -> dict[Value, bool]:
    """The booleans that a test's truth decides."""
    facts: dict[Value, bool] = {}
    todo = [(test, truth)]
    while todo:
        value, truth = todo.pop()
        facts[value] = truth
        node = value.node
        if node.op == "LogicalNot":
            todo.append((node.inputs[0], not truth))
        elif node.op == "Cast" and node.inputs[0].dtype == np.bool_:
            todo.append((node.inputs[0], truth))
        elif node.op == ("LogicalAnd" if truth else "LogicalOr"):
            todo += [(v, truth) for v in node.inputs]
        elif node.op == "Where":
            todo += _of_choice(node.inputs, truth)
    return facts


def _of_choice(operands: tuple[Value, ...], truth: bool) -> list[tuple[Value, bool]]:
    """``a and b`` is a choice between b and False, ``a or b`` one between True and b."""
    test, then, orelse = operands
    if _is_constant(orelse, not truth):
        return [(test, True), (then, truth)]
    return [(test, False), (orelse, truth)] if _is_constant(then, not truth) else []


def _is_constant(value: Value, truth: bool) -> bool:
    return value.node.op == "Const" and not value.shape and (
        bool(value.node.attrs["value"]) is truth)
