"""Calls: their arguments, handlers that answer in the function's place, effects on objects."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import operator
import sys
from collections.abc import Callable
from types import (
    FunctionType,
    GeneratorType,
    MethodType,
    MethodWrapperType,
    WrapperDescriptorType,
)
from typing import Any

import numpy as np

from fusec.core.code_roles import ON_BEHALF
from fusec.errors import FusecError, unsupported
from fusec.ir.graph import Loc
from fusec.ir.sizes.symbolic_numbers import Symbolic, applied, is_int, is_plain_number
from fusec.state.variable import Variable

from ..call.foreign_arrays import check_names, is_foreign_class, public_name
from ..choice.aliases import Frames
from ..choice.choice import Choice
from ..choice.joined_kinds import check_kind
from ..choice.optional_values import bound
from ..control.sequences import TracedRange
from ..convert.cache import convert
from ..convert.generators import Generators
from ..convert.hooks import Hooks
from ..convert.properties import class_attribute
from ..facts.code_names import HEAP_TYPE
from ..facts.policy import is_of_stdlib, stays_plain
from ..facts.refusals import gives_objects
from ..guards.plain_calls import goes_over
from ..guards.process_state import guarded_call, is_decimal, note_decimals, reads_state
from ..guards.side_effects import check_state, check_unconsumed, check_world, warn_of_effect
from ..guards.static_arguments import note_owners
from ..library.callees import behind, check_uncompiled, named, runs_as_it_is
from ..library.randomness import drawn, is_random
from ..library.size_arrays import arrays_of_sizes, depends_on_sizes, position_of_sizes
from ..lists.whole_lists import length_of
from ..numpy.methods import call_function
from ..objects import object_reads
from ..objects.attribute_guards import note_names
from ..objects.cached_calls import cached_behind, call_cached
from ..objects.chosen_objects import check_call
from ..objects.iteration import gone_over, items_of
from ..objects.tracing_hooks import UNHANDLED, Args, Named, Operands, TracingHooks
from ..objects.variables import into
from ..objects.watch import CALLING
from ..operands import text_uses, texts
from ..operands.operands import as_traced, joined_operands, spread_scalar
from ..operands.perhaps_pythons import check_iterable
from ..operands.sizes import unpackable
from ..places.kept_values import note_given
from ..places.reachable_names import polynomials
from ..rewrite.transformer import Where
from ..scipy import functions as scipy_functions
from ..source.errors import SourceUnavailable
from ..source.source import HOOKS_NAME
from ..values.array import TracedArray
from ..values.handlers import any_traced
from ..values.operations import OPERATIONS
from . import call_arguments, protocols, special_methods
from .absence import decided, settled
from .attributes import namespace_of

FUSEC_ROLE = ON_BEHALF

_SHOWING = frozenset({repr, ascii, print})  # handlers of ours have Python make the text
_TEXTS = (str, repr, ascii)


def hear(hooks: TracingHooks, where: Where, fn: Any, args: Args, kwargs: Named) -> Any:
    """A call that reads or changes no state which the trace does not know, or knows now."""
    trace = hooks.trace
    if not trace.active:
        return UNHANDLED
    text_uses.check_use(trace, fn, args, kwargs)
    if is_random(fn):
        return Operands((drawn(trace, fn), args, kwargs))
    warn_of_effect(trace, fn)
    check_state(trace, fn, args, hooks.loc)
    note_owners(trace, fn, *args, *kwargs.values())
    check_world(trace, fn, kwargs)
    if is_decimal(fn):
        note_decimals(trace)
    if getattr(fn, "__module__", None) == "logging":
        return Operands((fn, texts.logged(trace, args), kwargs))
    return UNHANDLED


def trace_arguments(hooks: TracingHooks, where: Where, fn: Any, args: Args, kwargs: Named) -> Any:
    """Traced arrays for arguments that the call iterates or writes to, or that are to be traced."""
    trace = hooks.trace
    if kwargs and isinstance(kwargs.get("out"), Variable):
        return into(hooks, where, fn, args, kwargs)
    if (fn is type or fn is isinstance) and args and isinstance(args[0], Variable):
        return fn(*args)
    hooks.effects.check_call(fn, args, hooks.loc)
    if fn is range and trace.active:
        args = special_methods.as_index(hooks, args)
    if goes_over(fn):
        for taken in args:
            check_unconsumed(trace, taken, hooks.loc)
        if trace.active:
            args = gone_over(hooks, where, fn, args)
            object_reads.note_ordered(hooks, fn, args, kwargs)
    if hooks.table.find(fn) is None and call_arguments.home_of(fn) == "scipy":
        scipy_functions.register_imported(hooks.table)
    fn, args, kwargs = call_arguments.with_written_traced(hooks, fn, args, kwargs)
    if not trace.active:
        return Operands((fn, args, kwargs))
    if isinstance(fn, np.ufunc) or isinstance(getattr(fn, "__self__", None), np.ufunc):
        args = joined_operands(trace, fn, args)
    args, kwargs = protocols.plain_arguments(hooks, fn, args, kwargs)
    args, kwargs = call_arguments.with_values(hooks, fn, args, kwargs)
    if (fn is isinstance or fn is type) and args:
        check_kind(trace, fn, args[0])
    return Operands((fn, args, kwargs))


def ask_world(hooks: TracingHooks, where: Where, fn: Any, args: Args, kwargs: Named) -> Any:
    is_guarded = hooks.trace.active and reads_state(fn) and not any_traced(args, kwargs)
    return guarded_call(hooks.trace, fn, args, kwargs) if is_guarded else UNHANDLED


def call_of_library(hooks: TracingHooks, where: Where, fn: Any, args: Args, kwargs: Named) -> Any:
    """Objects of libraries that traced values cannot go into, and polynomials."""
    is_class = isinstance(fn, type) and is_foreign_class(fn)
    if type(fn) is np.ufunc and fn.nout == 1 and gives_objects(fn) and not kwargs and (
            any_traced(args, kwargs)):
        return OPERATIONS.of_objects(hooks, where, fn, args)
    if not (is_class or isinstance(fn, (np.vectorize, *polynomials()))) or not (
            any_traced(args, kwargs)):
        return UNHANDLED
    if is_class:
        raise unsupported(f"{public_name(fn)} of traced values", loc=hooks.loc,
                          cure="compute with arrays here, and make it of the result")
    if isinstance(fn, np.vectorize):
        return OPERATIONS.vectorized(hooks, where, fn, args, kwargs)
    return OPERATIONS.run_source(hooks.trace, type(fn).__call__, None, (fn, *args), kwargs)


def call_of_wrapper(hooks: TracingHooks, where: Where, fn: Any, args: Args, kwargs: Named) -> Any:
    """``itemgetter(i)(x)``, also as a ``key=``, and functions with a cache of their results."""
    if not hooks.trace.active:
        return UNHANDLED
    if isinstance(fn, object_reads.GETTERS) and len(args) == 1:
        return object_reads.getter(hooks, fn, *args)
    if cached_behind(fn) is not None:
        return call_cached(hooks, fn, args, kwargs)
    if not isinstance(kwargs.get("key"), object_reads.GETTERS):
        return UNHANDLED
    key = functools.partial(object_reads.getter, hooks, kwargs["key"])
    return Operands((fn, args, {**kwargs, "key": key}))


def make_text(hooks: TracingHooks, where: Where, fn: Any, args: Args, kwargs: Named) -> Any:
    """Texts of numbers that the run decides, and calls of methods of texts."""
    if len(args) == 1 and any(fn is f for f in _TEXTS) and texts.is_open(hooks.trace, args[0]):
        return str(texts.Marker(args[0]))
    if not hooks.trace.active:
        return UNHANDLED
    if type(getattr(fn, "__self__", None)) is str:
        args, kwargs = texts.marked(hooks.trace, args), texts.marked(hooks.trace, kwargs)
    if text_uses.formats(hooks.trace, fn, args, kwargs):
        return text_uses.formatted(hooks.trace, lambda: run(hooks, where, fn, args, kwargs))
    return Operands((fn, args, kwargs))


def compute_of_sizes(hooks: TracingHooks, where: Where, fn: Any, args: Args, kwargs: Named) -> Any:
    """``range(n)``, ``math.sqrt(n)`` of a number that follows from sizes of arguments."""
    if not hooks.trace.builder.is_symbolic:
        return UNHANDLED
    if depends_on_sizes(fn, args, kwargs):
        return arrays_of_sizes(hooks.trace, fn, args, kwargs)
    if fn is len and len(args) == 1 and type(args[0]) is list:
        return length_of(hooks.trace, args[0])
    if not kwargs and len(args) == 1 and _are_ints(args[0]):
        by = next((by for reduction, by in _OF_LISTS if reduction is fn), None)
        if by is not None:
            return applied(np.int64, functools.reduce(functools.partial(applied, by), args[0]))
    place = None if kwargs else position_of_sizes(fn, args)
    if place is not None:
        return place
    if kwargs or not any(type(x) is Symbolic for x in args) or not all(map(is_plain_number, args)):
        return UNHANDLED
    if fn is range and all(map(is_int, args)):
        return TracedRange.of(hooks.trace, *args)
    is_of_numbers = getattr(fn, "__module__", None) == "math" or any(
        fn is f for f in _OF_NUMBERS) or (isinstance(fn, type) and issubclass(fn, np.number))
    return applied(fn, *args) if is_of_numbers else UNHANDLED


def _are_ints(x: Any) -> bool:
    """Whether it is a list of ints, one of which follows from sizes."""
    return type(x) in (list, tuple) and any(type(n) is Symbolic for n in x) and all(map(is_int, x))


_OF_LISTS: tuple[tuple[Any, Callable[..., Any]], ...] = (  # np.prod(x.shape)
    (np.prod, operator.mul), (np.sum, operator.add), (np.max, max), (np.min, min), (np.amax, max),
    (np.amin, min))
_OF_NUMBERS = (abs, bool, complex, float, int, max, min, pow, round)


def run(hooks: TracingHooks, where: Where, fn: Any, args: Args, kwargs: Named) -> Any:
    """As Python's, and remembers arrays and objects that the trace itself made."""
    _note_arguments(hooks, fn, args, kwargs)
    if call_arguments.is_unseen_by_numpy(hooks, fn, args, kwargs):
        result = call_function(hooks.trace, fn, args, kwargs)
    else:
        outer, hooks.callee = hooks.callee, fn
        asked = hooks.trace.record.asked
        try:
            result = _called(hooks, where, fn, args, kwargs)
        except Exception as error:
            error = behind(hooks.trace, fn, error, asked)
            if not isinstance(error, (FusecError, TypeError)):
                raise
            raise named(hooks.trace, fn, error, Loc._make(where))  # noqa: B904 (mostly the same one)
        finally:
            hooks.callee = outer
    if hooks.trace.active and runs_as_it_is(fn):
        references = sys.getrefcount(result)
        hooks.note_new(result, references)
    if type(result) is GeneratorType and type(fn) is FunctionType and hooks.trace.active:
        hooks.trace.part(Generators).note(result, fn, lambda f: f(*args, **kwargs), hooks)
    if kwargs.get("out") is Ellipsis:  # which `__array_ufunc__` is not told
        result = _as_arrays(result)
    return _noted(hooks, where, fn, args, result)


