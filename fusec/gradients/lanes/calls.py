"""The call of a function of one lane for all lanes, in a trace."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from fusec.core.records import dataclass
from fusec.errors import unsupported, user_error
from fusec.ir import Loc, Node, TensorType, Value
from fusec.ir.graph import new_id
from fusec.ir.sizes.dims import Size
from fusec.ops import get
from fusec.ops.batching import NoLanes, refusal
from fusec.ops.calls.index_checks import may_raise_unread
from fusec.passes.batching import Batched, batch
from fusec.trace.choice.choice import Choice
from fusec.trace.choice.optional_values import assuming, bound, settled
from fusec.trace.choice.regions import TraceRegion, captures, copied, placeholder
from fusec.trace.facts.origins import LANE
from fusec.trace.facts.trees import flattened, mapped
from fusec.trace.guards.places import OuterPlace, Places
from fusec.trace.operands.index_uses import lost_checks, note_checked
from fusec.trace.operands.operands import as_traced
from fusec.trace.places.cells import CellVariables
from fusec.trace.values.array import TracedArray, from_value
from fusec.trace.values.selected_arrays import roots
from fusec.trace.values.trace import Trace

from .axes import AxisLeaf

Tree = Any
_STATE = "return it; what all lanes share is changed outside, from what they return"


@dataclass
class LaneArgument:
    """A leaf of the arguments: ``given`` is the program's, ``one`` the value of one lane,
    ``inside`` the function's own, which is made when it is called."""

    leaf: AxisLeaf
    given: Any
    axis: int = 0
    one: Value | None = None
    inside: Any = None
    written_at: Loc | None = None

    @property
    def is_written(self) -> bool:
        inside = self.inside
        return type(inside) is TracedArray and inside.storage is not None and bool(
            inside.storage.version) and copied(inside.storage.value) != self.one


def _cure(leaf: AxisLeaf) -> str:
    """For an argument that has no such axis."""
    if leaf.is_named:
        return (f"give what is the same in each lane before: functools.partial(f, "
                f"{leaf.path.partition('[')[0]}=...)")
    is_item = isinstance(leaf.leaf, bool | int | float | complex) and leaf.path.endswith("]")
    return "None in in_axes says that it is the same in each lane" + (
        "; lanes are along an axis of an array, np.array(x), not of a list" if is_item else "")


