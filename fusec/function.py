"""`Function`: the trace cache of one Python function, and the way a call takes through it."""

from __future__ import annotations

import functools
import threading
import time
import weakref
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from dataclasses import replace
from types import FunctionType
from typing import TYPE_CHECKING, Any

import numpy as np
import optree

from fusec.runtime.outcomes import BUSY, FAILED, MISS

from . import config, locks, stack
from .errors import (
    FallbackWarning,
    FusecError,
    InternalError,
    OverlapError,
    entangled_error,
    overlap_error,
    short_errors,
    user_error,
    users_own,
)
from .inspect import history, log
from .quiet_gc import no_collections
from .specs import TensorSpec, describe
from .storms import Storm
from .trace.convert import check_supported
from .trace.overlap import merged, overlapping, overlaps_itself
from .trace.signature import FlatCall, Signature, explain_miss, flatten, leaves_of
from .trace.trees import flattened

if TYPE_CHECKING:
    from .concrete import ConcreteFunction
    from .stages import TracedStage
    from .trace.context import Trace
    from .trace.tracer import Traced

MAX_TRACES = 256  # per function; the least recently used goes first
MAX_FAST = 4  # recent plans tried before the arguments are looked at in Python
MAX_STRONG = 16  # instances that cannot be referenced weakly, whose traces are kept
Plan = tuple[Callable[..., Any], "ConcreteFunction"]  # answers for leaves, or MISS
_state = threading.local()
_UNKNOWN: tuple[Any, Any] = (None, None)
_all: weakref.WeakValueDictionary[int, Function] = weakref.WeakValueDictionary()


def every_function() -> list[Function]:
    """The functions that are alive, those of methods too."""
    return [found for reference in _all.valuerefs() if (found := reference()) is not None]


def _with_first(plan: Plan, plans: Sequence[Plan]) -> list[Plan]:
    return [plan, *(other for other in plans if other[1] is not plan[1])][:MAX_FAST]


