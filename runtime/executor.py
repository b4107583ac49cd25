"""Running a plan: one native call when it is kernels only, else step by step.

An `Executable` is immutable and shared; a `StepByStep` owns the argument blocks and cells that a
call writes to, so a call in another thread takes another one.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fusec import config
from fusec.codegen.plan.call_plan import CallPlan
from fusec.core import timeline
from fusec.core.occupancy import Hold
from fusec.errors import OverlapError, UnsupportedError, overlap_error
from fusec.ir.lazy_values import lazy
from fusec.ir.regions import overlapping

from .call_spec import CallSpec, LeafSpec, ResultSpec
from .launching import launch
from .launching.call_templates import native_call
from .launching.cells import idle_or_new
from .launching.outcomes import BUSY, FAILED
from .launching.whole_call import WholeCall, guard_plan
from .numerics import checked_calls
from .plan.step_by_step import StepByStep
from .plan.step_spans import StepNote, StepSpans, notes_of

_NOTHING = contextlib.nullcontext()
_WAITED_NS = 2_000  # less is no wait


class Executable:
    """A compiled graph ready to be called with leaves."""

    def __init__(self, call_plan: CallPlan, spec: CallSpec) -> None:
        start = time.perf_counter()
        self.call_plan, self.spec = call_plan, spec
        self._idle: list[StepByStep] = []
        self._one_by_one: list[StepByStep] = []  # those whose steps are timed
        arrays = [r.index for r in spec.results if r.kind == "graph"]
        once = len(set(arrays)) == len(arrays)  # the launcher makes an array for each result
        self.uses_native = launch.launcher_status().available and once and (
            call_plan.backend.is_native and not call_plan.externs
            and not call_plan.is_partitioned) and all(
            r.kind == "const" or (r.kind == "graph" and not r.views) or
            (r.kind == "input" and not r.views) for r in spec.results
        )
        self.fast = self._fast_call() if launch.launcher_status().available else None
        self._made_ms = 1e3 * (time.perf_counter() - start)
        self._first = None if self.uses_native else self._new_instance()
        if self._first is not None:
            self._idle.append(self._first)

    def _fast_call(self) -> Callable[..., Any]:
        """Guards and runs a call of positional leaves; answers ``MISS`` when they do not fit, or
        values read from outside do not."""
        if self.uses_native:
            call = native_call(self.call_plan, self.spec, runs=True)
            return self._with_outside(call or WholeCall(self.call_plan, self.spec).plan.call)
        return self.guarded

    @lazy
    def guarded(self) -> Callable[..., Any]:
        """The same step by step, also where one native call would do."""
        fits = self._with_outside(
            native_call(self.call_plan, self.spec, runs=False) or guard_plan(self.spec).call)
        bare, generators = self.spec.bare, self.spec.generators
        are_held = bool(self.spec.variables)

        def call(*leaves: Any) -> Any:
            if fits(*leaves) is launch.MISS:
                return launch.MISS
            for i, bits in generators:
                if type(leaves[i].bit_generator) is not bits:
                    return launch.MISS
            results = self._run_checked(leaves) if are_held or timeline.on else (
                self._run_steps(leaves))
            return results[0] if bare else tuple(results)

        return call

    def _with_outside(self, native: Callable[..., Any]) -> Callable[..., Any]:
        """The native call as a function of the leaves: captured values are appended to them."""
        names = {f"held{i}": captured for i, captured in self.spec.read_outside}
        if not names:
            return native
        read = ", ".join(f"{name}()" if callable(c) else name for name, c in names.items())
        call: Callable[..., Any] = eval(f"lambda *leaves: native(*leaves, {read})",
                                        {"native": native, **names})
        return call

    def run(
        self, leaves: Sequence[Any], times: list[tuple[str, float]] | None = None
    ) -> list[Any]:
        """Result leaves for argument leaves that match the trace key.

        With ``times`` kernels run one by one, and (step, microseconds) pairs are added to it.
        """
        if config.check_numerics != "off":
            return checked_calls.run(self, leaves, times)
        return self.run_unchecked(leaves, times)

    def run_unchecked(
        self, leaves: Sequence[Any], times: list[tuple[str, float]] | None = None
    ) -> list[Any]:
        """The same, whatever numbers come out."""
        if self.spec.updates:
            self._check_captured(leaves)
            self._check_overlap(leaves)
        if times is not None:
            with self._hold():
                return self._run_timed(leaves, times)
        if self.uses_native and self.fast is not None and not timeline.on:
            results = self.fast(*leaves)
            if results is not launch.MISS and results is not BUSY and results is not FAILED:
                return [results] if self.spec.bare else list(results)
        return self._run_checked(leaves)

    def _run_checked(self, leaves: Sequence[Any]) -> list[Any]:
        if timeline.on:
            return self._run_recorded(leaves)
        with self._hold():
            return self._run_steps(leaves)

    def _run_recorded(self, leaves: Sequence[Any]) -> list[Any]:
        """Step by step, each kernel by itself, on the timeline."""
        start = timeline.now()
        with self._hold():
            held = timeline.now()
            if self.spec.variables and held - start > _WAITED_NS:
                timeline.span("", "wait", "other calls that use the same Variables", start, held)
            return self._run_spanned(leaves)

    def _run_spanned(self, leaves: Sequence[Any]) -> list[Any]:
        return self._run_timed(leaves, StepSpans(self._notes))

    @lazy
    def _notes(self) -> list[StepNote]:
        return notes_of(self.call_plan.whole)

    def _run_timed(self, leaves: Sequence[Any], times: list[tuple[str, float]]) -> list[Any]:
        instance = idle_or_new(self._one_by_one, lambda: self._new_instance(one_by_one=True))
        try:
            return instance.run(leaves, times)
        finally:
            self._one_by_one.append(instance)

    def _hold(self) -> contextlib.AbstractContextManager[None]:
        return Hold(self.spec.holds) if self.spec.variables else _NOTHING

    def _run_steps(self, leaves: Sequence[Any]) -> list[Any]:
        instance = idle_or_new(self._idle, self._new_instance)
        try:
            return instance.run(leaves) if instance.needs_context else (
                instance.call(leaves, {}))
        finally:
            self._idle.append(instance)

    def _new_instance(self, one_by_one: bool = False) -> StepByStep:
        return StepByStep(self.call_plan.whole, self.spec, one_by_one)

    @property
    def made_ms(self) -> float:
        """Milliseconds that it took to make the plan and the parts that its first call makes."""
        return self._made_ms + (0.0 if self._first is None else self._first.made_ms)

    def refuses_overlap(self, leaves: Sequence[Any]) -> bool:
        """Whether `run` raises `OverlapError` for these leaves."""
        try:
            self._check_overlap(leaves)
        except OverlapError:
            return True
        return False

    def _check_captured(self, leaves: Sequence[Any]) -> None:
        """Refuse arrays from outside that overlap an argument when one of the two is written."""
        spec = self.spec
        for number, captured in spec.read_outside:
            array = captured() if callable(captured) else captured
            for leaf, position in zip(leaves, spec.leaves, strict=True):
                if isinstance(leaf, np.ndarray) and isinstance(array, np.ndarray) and (
                        number in spec.updates or position.input in spec.updates) and (
                        np.may_share_memory(leaf, array)):
                    raise UnsupportedError(
                        "an argument overlaps an array that the function reads from outside, and "
                        "one of them is written", cure="pass a copy of the argument")

    def _check_overlap(self, leaves: Sequence[Any]) -> None:
        """Refuse partly overlapping arguments when one of them is written."""
        spec = self.spec
        if not spec.updates:
            return
        arrays = [(i, leaf) for i, leaf in enumerate(leaves) if isinstance(leaf, np.ndarray)]
        written = [x for x in arrays if spec.leaves[x[0]].input in spec.updates]
        pair = overlapping(arrays, written, lambda i, j: (
            spec.leaves[j].alias_of == i or spec.leaves[i].alias_of == j))
        if pair is not None:
            raise overlap_error(*(spec.paths[i] for i in pair))


__all__ = ["CallSpec", "Executable", "LeafSpec", "ResultSpec"]