def _called(hooks: TracingHooks, where: Where, fn: Any, args: Args, kwargs: Named) -> Any:
    """SciPy's Python functions see traced values as the program's do: their sources are converted,
    where an argument is one, or an attribute of the object whose method it is."""
    of_traced = hooks.trace.active and scipy_functions.is_method_of_traced(fn)
    if of_traced or (hooks.trace.active and any_traced(args, kwargs)):
        check_uncompiled(hooks.trace, fn)
        if (of_traced or scipy_functions.is_pythons(fn)) and hooks.table.find(fn) is None:
            try:
                function = convert(fn, hooks)
            except SourceUnavailable:
                return Hooks.call(hooks, where, fn, *args, **kwargs)
            result = function(*args, **kwargs)
            hooks.where = where
            return result
    fn = special_methods.asked(hooks, fn, args, kwargs)
    result = Hooks.call(hooks, where, fn, *args, **kwargs)
    if result is NotImplemented and type(fn) in _SLOTS and any_traced(args, kwargs):
        _check_slot(hooks, fn)
    return result


_SLOTS = (WrapperDescriptorType, MethodWrapperType)  # ``float.__mul__`` and ``(2.0).__mul__``


def _check_slot(hooks: TracingHooks, fn: Any) -> None:
    """Methods of Python's numbers know nothing of stand-ins for numbers."""
    if getattr(fn, "__objclass__", type(getattr(fn, "__self__", None))) in _OF_NUMBERS:
        raise unsupported(f"{fn.__qualname__} called with a value of data", loc=hooks.loc,
                          cure="write the operator, as in 2 * x")


