"""`Function`: a Python function compiled per signature, and the way a call takes through it."""

from __future__ import annotations

import functools
import time
import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from fusec.runtime.outcomes import BUSY, FAILED, MISS
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
from .fallback import Fallback
from .fast_calls import FastCalls, Plan
from .inspect import compile_log, history
from .methods import BoundFunctions, Method
from .quiet_gc import no_collections, no_collections_inside
from .specs import TensorSpec

if TYPE_CHECKING:
    from fusec.trace.values.trace import Trace

    from .concrete import ConcreteFunction
    from .stages import TracedStage
    from .trace.tracer import Traced

_UNKNOWN: tuple[Any, Any] = (None, None)
_all: weakref.WeakValueDictionary[int, Function] = weakref.WeakValueDictionary()


def every_function() -> list[Function]:
    """The functions that are alive, those of methods too."""
    return [found for reference in _all.valuerefs() if (found := reference()) is not None]


class Function:
    """A Python function compiled per signature; made by `jit`.

    Thread-safe: tracing is serialised per function, compiled code runs concurrently.
    """

    def __init__(
        self, fn: Callable[..., Any], *, static: Sequence[str | int] = (), fp: str = "contract",
        check_indices: bool = True, reduce_retracing: bool = True, input_signature: Any = None,
        receiver: Callable[[], Any] | None = None, fallback: str = "error",
    ) -> None:
        """``receiver``, for methods, gives the instance; it is called, not kept."""
        if fallback != "eager":
            check_supported(fn)
        self._fn = fn
        self._receiver = receiver
        self.fp, self.check_indices, self.fallback = fp, check_indices, fallback
        self.reduce_retracing = reduce_retracing
        self._static = tuple(static)
        self._binder = Binder(self.python_function, static, input_signature, reduce_retracing)
        self._arity = self._binder.signature.arity
        self._traces = trace_cache.TraceCache(fn)
        self._fast = FastCalls(self._binder.signature)
        self._lock = locks.Lock()
        self._written: dict[tuple, frozenset[int]] = {}  # leaves, where overlapping ones were met
        self._methods = BoundFunctions()
        self.__name__ = self.__qualname__ = type(fn).__name__  # callables without names of theirs
        functools.update_wrapper(self, fn)
        self._eager = Fallback(self.__name__) if fallback == "eager" else None
        _all[id(self)] = self

    @property
    def input_signature(self) -> Any:
        """The `TensorSpec` s that calls must fit; None for any."""
        return self._binder.input_signature

    @property
    def eager_calls(self) -> int:
        """How many calls fusec refused to compile and ran as Python does."""
        return 0 if self._eager is None else self._eager.calls

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

    # -- calls

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        leaves: Any = args
        recent = self._fast
        plans = recent.positional
        if kwargs or len(args) != self._arity:
            leaves, others = recent.shapes.get((len(args), *kwargs), _UNKNOWN)
            if leaves is not None:
                leaves = leaves(args, kwargs)
                plans = plans if others is None else others
        try:
            if leaves is not None and history.on:
                result = self._answer(plans, leaves)
                if result is not MISS:
                    return result
            elif leaves is not None:  # `_answer` without the call, which is a tenth of it all
                for fast, concrete in plans:
                    if concrete.unchanged is not None and not concrete.unchanged():
                        continue
                    result = fast(*leaves)
                    if result is not MISS and result is not BUSY and result is not FAILED:
                        return result
            if recent.structured:
                result = self._answer_for_structure(args, kwargs)
                if result is not MISS:
                    return result
        except Exception:  # a library call's; try costs nothing, `with` would
            with short_errors:
                raise
        with short_errors:
            return self._call(args, kwargs)

    def _answer(self, plans: Sequence[Plan], leaves: Sequence[Any]) -> Any:
        """What the first of these plans that fits the leaves answers; MISS where none does."""
        for fast, concrete in plans:
            if concrete.unchanged is not None and not concrete.unchanged():
                continue
            start = time.perf_counter() if history.on else 0.0
            result = fast(*leaves)
            if result is MISS or result is BUSY or result is FAILED:
                continue
            if history.on:
                run_us = 1e6 * (time.perf_counter() - start)
                history.record_call(self.__name__, concrete, 0.0, run_us)
            return result
        return MISS

    def _answer_for_structure(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        """The same for arguments that are pytrees; MISS too where they do not fit the function."""
        try:
            bound: Any = self._binder.signature.bind(args, kwargs)
        except TypeError:
            return MISS
        leaves, plans = self._fast.for_structure(bound)
        return self._answer(plans, leaves)

    def _call(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        _loaded_compiler()
        from fusec.trace.values.trace import current

        trace = current()
        if trace is not None:
            return self._inline(trace, args, kwargs)
        if self._eager is not None:
            return self._eager.call(
                self.python_function, args, kwargs, self._flatten, self._call_compiled)
        return self._call_compiled(self._flatten(args, kwargs))

    def _call_compiled(self, call: FlatCall) -> Any:
        written = self._written.get(call.key)
        if written is not None and overlapping(call, written):
            call = merged(call) or call
        try:
            return self._run(call)
        except OverlapError:
            if call.separate is not None:
                raise
            separate = merged(self._binder.again(call))  # with what the first try learnt
            if separate is None:
                raise
        return self._run(separate)

    def _looked_up(self, call: FlatCall) -> tuple[ConcreteFunction, bool]:
        if self._eager is None:
            return self._lookup(call)
        with self._eager.before_the_run():
            return self._lookup(call)

    def _run(self, call: FlatCall) -> Any:
        concrete, is_new = self._looked_up(call)
        start = time.perf_counter()
        try:
            result = concrete.run_leaves(call.leaves)
        except OverlapError:  # it will be traced anew, as the call that runs
            if is_new:  # what earlier calls left stands
                concrete.build.traced.container_changes.take_back()
            raise
        if is_new:
            concrete.build.traced.container_changes.forget()
        if is_new or history.on:
            run_us = 1e6 * (time.perf_counter() - start)
            build_ms = sum(concrete.times.values()) if is_new else 0.0
            history.record_call(self.__name__, concrete, build_ms, run_us)
        if not is_new:
            self._promote(call, concrete)
        return result

    def _inline(self, trace: Trace, args: tuple, kwargs: dict[str, Any]) -> Any:
        """Inside another trace the function is simply traced with it."""
        if trace.hooks is None:
            return self.python_function(*args, **kwargs)
        return trace.hooks.call(trace.hooks.where, self.python_function, *args, **kwargs)

    # -- traces

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
        concrete.build.times.update(_loaded_compiler())
        _loaded_compiler().clear()  # told once, by the trace that needed it
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
        from .stages import TracedStage, pass_options
        from .trace.tracer import trace_function

        check_supported(self._fn)
        traced = trace_function(self.python_function, self.__name__, call)
        options = pass_options(self.fp, self.check_indices)
        return TracedStage(self.__name__, call, traced, options)

    # -- public stages

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

    def clear(self) -> None:
        """Forget every trace."""
        with self._lock:
            self._traces.clear()
            self._fast.clear()
            self._written.clear()
            self._binder.clear()
            if self._eager is not None:
                self._eager.clear()

    # -- methods

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        """The method of an instance: traces of its own, freed with the instance."""
        if instance is None or self._receiver is not None:
            return self
        return Method(self._methods.of(instance, self._for_receiver), instance)

    def _for_receiver(self, receiver: Callable[[], Any]) -> Function:
        return Function(self._fn, receiver=receiver, **self.options)

    # -- other processes

    @property
    def options(self) -> dict[str, Any]:
        """What it was made with, as keyword arguments."""
        return {"static": self._static, "fp": self.fp, "check_indices": self.check_indices,
                "reduce_retracing": self.reduce_retracing,
                "input_signature": self.input_signature, "fallback": self.fallback}

    def __reduce__(self) -> tuple[Any, ...]:
        from .travel import reduced

        return reduced(self)

    def __copy__(self) -> Function:
        return self

    def __deepcopy__(self, memo: Any) -> Function:
        return self

    def __dask_tokenize__(self) -> Any:
        from .travel import tokenized

        return tokenized(self)

    def __repr__(self) -> str:
        return f"<fusec.jit {self.__qualname__}, {self.trace_count} traces>"


@functools.cache
def _loaded_compiler() -> dict[str, float]:
    """Import the compiler at the first call, and say how many milliseconds it took."""
    start = time.perf_counter()
    with no_collections():
        from . import stages
        from .trace import tracer

    assert stages and tracer
    return {"imports": 1e3 * (time.perf_counter() - start)}
