"""Branches on data: both sides are traced, what they leave behind is merged.

Cheap scalar sides become ``Where``; all others a ``Cond`` node, of which one side runs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from traceback import walk_tb
from typing import Any

from fusec.errors import FusecError, unsupported, user_error
from fusec.ir import Node, Value
from fusec.ir.dims import UndecidedSizeError
from fusec.ops import get
from fusec.ops.checks import describe_error

from ..array import TracedArray, from_value
from ..context import Trace
from ..python_numbers import interval
from ..storage import Storage
from .cells import UNBOUND, Variables
from .merge import (
    Disagreement,
    converted,
    flatten,
    is_number,
    is_traced,
    joined,
    leaf_value,
    lifted,
    merged,
    shown,
    unflatten,
)
from .regions import Region, assign, captures, subgraph

# Where fusec does what the program said, in Python's own terms, or calls a library for it.
_ON_BEHALF = (
    "fusec.bench.programs", "fusec.trace.convert", "fusec.trace.control.hooks",
    "fusec.trace.failures", "fusec.trace.handlers", "fusec.trace.hooks",
)
_LIBRARIES = ("numpy", "scipy", "optree")
SELECT_COST = 60.0  # scalar work of both sides up to which computing both beats a jump


@dataclass
class Side:
    """What one side of a branch did."""

    region: Region
    result: Any
    variables: Mapping[str, Any]
    written: dict[Storage, Value]
    line: str  # where it ends
    checks: list[Node] = field(default_factory=list)
    raised: Exception | None = None

    def value_of(self, trace: Trace, x: Any) -> Value:
        """What a leaf holds at the end of this side."""
        storage = x.storage if type(x) is TracedArray else None
        if storage not in self.written:
            return leaf_value(trace, x)
        value, version = storage.value, storage.version
        storage.replace(self.written[storage], version)
        try:
            return leaf_value(trace, x)
        finally:
            storage.replace(value, version)


@dataclass
class _Slot:
    """A leaf that the branch decides."""

    index: int
    may_be_argument: bool
    interval: tuple[int, int] | None = None  # what an int can be


@dataclass
class _Pairs:
    """The values of both sides that become outputs of the branch."""

    trace: Trace
    done: Sequence[Side]
    sides: tuple[list[Value], list[Value]] = field(default_factory=lambda: ([], []))

    def leaf(self, a: Any, b: Any) -> _Slot:
        a, b = (lifted(self.trace, x) for x in (a, b))
        for x in (a, b):
            if not (is_number(x) or is_traced(x)):
                raise Disagreement
        values = [side.value_of(self.trace, x) for side, x in zip(self.done, (a, b), strict=True)]
        type_ = joined(values[0].type, values[1].type)
        for side, value in zip(self.sides, values, strict=True):
            side.append(converted(self.trace, value, type_))
        return _Slot(len(self.sides[0]) - 1, any(map(_is_arguments, (a, b))),
                     self._interval(values))

    def _interval(self, values: Sequence[Value]) -> tuple[int, int] | None:
        found = [interval(self.trace, v) for v in values]
        known = [bounds for bounds in found if bounds is not None]
        if len(known) < len(found):
            return None
        return min(b[0] for b in known), max(b[1] for b in known)


def branch(
    trace: Trace, test: Value, variables: Variables, needed: Sequence[str],
    then: Callable[[], Any], orelse: Callable[[], Any],
) -> Any:
    """Trace both sides, bind the merged variables, and give the merged result."""
    assert trace.hooks is not None
    where = trace.hooks.where
    sides = [_trace_side(trace, variables, thunk) for thunk in (then, orelse)]
    trace.hooks.where = where  # what follows belongs to the line of the branch
    failing = [side.raised is not None for side in sides]
    if any(failing):
        return _checked(trace, test, sides, (then, orelse), failing)
    pairs = _Pairs(trace, sides)
    states = {name: _merged_variable(trace, name, sides, pairs, variables)
              for name in variables.needed(needed)}
    result = _merged_result(trace, sides, pairs)
    storages = list(dict.fromkeys(s for side in sides for s in side.written))
    outputs = _emit(trace, test, sides, pairs, storages)
    for storage, value in zip(storages, outputs[len(pairs.sides[0]):], strict=True):
        assign(trace, storage, value)
    variables.write({name: _filled(trace, x, outputs) for name, x in states.items()})
    return _filled(trace, result, outputs)


def _trace_side(trace: Trace, variables: Variables, thunk: Callable[[], Any]) -> Side:
    before = variables.read()
    region = Region(trace)
    try:
        result = thunk()
        return Side(region, result, variables.read(), region.written(), f"line {_line(trace)}",
                    region.take_checks())
    except (FusecError, UndecidedSizeError):
        raise
    except Exception as error:
        if not _is_programs_own(error):
            raise
        return Side(region, None, {}, {}, "", raised=error)
    finally:
        region.take_checks()
        variables.restore(before)
        region.undo()


def _is_programs_own(error: Exception) -> bool:
    """Whether the program raised it, or Python or NumPy on its behalf: no defect of the tracer."""
    modules = [frame.f_globals.get("__name__", "") for frame, _ in walk_tb(error.__traceback__)]
    innermost = next(m for m in reversed(modules) if not m.startswith(_LIBRARIES))
    return not innermost.startswith("fusec.") or innermost.startswith(_ON_BEHALF)


def _checked(
    trace: Trace, test: Value, sides: Sequence[Side],
    thunks: Sequence[Callable[[], Any]], failing: Sequence[bool],
) -> Any:
    """A branch of which a side raises: a check, and then the other side without a branch."""
    if all(failing):
        raise sides[0].raised  # type: ignore[misc]
    error = sides[failing.index(True)].raised
    assert error is not None
    plain = describe_error(error)
    if plain is None:
        raise unsupported(
            f"raising {type(error).__name__} with values of the graph in a branch that data "
            f"decides", loc=trace.loc, cure="raise it with a text that is known while tracing",
        ) from error
    holds = trace.emit("LogicalNot", test) if failing[0] else test
    trace.checks.append(trace.emit("Check", holds, error=plain).node)
    return thunks[failing.index(False)]()


def _line(trace: Trace) -> int:
    return trace.loc.line if trace.loc is not None else 0


# -- merging --------------------------------------------------------------------------------------


def _merged_variable(
    trace: Trace, name: str, sides: Sequence[Side], pairs: _Pairs, variables: Variables
) -> Any:
    initial = variables.attributes.initial
    a, b = (side.variables.get(name, initial.get(name)) for side in sides)
    if (a is UNBOUND or b is UNBOUND) and a is not b and name in initial:
        raise unsupported(
            f"the attribute {name!r} that only one side of a branch makes", loc=trace.loc,
            cure="give it a value before the branch")
    if a is UNBOUND or b is UNBOUND:
        # Only the side that binds it goes on to read it, or Python itself would raise.
        return b if a is UNBOUND else a
    try:
        return merged(a, b, pairs.leaf)
    except Disagreement:
        raise user_error(
            TypeError, f"the sides of a branch leave different things in {name!r}", trace.loc,
            "give the variable one shape and kind on both sides",
            values=_both(sides, a, b)) from None


def _both(sides: Sequence[Side], a: Any, b: Any) -> list[tuple[str, str]]:
    return [(f"then, to {sides[0].line}", shown(a)), (f"else, to {sides[1].line}", shown(b))]


def _merged_result(trace: Trace, sides: Sequence[Side], pairs: _Pairs) -> Any:
    a, b = (side.result for side in sides)
    try:
        return merged(a, b, pairs.leaf)
    except Disagreement:
        raise user_error(
            TypeError, "the sides of a branch return different things", trace.loc,
            "return the same structure, shapes and kinds on both sides",
            values=_both(sides, a, b)) from None


def _filled(trace: Trace, x: Any, outputs: Sequence[Value]) -> Any:
    """``x`` with its slots replaced by what the branch gives."""
    leaves, structure = flatten(x)
    if not any(type(leaf) is _Slot for leaf in leaves):
        return x
    return unflatten(structure, [
        _from_branch(trace, outputs[leaf.index], leaf) if type(leaf) is _Slot else leaf
        for leaf in leaves])


def _from_branch(trace: Trace, value: Value, slot: _Slot) -> TracedArray:
    """A traced value: an array gets memory of its own."""
    found = from_value(trace, value)
    if slot.interval is not None:
        trace.intervals[value] = slot.interval
    if found.storage is not None and slot.may_be_argument:
        found.storage.may_be_argument = True
    return found


def _is_arguments(x: Any) -> bool:
    """Whether it may be memory of the caller."""
    return type(x) is TracedArray and x.storage is not None and (
        x.storage.origin is not None or x.storage.may_be_argument)


# -- emitting -------------------------------------------------------------------------------------


def _emit(
    trace: Trace, test: Value, sides: Sequence[Side], pairs: _Pairs, storages: Sequence[Storage]
) -> list[Value]:
    """What the branch gives: the merged leaves, then the contents of the storages."""
    checked = any(side.checks for side in sides)
    if not pairs.sides[0] and not storages and not checked:
        return []
    if not storages and not checked and _is_cheap(sides, pairs):
        return [_select(trace, test, a, b) for a, b in zip(*pairs.sides, strict=True)]
    before = [s.value for s in storages]
    after = [[side.written.get(s, s.value) for s in storages] for side in sides]
    outer: dict[Value, None] = {}
    for side, roots, new in zip(sides, pairs.sides, after, strict=True):
        needed = [*roots, *new, *(n.out() for n in side.checks)]
        outer.update(dict.fromkeys(captures(side.region, needed, ())))
    others = [v for v in outer if v not in before]
    graphs = [
        subgraph(name, roots, before, others, list(enumerate(new)), side.checks)
        for name, roots, new, side in zip(
            ("then", "orelse"), pairs.sides, after, sides, strict=True)
    ]
    value = trace.emit("Cond", test, *before, *others, then=graphs[0], orelse=graphs[1],
                       changed=len(before))
    if checked:
        trace.checks.append(value.node)
    return list(value.node.outputs)


def _select(trace: Trace, test: Value, a: Value, b: Value) -> Value:
    if a == b:
        return a
    return trace.emit("Where", test, a, b, kind=a.type.kind)


def _is_cheap(sides: Sequence[Side], pairs: _Pairs) -> bool:
    cost = 0.0
    for side, roots in zip(sides, pairs.sides, strict=True):
        for node in _inner_nodes(side.region, roots):
            if not _may_always_run(node):
                return False
            cost += get(node.op).cost
    return cost <= SELECT_COST


def _may_always_run(node: Node) -> bool:
    return get(node.op).kind == "elementwise" and all(not t.shape for t in node.types)


def _inner_nodes(region: Region, roots: Sequence[Value]) -> list[Node]:
    nodes: dict[int, Node] = {}
    stack = [v for v in roots if not region.is_outer(v)]
    while stack:
        node = stack.pop().node
        if node.id not in nodes and node.op != "Const":
            nodes[node.id] = node
            stack.extend(v for v in node.inputs if not region.is_outer(v))
    return list(nodes.values())