def _as_arrays(result: Any) -> Any:
    """Arrays of rank 0 for scalars."""
    if type(result) is tuple:
        return tuple(map(_as_arrays, result))
    return spread_scalar(result) if type(result) is TracedArray else result


def _note_arguments(hooks: TracingHooks, fn: Any, args: Args, kwargs: Named) -> None:
    """Note the arguments of code that runs unconverted, which may read and change them."""
    if hooks.trace.active and runs_as_it_is(fn):
        if isinstance(fn, type):
            hooks.watch.constructing(fn)
        if hooks.table.find(fn) is None or fn in _SHOWING:
            hooks.watch.note_arguments(fn, args, kwargs)
    if hooks.trace.active and protocols.hold_objects(args, kwargs) and protocols.asks(fn):
        hooks.watch.asks(args, kwargs)
    if isinstance(getattr(fn, "__self__", None), (dict, set, list)):
        texts.check_text(hooks.trace, *args)
    check_call(hooks.trace, fn, args)
    owner = fn.__self__ if isinstance(fn, MethodType) else None
    if owner is not None and is_of_stdlib(fn.__func__):
        hooks.watch.note_library_object(owner)
    if type(fn).__flags__ & HEAP_TYPE and is_of_stdlib(class_attribute(type(fn), "__call__")):
        hooks.watch.note_library_object(fn)
    object_reads.note_read(hooks, fn, (owner, *args, *kwargs.values()))
    if owner is not None and not (
            type(fn.__func__) is FunctionType and not stays_plain(fn.__func__)):
        note_given(hooks.trace, owner, (*args, *kwargs.values()), hooks.loc)


