"""What converted code calls while it is traced: the hooks of calls and operators."""

from __future__ import annotations

import copy
import dataclasses
import functools
import operator
from collections import deque
from collections.abc import Callable
from types import FunctionType, MethodType
from typing import Any

import numpy as np

from fusec.code_roles import ON_BEHALF
from fusec.errors import FusecError, UnsupportedError, unsupported
from fusec.ir.graph import Loc

from ..call.foreign import check_names, is_foreign, is_foreign_class, public_name, refusal
from ..choice.chosen import identity
from ..choice.joined_kinds import check_kind
from ..convert.cache import convert
from ..convert.hooks import Where
from ..convert.operators import BINARY
from ..convert.properties import class_attribute
from ..facts.code_names import HEAP_TYPE
from ..facts.known import known
from ..facts.policy import is_of_stdlib, stays_plain
from ..guards.asked import ENVIRONMENT, asked, is_asking, is_of_decimals, note_decimals
from ..guards.measures import ATOMS
from ..guards.plain_calls import goes_over, takes_at_once, takes_values
from ..guards.side_effects import check_state, check_unconsumed, warn_of_effect
from ..guards.static_arguments import note_owners
from ..guards.taken import pin
from ..guards.world_changes import check_world
from ..library.callees import check_uncompiled, in_numpys_words, named, runs_as_it_is
from ..library.failures import guarded
from ..library.randomness import TracedGenerator, drawn, is_random
from ..numpy.functions import CREATION, FUNCTIONS, call_function
from ..objects.cached_calls import cached_behind, call_cached
from ..objects.iteration import gone_over, items_of
from ..objects.object_reads import (
    GETTERS,
    getter,
    note_compared,
    note_instances,
    note_ordered,
    note_read,
)
from ..objects.user_methods import method_of
from ..objects.watch import CALLING
from ..operands import texts
from ..operands.operands import as_traced, spread_scalar, with_joined
from ..operands.python_numbers import BOOL, weak
from ..operands.sizes import of_length
from ..places.kept_values import note_given
from ..places.outside import POLYNOMIALS
from ..scipy import functions as scipy_functions
from ..source.errors import SourceUnavailable
from ..source.source import HOOKS_NAME
from ..values.array import TracedArray, number
from ..values.handlers import TABLE, any_traced, is_traced_inside, when_called
from ..values.operations import OPERATIONS
from ..values.own_arrays import WRITERS, WRITING_METHODS
from .items import ItemHooks

FUSEC_ROLE = ON_BEHALF

_INDEXED = (list, tuple, deque, range)
_BY_VALUE = frozenset({"index", "count", "remove", "pop", "insert", "rotate"})
_DISPATCHED = (FunctionType, type(np.argmax), type(np.concatenate))
ALWAYS_TRACED = (np.zeros, np.ones, np.empty, np.full, np.empty_like)


