"""Calls that no recent plan answers: found among the traces, or traced, and run."""

from __future__ import annotations

import importlib
import time
from typing import Any

from fusec.compiled.calls.plans import answer
from fusec.compiled.concrete_function import ConcreteFunction
from fusec.compiled.repeated_calls import called
from fusec.compiled.reports import history
from fusec.compiled.tracing_compiler import TracingCompiler
from fusec.core import timeline
from fusec.errors import OverlapError
from fusec.runtime.launching.outcomes import MISS
from fusec.signature import blocks, foreign_arguments
from fusec.signature.jitted_methods import Target
from fusec.trace.call.flat_call import FlatCall
from fusec.trace.call.overlap import merged, overlapping
from fusec.trace.call.signature import Signature
from fusec.trace.facts.trees import flattened
from fusec.trace.values.trace import Trace, current

from . import results_like
from .fallback import Fallback


def _hold_blocks(args: tuple, kwargs: dict[str, Any]) -> bool:
    """Whether an array in blocks is among the arguments."""
    tree: Any = (args, kwargs)
    return any(map(blocks.are_in_blocks, flattened(tree)[0]))


def _have_labels(args: tuple, kwargs: dict[str, Any]) -> bool:
    """Whether an array with labels is among the arguments."""
    tree: Any = (args, kwargs)
    return any(map(blocks.are_labelled, flattened(tree)[0]))


def _module(name: str) -> Any:
    """A module for such calls, which needs Dask or xarray."""
    return importlib.import_module(f"fusec.distributed.{name}")


