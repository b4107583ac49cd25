"""`Function`: a Python function compiled per signature, and the way a call takes through it."""

from __future__ import annotations

import functools
import time
import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from fusec.runtime.outcomes import BUSY, FAILED, MISS
from fusec.trace.call.overlap import merged, overlapping
from fusec.trace.call.signature import FlatCall
from fusec.trace.convert.cache import check_supported
from fusec.trace.values.trace import current

from .errors import OverlapError, short_errors
from .fallback import Fallback
from .fast_calls import Plan
from .inspect import history
from .methods import BoundFunctions, Method
from .tracing_compiler import TracingCompiler, compiler

if TYPE_CHECKING:
    from fusec.trace.values.trace import Trace

    from .concrete import ConcreteFunction

_UNKNOWN: tuple[Any, Any] = (None, None)
_all: weakref.WeakValueDictionary[int, Function] = weakref.WeakValueDictionary()


def every_function() -> list[Function]:
    """The functions that are alive, those of methods too."""
    return [found for reference in _all.valuerefs() if (found := reference()) is not None]


class Function(TracingCompiler):
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
        super().__init__(fn, receiver, static=static, fp=fp, check_indices=check_indices,
                         reduce_retracing=reduce_retracing, input_signature=input_signature)
        self.fallback = fallback
        self._arity = self._binder.signature.arity
        self._methods: BoundFunctions[Function] = BoundFunctions()
        self.__name__ = self.__qualname__ = type(fn).__name__  # callables without names of theirs
        functools.update_wrapper(self, fn)
        self._eager = Fallback(self.__name__) if fallback == "eager" else None
        _all[id(self)] = self

    @property
    def eager_calls(self) -> int:
        """How many calls fusec refused to compile and ran as Python does."""
        return 0 if self._eager is None else self._eager.calls

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
        compiler()
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

    def clear(self) -> None:
        """Forget every trace."""
        with self._lock:
            self._forget()
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


