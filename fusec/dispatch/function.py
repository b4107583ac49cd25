"""`Function`: a Python function compiled per signature, and the way a call takes through it."""

from __future__ import annotations

import functools
import os
import time
import weakref
from collections.abc import Callable, Sequence
from pathlib import Path
from threading import get_ident
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, TypeVar, overload

from fusec.compiled.calls.plans import RecentPlans, answer
from fusec.compiled.reports import history
from fusec.compiled.reports.viewed import Viewed, page_module
from fusec.core import locks, timeline
from fusec.core.process.quiet_gc import no_collections
from fusec.core.tracers import TRACERS
from fusec.errors import short_errors
from fusec.runtime.launching.outcomes import BUSY, FAILED, MISS
from fusec.signature.jitted_methods import BoundFunctions, Kin, Method, Target
from fusec.signature.specs import checked_specs, python_values
from fusec.trace.call.signature import Signature
from fusec.trace.convert.constructs import check_supported

if TYPE_CHECKING:
    from fusec.compiled.concrete_function import ConcreteFunction
    from fusec.compiled.sizes.dynamic_function import OpenFunction
    from fusec.compiled.stages import TracedStage
    from fusec.compiled.tracing_compiler import TracingCompiler

    from .dispatcher import Dispatcher

P = ParamSpec("P")
Q = ParamSpec("Q")
R = TypeVar("R")
S = TypeVar("S")
_UNKNOWN: tuple[Any, Any] = (None, None)
_making = locks.Lock()
_all: weakref.WeakValueDictionary[int, Function] = weakref.WeakValueDictionary()


def every_function() -> list[Function]:
    """The functions that are alive, those of methods too."""
    return [function for reference in _all.valuerefs() if (function := reference()) is not None]


@functools.cache
def _dispatcher_class() -> type[Dispatcher]:
    """Imported at the first call, and with it the tracer, the passes and the compiler."""
    start = time.perf_counter()
    with no_collections():
        from .dispatcher import Dispatcher, TracingCompiler

    TracingCompiler.imported["imports"] = 1e3 * (time.perf_counter() - start)
    if timeline.on:
        timeline.since("imports", "imports of the compiler", start)
    return Dispatcher


def _travel() -> Any:
    """The module that takes functions to other processes; imported when the first one goes."""
    from . import travel

    return travel


def _scope_of(device: Any) -> Any:
    """The scope of ``device=``, whose name must be one; imported where a function has it."""
    from fusec.placement.scopes import own_scope

    return own_scope(device)


def _with_specs(signature: Signature, specs: Sequence[Any] | None) -> Signature:
    """Arguments, and parts of them, that specs leave to Python, are static."""
    return signature.with_static(frozenset(
        path for position, spec in enumerate(specs or ())
        for path in python_values(spec, signature.path_of(position))))


