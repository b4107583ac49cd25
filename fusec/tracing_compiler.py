"""Traces and compiles one Python function, once for each signature."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from fusec.trace.call.overlap import merged, overlapping, overlaps_itself
from fusec.trace.call.signature import FlatCall
from fusec.trace.convert.cache import check_supported

from . import locks, stack, trace_cache
from .binding import Binder
from .errors import (
    FusecError,
    InternalError,
    OverlapError,
    entangled_error,
    overlap_error,
    short_errors,
)
from .fast_calls import FastCalls
from .inspect import compile_log
from .quiet_gc import no_collections, no_collections_inside
from .specs import TensorSpec

if TYPE_CHECKING:
    from .concrete import ConcreteFunction
    from .stages import TracedStage
    from .trace.tracer import Traced


class Compiler(NamedTuple):
    """What makes the first stage, and how many milliseconds it took to import."""

    stage: Callable[[Callable[..., Any], str, FlatCall, str, bool], TracedStage]
    times: dict[str, float]


@functools.cache
def compiler() -> Compiler:
    """The compiler, which is imported at the first call."""
    start = time.perf_counter()
    with no_collections():
        from .stages import traced_stage

    return Compiler(traced_stage, {"imports": 1e3 * (time.perf_counter() - start)})


class TracingCompiler:
    """Finds what answers a call, or traces and compiles it; made as a `Function`.

    Thread-safe: tracing is serialised, what was compiled runs concurrently.
    """

    __name__: str

    def __init__(
        self, fn: Callable[..., Any], receiver: Callable[[], Any] | None, *,
        static: Sequence[str | int], fp: str, check_indices: bool, reduce_retracing: bool,
        input_signature: Any,
    ) -> None:
        self._fn = fn
        self._receiver = receiver
        self.fp, self.check_indices = fp, check_indices
        self.reduce_retracing = reduce_retracing
        self._static = tuple(static)
        self._binder = Binder(self.python_function, static, input_signature, reduce_retracing)
        self._traces = trace_cache.TraceCache(fn)
        self._fast = FastCalls(self._binder.signature)
        self._lock = locks.Lock()
        self._written: dict[tuple, frozenset[int]] = {}  # leaves, where overlapping ones were met

    @property
    def input_signature(self) -> Any:
        """The `TensorSpec` s that calls must fit; None for any."""
        return self._binder.input_signature

    @property
    def python_function(self) -> Callable[..., Any]:
        """The function as written; for a method, bound to its instance."""
        if self._receiver is None:
            return self._fn
        instance = self._receiver()
        if instance is None:
            raise ReferenceError(f"the instance whose method {self._fn.__qualname__} this is, "
                                 f"is gone")
        return self._fn.__get__(instance, type(instance))

    # -- finding and making traces

    def _flatten(self, args: tuple, kwargs: dict[str, Any]) -> FlatCall:
        return self._binder.flatten(self.python_function, args, kwargs)

    def _lookup(self, call: FlatCall) -> tuple[ConcreteFunction, bool]:
        found = self._traces.find(call.key)
        if found is not None:
            return found, False
        with self._lock:
            call = self._binder.relaxed(call)
            found = self._traces.find(call.key)
            if found is not None:
                return found, False
            return self._make(call), True

    def _make(self, call: FlatCall) -> ConcreteFunction:
        self._traces.forbid_retrace(self.__name__, call)
        reason = self._traces.miss_reason(call)
        try:
            concrete = self._build(call)
        except (InternalError, OverlapError):
            raise
        except Exception:  # sizes of results, for example, or another result for other numbers
            ints = self._binder.ints()
            static = self._binder.pin(call)
            if static is None:
                raise
            found = self._traces.find(static.key)
            if found is not None:
                return found
            names = ", ".join(sorted(self._binder.pinned))
            reason = f"{names} must be known while tracing, so each value has its own trace"
            call = static
            try:
                concrete = self._build(call)
            except Exception:  # the program's own, for these numbers
                self._binder.restore(ints)
                raise
        concrete.flatten = self._flatten
        concrete.reason = reason
        concrete.build.times.update(compiler().times)
        compiler().times.clear()  # told once, by the trace that needed it
        self._traces.remember(call, concrete, self._binder.pinned)
        self._promote(call, concrete)
        compile_log.report(concrete, reason)
        return concrete

    def _build(self, call: FlatCall) -> ConcreteFunction:
        """Trace and compile; what fails after the trace is a defect and says so."""
        with stack.deeper(), no_collections_inside():
            return self._built(call)

    def _built(self, call: FlatCall) -> ConcreteFunction:
        stage = self._stage(call)
        if call.separate is None:
            self._check_overlap(call, stage.traced)
        try:
            return stage.optimize().lower().compile()
        except (FusecError, MemoryError, RecursionError):
            raise
        except Exception as error:
            raise InternalError(f"{self.__name__} was traced but could not be compiled: "
                                f"{type(error).__name__}: {error}") from error

    def _check_overlap(self, call: FlatCall, traced: Traced) -> None:
        """Raise before what this call cannot run is compiled."""
        entangled = overlaps_itself(call, traced.written_leaves)
        if entangled is not None:
            traced.container_changes.take_back()
            raise entangled_error(call.paths[entangled])
        found = overlapping(call, traced.written_leaves)
        if found is None:
            return
        if len(self._written) >= trace_cache.MAX_TRACES:
            self._written.clear()
        self._written[call.key] = traced.written_leaves
        traced.container_changes.take_back()
        raise overlap_error(*(call.paths[i] for i in found))

    def _promote(self, call: FlatCall, concrete: ConcreteFunction) -> None:
        if self.input_signature is None:  # else each call is checked against it
            self._fast.promote(call, concrete)

    def _stage(self, call: FlatCall) -> TracedStage:
        check_supported(self._fn)
        return compiler().stage(self.python_function, self.__name__, call, self.fp,
                                self.check_indices)

    # -- stages

    def trace(self, *args: Any, **kwargs: Any) -> TracedStage:
        """The traced stage for these arguments; nothing is cached or run."""
        with short_errors, stack.deeper():
            return self._stage(self._flatten(args, kwargs))

    def lower(self, *args: Any, **kwargs: Any) -> Any:
        """The lowered stage for these arguments: ``.kernels``, ``.as_text()``, ``.compile()``."""
        with short_errors, stack.deeper():
            return self.trace(*args, **kwargs).optimize().lower()

    def concrete(self, *args: Any, **kwargs: Any) -> ConcreteFunction:
        """The `ConcreteFunction` for arguments (or `TensorSpec` s); compiled if need be."""
        args = tuple(a.example() if isinstance(a, TensorSpec) else a for a in args)
        with short_errors:
            call = self._flatten(args, kwargs)
            try:
                found = self._unrun(call)
            except OverlapError:
                separate = merged(self._flatten(args, kwargs))
                if separate is None:
                    raise
                return self._unrun(separate)
            if found.executable.refuses_overlap(call.leaves):
                call = merged(self._flatten(args, kwargs)) or call
                found = self._unrun(call)
            return found

    def _unrun(self, call: FlatCall) -> ConcreteFunction:
        """What would answer the call; what tracing changed for this call alone is taken back."""
        found, is_new = self._lookup(call)
        if is_new and found.is_for_once:
            found.build.traced.container_changes.take_back()
        return found

    def compile_times(self, *args: Any, **kwargs: Any) -> dict[str, float]:
        """Milliseconds per stage that the trace for these arguments cost."""
        return self.concrete(*args, **kwargs).times

    @property
    def traces(self) -> list[ConcreteFunction]:
        """Every trace held, newest last."""
        return self._traces.held()

    @property
    def trace_count(self) -> int:
        """How many traces are held."""
        return len(self.traces)

    def _forget(self) -> None:
        """Forget every trace; the lock is held."""
        self._traces.clear()
        self._fast.clear()
        self._written.clear()
        self._binder.clear()
