"""Branches on data: both sides are traced, their variables merged.

Cheap scalar sides become ``Where``; all others a ``Cond`` node, of which one side runs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from fusec.core.records import dataclass
from fusec.errors import unsupported, user_error
from fusec.ir import Loc, Node, Value
from fusec.ir.sizes.dims import UndecidedSizeError
from fusec.ops import get
from fusec.ops.calls.checks import describe_error

from ..choice.half_choices import check_bound, half_bound, is_users, left_by_one, merged_tails
from ..choice.joined_containers import Contents, Joining
from ..choice.merge import Disagreement, cure_for_kind, last_line, merged, misfit, shown
from ..choice.optional_values import aligned, assuming, bound, settled
from ..choice.records import HoldsItself, Opening, is_users_class, records_in
from ..choice.regions import TraceRegion, captures, subgraph
from ..choice.row_results import RowResults
from ..choice.sides import Filling, Pairs, Side
from ..guards.places import UNBOUND, Attribute, Places
from ..operands.index_uses import lost_checks, note_inside
from ..places.cells import CellVariables
from ..places.container_contents import Tail
from ..rewrite.definitions import RESULT
from ..values.array import TracedArray
from ..values.operations import OPERATIONS
from ..values.storage import Storage
from ..values.trace import Trace, assign
from .raised_exceptions import as_checked, is_programs, state_now

SELECT_COST = 60.0  # scalar work of both sides up to which computing both beats a jump


@dataclass
class Endless:
    """Of a trace: where a recursion in a branch that data decides did not end."""

    loc: Loc | None = None


def branch(
    trace: Trace, test: Value, variables: CellVariables, needed: Sequence[str],
    then: Callable[[], Any], orelse: Callable[[], Any], read: Sequence[str] = (),
) -> Any:
    """Trace both sides, bind the merged variables, and give the merged result.

    Variables of ``read`` are certainly read later: a side that leaves one unbound raises.
    """
    assert trace.hooks is not None
    where = trace.hooks.where
    sides = [_trace_side(trace, variables, thunk, test, truth)
             for thunk, truth in ((then, True), (orelse, False))]
    trace.hooks.where = where  # what follows belongs to the line of the branch
    failing = [side.raised is not None for side in sides]
    if any(failing):
        return _checked(trace, test, sides, (then, orelse), failing)
    pairs = Pairs(trace, sides)
    joining = _joining(trace, sides, variables)
    states = {name: _merged_variable(test, name, sides, pairs, variables, name in read, joining)
              for name in variables.needed(needed)}
    if trace.part(RowResults).has(then.__code__):
        _make_arrays(trace, sides)
    result = _merged_result(sides, pairs, joining)
    storages = list(dict.fromkeys(s for side in sides for s in side.written))
    outputs = _emit(trace, test, sides, pairs, storages)
    for storage, value in zip(storages, outputs[len(pairs.sides[0]):], strict=True):
        assign(trace, storage, value)
    filling = Filling(trace, test, pairs, outputs)

    def joined_of(name: str, x: Any) -> Any:
        a, b = (variables.left_by(side.variables, name) for side in sides)
        if name == RESULT and not records_in(x):  # which nothing changes after a return
            return filling.filled(x)
        if variables.kind(name) is Tail or a is UNBOUND or b is UNBOUND:
            return joining.kept(x, filling.filled(x), int(a is UNBOUND))
        return joining.relinked(a, b, filling.filled(x))

    joined = {name: joined_of(name, x) for name, x in states.items()}
    variables.write(joined)
    check_bound(trace, test, [s.variables for s in sides], [n for n in read if n in states])
    result = joining.relinked(sides[0].result, sides[1].result, filling.filled(result))
    joining.objects.note_shared([*joined.values(), result])
    return result


def _joining(trace: Trace, sides: Sequence[Side], variables: CellVariables) -> Joining:
    """The merging of the values that the sides leave."""
    hooks: Any = trace.hooks

    def opening(side: Side) -> Opening:
        return Opening(trace, sides[0].region.start, lambda place: variables.left_by(
            side.variables, place.title), side.left.of)

    return Joining((opening(sides[0]), opening(sides[1])), hooks.effects.was_there)


def _trace_side(
    trace: Trace, variables: CellVariables, thunk: Callable[[], Any], test: Value, truth: bool
) -> Side:
    with assuming(trace, test, truth):
        return _traced_side(trace, variables, thunk)


def _traced_side(trace: Trace, variables: CellVariables, thunk: Callable[[], Any]) -> Side:
    before = variables.read()
    region = TraceRegion(trace)
    try:
        result = settled(trace, bound(trace, thunk()))
        trace.part(Places).forget(region.start)
        held = {name: settled(trace, x) for name, x in variables.read().items()}
        return Side(region, result, held, region.written(),
                    partial(last_line, trace.loc, thunk.__code__),
                    region.take_checks(), region.take_index_uses(), left=Contents(trace))
    except UndecidedSizeError:
        raise
    except RecursionError:
        trace.part(Endless).loc = trace.part(Endless).loc or trace.loc
        raise
    except BaseException as error:
        if not is_programs(error):
            raise
        if len(trace.record.checks) > region.first_check:  # what it may have raised before
            trace.check(trace.builder.const(np.bool_(False)), as_checked(trace, error))
        state = state_now(trace)
        return Side(region, None, {}, {}, str, region.take_checks(), region.take_index_uses(),
                    raised=error, state=state)
    finally:
        region.take_checks()
        variables.restore(before)
        region.undo()


def _checked(
    trace: Trace, test: Value, sides: Sequence[Side],
    thunks: Sequence[Callable[[], Any]], failing: Sequence[bool],
) -> Any:
    """A branch of which a side raises: a check, and then the other side without a branch."""
    if any(side.checks for side in sides if side.raised is not None):
        for side in sides:
            if side.raised is None:  # traced again, after the checks of the side that raises
                side.checks, side.index_uses = [], []
            elif not side.checks:
                side.checks = [_raise_always(trace, side.raised)]
        _emit(trace, test, sides, Pairs(trace, sides), [])
        last = sides[1].raised
        if last is not None and all(failing):
            raise last
        return thunks[failing.index(False)]()
    if all(failing):
        raise _one_of(trace, test, *(side.raised for side in sides))
    side = sides[failing.index(True)]
    assert side.raised is not None
    holds = trace.emit("LogicalNot", test) if failing[0] else test
    trace.check(holds, as_checked(trace, side.raised), side.state)
    return thunks[failing.index(False)]()


def _raise_always(trace: Trace, raised: BaseException) -> Node:
    """A check that fails, of a side that raises."""
    error = describe_error(as_checked(trace, raised))
    return trace.emit("Check", trace.builder.const(np.bool_(False)), error=error).node


def _one_of(trace: Trace, test: Value, *errors: Any) -> Any:
    """The exception where both sides raise: the first is a check, if it is another exception."""
    first, second = (getattr(e, "in_numpys_words", None) or e for e in errors)
    if type(first) is type(second) and first.args == second.args:
        return errors[0]
    trace.check(trace.emit("LogicalNot", test), as_checked(trace, errors[0]))
    return errors[1]


# -- merging --------------------------------------------------------------------------------------


def _merged_variable(
    test: Value, name: str, sides: Sequence[Side], pairs: Pairs, variables: CellVariables,
    is_read: bool, joining: Joining,
) -> Any:
    a, b = (variables.left_by(side.variables, name) for side in sides)
    if variables.kind(name) is Tail:
        return merged_tails(test, (a, b), sides, pairs)
    a, b = _as_left(sides, a, b)
    if (a is UNBOUND or b is UNBOUND) and a is not b and variables.kind(name) is Attribute:
        raise unsupported(
            f"the attribute {name!r} that only one side of a branch makes", loc=pairs.trace.loc,
            cure="give it a value before the branch")
    if a is UNBOUND or b is UNBOUND:
        if a is not b and is_users(name) and not is_read:
            return half_bound(joining, test, name, a, b, sides, pairs)
        # A check follows, or only that side goes on to read it.
        return left_by_one(pairs.trace, a, b, sides, pairs)
    pairs.are_variables = True
    cure = cure_for_kind(a, b) or "give the variable one shape, dtype and kind on both sides"
    return _merged(sides, pairs, joining, (a, b), f"leave different things in {name!r}", cure)


def _make_arrays(trace: Trace, sides: Sequence[Side]) -> None:
    """One way returns an array, the other numbers: what calls it makes arrays of both."""
    if {type(side.result) is TracedArray for side in sides} == {True, False}:
        for side in sides:
            if isinstance(side.result, tuple | list):
                with side.at_its_end():
                    side.result = OPERATIONS.array(trace, [*side.result])


def _merged_result(sides: Sequence[Side], pairs: Pairs, joining: Joining) -> Any:
    pairs.are_variables = False
    both = _as_left(sides, *(side.result for side in sides))
    return _merged(sides, pairs, joining, both, "return different things",
                   cure_for_kind(*both) or (
                       "return the same structure, shapes and kinds on both sides"))


def _as_left(sides: Sequence[Side], a: Any, b: Any) -> tuple[Any, Any]:
    """Both with the items of containers at the end of their sides; one container that both have is
    changed item by item."""
    return (a, b) if a is b else (sides[0].left.of(a), sides[1].left.of(b))


def _merged(
    sides: Sequence[Side], pairs: Pairs, joining: Joining, both: tuple[Any, Any], what: str,
    cure: str,
) -> Any:
    try:
        a, b = aligned(*both, joining.openings)
    except HoldsItself as error:
        raise error.refusal(pairs.trace) from None
    try:
        return merged(a, b, pairs.leaf)
    except Disagreement:
        raise _disagreement(sides, pairs, both, misfit(a, b, pairs.leaf), what, cure) from None


def _disagreement(
    sides: Sequence[Side], pairs: Pairs, both: tuple[Any, Any],
    misfit: tuple[tuple[str, ...], Any, Any], what: str, cure: str,
) -> Exception:
    path, *values = misfit
    if not path:
        values = list(both)
    else:
        kind = type(both[0] if both[0] is not None else both[1]).__name__
        what += f": the attribute {'.'.join(path)!r} of a {kind}"
        cure = "give the attribute one shape, dtype and kind on both sides"
    return user_error(
        TypeError, f"the sides of a branch {what}", pairs.trace.loc,
        _cure_for_objects(*values) or cure,
        values=[(f"{way}, to {side.line()}", shown(x)) for way, side, x in zip(
            ("then", "else"), sides, values, strict=True)])


def _cure_for_objects(a: Any, b: Any) -> str:
    """For two objects of the program's, of two classes or of one that says how its objects are
    made."""
    kinds = [type(x) for x in (a, b)]
    if a is b or not all(is_users_class(kind) for kind in kinds):
        return ""
    if kinds[0] is not kinds[1]:
        return "give both sides an object of one class, or call its methods in the branch"
    return f"choose the attributes in the branch, and make the {kinds[0].__name__} after it"


# -- emitting -------------------------------------------------------------------------------------


def _emit(
    trace: Trace, test: Value, sides: Sequence[Side], pairs: Pairs, storages: Sequence[Storage]
) -> list[Value]:
    """The branch's results: the merged leaves, then the contents of the storages."""
    after = [[side.written.get(s, s.value) for s in storages] for side in sides]
    for side, roots, new in zip(sides, pairs.sides, after, strict=True):
        reached = [*(v.node for v in (*roots, *new)), *side.checks]
        side.checks += lost_checks(trace, side.index_uses, reached)
    checked = any(side.checks for side in sides)
    if not pairs.sides[0] and not storages and not checked:
        return []
    if not storages and not checked and _is_cheap(sides, pairs):
        return [_select(trace, test, a, b) for a, b in zip(*pairs.sides, strict=True)]
    # A branch of checks alone has a result too: what is in a graph is reached from one.
    gives = list(pairs.sides) if pairs.sides[0] or storages else [
        [trace.builder.const(np.bool_(True))]] * 2
    before = [s.value for s in storages]
    outer: dict[Value, None] = {}
    for side, roots, new in zip(sides, gives, after, strict=True):
        needed = [*roots, *new, *(n.out() for n in side.checks)]
        outer.update(dict.fromkeys(captures(side.region, needed)))
    others = [v for v in outer if v not in before]
    graphs = [
        subgraph(name, roots, before, others, list(enumerate(new)), side.checks)
        for name, roots, new, side in zip(("then", "orelse"), gives, after, sides, strict=True)
    ]
    value = trace.emit("Cond", test, *before, *others, then=graphs[0], orelse=graphs[1],
                       changed=len(before))
    if checked:
        trace.record.checks.append(value.node)
    note_inside(trace, value.node)
    return list(value.node.outputs) if gives[0] is pairs.sides[0] else []


def _select(trace: Trace, test: Value, a: Value, b: Value) -> Value:
    if a == b:
        return a
    return trace.emit("Where", test, a, b, kind=a.type.kind)


def _is_cheap(sides: Sequence[Side], pairs: Pairs) -> bool:
    cost = 0.0
    for side, roots in zip(sides, pairs.sides, strict=True):
        for node in side.region.made_for(roots):
            if not _may_always_run(node):
                return False
            cost += get(node.op).cost if node.op != "Const" else 0
    return cost <= SELECT_COST


def _may_always_run(node: Node) -> bool:
    return node.op == "Const" or (
        get(node.op).kind == "elementwise" and all(not t.shape for t in node.types))
