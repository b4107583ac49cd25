"""Traces and compiles one Python function, once for each signature."""

from __future__ import annotations

import copy
import itertools
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from fusec.core import locks, timeline
from fusec.core.display import progress
from fusec.core.process import stack
from fusec.core.process.quiet_gc import no_collections_inside
from fusec.core.records import replace
from fusec.errors import FusecError, InternalError, OverlapError, entangled_error, overlap_error
from fusec.signature.binding import Binder
from fusec.signature.example_arguments import example_of, has_open_size
from fusec.signature.input_signature import InputSignature
from fusec.signature.jitted_methods import Kin, Target
from fusec.signature.many_leaves import warn_of_leaves
from fusec.signature.unwritten_arrays import unwritten
from fusec.trace.call.flat_call import FlatCall
from fusec.trace.call.overlap import merged, overlapping, overlaps_itself
from fusec.trace.call.placement_settings import scope_now, trace_key
from fusec.trace.call.signature import Signature
from fusec.trace.control.raised_exceptions import is_programs
from fusec.trace.convert.constructs import check_supported
from fusec.trace.objects.recursion import rounding
from fusec.trace.tracer import trace_function

from . import trace_cache
from .calls.fast_calls import FastCalls
from .creations import Creations
from .instances.kin import KinOfInstance
from .reports import compile_log
from .sizes.dynamic_function import OpenFunction, open_function
from .sizes.refused_sizes import at_tried_size
from .sizes.symbolic_traces import SymbolicTraces
from .stages import OptimizedStage, TracedStage, pass_options

if TYPE_CHECKING:
    from fusec.placement.scopes import device
    from fusec.trace.objects.variables import Created
    from fusec.trace.tracer import Traced

    from .concrete_function import ConcreteFunction


Built = TypeVar("Built")


