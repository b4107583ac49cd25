"""What converted code calls while it is traced: the hooks of calls and operators."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import FunctionType
from typing import Any

import numpy as np

from fusec.code_roles import ON_BEHALF
from fusec.errors import FusecError, unsupported
from fusec.ir.graph import Loc

from ..call.foreign_arrays import check_names, is_foreign, is_foreign_class, public_name, refusal
from ..choice.joined_kinds import check_kind
from ..convert.cache import convert
from ..facts.code_names import HEAP_TYPE
from ..guards.plain_calls import goes_over, takes_values
from ..guards.process_state import ENVIRONMENT, guarded_call, is_decimal, note_decimals, reads_state
from ..guards.side_effects import check_state, check_unconsumed, check_world, warn_of_effect
from ..guards.static_arguments import note_owners
from ..library.callees import check_uncompiled, in_numpys_words, named
from ..library.randomness import drawn, is_random
from ..numpy.methods import call_function
from ..objects.cached_calls import cached_behind, call_cached
from ..objects.iteration import items_of
from ..objects.object_reads import GETTERS, getter, note_compared, note_instances
from ..objects.user_methods import method_of
from ..objects.watch import CALLING
from ..operands import texts
from ..operands.operands import as_traced, joined_operands, spread_scalar
from ..operands.python_numbers import BOOL, weak
from ..operands.sizes import unpackable
from ..places.outside import POLYNOMIALS
from ..rewrite.transformer import Where
from ..scipy import functions as scipy_functions
from ..source.errors import SourceUnavailable
from ..source.source import HOOKS_NAME
from ..values.array import TracedArray, number
from ..values.handlers import TABLE, any_traced, is_traced_inside
from ..values.operations import OPERATIONS
from . import numpy_handlers  # noqa: F401 (answers for NumPy: see `values.handlers`)
from .call_arguments import (
    home_of,
    is_numeric,
    is_numpys,
    is_unseen_by_numpy,
    with_gone_over,
    with_lifted,
    with_seen,
    with_values,
    with_written_traced,
)
from .call_effects import note_arguments, noted
from .items import ItemHooks
from .operator_operands import (
    WORDS,
    as_repeated,
    check_words,
    equal_items,
    holds_open,
    identity_of,
    is_one_of,
    is_small_set,
)

FUSEC_ROLE = ON_BEHALF


class GraphHooks(ItemHooks):
    """Hooks of one trace."""

    table = TABLE

    def call(self, where: Where, fn: Any, /, *args: Any, **kwargs: Any) -> Any:
        """As Python's, and remembers arrays and objects that the trace itself made."""
        self.where = where
        if self.trace.active:
            fn, args = self._heard(fn, args, kwargs)
        if self._done_by_items(where, fn, args, kwargs):
            return None
        self.effects.check_call(fn, args, self.loc)
        fn, args, kwargs = self._with_traced(where, fn, args, kwargs)
        makes_arrays = is_numeric(fn)
        args, kwargs = self._with_values_of(fn, args, kwargs, makes_arrays)
        if self.trace.active and reads_state(fn) and not any_traced(args, kwargs):
            return guarded_call(self.trace, fn, args, kwargs)
        answer = self._answered(where, fn, args, kwargs)
        if answer is not NotImplemented:
            return answer
        if isinstance(kwargs.get("key"), GETTERS) and self.trace.active:
            kwargs = {**kwargs, "key": functools.partial(getter, self, kwargs["key"])}
        if self.trace.active and type(getattr(fn, "__self__", None)) is str:
            args, kwargs = texts.marked(self.trace, args), texts.marked(self.trace, kwargs)
        note_arguments(self, fn, args, kwargs)
        result = self._result(where, fn, args, kwargs)
        return noted(self, where, fn, args, result, makes_arrays)

    def _heard(
        self, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[Any, tuple[Any, ...]]:
        """A call that reads or changes no state which the trace does not know, or knows now."""
        if is_random(fn):
            return drawn(self.trace, fn), args
        warn_of_effect(self.trace, fn)
        check_state(self.trace, fn, args, self.loc)
        note_owners(self.trace, fn, *args, *kwargs.values())
        check_world(self.trace, fn, kwargs)
        if is_decimal(fn):
            note_decimals(self.trace)
        if getattr(fn, "__module__", None) == "logging":
            args = texts.logged(self.trace, args)
        return fn, args

    def _with_traced(
        self, where: Where, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
        """The call with traced arrays for what it goes over or writes to."""
        if fn is range and self.trace.active:
            args = self.as_index(args)
        if goes_over(fn):
            args = with_gone_over(self, where, fn, args, kwargs)
        if self.table.find(fn) is None and home_of(fn) == "scipy":
            scipy_functions.register_imported(self.table)
        fn, args, kwargs = with_written_traced(self, fn, args, kwargs)
        if self.trace.active and (isinstance(fn, np.ufunc) or isinstance(
                getattr(fn, "__self__", None), np.ufunc)):
            args = joined_operands(self.trace, fn, args)
        return fn, args, kwargs

    def _with_values_of(
        self, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any], makes_arrays: bool
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments as the function takes their values."""
        if not self.trace.active:
            return args, kwargs
        if makes_arrays or self.table.find(fn) is not None:
            args, kwargs = with_lifted(self, fn, args, kwargs, makes_arrays)
        elif takes_values(fn):
            args, kwargs = with_values(self, fn, args, kwargs)
        else:
            args, kwargs = with_seen(self, fn, args, kwargs)
        if (fn is isinstance or fn is type) and args:
            check_kind(self.trace, fn, args[0])
        return args, kwargs

    def _result(
        self, where: Where, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        if is_unseen_by_numpy(self, fn, args, kwargs):
            result = call_function(self.trace, fn, args, kwargs)
        else:
            try:
                result = self._called(where, fn, args, kwargs)
            except (FusecError, TypeError) as error:
                raise named(self.trace, fn, error, Loc._make(where))  # noqa: B904 (mostly the same one)
        # With ``out=...``, which ``__array_ufunc__`` is not told, a ufunc gives arrays of rank 0.
        return _as_arrays(result) if kwargs.get("out") is Ellipsis else result

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
        self.trace.world.containers.uses.note_call(fn)
        if not self.trace.in_region or not self.trace.world.containers.takes_appended(fn):
            return False
        fn(*args, **kwargs)
        return True

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
        a, b = as_repeated(op, a, b)
        for x, other in ((a, b), (b, a)):
            if type(x) is TracedArray and is_foreign(other):
                raise refusal(other, "the other operand", Loc._make(where))
        if op == "mod" and type(a) is str and self.trace.active:
            self.where = where
            self.watch.given(format, (b,), {})
            if texts.has_open(self.trace, b := self.lifted(b)):
                return texts.percent(self.trace, a, b)
            texts.check_concrete(b)
        if self.is_from_outside(a) or self.is_from_outside(b):
            self.where = where
            a, b = self.lifted(a), self.lifted(b)
        if isinstance(a, WORDS) or isinstance(b, WORDS):
            check_words(self, where, op, a, b)
        try:
            return self._computed(super().binop(where, op, a, b))
        except TypeError as error:
            raise in_numpys_words(self.trace, error, a, b) from None

    def iop(self, where: Where, op: str, a: Any, b: Any) -> Any:
        self.where = where
        if isinstance(b, WORDS):
            check_words(self, where, op, a, b)
        a, b = as_repeated(op, a, b)
        self.effects.check_change(a, "changing a container in place", self.loc)
        if self.is_from_outside(a) or (type(a) is np.ndarray and (
                is_traced_inside(b) or self.trace.local.memory.must_trace(a))):
            a = as_traced(self.trace, a)
        try:
            return super().iop(where, op, a, self.lifted(b) if self.is_from_outside(b) else b)
        except TypeError as error:
            raise in_numpys_words(self.trace, error, a, b) from None

    def compare(self, where: Where, op: str, a: Any, b: Any) -> Any:
        texts.check_text(self.trace, a, b)
        if op in ("is", "is not") and type(a) is TracedArray and isinstance(b, bool) and (
                a.type.is_weak and a.dtype == BOOL):
            op = "eq" if op == "is" else "ne"  # there is one True
        if op in ("is", "is not"):
            answer = identity_of(self, where, op, a, b)
            if answer is not NotImplemented:
                return answer
        if op not in ("is", "is not") and (self.is_from_outside(a) or self.is_from_outside(b)):
            self.where = where
            a, b = self.lifted(a), self.lifted(b)
        if op in ("eq", "ne") and type(a) is type(b) in (tuple, list) and holds_open(a, b):
            self.where = where
            equal = equal_items(self, where, a, b)
            return equal if op == "eq" else self.not_(where, equal)
        if method_of(a, f"__{op}__") is None:
            note_compared(self, op, a, b)
        try:
            return self._computed(super().compare(where, op, a, b))
        except TypeError as error:
            raise in_numpys_words(self.trace, error, a, b) from None

    def contains(self, where: Where, item: Any, container: Any) -> Any:
        texts.check_text(self.trace, item, container)
        if self.is_from_outside(container):
            container = as_traced(self.trace, container)
        if type(container) is TracedArray and container.is_array:
            self.where = where
            found: Any = np.any(np.equal(container, item))
            return number(self.trace, weak(self.trace, found.value, BOOL))
        is_number = type(item) is TracedArray and not item.ndim
        if (is_number or holds_open(item)) and is_small_set(container):
            return is_one_of(self, where, item, container)
        self.took(item)
        if type(container) is ENVIRONMENT:
            return self.call(where, container.__contains__, item)
        note_compared(self, "eq", item, container)
        return super().contains(where, item, container)

    def iterate(self, where: Where, value: Any) -> Any:
        return super().iterate(where, self._elements(where, value))

    def unpack(self, where: Where, value: Any, count: int | None) -> Any:
        value = self._elements(where, value)
        if count is not None and type(value) is TracedArray and value.ndim:
            value = unpackable(value, count)
        return super().unpack(where, value, count)

    def _elements(self, where: Where, value: Any) -> Any:
        self.where = where
        check_unconsumed(self.trace, value, self.loc)
        return as_traced(self.trace, value) if self.is_from_outside(value) else items_of(
            self, where, value)

    def converted(self, fn: FunctionType) -> Callable[..., Any]:
        self.functions[fn] = None
        if not is_numpys(fn):
            self.trace.world.outer_names.enter(fn)
            self.trace.world.reachable.enter(fn)
            if HOOKS_NAME not in fn.__code__.co_freevars:
                check_names(fn, self.loc)
                self.effects.note_function(fn)
        return super().converted(fn)

    def frame(self, where: Where, variables: Callable[[], Any]) -> None:
        self.trace.world.outer_names.note_frame(variables.__closure__ or ())

    def format_value(
        self, where: Where, value: Any, conversion: int, spec: str, source: str = ""
    ) -> str:
        self.where = where
        value = self.traced_if_outside(value)
        if self.trace.active:
            self.watch.given(format, (value,), {})
        for method in ("format", "str", "repr"):
            note_compared(self, method, value)
        if texts.is_open(self.trace, value):  # what compiled code raises does not know the values
            return texts.Marker(value, source).text
        if conversion >= 0 and type(value) is TracedArray:
            return format(value, spec)  # raises: repr() is for debuggers
        return super().format_value(where, value, conversion, spec, source)


def _as_arrays(result: Any) -> Any:
    """Arrays of rank 0 for scalars."""
    if type(result) is tuple:
        return tuple(map(_as_arrays, result))
    return spread_scalar(result) if type(result) is TracedArray else result


_TEXTS = (str, repr, ascii)


CALLING.add(GraphHooks.call.__code__)

__all__ = ["TABLE", "GraphHooks"]