class Function(Viewed, Generic[P, R]):
    """A Python function compiled per signature; made by `jit`.  ``P`` are its parameters, ``R`` is
    its result, for type checkers.

    Thread-safe: tracing is serialised per function, compiled code runs concurrently.
    """

    __name__: str
    _compiled_stage: Any = None  # what compiles its stages, where that is not done as usual

    def __init__(
        self, fn: Callable[P, R], *, static: Sequence[str | int] = (), fp: str = "contract",
        check_indices: bool = True, reduce_retracing: bool = True, input_signature: Any = None,
        receiver: Callable[[], Any] | None = None, fallback: str = "error",
        device: str | None = None, kin: Kin | None = None,
    ) -> None:
        """``receiver``, for methods, gives the instance; it is called, not kept; ``kin``: that of
        its class.  A jitted ``fn`` is compiled anew, with these options."""
        if isinstance(fn, Function):
            fn = fn.python_function
        if fallback != "eager":
            check_supported(fn)
        self._fn, self._receiver = fn, receiver
        self.fp, self.check_indices, self.fallback = fp, check_indices, fallback
        self.reduce_retracing = reduce_retracing
        self._scope = None if device is None else _scope_of(device)
        self.device = None if self._scope is None else str(self._scope.item)
        self.input_signature = None if input_signature is None else checked_specs(input_signature)
        self._static = tuple(static)
        self._signature = _with_specs(
            Signature.of(self.python_function, static), self.input_signature)
        self._arity = self._signature.arity
        self._fast = RecentPlans()
        self._dispatcher: Dispatcher | None = None  # before the first call
        self._methods: BoundFunctions[Function] = BoundFunctions()
        self._kin = Kin() if kin is None else kin
        self.__name__ = self.__qualname__ = type(fn).__name__  # callables without names of theirs
        functools.update_wrapper(self, fn)
        _all[id(self)] = self

    @property
    def python_function(self) -> Callable[P, R]:
        """The function as written; for a method, bound to its instance."""
        return Target(self._fn, self._receiver, "").python_function

    def _dispatching(self) -> Dispatcher:
        """The dispatcher of calls that no recent plan takes."""
        if self._dispatcher is not None:
            return self._dispatcher
        dispatcher = _dispatcher_class()(
            Target(self._fn, self._receiver, self.__name__), self._signature, fp=self.fp,
            check_indices=self.check_indices, reduce_retracing=self.reduce_retracing,
            input_signature=self.input_signature, fallback=self.fallback, device=self._scope,
            kin=self._kin, compiled=self._compiled_stage)
        with _making:  # calls of other threads may be their function's first, too
            if self._dispatcher is None:
                self._dispatcher, self._fast = dispatcher, dispatcher.fast
            return self._dispatcher

    # -- calls

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        if TRACERS and get_ident() in TRACERS:  # else what is traced would take it for a constant
            with short_errors:
                return self._call(args, kwargs)
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
                result = answer(plans, leaves, self.__name__)
                if result is not MISS:
                    return result
            elif leaves is not None:  # `answer` without the call, which is a tenth of it all
                asked = None  # the plans of one trace ask the same
                for fast, concrete in plans:
                    unchanged = concrete.unchanged
                    if unchanged is not asked and unchanged is not None and not unchanged():
                        continue
                    asked = unchanged
                    result = fast(*leaves)
                    if result is not MISS and result is not BUSY and result is not FAILED:
                        return result
            if recent.structured:
                result = self._answer_for_structure(args, kwargs)
                if result is not MISS:
                    return result
        except Exception as error:  # a library call's; try costs nothing, `with` would
            failed = error
        else:
            with short_errors:
                return self._call(args, kwargs)
        try:
            with short_errors:
                raise self._first(failed, args, kwargs)
        finally:
            del failed  # whose traceback has this frame

    def _answer_for_structure(self, args: Any, kwargs: Any) -> Any:
        """The same for arguments that are pytrees; MISS too where they do not fit the function."""
        try:
            bound: Any = self._signature.bind(args, kwargs)
        except TypeError:
            return MISS
        leaves, plans = self._dispatching().fast.for_structure(bound)
        return answer(plans, leaves, self.__name__)

    def _call(self, args: Any, kwargs: Any) -> Any:
        return self._dispatching().call(args, kwargs)

    def _first(self, error: Exception, args: Any, kwargs: Any) -> Exception:
        """What comes before this exception of the call: here nothing.  Asked in a handler, it would
        have the exception as its context."""
        return error

    @property
    def eager_calls(self) -> int:
        """How many calls fusec refused to compile and ran as Python does."""
        return 0 if self._dispatcher is None else self._dispatcher.eager_calls

    def clear(self) -> None:
        """Forget every trace; of a method that is looked up on the class those of all instances."""
        if self._receiver is None:
            self._kin.clear()
        if self._dispatcher is not None:
            self._dispatcher.clear()
        for bound in self._methods.every():
            bound.clear()

    # -- stages

    def trace(self, *args: Any, **kwargs: Any) -> TracedStage:
        """The traced stage for these arguments; nothing is cached or run."""
        with short_errors:
            return self._dispatching().compiler.trace(args, kwargs)

    def lower(self, *args: Any, **kwargs: Any) -> Any:
        """The lowered stage for these arguments: ``.kernels``, ``.as_text()``, ``.compile()``."""
        with short_errors:
            return self._dispatching().compiler.lower(args, kwargs)

    def concrete(self, *args: Any, **kwargs: Any) -> ConcreteFunction | OpenFunction:
        """The `ConcreteFunction` for arguments (or `TensorSpec` s); compiled if need be.

        Where specs leave sizes open (``None``) an `OpenFunction`: one graph for all of them.
        """
        with short_errors:
            return self._dispatching().compiler.concrete(args, kwargs)

    def _traced_once(self, *args: Any) -> Any:
        """For `wrap_function`: one trace, compiled, and the Variables that it created."""
        return self._dispatching().compiler.once(args, {})

    @property
    def _compiler(self) -> TracingCompiler:
        """For `replicate` and exports: what traces calls that run elsewhere."""
        return self._dispatching().compiler

    def _without_labels(self, args: tuple, kwargs: dict[str, Any]) -> tuple[tuple, dict[str, Any]]:
        """For `explain`: the arguments with plain arrays for those with labels."""
        return self._dispatching().without_labels(args, kwargs)

    def _split(self, *args: Any, **kwargs: Any) -> Any:
        """For `explain`: the stages of a call with arrays in blocks; None of other calls."""
        return self._dispatching().stages_of_blocks(args, kwargs)

    def compile_times(self, *args: Any, **kwargs: Any) -> dict[str, float]:
        """Milliseconds per stage that the trace for these arguments cost."""
        return self.concrete(*args, **kwargs).times

    def save_html(self, path: str | os.PathLike[str], *args: Any, **kwargs: Any) -> Path:
        """Write a page about its traces to ``path`` and return that: one file, which needs no
        server and no network.  It holds the lines of the program that it names.

        With arguments the function is compiled for these, if need be, and called some times, so
        that the page has measured times; but not where that would change more than copies of them.
        Raises ``OSError`` where the file cannot be written, ``ValueError`` where there is no trace.
        """
        with short_errors:
            target: Path = page_module().save_function(self, path, args, kwargs)
            return target

    @property
    def traces(self) -> list[ConcreteFunction]:
        """Every trace held, newest last; of a method that is looked up on the class those of its
        instances, too, and those that it keeps for other ones."""
        own = [] if self._dispatcher is None else self._dispatcher.compiler.traces.every_trace()
        bound = self._methods.every()
        if self._receiver is not None or not (bound or self._kin.kept()):
            return own
        compiler = self._dispatching().compiler
        origins = {id(trace.build.origin) for trace in compiler.traces.every()}
        kept = [trace for trace in self._kin.kept() if id(trace.build.origin) not in origins]
        return compiler.all_traces(
            [*kept, *own, *(trace for each in bound for trace in each.traces)])

    @property
    def trace_count(self) -> int:
        """How many traces are held."""
        return len(self.traces)

    # -- methods

    @overload
    def __get__(self, instance: None, owner: type | None = None) -> Function[P, R]: ...

    @overload
    def __get__(self: Function[Concatenate[S, Q], R], instance: S, owner: type | None = None
                ) -> Function[Q, R]: ...

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        """The method of an instance: plans of its own, freed with the instance, and the traces of
        others that are like it."""
        if instance is None or self._receiver is not None:
            return self
        return Method(self._methods.of(instance, self._for_receiver), instance)

    def _for_receiver(self, receiver: Callable[[], Any]) -> Function:
        return type(self)(self._fn, receiver=receiver, kin=self._kin, **self.options)

    def of_instance(self, instance: Any) -> Function | None:
        """That of an instance which it was looked up on."""
        return self._methods.function_of(instance) if self._receiver is None else None

    # -- other processes

    @property
    def options(self) -> dict[str, Any]:
        """Its options, as keyword arguments."""
        return {"static": self._static, "fp": self.fp, "check_indices": self.check_indices,
                "reduce_retracing": self.reduce_retracing,
                "input_signature": self.input_signature, "fallback": self.fallback,
                "device": self.device}

    def __reduce__(self) -> tuple[Any, ...]:
        return _travel().reduced(self)

    def __copy__(self) -> Function:
        return self

    def __deepcopy__(self, memo: Any) -> Function:
        return self

    def __dask_tokenize__(self) -> Any:
        return _travel().tokenized(self)

    def __repr__(self) -> str:
        return f"<fusec.jit {self.__qualname__}, {self.trace_count} traces>"