class TracingCompiler:
    """Finds the plan that answers a call, or traces and compiles one.

    Thread-safe: tracing is serialised, plans run concurrently.
    """

    imported: ClassVar[dict[str, float]] = {}  # what the first compiler's imports took

    def __init__(
        self, target: Target, signature: Signature, *, fp: str, check_indices: bool,
        reduce_retracing: bool, input_signature: Any, device: device | None = None,
        kin: Kin | None = None, compiled: Callable[[TracedStage], ConcreteFunction] | None = None,
    ) -> None:
        """``device``: the scope that the function is in by itself, wherever it is called;
        ``compiled``: what compiles stages of known sizes, where that is not done as usual."""
        self.target, self._compiled_stage = target, compiled
        self.options = pass_options(fp, check_indices)
        self._has_open_sizes = any(map(has_open_size, input_signature or ()))
        self.specs = None if input_signature is None else InputSignature(
            input_signature, signature, target.name)
        self.device: AbstractContextManager[None] = device or nullcontext()
        self.binder = Binder(signature, self.specs, reduce_retracing,
                             device.checked_now if device else scope_now)
        self.kin = KinOfInstance(kin or Kin(), target.receiver)
        self.binder.pinned = self.kin.pinned
        self.traces = trace_cache.TraceCache(target.fn)
        self.symbolic = SymbolicTraces()
        self.fast = FastCalls(
            signature, device.scope_now if device else scope_now, self.binder.packing)
        self.creations = Creations(target.name)
        self.lock = locks.Lock()
        self.import_times = dict(TracingCompiler.imported)  # told by the trace that needed it
        TracingCompiler.imported.clear()
        self.written: dict[tuple, frozenset[int]] = {}  # leaves, where overlapping ones were met

    # -- finding and making traces

    def flatten(self, args: tuple, kwargs: dict[str, Any]) -> FlatCall:
        """The call; raises as Python does for arguments that do not fit."""
        return self.binder.flatten(self.target.python_function, args, kwargs)

    def look_up(self, call: FlatCall) -> tuple[ConcreteFunction, bool]:
        """The function that answers the call, and whether it was made for it."""
        concrete = self.traces.find(trace_key(call))
        if concrete is not None:
            return concrete, False
        with self.lock:
            call = self.binder.relaxed(call)
            concrete = self.traces.find(trace_key(call))
            if concrete is not None:
                return concrete, False
            try:
                return self._make(call), True
            finally:
                self.import_times.clear()

    def _make(self, call: FlatCall) -> ConcreteFunction:
        match = self.symbolic.find(call) if self.binder.reduce_retracing else None
        if match is not None:
            trace, sizes = match
            compiled = self._within_limits(
                lambda: self._compiled(call, trace.at_sizes(call, sizes)))
            return self._remembered(call, compiled, trace_cache.OTHER_SIZES)
        of_other = self._within_limits(lambda: self._of_other_instance(call))
        if of_other is not None:
            return self._remembered(call, of_other, trace_cache.OTHER_INSTANCE)
        self.traces.forbid_retrace(self.target.name, call)
        reason = self.traces.miss_reason(call)
        warn_of_leaves(self.target, call)
        try:
            concrete = self._build(call)
        except (InternalError, OverlapError):
            raise
        except Exception:  # sizes of results, for example, or another result for other numbers
            ints = self.binder.ints()
            static = self.binder.pin(call)
            if static is None:
                raise
            existing = self.traces.find(trace_key(static))
            if existing is not None:
                return existing
            names = ", ".join(sorted(self.binder.pinned))
            reason = f"{names} must be known while tracing"
            call = static
            try:
                concrete = self._build(call)
            except Exception:  # the program's own, for these numbers
                self.binder.restore(ints)
                raise
            self.kin.note_pinned(self.binder.pinned)
            if concrete.build.traced.symbolic is None:
                reason += ", so each value has its own trace"
        by_size = concrete.build.traced.symbolic is None and self.symbolic.reason(call)
        if by_size:
            reason += f"; each size has its own trace: {by_size}"
        return self._remembered(call, concrete, reason)

    def _of_other_instance(self, call: FlatCall) -> ConcreteFunction | None:
        """A trace of another instance of the class, bound to this one."""
        concrete = self.kin.plan(call)
        if concrete is not None or not self.binder.reduce_retracing:
            return concrete
        self.symbolic.adopt(call, self.kin.open_traces(call))
        match = self.symbolic.find(call)
        if match is None:
            return None
        trace, sizes = match
        return self._compiled(call, trace.at_sizes(call, sizes))

    def _remembered(
        self, call: FlatCall, concrete: ConcreteFunction, reason: str
    ) -> ConcreteFunction:
        concrete.flatten = self.flatten
        concrete.reason, concrete.line = reason, self.target.line
        concrete.build.times.update(self.import_times)
        self.traces.remember(call, concrete, self.binder.pinned)
        concrete.when_one_dies(self._drop)
        self.fast.promote(call, concrete)
        compile_log.report(concrete, reason)
        return concrete

    def _drop(self, concrete: ConcreteFunction) -> None:
        self.traces.drop(concrete)
        self.symbolic.drop_dead()
        self.fast.drop(concrete)

    def _build(self, call: FlatCall) -> ConcreteFunction:
        """Trace and compile; an error after the trace is a defect and says so."""
        check_supported(self.target.fn)
        return self._within_limits(lambda: self._trace_and_compile(call))

    def _within_limits(self, build: Callable[[], Built]) -> Built:
        with stack.deeper(), no_collections_inside(), progress.compiling(self.target.name):
            return build()

    def _trace_and_compile(self, call: FlatCall) -> ConcreteFunction:
        symbolic = self.symbolic.make(
            self.target.name, call, self._traced, self.options,
            at_once=self._has_open_sizes or bool(call.needed) or self.kin.has_other_sizes(call),
            others=self.traces.every,
        ) if self.binder.reduce_retracing else None
        if symbolic is None:
            compiled = self._compiled(call, self._stage_by_itself(call))
            self.kin.keep(call, compiled, None)
            return compiled
        trace, sizes = symbolic
        self.creations.check(trace.traced.created)
        sized = trace.at_sizes(call, sizes)
        sized.before.traced.container_changes = trace.traced.container_changes
        compiled = self._compiled(call, sized)
        self.symbolic.supersede(compiled, self.traces.every(), trace.guards)
        self.kin.keep(call, compiled, trace)
        return compiled

    def _stage_by_itself(self, call: FlatCall) -> TracedStage:
        """The call traced for its own sizes."""
        try:
            stage = self._stage(call, self.symbolic.varying(
                call, self.traces.every) | self.kin.varying(call))
        except Exception:
            self.symbolic.take_back_refusal(call)
            raise
        self.creations.check(stage.traced.created)
        return stage

    def _traced(self, call: FlatCall) -> Traced:
        start = time.perf_counter()
        with rounding(self.options.fp):
            traced = trace_function(self.target.python_function, self.target.name, call)
        if timeline.on:
            timeline.since("trace", f"trace of {self.target.name}", start, self.target.line)
        return traced

    def _compiled(self, call: FlatCall, stage: TracedStage | OptimizedStage) -> ConcreteFunction:
        traced = stage.traced if isinstance(stage, TracedStage) else stage.before.traced
        if call.separate is None:
            self._check_overlap(call, traced)
        try:
            if not isinstance(stage, TracedStage):
                return stage.lower().compile()
            if self._compiled_stage is not None:
                return self._compiled_stage(stage)
            return stage.optimize().lower().compile()
        except (FusecError, MemoryError, RecursionError):
            raise
        except Exception as error:
            raise InternalError(f"{self.target.name} was traced but could not be compiled: "
                                f"{type(error).__name__}: {error}") from error

    def _check_overlap(self, call: FlatCall, traced: Traced) -> None:
        """Raise before a plan that this call cannot run is compiled."""
        entangled = overlaps_itself(call, traced.written_leaves)
        if entangled is not None:
            traced.container_changes.take_back()
            raise entangled_error(call.paths[entangled])
        pair = overlapping(call, traced.written_leaves)
        if pair is None:
            return
        if len(self.written) >= trace_cache.MAX_TRACES:
            self.written.clear()
        self.written[call.key] = traced.written_leaves
        traced.container_changes.take_back()
        raise overlap_error(*(call.paths[i] for i in pair))

    def _stage(self, call: FlatCall, varying: frozenset[str] = frozenset()) -> TracedStage:
        """``varying``: attributes whose numbers are inputs, if the call can be traced so."""
        check_supported(self.target.fn)
        try:
            traced = self._traced(replace(call, varying=varying))
        except Exception:
            if not varying:
                raise
            traced = self._traced(call)
            self.symbolic.give_up_outside(call)
        return TracedStage(self.target.name, call, traced, self.options)

    all_traces = staticmethod(trace_cache.newest_of_each)

    # -- stages

    def trace(self, args: tuple, kwargs: dict[str, Any]) -> TracedStage:
        """The traced stage for these arguments; nothing is cached or run."""
        self.import_times.clear()  # a later call is not to tell them
        with stack.deeper():
            return self._stage(self.flatten(args, kwargs))

    def lower(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        """The lowered stage for these arguments."""
        with stack.deeper():
            return self.trace(args, kwargs).optimize().lower()

    def concrete(self, args: tuple, kwargs: dict[str, Any]) -> ConcreteFunction | OpenFunction:
        """The `ConcreteFunction` for arguments (or `TensorSpec` s); compiled if need be."""
        if self.specs is not None and not args and not kwargs:
            args = self.specs.specs
        if not has_open_size((args, kwargs)):
            return self.concrete_of(*example_of((args, kwargs)))
        if self.binder.reduce_retracing:
            function = open_function(self, args, kwargs)
            if function is not None:
                return function
        narrowed = copy.copy(self._of_two((args, kwargs)))
        narrowed.narrowed = self._why_narrowed(narrowed.build.call)
        return narrowed

    def _of_two(self, specs: Any) -> ConcreteFunction:
        """The function where all open sizes are 2."""
        try:
            return self.concrete_of(*example_of(specs))
        except Exception as error:
            if not is_programs(error):
                raise
            raised = error
        raise at_tried_size(
            self.target.name, raised, 2, "each open axis", None,
            lambda n: self.trace(*example_of(specs, itertools.repeat(n), unwritten)))

    def _why_narrowed(self, call: FlatCall) -> str:
        if not self.binder.reduce_retracing:
            return "it has reduce_retracing=False"
        return self.symbolic.reason(call) or "it counts with sizes"

    def foreseen(self, args: tuple, kwargs: dict[str, Any]) -> FlatCall:
        """The call, of which others that differ in sizes are to come."""
        call = self.flatten(args, kwargs)
        with self.lock:
            self.symbolic.foresee(call)
        return call

    def concrete_of(self, args: tuple, kwargs: dict[str, Any]) -> ConcreteFunction:
        call = self.flatten(args, kwargs)
        try:
            compiled = self._unrun(call)
        except OverlapError:
            separate = merged(self.flatten(args, kwargs))
            if separate is None:
                raise
            return self._unrun(separate)
        if compiled.executable.refuses_overlap(call.leaves):
            call = merged(self.flatten(args, kwargs)) or call
            compiled = self._unrun(call)
        return compiled

    def once(self, args: tuple, kwargs: dict[str, Any]) -> tuple[ConcreteFunction, list[Created]]:
        """One trace for `wrap_function`, and the Variables that it created."""
        concrete = self._build(self.flatten(example_of(args), kwargs))
        concrete.flatten = self.flatten
        traced = concrete.build.traced
        created, traced.created = traced.created, []
        return concrete, created

    def _unrun(self, call: FlatCall) -> ConcreteFunction:
        """The compiled function for the call; tracing's changes for this call alone are undone."""
        concrete, is_new = self.look_up(call)
        if is_new:
            self.creations.check_called(concrete.build.traced.created)
        if is_new and concrete.is_for_once:
            concrete.build.traced.container_changes.take_back()
        return concrete

    def traced(self, call: FlatCall) -> Traced:
        """The trace of a call that is computed elsewhere, with symbols for sizes where it can be:
        calls of other sizes have it too.  Nothing is compiled."""
        with self.lock:
            check_supported(self.target.fn)
            found = self._within_limits(lambda: self.symbolic.find(call) or self.symbolic.make(
                self.target.name, call, self._traced, self.options, at_once=True)
            ) if self.binder.reduce_retracing else None
            if found is None:
                return self._within_limits(lambda: self._stage_by_itself(call)).traced
            trace, sizes = found
            return trace.traced.at_sizes(sizes)

    def forget(self) -> None:
        """Forget every trace; ``lock`` is held."""
        self.traces.clear()
        self.symbolic.clear()
        self.fast.clear()
        self.written.clear()
        self.binder.clear()
        self.binder.pinned = self.kin.pinned
        self.creations.clear()
