"""Plans that a call tries before its arguments are looked at in Python."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from fusec.trace.call.flat_call import FlatCall, leaf_getter
from fusec.trace.call.signature import Signature
from fusec.trace.facts.trees import flattened, holds_ordered, in_order, is_moved, key_types

from . import trace_cache
from .plans import Plan, RecentPlans

if TYPE_CHECKING:
    from .concrete_function import ConcreteFunction

MAX_FAST = 4  # recent plans of one kind


class ByKeys(dict[tuple[Any, ...], list[Plan]]):
    """Plans for arguments among which is an `OrderedDict`, or a dict with keys that are no names:
    by the types of the keys."""


class FastCalls(RecentPlans):
    """The recent plans of one function; `Function.__call__` reads the tables itself."""

    __slots__ = ("signature",)

    def __init__(self, signature: Signature) -> None:
        super().__init__()
        self.signature = signature

    def clear(self) -> None:
        super().__init__()

    def drop(self, concrete: ConcreteFunction) -> None:
        """Forget the plan of a trace whose Variable is gone; calls that other tables know find
        their plans anew."""
        self.positional = [plan for plan in self.positional if plan[1] is not concrete]
        self.shapes, self.structured = {}, {}

    def promote(self, call: FlatCall, concrete: ConcreteFunction) -> None:
        """Try this trace first from now on, if its calls need nothing but their leaves."""
        fast = concrete.executable.fast
        if fast is None or call.separate is not None or concrete.is_for_once:
            return
        plan = (concrete.shaped(fast), concrete)
        is_usual = self.signature.positional >= 0 and call.paths == self.signature.order
        if call.form and call.form != (self.signature.arity,):
            self._note_shape(call, None if is_usual else plan)
        if is_usual:
            self.positional = _with_first(plan, self.positional)
            return
        if len(self.structured) >= trace_cache.MAX_TRACES:
            self.structured.clear()
        types = key_types(call.treespec)
        if types or holds_ordered(call.treespec):
            by_keys = self.structured.setdefault(call.treespec, ByKeys())
            by_keys[types] = _with_first(plan, by_keys.get(types, ()))
            return
        self.structured[call.treespec] = _with_first(
            plan, self.structured.get(call.treespec, ()))

    def for_structure(self, bound: Any) -> tuple[Sequence[Any], Sequence[Plan]]:
        """The leaves of bound arguments, and the plans for them."""
        leaves, treespec = flattened(bound)
        plans = self.structured.get(treespec, ())
        if type(plans) is not ByKeys:
            return leaves, plans
        if is_moved(bound):
            leaves, treespec = flattened(in_order(bound))
            plans = self.structured.get(treespec, {})
        return leaves, plans.get(key_types(treespec), ())

    def _note_shape(self, call: FlatCall, plan: Plan | None) -> None:
        """Later calls with arguments given in this way find their plans at once."""
        leaves, plans = self.shapes.get(call.form, (None, None))
        leaves = leaves or leaf_getter(self.signature, call.form, call.treespec)
        if leaves is None:
            return
        if len(self.shapes) >= trace_cache.MAX_TRACES:
            self.shapes.clear()
        self.shapes[call.form] = leaves, plan and _with_first(plan, plans or ())


def _with_first(plan: Plan, plans: Sequence[Plan]) -> list[Plan]:
    return [plan, *(other for other in plans if other[1] is not plan[1])][:MAX_FAST]
