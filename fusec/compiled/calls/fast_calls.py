"""Plans that a call tries before its arguments are looked at in Python."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from fusec import config
from fusec.compiled import trace_cache
from fusec.core import locks
from fusec.state import device_context
from fusec.trace.call.flat_call import FlatCall, leaf_getter
from fusec.trace.call.packed_lists import Packing
from fusec.trace.call.placement_settings import placing_in
from fusec.trace.call.signature import Signature
from fusec.trace.facts.trees import flattened, holds_ordered, in_order, is_moved, key_types

from . import overlapping_calls
from .gpu_plans import GpuPlans
from .plans import Plan, RecentPlans

if TYPE_CHECKING:
    from fusec.compiled.concrete_function import ConcreteFunction

MAX_FAST = 4  # recent plans of one kind
_lock = locks.Lock()
_every: weakref.WeakSet[FastCalls] = weakref.WeakSet()
_scopes_are_watched = False


class ByKeys(dict[tuple[Any, ...], list[Plan]]):
    """Plans for arguments among which is an `OrderedDict`, or a dict with keys that are no names:
    by the types of the keys."""


class FastCalls(RecentPlans):
    """The recent plans of one function; `Function.__call__` reads the tables itself."""

    __slots__ = ("__weakref__", "of_gpus", "packing", "scope_now", "signature")

    def __init__(
        self, signature: Signature, scope_now: Callable[[], Any], packing: Packing
    ) -> None:
        """``scope_now`` gives the device scope of a call that is made now."""
        super().__init__()
        self.signature, self.scope_now, self.packing = signature, scope_now, packing
        self.of_gpus = GpuPlans(signature, scope_now)
        with _lock:
            _every.add(self)

    def clear(self) -> None:
        super().__init__()
        self.of_gpus.clear()

    def drop(self, concrete: ConcreteFunction) -> None:
        """Forget the plan of a trace whose Variable is gone; calls that other tables know find
        their plans anew."""
        self.positional = [plan for plan in self.positional if plan[1] is not concrete]
        self.shapes, self.structured = {}, {}
        self.of_gpus.drop(concrete)

    def promote(self, call: FlatCall, concrete: ConcreteFunction) -> None:
        """Try this trace first from now on, if its calls need nothing but their leaves."""
        if call.separate is None:
            fast = concrete.executable.fast
        else:
            fast = overlapping_calls.plan_of(call, concrete)
        if fast is None or concrete.is_for_once or concrete.trial:
            return
        if call.placing and call.placing.residence:
            with _lock:
                if _may_be_recent(concrete):
                    self.of_gpus.promote(call, concrete, MAX_FAST)
            self._promote_on_gpu(call, concrete)
            return
        with _lock:
            if call.placing != placing_in(call.placing and call.placing.scope):
                return  # a setting has changed since the call began
            if not _may_be_recent(concrete):
                return
            if _scopes_are_watched:
                _watch(concrete, self.scope_now, call.placing and call.placing.scope)
            self._put_first(call, (concrete.shaped(fast), concrete))

    def _promote_on_gpu(self, call: FlatCall, concrete: ConcreteFunction) -> None:
        """The same for a call with CuPy's arrays, which looks at these itself."""
        answer = concrete.gpu_call.function
        if answer is None:
            return
        with _lock:
            if not _may_be_recent(concrete):
                return
            scope = call.placing and call.placing.scope
            if _scopes_are_watched:  # a call in none is as in that of its arrays
                default = scope if self.scope_now() is None else None
                _watch(concrete, lambda: self.scope_now() or default, scope)
            self._put_first(call, (concrete.shaped(answer), concrete))

    def _put_first(self, call: FlatCall, plan: Plan) -> None:
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
        if self.packing.is_used:
            bound = self.packing.applied(*bound)
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


def _may_be_recent(concrete: ConcreteFunction) -> bool:
    """Whether calls need not be looked at, and all still holds of which `forget_plans` tells; by
    who has the lock: another thread may have changed it since the call began."""
    return config.check_numerics == "off" and all(
        guard.holds() for guard in concrete.guards if guard.is_announced)


def _with_first(plan: Plan, plans: Sequence[Plan]) -> list[Plan]:
    return [plan, *(other for other in plans if other[1] is not plan[1])][:MAX_FAST]


# ---------------------------------------------------------------- what else decides which plan fits


def _watch_scopes() -> None:
    """From now on plans fit calls in their own device scope alone.

    Until a process enters a scope outside of a trace all calls are in none, and comparing that
    would cost each of them a tenth of a microsecond for nothing.
    """
    global _scopes_are_watched
    if not _scopes_are_watched:
        with _lock:
            _scopes_are_watched = True
            forget_plans()


device_context.listeners.append(_watch_scopes)


def forget_plans(_: Any = None) -> None:
    """Every function's next call is looked up among its traces."""
    with _lock:
        for fast in [*_every]:
            fast.clear()


def _watch(concrete: ConcreteFunction, scope_now: Callable[[], Any], scope: Any) -> None:
    if concrete.is_scope_watched:
        return
    concrete.is_scope_watched, others = True, concrete.unchanged

    def unchanged() -> bool:
        now = scope_now()
        return (now is scope or now == scope) and (others is None or others())

    concrete.unchanged = unchanged


config.on_change("logical_cpu_devices", forget_plans)
config.on_change("soft_placement", forget_plans)
config.on_change("check_numerics", forget_plans)