def _noted(hooks: TracingHooks, where: Where, fn: Any, args: Args, result: Any) -> Any:
    """The result, known as the trace's own, or as a namespace from outside."""
    if type(result) is TracedArray and not isinstance(fn, type):
        return result
    is_by_new = getattr(fn, "__name__", "") == "__new__" and type(result).__flags__ & HEAP_TYPE
    if is_by_new or isinstance(result, contextlib._GeneratorContextManager):  # which serves once
        hooks.note_made(result)
    if call_arguments.is_numeric(fn):
        for item in result if type(result) is tuple else (result,):
            hooks.note_local(item)
    elif isinstance(getattr(fn, "__origin__", fn), type) or fn is dataclasses.replace:
        hooks.note_made(result)
    elif fn is vars and len(args) == 1:
        return namespace_of(hooks, where, args[0], result)
    elif fn is dir and len(args) == 1:
        note_names(hooks.trace, args[0])
    elif (fn is vars or fn is globals) and type(result) is dict:
        hooks.trace.world.reachable.reach(result)
    return result


def converted(hooks: TracingHooks, fn: FunctionType) -> Callable[..., Any]:
    hooks.functions[fn] = None
    if not call_arguments.is_numpys(fn):
        hooks.trace.world.outer_names.enter(fn)
        hooks.trace.world.reachable.enter(fn)
        if HOOKS_NAME not in fn.__code__.co_freevars:
            check_names(fn, hooks.trace.loc)
            hooks.effects.note_function(fn)
    return Hooks.converted(hooks, fn)


def frame(
    hooks: TracingHooks, where: Where, variables: FunctionType, assigned: tuple[str, ...]
) -> Any:
    if assigned:
        cells = dict(zip(variables.__code__.co_freevars, variables.__closure__ or (), strict=True))
        hooks.trace.world.outer_names.note_frame([cells[name] for name in assigned])
    hooks.trace.part(Frames).running.add(variables)
    return variables


def returned(hooks: TracingHooks, where: Where, value: Any) -> Any:
    """The result that a loop is left with, of which all variables have a value."""
    hooks.where = where
    return bound(hooks.trace, value)


def elements(hooks: TracingHooks, where: Where, value: Any) -> Any:
    check_unconsumed(hooks.trace, value, hooks.loc)
    text_uses.check_letters(hooks.trace, value)
    return as_traced(hooks.trace, value) if hooks.is_from_outside(value) else items_of(
        hooks, where, value)


def starred(hooks: TracingHooks, where: Where, value: Any) -> Any:
    value = elements(hooks, where, value)
    check_iterable(value, "Value after * must be an iterable, not {}")
    return hooks.lifted_items(value)


def unpacked(hooks: TracingHooks, where: Where, value: Any, count: int | None) -> Any:
    value = elements(hooks, where, value)
    check_iterable(value, "cannot unpack non-iterable {} object")
    if count is not None and type(value) is TracedArray and value.ndim:
        return unpackable(value, count)
    return value


def matched(hooks: TracingHooks, where: Where, value: Any) -> Any:
    hooks.took(value)
    text_uses.check_inside(hooks.trace, value)
    if hooks.trace.active:
        object_reads.note_instances(hooks, "match", (value,))
    return value


def format_value(
    hooks: TracingHooks, where: Where, value: Any, conversion: int, spec: str, source: str = ""
) -> str:
    hooks.where = where
    value = settled(hooks, where, value)
    if type(value) is Choice and source and hooks.trace.in_region:
        return f"{{{source}}}"
    value = hooks.traced_if_outside(decided(hooks, where, value, "in a text"))
    if hooks.trace.active:
        hooks.watch.note_arguments(format, (value,), {})
    for method in ("format", "str", "repr"):
        object_reads.note_compared(hooks, method, value)
    if texts.is_open(hooks.trace, value):  # what compiled code raises does not know the values
        return texts.Marker(value, source).text
    if conversion >= 0 and type(value) is TracedArray:
        return format(value, spec)  # raises: repr() is for debuggers
    make = functools.partial(Hooks.format_value, hooks, where, value, conversion, spec)
    is_marked = text_uses.has_marked(hooks.trace, value, spec)
    return text_uses.formatted(hooks.trace, make) if is_marked else make()


CALLING.add(run.__code__)