class _RefusedError(Exception):
    """A call was refused before anything ran."""

    def __init__(self, refusal: BaseException) -> None:
        self.refusal = refusal


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
        check_supported(fn)
        self._fn = fn
        self._receiver = receiver
        self.fp, self.check_indices = fp, check_indices
        self.fallback = fallback
        self.eager_calls = 0  # of those that fusec refused to compile
        self._refused: set[tuple] = set()
        self.reduce_retracing = reduce_retracing
        self.input_signature = input_signature
        self._signature = Signature.of(self.python_function, static)
        self._arity = self._signature.arity
        self._static = tuple(static)
        self._traces: OrderedDict[tuple, list[ConcreteFunction]] = OrderedDict()
        self._fast: list[Plan] = []
        self._structured: dict[Any, list[Plan]] = {}  # for arguments or results that are pytrees
        # By what is given by position and name: what makes leaves of that, and plans for these,
        # None: those of calls with all arguments by position.
        self._shapes: dict[tuple, tuple[Callable[..., Any], list[Plan] | None]] = {}
        self._lock = locks.Lock()
        self._seen_ints: dict[str, set[int]] = {}
        self._written: dict[tuple, frozenset[int]] = {}  # leaves, where overlapping ones were met
        self._dynamic_ints: frozenset[str] = frozenset()
        self._pinned_ints: frozenset[str] = frozenset()
        self._storm = Storm()
        self._methods: dict[int, tuple[Any, Function]] = {}
        self.__name__ = self.__qualname__ = type(fn).__name__  # callables without names of theirs
        functools.update_wrapper(self, fn)
        _all[id(self)] = self

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
        plans = self._fast
        if kwargs or len(args) != self._arity:
            leaves, others = self._shapes.get((len(args), *kwargs), _UNKNOWN)
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
            if self._structured:
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
                self._record(concrete, 0.0, 1e6 * (time.perf_counter() - start))
            return result
        return MISS

    def _answer_for_structure(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        """The same for arguments that are pytrees; MISS too where they do not fit the function."""
        try:
            bound: Any = self._signature.bind(args, kwargs)
        except TypeError:
            return MISS
        leaves, treespec = flattened(bound)
        return self._answer(self._structured.get(treespec, ()), leaves)

    def _call(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        _loaded_compiler()
        from .trace.context import current

        trace = current()
        if trace is not None:
            return self._inline(trace, args, kwargs)
        if self.fallback == "eager":
            return self._call_or_eager(args, kwargs)
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
            separate = merged(self._again(call))  # with what the first try learnt
            if separate is None:
                raise
        return self._run(separate)

    def _call_or_eager(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        """The call compiled, or as Python runs it where fusec refuses it before anything ran."""
        from .trace.caught import REFUSALS

        key: tuple = ()
        try:
            call = self._flatten(args, kwargs)
            key = call.key
            if key not in self._refused:
                return self._call_compiled(call)
        except _RefusedError as found:
            self._refuse(key, found.refusal)
        except REFUSALS as refusal:
            if key and not isinstance(refusal, OverlapError):  # raised by the run
                raise
            self._refuse(key, refusal)
        self.eager_calls += 1
        return self.python_function(*args, **kwargs)

    def _refuse(self, key: tuple, refusal: BaseException) -> None:
        """Note that calls of this key run eagerly; warn once."""
        if not self._refused:
            code = getattr(self.python_function, "__code__", None)
            where = (code.co_filename, code.co_firstlineno) if code else ("<unknown>", 1)
            log.warn(
                f"{self.__name__} runs uncompiled (fallback=\"eager\"; F.eager_calls counts such "
                f"calls): {refusal}", FallbackWarning, *where)
        self._refused.add(key)

    def _looked_up(self, call: FlatCall) -> tuple[ConcreteFunction, bool]:
        """`_lookup`; a refusal, where calls fall back, is known from one of the run."""
        if self.fallback == "error":
            return self._lookup(call)
        from .trace.caught import REFUSALS

        try:
            return self._lookup(call)
        except OverlapError:
            raise
        except REFUSALS as refusal:
            raise _RefusedError(refusal) from refusal

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
            self._record(concrete, sum(concrete.times.values()) if is_new else 0.0, run_us)
        if not is_new:
            self._promote(call, concrete)
        return result

    def _inline(self, trace: Trace, args: tuple, kwargs: dict[str, Any]) -> Any:
        """Inside another trace the function is simply traced with it."""
        if trace.hooks is None:
            return self.python_function(*args, **kwargs)
        return trace.hooks.call(trace.hooks.where, self.python_function, *args, **kwargs)

    def _record(self, concrete: ConcreteFunction, build_ms: float, run_us: float) -> None:
        kernels = concrete.build.schedule.kernels
        points = [f.points for k in kernels for f in k.forms if f.is_static]
        static = [k.kernel for k in kernels if all(f.is_static for f in k.forms)]
        moved = [size for k in static for size in (k.bytes_loaded, k.bytes_stored)]
        history.record(
            self.__name__, elements=max(points, default=1),
            ops=sum(k.kernel.operations for k in kernels), hit=build_ms == 0.0, build_ms=build_ms,
            run_us=run_us,
            nbytes=sum(size for size in moved if isinstance(size, int)),
        )

    # -- traces

    def _flatten(self, args: tuple, kwargs: dict[str, Any]) -> FlatCall:
        try:
            bound, keywords = self._signature.bind(args, kwargs)
        except TypeError as error:
            raise users_own(_call_error(self.python_function, args, kwargs, error)) from None
        if self.input_signature is not None:
            self._check_signature(bound)
        call = flatten(self._signature, bound, keywords, self._dynamic_ints, self._pinned_ints)
        return replace(call, given=(len(args), *kwargs))

    def _check_signature(self, args: tuple) -> None:
        if len(args) != len(self.input_signature):
            raise user_error(
                TypeError, f"the input_signature of {self.__name__} has "
                f"{len(self.input_signature)} entries, the call has {len(args)} arguments", None,
                "give one TensorSpec for each positional argument")
        for position, (spec, arg) in enumerate(zip(self.input_signature, args, strict=True)):
            if isinstance(spec, TensorSpec) and not spec.admits(arg):
                raise user_error(
                    TypeError, f"argument {self._signature.path_of(position)} does not fit the "
                    f"input_signature", None, "convert it, or drop input_signature",
                    values=[("expected", spec), ("given", describe(arg))])

    def _lookup(self, call: FlatCall) -> tuple[ConcreteFunction, bool]:
        found = self._find(call.key)
        if found is not None:
            return found, False
        with self._lock:
            call = self._relaxed(call)
            found = self._find(call.key)
            if found is not None:
                return found, False
            return self._make(call), True

    def _find(self, key: tuple) -> ConcreteFunction | None:
        for concrete in self._traces.get(key, ()):
            if concrete.guards_hold():
                concrete.hits += 1
                return concrete
        return None

    def _relaxed(self, call: FlatCall) -> FlatCall:
        """A Python int seen with a second value becomes a run-time value."""
        if not self.reduce_retracing:
            return call
        changed = set()
        for leaf, path, part in zip(call.leaves, call.paths, call.key[1:], strict=True):
            if part[0] is int and len(part) == 2 and path not in self._pinned_ints:
                seen = self._seen_ints.setdefault(path, set())
                seen.add(leaf)
                if len(seen) > 1:
                    changed.add(path)
        if not changed:
            return call
        self._dynamic_ints |= changed
        return self._again(call)

    def _again(self, call: FlatCall) -> FlatCall:
        """The call flattened anew, with other ints at run time."""
        made = flatten(self._signature, *_unflatten(call.separate or call), self._dynamic_ints,
                       self._pinned_ints)
        made = replace(made, given=call.given)
        return made if call.separate is None else merged(made) or made

    def _make(self, call: FlatCall) -> ConcreteFunction:
        self._forbid_retrace(call)
        reason = self._miss_reason(call)
        try:
            concrete = self._build(call)
        except (InternalError, OverlapError):
            raise
        except Exception:  # sizes of results, for example, or another result for other numbers
            pinned, dynamic = self._pinned_ints, self._dynamic_ints
            static = self._without_dynamic_ints(call)
            if static is None:
                raise
            found = self._find(static.key)
            if found is not None:
                return found
            names = ", ".join(sorted(self._pinned_ints))
            reason = f"{names} must be known while tracing, so each value has its own trace"
            call = static
            try:
                concrete = self._build(call)
            except Exception:  # the program's own, for these numbers
                self._pinned_ints, self._dynamic_ints = pinned, dynamic
                raise
        concrete.flatten = self._flatten
        concrete.reason = reason
        concrete.build.times.update(_loaded_compiler())
        _loaded_compiler().clear()  # told once, by the trace that needed it
        self._remember(call, concrete)
        _report(self, concrete, reason)
        return concrete

    def _build(self, call: FlatCall) -> ConcreteFunction:
        """Trace and compile; what fails after the trace is a defect and says so."""
        with stack.deeper():
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
        if len(self._written) >= MAX_TRACES:
            self._written.clear()
        self._written[call.key] = traced.written_leaves
        traced.container_changes.take_back()
        raise overlap_error(*(call.paths[i] for i in found))

    def _without_dynamic_ints(self, call: FlatCall) -> FlatCall | None:
        """The call with every int static again, when the trace turned out to need one."""
        used = {path for path, leaf in zip(call.paths, call.leaves, strict=True)
                if path in self._dynamic_ints or (
                    isinstance(leaf, np.integer) and path not in self._pinned_ints)}
        if not used:
            return None
        self._pinned_ints |= used
        self._dynamic_ints -= used
        return self._again(call)

    def _forbid_retrace(self, call: FlatCall) -> None:
        if getattr(_state, "no_retrace", 0) and self._traces:
            raise user_error(
                RuntimeError, f"{self.__name__} would be traced again inside fusec.no_retrace()",
                None, "call it once with such arguments before", notes=[self._miss_reason(call)])

    def _miss_reason(self, call: FlatCall) -> str:
        """Why no known trace answers this call: the difference from the nearest one."""
        if not self._traces:
            return "first call"
        if call.key in self._traces:
            failed = [g for c in self._traces[call.key] for g in c.guards if not g.holds()]
            return f"no longer true: {failed[0]}" if failed else "first call"
        def distance(key: tuple) -> int:
            return sum(a != b for a, b in zip(key, call.key, strict=False)) + abs(
                len(key) - len(call.key))

        nearest = min(self._traces, key=distance)
        return explain_miss(call.paths, nearest, call.key)

    def _remember(self, call: FlatCall, concrete: ConcreteFunction) -> None:
        known = self._traces.setdefault(call.key, [])
        known[:] = [concrete, *(c for c in known if not c.is_for_once)]
        self._traces.move_to_end(call.key)
        self._storm.note(self._fn, concrete.reason, self._pinned_ints)
        while sum(map(len, self._traces.values())) > MAX_TRACES:
            self._traces.popitem(last=False)
            self._storm.note_dropped(self._fn, MAX_TRACES, call.paths)
        self._promote(call, concrete)

    def _promote(self, call: FlatCall, concrete: ConcreteFunction) -> None:
        """Try this trace first from now on, if its calls need nothing but their leaves."""
        fast = concrete.executable.fast
        if fast is None or call.separate is not None or concrete.is_for_once or (
                self.input_signature is not None):
            return
        plan = (concrete.shaped(fast), concrete)
        is_usual = self._signature.positional >= 0 and call.paths == self._signature.order
        if call.given and call.given != (self._arity,):
            self._note_shape(call, None if is_usual else plan)
        if is_usual:
            self._fast = _with_first(plan, self._fast)
            return
        if len(self._structured) >= MAX_TRACES:
            self._structured.clear()
        self._structured[call.treespec] = _with_first(
            plan, self._structured.get(call.treespec, ()))

    def _note_shape(self, call: FlatCall, plan: Plan | None) -> None:
        """Later calls with arguments given in this way find their plans at once."""
        leaves, plans = self._shapes.get(call.given, _UNKNOWN)
        leaves = leaves or leaves_of(self._signature, call.given, call.treespec)
        if leaves is None:
            return
        if len(self._shapes) >= MAX_TRACES:
            self._shapes.clear()
        self._shapes[call.given] = leaves, plan and _with_first(plan, plans or ())

    def _stage(self, call: FlatCall) -> TracedStage:
        from .stages import TracedStage, pass_options
        from .trace.tracer import trace_function

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
        return [c for group in self._traces.values() for c in reversed(group)]

    @property
    def trace_count(self) -> int:
        """How many traces are held."""
        return len(self.traces)

    def clear(self) -> None:
        """Forget every trace."""
        with self._lock:
            self._traces.clear()
            self._fast, self._structured, self._shapes = [], {}, {}
            self._seen_ints.clear()
            self._written.clear()
            self._refused.clear()
            self._dynamic_ints = self._pinned_ints = frozenset()

    # -- methods

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        """The method of an instance: traces of its own, freed with the instance."""
        if instance is None or self._receiver is not None:
            return self
        known = self._methods.get(id(instance))
        if known is None or known[0]() is not instance:
            known = self._add_method(instance)
        return Method(known[1], instance)

    def _add_method(self, instance: Any) -> tuple[Any, Function]:
        receiver = self._reference(instance)
        method = Function(self._fn, receiver=receiver, **self.options)
        entry = self._methods[id(instance)] = (receiver, method)
        return entry

    def _reference(self, instance: Any) -> Callable[[], Any]:
        """A weak reference that drops the instance's traces with it; strong where it must be."""
        key, methods = id(instance), self._methods
        try:
            return weakref.ref(instance, lambda _: methods.pop(key, None))
        except TypeError:  # instances with __slots__ and no __weakref__
            strong = [k for k, (r, _) in methods.items() if not isinstance(r, weakref.ref)]
            for old in strong[: max(0, len(strong) - MAX_STRONG + 1)]:
                del methods[old]
            return lambda: instance

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


class Method:
    """A jitted method bound to an instance, which it keeps alive; otherwise its `Function`."""

    __slots__ = ("__self__", "function")

    def __init__(self, function: Function, instance: Any) -> None:
        self.function = function
        self.__self__ = instance

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.function, name)

    def __reduce__(self) -> tuple[Any, ...]:
        from .travel import reduced_method

        return reduced_method(self)

    def __copy__(self) -> Method:
        return self

    def __repr__(self) -> str:
        return f"<bound {self.function!r}>"


@functools.cache
def _loaded_compiler() -> dict[str, float]:
    """Import the compiler at the first call, and say how many milliseconds it took."""
    start = time.perf_counter()
    with no_collections():
        from . import stages
        from .trace import tracer

    assert stages and tracer
    return {"imports": 1e3 * (time.perf_counter() - start)}


def _unflatten(call: FlatCall) -> tuple[tuple, dict[str, Any]]:

    tree: Any = optree.tree_unflatten(call.treespec, call.leaves)
    args, kwargs = tree
    return args, kwargs


def _call_error(fn: Any, args: tuple, kwargs: dict[str, Any], error: TypeError) -> Exception:
    """Python's own error for arguments that do not fit: plain functions refuse them unrun."""
    function = getattr(fn, "__func__", fn)
    if type(function) is FunctionType and not hasattr(function, "__wrapped__"):
        try:
            fn(*args, **kwargs)
        except TypeError as found:
            return found
    name = getattr(fn, "__name__", type(fn).__name__)
    return TypeError(f"{name}() {error}")


def _report(function: Function, concrete: ConcreteFunction, reason: str) -> None:
    """One line per compile, the pass log and the kernels, as the log ladder asks; and the dump."""
    if log.enabled(log.COMPILE):
        times = ", ".join(f"{k} {v:.1f}" for k, v in concrete.times.items())
        log.write(log.COMPILE, f"compiled {concrete.signature} in {times} ms ({reason}); "
                               f"{len(concrete.kernels)} kernels, {len(concrete.externs)} library "
                               f"calls")
    if log.enabled(log.PASSES):
        for record in concrete.passes:
            log.write(log.PASSES, str(record))
    if log.enabled(log.CODE):
        log.write(log.CODE, f"{concrete.optimized_graph}\n" + "\n\n".join(
            k.loops for k in concrete.kernels))
    if config.dump_dir:
        _dump(concrete, config.dump_dir)


def _dump(concrete: ConcreteFunction, directory: str) -> None:
    from .explanation import dump

    try:
        dump(concrete, directory)
    except OSError as error:  # a call does not fail for what is written about it
        log.write(log.WARN, f"nothing of {concrete.name} was written to {directory} "
                            f"({error.strerror or error}): set fusec.config.dump_dir or FUSEC_DUMP "
                            f"to a folder that can be written, or to nothing")


@contextmanager
def no_retrace() -> Any:
    """Inside the block a jitted function that would be traced again raises instead.

    Raises ``RuntimeError`` naming how the call differs from the nearest trace; a function's first
    trace is allowed.
    """
    _state.no_retrace = getattr(_state, "no_retrace", 0) + 1
    try:
        yield
    finally:
        _state.no_retrace -= 1