class Dispatcher:
    """Answers the calls of one `Function`, which makes it at the first of them."""

    def __init__(
        self, target: Target, signature: Signature, *, fallback: str, **options: Any,
    ) -> None:
        self.compiler = compiler = TracingCompiler(target, signature, **options)
        self.fast, self._binder, self._creations = (
            compiler.fast, compiler.binder, compiler.creations)
        self._target, self._specs, self._arity = target, compiler.specs, signature.arity
        self._eager = Fallback(target.name) if fallback == "eager" else None

    @property
    def eager_calls(self) -> int:
        """How many calls fusec refused to compile and ran as Python does."""
        return 0 if self._eager is None else self._eager.calls

    def call(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        """The call's result: traced with the program around it, run eagerly, or run compiled."""
        start = time.perf_counter() if timeline.on else 0.0
        try:
            return self._answer(args, kwargs)
        except (AttributeError, TypeError, IndexError) as error:
            foreign_arguments.note_arrays(error, flattened((args, kwargs))[0])
            raise
        finally:
            if start:
                timeline.since("call", self._target.name, start, self._target.line)

    def _answer(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        trace = current()
        if trace is not None:
            return self._inline(trace, args, kwargs)
        if not kwargs and len(args) == self._arity:
            result = self.fast.of_gpus.answer(args, self._target.name)
            if result is not MISS:
                return result
        if blocks.may_have_labels() and _have_labels(args, kwargs):
            labels = _module("labels.labelled_calls")
            return labels.labelled_call(self.compiler, self._answer, args, kwargs)
        if blocks.may_be_there() and _hold_blocks(args, kwargs):
            return self.split(args, kwargs).result()
        given, taken = args, self._taken(args, kwargs)
        if taken is not None:
            args, kwargs = taken
            result = self._answer_taken(args, kwargs)
            if result is not MISS:
                return result
            self._check_static(given)
        if self._eager is not None:
            return self._eager.call(
                self._target.python_function, args, kwargs, self.compiler.flatten,
                self._call_compiled)
        if self._specs is not None and taken is None and not kwargs and len(args) == self._arity:
            result = self._answer_converted(self._specs.applied(args))
            if result is not MISS:
                return result
        return self._call_compiled(self.compiler.flatten(args, kwargs))

    def _taken(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        """Bound arguments with views of NumPy for arrays of other libraries; None without any."""
        signature = self._binder.signature
        if not kwargs and len(args) == self._arity:
            views = foreign_arguments.taken_flat(args, signature.order)
            if views is not None:
                return tuple(views), {}
        tree: Any = (args, kwargs)
        if not foreign_arguments.may_be_among(flattened(tree)[0]):
            return None
        try:
            bound = signature.bind(args, kwargs)
        except TypeError:  # the usual way raises it better
            return None
        return self._binder.taken(*bound)

    def _check_static(self, args: tuple) -> None:
        """The binder's check, for arguments that were taken without it."""
        signature = self._binder.signature
        if signature.static and len(args) == self._arity:
            foreign_arguments.check_static(
                args, signature.order, [*map(signature.is_static, signature.order)])

    def _answer_taken(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        """A recent plan's answer for such arguments; MISS where none."""
        if self._specs is not None:
            args = self._specs.applied(args)
        if self.fast.structured:
            leaves, plans = self.fast.for_structure((args, kwargs))
            result = answer(plans, leaves, self._target.name)
            if result is not MISS:
                return result
        return answer(self.fast.positional, [*args, *kwargs.values()], self._target.name)

    def conversion(self, name: str, args: tuple, kwargs: dict[str, Any]) -> Any:
        """For ``like=``: what makes a call's result of the kind of this argument, or None."""
        return results_like.conversion(self._binder.signature, name, args, kwargs)

    def split(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        """The stages of a call with arrays in blocks."""
        return _module("split_calls").split_call(self.compiler, args, kwargs)

    def without_labels(
        self, args: tuple, kwargs: dict[str, Any]
    ) -> tuple[tuple, dict[str, Any]]:
        """The arguments with plain arrays for those with labels."""
        if not (blocks.may_have_labels() and _have_labels(args, kwargs)):
            return args, kwargs
        plain: tuple[tuple, dict[str, Any]] = (
            _module("labels.labelled_calls").without_labels(args, kwargs))
        return plain

    def stages_of_blocks(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        """The same; None where no argument is in blocks."""
        is_split = blocks.may_be_there() and _hold_blocks(args, kwargs)
        return self.split(args, kwargs) if is_split else None

    def _answer_converted(self, leaves: tuple[Any, ...]) -> Any:
        """A recent plan's answer for Python values that were made arrays; MISS where none."""
        return answer(self.fast.positional, leaves, self._target.name)

    def _call_compiled(self, call: FlatCall) -> Any:
        written = self.compiler.written.get(call.key)
        if written is not None and overlapping(call, written):
            call = merged(call) or call
        try:
            result = self._run(call)
        except OverlapError:
            if call.separate is not None:
                raise
            separate = merged(self._binder.again(call))  # with what the first try learnt
            if separate is None:
                raise
            result = self._run(separate)
        if self._creations.are_new:
            self._creations.check_kept()
        return result

    def _looked_up(self, call: FlatCall) -> tuple[ConcreteFunction, bool]:
        if self._eager is None:
            return self.compiler.look_up(call)
        with self._eager.before_the_run():
            return self.compiler.look_up(call)

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
            self._creations.note_first_call(concrete.build.traced.created)
            self.compiler.traces.note_first_call(concrete)
        if is_new or history.on:
            run_us = 1e6 * (time.perf_counter() - start)
            build_ms = sum(concrete.times.values()) if is_new else 0.0
            history.record_call(self._target.name, concrete, build_ms, run_us)
        if not is_new:
            self.fast.promote(call, concrete)
        return result

    def _inline(self, trace: Trace, args: tuple, kwargs: dict[str, Any]) -> Any:
        """Inside another trace the function is traced with it, one that calls itself once."""
        if self._specs is not None and trace.hooks is not None:
            args, kwargs = self._binder.signature.bind(args, kwargs)
            args = self._specs.applied(args, trace)
        with self.compiler.device:
            if trace.hooks is None:
                return self._target.python_function(*args, **kwargs)
            return called(
                trace, self._target.python_function, args, kwargs, self.compiler.options.fp)

    def clear(self) -> None:
        """Forget every trace."""
        with self.compiler.lock:
            self.compiler.forget()
            if self._eager is not None:
                self._eager.clear()
