"""Values that may be absent: both sides of a branch brought into one form, and facts about them
from the tests around the place that is being traced.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import optree

from fusec.core.records import dataclass
from fusec.ir import TensorType, Value

from ..facts.constant_values import constant_value
from ..facts.layout import Strides
from ..facts.trees import NAMESPACE, mapped
from ..guards.container_changes import items_in
from ..guards.places import UNBOUND, Absent
from ..values.array import TracedArray, from_value
from ..values.trace import Trace
from .choice import Choice
from .records import LEAVES, ObjectRecord, Opening, is_openable

_PLAIN = (list, tuple, dict, ObjectRecord)
Openings = tuple[Opening, Opening]  # of both sides


class DecidedTests(dict[Value, bool]):
    """Of a trace: booleans that tests around it decided."""


@dataclass(frozen=True)
class Like:
    """The type and layout of a traced value, to make zeros like it once it is gone."""

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
    return _like(x, {k: f(y) for k, y in _parts(x)}) if _has_parts(x) else x


def _has_parts(x: Any) -> bool:
    return type(x) in _PLAIN or (isinstance(x, tuple) and hasattr(x, "_make"))


def _parts(x: Any) -> Iterator[tuple[Any, Any]]:
    """The items of a container or the attributes of an object, by key."""
    return x.items() if type(x) is ObjectRecord else items_in(x)


def _like(x: Any, parts: dict[Any, Any]) -> Any:
    """A list, tuple, dict or record as ``x`` is one, of these parts."""
    if type(x) is ObjectRecord:
        return ObjectRecord(x.kind, x.names, list(parts.values()), x.source)
    if type(x) is dict:
        return parts
    return x._make(parts.values()) if hasattr(x, "_make") else type(x)(parts.values())


def aligned(a: Any, b: Any, openings: Openings) -> tuple[Any, Any]:
    """Both as optional wherever one of them is, or is None and the other is something else, and
    two objects of one class as their attributes."""
    if a is b:
        return a, b
    a, b = _opened(a, b, openings)
    if type(a) is type(b) and _has_parts(a) and (
            [k for k, _ in _parts(a)] == [k for k, _ in _parts(b)]):
        return _aligned_parts(a, b, openings)
    if not (Choice in (type(a), type(b)) or (a is None) != (b is None)):
        return a, b
    trace = openings[0].trace
    absent = next(filter(None, (x.then for x in (a, b) if type(x) is Choice)), None)
    a, b = or_absent(trace, a, b, absent), or_absent(trace, b, a, absent)
    held = aligned(a.orelse, b.orelse, openings)
    return Choice(a.test, absent, held[0]), Choice(b.test, absent, held[1])


def _aligned_parts(a: Any, b: Any, openings: Openings) -> tuple[Any, Any]:
    with openings[0].inside(a), openings[1].inside(b):
        pairs = {key: aligned(x, y, openings) for (key, x), (_, y) in zip(
            _parts(a), _parts(b), strict=True)}
    if all(x is old for (x, _), (_, old) in zip(pairs.values(), _parts(a), strict=True)) and all(
            y is old for (_, y), (_, old) in zip(pairs.values(), _parts(b), strict=True)):
        return a, b  # the program's own
    return tuple(_like(a if i == 0 else b, {k: pair[i] for k, pair in pairs.items()})
                 for i in (0, 1))


def _opened(a: Any, b: Any, openings: Openings) -> tuple[Any, Any]:
    """Two objects of one class as records; one as a record where the other value is None or absent,
    if it was made in the region."""
    if type(a) in LEAVES or type(b) in LEAVES:
        return a, b
    kinds = [x.kind if type(x) is ObjectRecord else type(x) for x in (a, b)]
    if kinds[0] is kinds[1]:
        if all(type(x) is ObjectRecord or is_openable(openings[0].trace, x) for x in (a, b)):
            first, second = (one.content(x) for one, x in zip(openings, (a, b), strict=True))
            return first, second.in_order(first.names)
    elif _is_optional(a):
        return a, openings[1].opened(b)
    elif _is_optional(b):
        return openings[0].opened(a), b
    return a, b


def _is_optional(x: Any) -> bool:
    return x is None or type(x) is Choice


def or_absent(trace: Trace, x: Any, like: Any, absent: Absent | None) -> Choice:
    """``x`` as an optional value; where it is, with zeros like those of ``like``."""
    if type(x) is Choice and x.then == absent:
        return x
    if x is UNBOUND or x is absent:
        is_one = type(like) is Choice and like.then == absent
        return Choice(True, absent, zeros_like(trace, like.orelse if is_one else like))
    return Choice(False, absent, x)


def zeros_like(trace: Trace, like: Any) -> Any:
    """Zeros in the place of an absent value; objects that no graph holds stand for themselves."""
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
    """The value of a boolean, by the tests around the place that is being traced."""
    assumed = trace.part(DecidedTests).get(value)
    node = value.node
    if assumed is None and node.op in ("LogicalNot", "Cast") and node.inputs[0].dtype == np.bool_:
        inner = _assumed(trace, node.inputs[0])
        return inner if inner is None or node.op == "Cast" else not inner
    return assumed


@contextmanager
def assuming(trace: Trace, test: Value | None = None, truth: bool = True) -> Iterator[None]:
    """The block is traced for runs where the test has this truth."""
    before = trace.part(DecidedTests)
    trace.put(DecidedTests(before))
    if test is not None:
        trace.part(DecidedTests).update(_facts(test, truth))
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