class GraphHooks(ItemHooks):
    """Hooks of one trace."""

    table = TABLE

    def call(self, where: Where, fn: Any, /, *args: Any, **kwargs: Any) -> Any:
        """As Python's, and remembers arrays and objects that the trace itself made."""
        self.where = where
        if self.trace.active and is_random(fn):
            fn = drawn(self.trace, fn)
        elif self.trace.active:
            warn_of_effect(self.trace, fn)
            check_state(self.trace, fn, args, self.loc)
            note_owners(self.trace, fn, *args, *kwargs.values())
            check_world(self.trace, fn, kwargs)
            if is_of_decimals(fn):
                note_decimals(self.trace)
            if getattr(fn, "__module__", None) == "logging":
                args = texts.logged(self.trace, args)
        if self._done_by_items(where, fn, args, kwargs):
            return None
        self.effects.check_call(fn, args, self.loc)
        if fn is range and self.trace.active:
            args = self.as_index(args)
        if goes_over(fn):
            args = self._gone_over(where, fn, args, kwargs)
        if self.table.find(fn) is None and home_of(fn) == "scipy":
            scipy_functions.register_imported(self.table)
        fn, args, kwargs = self._with_written_traced(fn, args, kwargs)
        if self.trace.active and (isinstance(fn, np.ufunc) or isinstance(
                getattr(fn, "__self__", None), np.ufunc)):
            args = with_joined(self.trace, fn, args)
        is_numeric = is_numpys(fn) or (type(fn) in _FUNCTIONS and fn in _OF_ARRAYS)
        if self.trace.active and (is_numeric or self.table.find(fn) is not None):
            args, kwargs = self._with_lifted(fn, args, kwargs, is_numeric)
        elif self.trace.active and takes_values(fn):
            args, kwargs = self._with_values(fn, args, kwargs)
        elif self.trace.active:
            args, kwargs = self._with_seen(fn, args, kwargs)
        if (fn is isinstance or fn is type) and args and self.trace.active:
            check_kind(self.trace, fn, args[0])
        if self.trace.active and is_asking(fn) and not any_traced(args, kwargs):
            return asked(self.trace, fn, args, kwargs)
        answer = self._answered(where, fn, args, kwargs)
        if answer is not NotImplemented:
            return answer
        if isinstance(kwargs.get("key"), GETTERS) and self.trace.active:
            kwargs = {**kwargs, "key": functools.partial(getter, self, kwargs["key"])}
        if self.trace.active and type(getattr(fn, "__self__", None)) is str:
            args, kwargs = texts.marked(self.trace, args), texts.marked(self.trace, kwargs)
        self._note_given(fn, args, kwargs)
        if self._is_unseen_by_numpy(fn, args, kwargs):
            result = call_function(self.trace, fn, args, kwargs)
        else:
            try:
                result = self._called(where, fn, args, kwargs)
            except (FusecError, TypeError) as error:
                raise named(self.trace, fn, error, Loc._make(where))  # noqa: B904 (mostly the same one)
        if kwargs.get("out") is Ellipsis:  # which ``__array_ufunc__`` is not told
            result = _as_arrays(result)
        return self._noted(where, fn, args, result, is_numeric)

    def _called(
        self, where: Where, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """The call itself.

        SciPy's Python functions see traced values as the program's do: their
        sources are converted, where an argument is one."""
        if not self.trace.active or not any_traced(args, kwargs):
            return super().call(where, fn, *args, **kwargs)
        check_uncompiled(self.trace, fn)
        if not scipy_functions.is_pythons(fn) or self.table.find(fn) is not None:
            return super().call(where, fn, *args, **kwargs)
        try:
            function = convert(fn, self)
        except SourceUnavailable:
            return super().call(where, fn, *args, **kwargs)
        self.where = where
        result = function(*args, **kwargs)
        self.where = where
        return result

    def _done_by_items(
        self, where: Where, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> bool:
        """Whether the call appends to a list, or updates a dict, that branches and loops carry."""
        if (not kwargs and self.effects.takes(fn, args)) or self.updates_items(
                where, fn, args, kwargs):
            return True
        self.trace.containers.uses.note_call(fn)
        if not self.trace.in_region or not self.trace.containers.takes_appended(fn):
            return False
        fn(*args, **kwargs)
        return True

    def _gone_over(
        self, where: Where, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[Any, ...]:
        for taken in args:
            check_unconsumed(self.trace, taken, self.loc)
        if self.trace.active:
            args = gone_over(self, where, fn, args)
            note_ordered(self, fn, args, kwargs)
        return args

    def _with_lifted(
        self, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any], is_numeric: bool
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments of a function that takes traced values."""
        lifted = self.lifted_items if goes_over(fn) else self.lifted
        args = tuple(map(lifted, args))
        if is_numeric or takes_at_once(fn):
            args = tuple(list(x) if type(x) is deque else x for x in args)
        return args, {name: lifted(value) for name, value in kwargs.items()}

    def _with_seen(
        self, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments of other calls: of methods of traced arrays, and of those that look at the
        values."""
        owner = type(getattr(fn, "__self__", None))
        if owner in (TracedArray, TracedGenerator):
            return self._with_lifted(fn, args, kwargs, False)
        if issubclass(owner, ATOMS) or (owner in _INDEXED and fn.__name__ in _BY_VALUE):
            self.took(*args)
        return args, kwargs

    def _note_given(self, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """What code that is called as it is may do with what it is given."""
        if self.trace.active and runs_as_it_is(fn):
            if isinstance(fn, type):
                self.watch.constructing(fn)
            if self.table.find(fn) is None or fn in _SHOWING:
                self.watch.given(fn, args, kwargs)
        if isinstance(getattr(fn, "__self__", None), (dict, set, list)):
            texts.check_text(self.trace, *args)
        owner = fn.__self__ if isinstance(fn, MethodType) else None
        if owner is not None and is_of_stdlib(fn.__func__):
            self.watch.note_library_object(owner)
        if type(fn).__flags__ & HEAP_TYPE and is_of_stdlib(class_attribute(type(fn), "__call__")):
            self.watch.note_library_object(fn)
        note_read(self, fn, (owner, *args, *kwargs.values()))
        if owner is not None and not (
                type(fn.__func__) is FunctionType and not stays_plain(fn.__func__)):
            note_given(self.trace, owner, (*args, *kwargs.values()), self.loc)

    def _noted(
        self, where: Where, fn: Any, args: tuple[Any, ...], result: Any, is_numeric: bool
    ) -> Any:
        """The result, known as the trace's own, or as a namespace from outside."""
        if getattr(fn, "__name__", "") == "__new__" and type(result).__flags__ & HEAP_TYPE:
            self.note_made(result)
        if is_numeric:
            for made in result if type(result) is tuple else (result,):
                self._local(made)
        elif isinstance(fn, type) or fn is dataclasses.replace:
            self.note_made(result)
        elif fn is vars and len(args) == 1:
            return self.namespace_of(where, args[0], result)
        elif fn is vars or fn is globals:
            self._note_namespace(result, args)
        return result

    def _answered(
        self, where: Where, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """What is made without calling ``fn`` itself; NotImplemented: it is to be called."""
        if isinstance(fn, np.vectorize) and any_traced(args, kwargs):
            raise unsupported("np.vectorize", loc=self.loc,
                              cure="use fusec.vectorize(f), or apply f to the array as a whole")
        if isinstance(fn, POLYNOMIALS) and any_traced(args, kwargs):
            return OPERATIONS.run_source(self.trace, type(fn).__call__, None, (fn, *args), kwargs)
        if isinstance(fn, type) and is_foreign_class(fn) and any_traced(args, kwargs):
            raise unsupported(f"{public_name(fn)} of traced values", loc=self.loc,
                              cure="compute with arrays here, and make it of the result")
        if isinstance(fn, type):
            if self.trace.active and fn.__flags__ & HEAP_TYPE:
                self.watch.check_class(fn)
            made = self.constructed(where, fn, args, kwargs)
            if made is not NotImplemented:
                return made
        if isinstance(fn, GETTERS) and self.trace.active and len(args) == 1:
            return getter(self, fn, *args)
        if self.trace.active and cached_behind(fn) is not None:
            return call_cached(self, fn, args, kwargs)
        if any(fn is f for f in _TEXTS) and len(args) == 1 and texts.is_open(self.trace, args[0]):
            return str(texts.Marker(args[0]))
        return NotImplemented

    def _note_namespace(self, found: Any, args: tuple[Any, ...]) -> None:
        """The variables of a module, or of an object that was there before the call."""
        if type(found) is dict and not any(id(x) in self.trace.local_objects for x in args):
            self.trace.reachable.reach(found)

    def _is_unseen_by_numpy(
        self, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> bool:
        """Whether NumPy's own dispatch would miss the traced values: in lists, or as arguments
        such as the counts of ``np.repeat``."""
        if not self.trace.active or not isinstance(fn, _DISPATCHED) or fn not in FUNCTIONS or (
                self.table.find(fn) is not None):
            return False
        first = next(iter(args), None)
        return type(first) is not TracedArray and any_traced(args, kwargs)

    def _with_written_traced(
        self, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
        """The call with an array made in the trace as a traced one where it is written.

        So is one whose method takes traced arguments, which NumPy's methods do not know.
        """
        own, owner = self.trace.own, getattr(fn, "__self__", None)
        if type(owner) is np.ndarray and fn.__name__ in WRITING_METHODS:
            self.trace.plain_changes += 1
        is_numpys_own = type(owner) is np.ndarray or issubclass(type(owner), np.generic)
        if is_numpys_own and (any_traced(args, kwargs) or (
                fn.__name__ in WRITING_METHODS and own.must_trace(owner)) or (
                self._is_outside(owner))):
            fn = getattr(as_traced(self.trace, owner), fn.__name__)
        is_writer = args and (is_numpys(fn) or isinstance(owner, np.ufunc)) and (
            getattr(fn, "__name__", "") in WRITERS)
        if is_writer and type(args[0]) is np.ndarray and (
                own.must_trace(args[0]) or any_traced(args, kwargs)):
            args = (as_traced(self.trace, args[0]), *args[1:])
        if own.must_trace(kwargs.get("out")):
            kwargs = {**kwargs, "out": as_traced(self.trace, kwargs["out"])}
        return fn, args, kwargs

    def _with_values(
        self, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Arguments whose arrays from outside are traced; containers keep which they are where
        ``fn`` may change them."""
        lifted = self.lifted_items if goes_over(fn) else self._traced_if_outside
        return tuple(map(lifted, args)), {name: lifted(x) for name, x in kwargs.items()}

    def starred(self, where: Where, value: Any) -> Any:
        """What ``*value`` takes apart."""
        self.where = where
        check_unconsumed(self.trace, value, self.loc)
        return self.lifted_items(items_of(self, where, value))

    def matched(self, where: Where, value: Any) -> Any:
        self.where = where
        self.took(value)
        if self.trace.active:
            note_instances(self, "match", (value,))
        return value

    def unop(self, where: Where, op: str, a: Any) -> Any:
        return self._computed(super().unop(where, op, self.lifted(a)))

    def binop(self, where: Where, op: str, a: Any, b: Any) -> Any:
        a, b = _as_repeated(op, a, b)
        for x, other in ((a, b), (b, a)):
            if type(x) is TracedArray and is_foreign(other):
                raise refusal(other, "the other operand", Loc._make(where))
        if op == "mod" and type(a) is str and self.trace.active:
            self.where = where
            self.watch.given(format, (b,), {})
            if texts.has_open(self.trace, b := self.lifted(b)):
                return texts.percent(self.trace, a, b)
            texts.check_known(b)
        if self._is_outside(a) or self._is_outside(b):
            self.where = where
            a, b = self.lifted(a), self.lifted(b)
        if isinstance(a, _WORDS) or isinstance(b, _WORDS):
            self._check_words(where, op, a, b)
        try:
            return self._computed(super().binop(where, op, a, b))
        except TypeError as error:
            raise in_numpys_words(self.trace, error, a, b) from None

    def _check_words(self, where: Where, op: str, a: Any, b: Any) -> None:
        """An array and a text: what NumPy says of them, where it has nothing else to say."""
        self.where = where
        if type(b) is TracedArray and not isinstance(a, TracedArray) and op == "mod":
            return  # formatted
        if TracedArray not in (type(a), type(b)):
            return
        found = [_like(x) if type(x) is TracedArray else x for x in (a, b)]
        try:
            BINARY[op](*found)
        except TypeError as error:
            raise self.trace.error(error, [
                x.value for x in (a, b) if type(x) is TracedArray]) from None

    def iop(self, where: Where, op: str, a: Any, b: Any) -> Any:
        self.where = where
        if isinstance(b, _WORDS):
            self._check_words(where, op, a, b)
        a, b = _as_repeated(op, a, b)
        self.effects.check_change(a, "changing a container in place", self.loc)
        if self._is_outside(a) or (type(a) is np.ndarray and (
                is_traced_inside(b) or self.trace.own.must_trace(a))):
            a = as_traced(self.trace, a)
        try:
            return super().iop(where, op, a, self.lifted(b) if self._is_outside(b) else b)
        except TypeError as error:
            raise in_numpys_words(self.trace, error, a, b) from None

    def compare(self, where: Where, op: str, a: Any, b: Any) -> Any:
        texts.check_text(self.trace, a, b)
        if op in ("is", "is not") and type(a) is TracedArray and isinstance(b, bool) and (
                a.type.is_weak and a.dtype == BOOL):
            op = "eq" if op == "is" else "ne"  # there is one True
        if op in ("is", "is not") and isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
            for x in (a, b):
                if type(x) is not TracedArray:
                    pin(self.trace, x)
        if op in ("is", "is not") and TracedArray in (type(a), type(b)):
            same = identity(self.trace, a, b)
            if same is not None:
                self.where = where
                return same if op == "is" else self.not_(where, same)
        if op in ("is", "is not") and a is not b and a is not None and b is not None and (
                id(a) in self.trace.chosen or id(b) in self.trace.chosen):
            raise unsupported(f"{op!r} of a {type(a).__name__} that data chooses", loc=self.loc,
                              cure="compare what the branches depend on")
        if op not in ("is", "is not") and (self._is_outside(a) or self._is_outside(b)):
            self.where = where
            a, b = self.lifted(a), self.lifted(b)
        if op in ("eq", "ne") and type(a) is type(b) in (tuple, list) and _holds_open(a, b):
            self.where = where
            equal = self._equal_items(where, a, b)
            return equal if op == "eq" else self.not_(where, equal)
        if method_of(a, f"__{op}__") is None:
            note_compared(self, op, a, b)
        try:
            return self._computed(super().compare(where, op, a, b))
        except TypeError as error:
            raise in_numpys_words(self.trace, error, a, b) from None

    def contains(self, where: Where, item: Any, container: Any) -> Any:
        texts.check_text(self.trace, item, container)
        if self._is_outside(container):
            container = as_traced(self.trace, container)
        if type(container) is TracedArray and container.is_array:
            self.where = where
            found: Any = np.any(np.equal(container, item))
            return number(self.trace, weak(self.trace, found.value, BOOL))
        is_number = type(item) is TracedArray and not item.ndim
        if (is_number or _holds_open(item)) and type(container) in _SMALL_SETS and (
                len(container) <= _MOST_ALTERNATIVES):
            return self._is_one_of(where, item, container)
        self.took(item)
        if type(container) is ENVIRONMENT:
            return self.call(where, container.__contains__, item)
        note_compared(self, "eq", item, container)
        return super().contains(where, item, container)

    def _equal_items(self, where: Where, a: Any, b: Any) -> Any:
        """Whether two tuples or lists are equal, item by item as far as Python would go."""
        if len(a) != len(b):
            return False
        found: Any = True
        for one, other in zip(a, b, strict=True):
            if one is not other:
                found = self.and_(where, "test", found, self._equality(where, one, other))
        decided = self.decide(found)
        return decided if decided is not None else number(
            self.trace, weak(self.trace, self.truth(found), BOOL))

    def _equality(self, where: Where, item: Any, other: Any) -> Callable[[], Any]:
        return lambda: self.compare(where, "eq", item, other)

    def _is_one_of(self, where: Where, item: Any, container: Any) -> Any:
        """``item in (a, b)``: each is compared, as far as Python would go."""
        found: Any = False
        for other in container:
            found = self.or_(where, "test", found, self._equality(where, item, other))
        decided = self.decide(found)
        return decided if decided is not None else number(
            self.trace, weak(self.trace, self.truth(found), BOOL))

    def iterate(self, where: Where, value: Any) -> Any:
        return super().iterate(where, self._elements(where, value))

    def unpack(self, where: Where, value: Any, count: int | None) -> Any:
        value = self._elements(where, value)
        if count is not None and type(value) is TracedArray and value.ndim:
            value = of_length(value, count)
        return super().unpack(where, value, count)

    def _elements(self, where: Where, value: Any) -> Any:
        self.where = where
        check_unconsumed(self.trace, value, self.loc)
        return as_traced(self.trace, value) if self._is_outside(value) else items_of(
            self, where, value)

    def converted(self, fn: FunctionType) -> Callable[..., Any]:
        self.functions[fn] = None
        if not is_numpys(fn):
            self.trace.outer_names.enter(fn)
            self.trace.reachable.enter(fn)
            if HOOKS_NAME not in fn.__code__.co_freevars:
                check_names(fn, self.loc)
                self.effects.note_function(fn)
        return super().converted(fn)

    def frame(self, where: Where, variables: Callable[[], Any]) -> None:
        self.trace.outer_names.note_frame(variables.__closure__ or ())

    def format_value(
        self, where: Where, value: Any, conversion: int, spec: str, source: str = ""
    ) -> str:
        self.where = where
        value = self._traced_if_outside(value)
        if self.trace.active:
            self.watch.given(format, (value,), {})
        for method in ("format", "str", "repr"):
            note_compared(self, method, value)
        if texts.is_open(self.trace, value):  # what compiled code raises does not know the values
            return texts.Marker(value, source).text
        if conversion >= 0 and type(value) is TracedArray:
            return format(value, spec)  # raises: repr() is for debuggers
        return super().format_value(where, value, conversion, spec, source)


def _as_repeated(op: str, a: Any, b: Any) -> tuple[Any, Any]:
    """``[0.0] * n``: an integer scalar of NumPy's repeats a list, as a Python int does."""
    if op == "mul" and type(a) in (list, tuple) and _is_integer_scalar(b):
        return a, operator.index(b)
    if op == "mul" and type(b) in (list, tuple) and _is_integer_scalar(a):
        return operator.index(a), b
    return a, b


def _like(x: TracedArray) -> Any:
    """An array or number of this type."""
    one = np.ones((1,) * x.ndim, x.dtype)
    if x.is_array:
        return one
    return one.item() if x.type.is_weak else one[()]


def _holds_open(*values: Any) -> bool:
    """Whether numbers that only the run knows lie in tuples or lists."""
    return any(
        (type(x) is TracedArray and not x.ndim and known(x.value) is None)
        or (type(x) in (tuple, list) and _holds_open(*x))
        for value in values if type(value) in (tuple, list) for x in value)


def _is_integer_scalar(x: Any) -> bool:
    return type(x) is TracedArray and not x.is_array and x.dtype.kind in "iu"


def _as_arrays(result: Any) -> Any:
    """With ``out=...`` a ufunc gives arrays of rank 0, not scalars."""
    if type(result) is tuple:
        return tuple(map(_as_arrays, result))
    return spread_scalar(result) if type(result) is TracedArray else result


# Functions of Python that make arrays of arrays.
_OF_ARRAYS = frozenset({abs, divmod, round, pow, sum, copy.copy, copy.deepcopy})
_FUNCTIONS = (FunctionType, type(abs))
_TEXTS = (str, repr, ascii)
_SHOWING = frozenset({repr, ascii, print})  # handlers of ours have Python make the text
_WORDS = (str, bytes)
_SMALL_SETS = (tuple, list, set, frozenset)
_MOST_ALTERNATIVES = 64


def is_numpys(fn: Any) -> bool:
    """Whether it is a function of NumPy or SciPy, or a method of an array."""
    owner = getattr(fn, "__self__", None)
    if isinstance(fn, np.ufunc) or type(owner) is np.ndarray or isinstance(
            owner, (np.generic, np.ufunc)):
        return True
    return home_of(fn) in ("numpy", "scipy")


def home_of(fn: Any) -> str:
    """The package that a function is from; SciPy's wrappers of LAPACK and BLAS name none."""
    home = getattr(fn, "__module__", None)
    if isinstance(home, str):
        return home.partition(".")[0]
    return "scipy" if type(fn).__name__ == "fortran" else ""


# ---------------------------------------------------------------------------------- handlers


def _creation(function: Callable[..., Any], handler: Callable[..., Any]) -> None:
    always = function in ALWAYS_TRACED

    def call(hooks: GraphHooks, *args: Any, **kwargs: Any) -> Any:
        if always and hooks.trace.active and args:
            args = (hooks.as_index(args[0]), *args[1:])
        if hooks.trace.active and (always or any_traced(args, kwargs)):
            return guarded(hooks.trace, f"np.{function.__name__}", handler, function, args, kwargs,
                           (hooks.trace,))
        return function(*args, **kwargs)

    TABLE.register(function, call)


def _iterated(function: Callable[..., Any]) -> None:
    """NumPy's dispatcher goes through the elements of the argument."""
    @when_called(function)
    def call(hooks: GraphHooks, *args: Any, **kwargs: Any) -> Any:
        return call_function(hooks.trace, function, args, kwargs)


_iterated(np.poly)
_iterated(np.roots)


def _seen_through_dlpack(hooks: GraphHooks, x: Any, /, **options: Any) -> Any:
    """A view whose base says what memory it shows, as that of a capsule does not."""
    if type(x) is TracedArray:
        return call_function(hooks.trace, np.from_dlpack, (x,), options)
    found = np.from_dlpack(x, **options)
    if type(x) is not np.ndarray or not np.may_share_memory(x, found):
        return found
    shown = x[...]
    shown.flags.writeable = found.flags.writeable
    return shown


for _function, _handler in CREATION.items():
    _creation(_function, _handler)
TABLE.register(np.from_dlpack, _seen_through_dlpack)


CALLING.add(GraphHooks.call.__code__)

__all__ = ["GraphHooks", "UnsupportedError"]