class LaneCall:
    """One call: ``values`` are its results for all lanes, lanes first where they differ."""

    def __init__(
        self, trace: Trace, name: str, leaves: Sequence[AxisLeaf], axis_size: Size | None
    ) -> None:
        self.trace, self.name = trace, name
        self.arguments = [self._argument(leaf) for leaf in leaves]
        self.lanes = self._size(axis_size)
        for argument in self.arguments:
            if argument.leaf.axis is not None:
                self._stand_in(argument)
        self.region = TraceRegion(trace)
        self.batched = Batched()

    # -- arguments

    def _argument(self, leaf: AxisLeaf) -> LaneArgument:
        if leaf.axis is None or leaf.leaf is None:
            return LaneArgument(AxisLeaf(leaf.path, leaf.leaf, None), leaf.leaf)
        is_array = type(leaf.leaf) is TracedArray or hasattr(leaf.leaf, "__array_interface__")
        given = as_traced(self.trace, leaf.leaf) if is_array else None
        rank = 0 if given is None else len(given.shape)
        if given is None or not -rank <= leaf.axis < rank:
            shown = type(leaf.leaf).__name__ if given is None else str(given.type)
            raise user_error(
                ValueError if rank else TypeError,
                f"{self.name}: {leaf.path} has no axis {leaf.axis}", self.trace.loc, _cure(leaf),
                values=[(leaf.path, shown), ("in_axes", leaf.axis)])
        return LaneArgument(leaf, given, leaf.axis % rank)

    def _size(self, axis_size: Size | None) -> Size:
        """The number of lanes, in which all arguments agree."""
        found: list[tuple[str, Size]] = [] if axis_size is None else [("axis_size", axis_size)]
        for x in self.arguments:
            if x.leaf.axis is not None:
                found.append((f"{x.leaf.path}, axis {x.axis}", x.given.shape[x.axis]))
        if not found:
            raise user_error(
                ValueError, f"{self.name}: nothing says how many lanes there are", self.trace.loc,
                "give axis_size, or an axis of an argument that is an array")
        for title, size in found[1:]:
            if size != found[0][1]:
                raise user_error(
                    ValueError, f"{self.name}: arguments disagree about the number of lanes",
                    self.trace.loc, "give axes of one length in in_axes, or None where an argument "
                    "is the same in each lane", values=[found[0], (title, size)])
        return found[0][1]

    def _stand_in(self, argument: LaneArgument) -> None:
        shape = [n for d, n in enumerate(argument.given.type.shape) if d != argument.axis]
        type_ = TensorType(argument.given.dtype, tuple(shape), "array" if shape else "scalar")
        argument.one = placeholder(
            self.trace, type_, "lane", argument.leaf.path, LANE)

    def inside(self) -> list[Any]:
        """The leaves of the arguments of one lane."""
        for argument in self.arguments:
            one = argument.one
            argument.inside = argument.given if one is None else from_value(self.trace, one)
        return [argument.inside for argument in self.arguments]

    # -- the call

    def run(self, call: Callable[[list[Any]], Any]) -> tuple[list[Any], Any]:
        """The leaves of what ``call`` returns for the leaves of one lane, and their structure."""
        trace, region = self.trace, self.region
        hooks: Any = trace.hooks
        where, variables, places = hooks.where, CellVariables(trace, ()), trace.part(Places)
        before = variables.read()

        def one_lane() -> Any:
            return call(self.inside())

        try:
            with assuming(trace), hooks.effects.lanes(self.name, one_lane):
                result = mapped(self._decided, bound(trace, one_lane()), _is_choice)
                leaves, structure = flattened(result)
                leaves = [None if x is None else self._result_leaf(x) for x in leaves]
            places.forget(region.start)
            self._check_state([places.by_title[x] for x in variables.differ_from(before)])
            values = [x.value for x in leaves if x is not None]
            for x in self.arguments:
                if x.is_written:
                    values.append(x.inside.storage.value)
                    x.written_at = region.written_at(x.inside.storage)
            effects = self._effects(values)
        finally:
            variables.restore(before)
            region.take_checks()
            region.undo()
            hooks.where = where
        self._batch(values, effects)
        return leaves, structure

    def _decided(self, leaf: Any) -> Any:
        leaf = settled(self.trace, leaf)
        if _is_choice(leaf):
            raise unsupported(
                f"a function of {self.name} that returns None in some lanes", loc=self.trace.loc,
                cure="return a number in its place (np.nan), or a bool beside it that tells")
        return leaf

    def _result_leaf(self, leaf: Any) -> TracedArray:
        what = "text" if isinstance(leaf, str) else type(leaf).__name__
        try:
            return as_traced(self.trace, leaf)
        except TypeError:
            raise user_error(
                TypeError, f"{self.name} of a function that returns a {what}", self.trace.loc,
                "return arrays and numbers, or tuples, lists and dicts of these") from None

    def _check_state(self, bound: Sequence[OuterPlace]) -> None:
        """Raise where the function has changed what is not its own."""
        for storage, value in self.region.written().items():
            node = value.node
            rule = get(node.op).batching
            if isinstance(rule, NoLanes):
                raise refusal(node, rule.reason, rule.cure)
            named = [(x.leaf.path, x.given.type) for x in self.arguments
                     if type(x.given) is TracedArray and x.given.storage is not None
                     and storage in roots(x.given.storage)]
            what = f"{named[0][0]}, which is the same in each lane" if named else (
                "an array that is older than its call")
            raise unsupported(
                f"a function of {self.name} that writes to {what},",
                loc=self.region.written_at(storage),
                cure="give it an axis in in_axes, or write to a copy of it" if named else _STATE,
                values=[*named[:1], ("lanes", self.lanes)] if named else ())
        for place in bound:
            loc = self.trace.part(Places).assigned_at.get(place.title)
            raise unsupported(
                f"a function of {self.name} that changes {place.title}, which lanes share,",
                loc=loc or self.trace.world.outer_names.assigned_at(place), cure=_STATE)

    def _effects(self, values: Sequence[Value]) -> list[Node]:
        """The nodes that must run, whatever is read."""
        trace, region = self.trace, self.region
        checks = list(trace.record.checks[region.first_check:])
        uses = trace.record.index_uses[region.first_use:]
        checks += lost_checks(trace, uses, [*(v.node for v in values), *checks])
        return checks

    def _batch(self, values: Sequence[Value], effects: Sequence[Node]) -> None:
        trace, builder = self.trace, self.trace.builder
        self._check_apart(values)
        given = {x.one: self._lanes_first(x.given.value, x.axis)
                 for x in self.arguments if x.one is not None}
        mark, device = new_id(), builder.device
        units = [x.one for x in self.arguments if x.one is not None and x.leaf.is_unit]
        self.batched = batch(builder, self.lanes, given, values, effects, units)
        builder.device = device
        own = {n.id for n in self.batched.effects}
        trace.record.checks += [n for n in effects if n.id not in self.batched.in_lanes]
        trace.record.checks += self.batched.effects
        for node in {v.node.id: v.node for v in self.batched.values.values()}.values():
            if node.id < mark or node.id in own:
                continue
            if node.op == "CheckIndex":
                note_checked(trace, node.out())
            elif may_raise_unread(node):
                trace.record.index_uses.append(node)
        self._write_back()

    def _check_apart(self, values: Sequence[Value]) -> None:
        """Raise where a lane writes to memory that it also reads by another name."""
        written = [x for x in self.arguments if x.is_written]
        read = set(captures(self.region, values)) if written else set()
        for x in written:
            own = roots(x.given.storage)
            others = [y for y in self.arguments if y is not x and type(y.given) is TracedArray
                      and y.given.storage is not None and not set(own).isdisjoint(
                          roots(y.given.storage))]
            if others or any(root.value in read for root in own):
                raise unsupported(
                    f"a function of {self.name} that writes to {x.leaf.path} and has the same "
                    "memory by another name", loc=x.written_at,
                    cure="pass a copy for one of the two")

    def _write_back(self) -> None:
        for x in self.arguments:
            if x.is_written:
                x.given.write(self._whole(x.inside.storage.value, x.axis))

    # -- lanes as an axis

    def _lanes_first(self, value: Value, axis: int) -> Value:
        if not axis:
            return value
        rest = [d for d in range(value.type.rank) if d != axis]
        return self.trace.emit("Transpose", value, perm=(axis, *rest))

    def _whole(self, one: Value, axis: int) -> Value:
        """A value of one lane for all of them, lanes along an axis."""
        value = self.batched.values.get(one)
        if value is None:
            value = self.trace.emit("BroadcastTo", one, shape=(self.lanes, *one.shape))
        if not axis:
            return value
        order = list(range(1, value.type.rank))
        order.insert(axis, 0)
        return self.trace.emit("Transpose", value, perm=tuple(order))

    def result(self, leaf: TracedArray, axis: int | None, path: str) -> TracedArray:
        """A leaf of the result for all lanes.  Raises ``ValueError`` where it has no such axis."""
        one = leaf.value
        if axis is None:
            if one in self.batched.values:
                raise user_error(
                    ValueError, f"{self.name}: {path} differs from lane to lane, and out_axes is "
                    "None", self.trace.loc, "give an axis, or reduce it outside: y.sum(axis=0)",
                    values=[(f"{path} of a lane", one.type)])
            return leaf if leaf.storage is None else from_value(
                self.trace, self.trace.emit("BroadcastTo", one, shape=one.shape))
        rank = one.type.rank + 1
        if not -rank <= axis < rank:
            raise user_error(
                ValueError, f"{self.name}: {path} has no axis {axis} for lanes", self.trace.loc,
                "out_axes counts the axes of the result of all lanes",
                values=[(f"{path} of a lane", one.type), ("out_axes", axis)])
        return from_value(self.trace, self._whole(one, axis % rank))


def _is_choice(x: Any) -> bool:
    return type(x) is Choice
