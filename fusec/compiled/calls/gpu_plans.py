"""The recent plans of calls with CuPy's arrays, found without a look at the tree of a call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fusec.runtime.launching.outcomes import MISS
from fusec.trace.call.flat_call import FlatCall
from fusec.trace.call.signature import Signature

from .plans import Plan, answer

if TYPE_CHECKING:
    from fusec.compiled.concrete_function import ConcreteFunction


class GpuPlans:
    """Plans by the device scope that a call is made in.

    Their guards compare shapes and dtypes, as those of other plans, and would take an array of
    NumPy for one of the GPU: calls with such are not looked up here.
    """

    def __init__(self, signature: Signature, scope_now: Callable[[], Any]) -> None:
        self._signature, self._scope_now = signature, scope_now
        self._plans: dict[Any, list[Plan]] = {}
        self._residents: Any = None

    def promote(self, call: FlatCall, concrete: ConcreteFunction, most: int) -> None:
        """Try this trace first from now on, for calls with all arguments by position."""
        fast, is_usual = concrete.executable.fast, call.paths == self._signature.order
        residents = getattr(concrete.build.call_plan, "residents", None)
        if fast is None or residents is None or not is_usual or self._signature.positional < 0 or (
                call.form != (self._signature.arity,)):
            return
        scope, self._residents = self._scope_now(), residents
        others = [p for p in self._plans.get(scope, ()) if p[1] is not concrete]
        self._plans[scope] = [(concrete.shaped(fast), concrete), *others][:most]

    def answer(self, args: Sequence[Any], name: str) -> Any:
        """The answer of a recent plan; MISS where none does."""
        if not self._plans:
            return MISS
        leaves, residents = [], self._residents
        for arg in args:
            if isinstance(arg, np.ndarray):
                return MISS
            leaves.append(residents.lent(arg) if type(arg) is residents.kind else arg)
        return answer(self._plans.get(self._scope_now(), ()), leaves, name)

    def clear(self) -> None:
        self._plans.clear()

    def drop(self, concrete: ConcreteFunction) -> None:
        """Forget the plan of a trace whose Variable is gone."""
        for scope, plans in self._plans.items():
            self._plans[scope] = [plan for plan in plans if plan[1] is not concrete]
