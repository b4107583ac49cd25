"""Hooks of one trace: the handlers of a `Policy` define the meaning of each event.

A handler takes the hooks, the place and the operands of an event.  It gives the answer, other
`Operands` for the handlers after it, or `UNHANDLED`; the last one always answers.
"""

from __future__ import annotations

import functools
import sys
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Mapping
from types import FunctionType
from typing import Any

import numpy as np

from fusec.ir import Value
from fusec.ir.graph import new_id
from fusec.state.variable import Variable

from ..choice.tuple_records import note_kind
from ..convert.call_table import CallTable
from ..convert.hooks import Hooks
from ..facts.code_names import HEAP_TYPE
from ..facts.refusals import is_compiled
from ..facts.trees import leaves_in
from ..guards.array_values import guard_content
from ..guards.contents import DICT_VIEWS
from ..guards.places import Places
from ..operands.operands import as_traced
from ..operands.text_uses import check_key
from ..places.attributes import Attributes
from ..places.cells import CellVariables, setters_of
from ..places.effects import Effects
from ..rewrite.transformer import Where
from ..values.array import TracedArray
from ..values.collaborators import Watch
from ..values.exception_handlers import REFUSALS
from ..values.handlers import TABLE
from ..values.trace import Trace

Args = tuple[Any, ...]
Named = dict[str, Any]
Handler = Callable[..., Any]
UNHANDLED: Any = object()
_ARRAYS = (np.ndarray, Variable)


def _references() -> int:
    alone = object()
    return sys.getrefcount(alone)


_ALONE = _references()  # of what one variable holds


class Operands(tuple[Any, ...]):
    """No answer: the operands for the handlers that follow."""

    __slots__ = ()


class Policy:
    """The handlers of each event, a method of `Hooks`, in the order in which they are asked.

    One that answers alone is the method itself."""

    def __init__(self, rows: Mapping[str, tuple[Handler, ...]]) -> None:
        self.rows = rows
        self.methods = {name: row[0] if len(row) == 1 else _in_turn(row)
                        for name, row in rows.items()}


def _in_turn(handlers: tuple[Handler, ...]) -> Handler:
    """One function that asks the handlers.  Operands are spelled out: a call with ``*operands``
    takes four times as long, and memory of the C stack."""
    *first, last = handlers

    def of_one(hooks: Hooks, where: Where, a: Any) -> Any:
        hooks.where = where
        for handle in first:
            answer = handle(hooks, where, a)
            if type(answer) is Operands:
                a, = answer
            elif answer is not UNHANDLED:
                return answer
        return last(hooks, where, a)

    def of_two(hooks: Hooks, where: Where, a: Any, b: Any) -> Any:
        hooks.where = where
        for handle in first:
            answer = handle(hooks, where, a, b)
            if type(answer) is Operands:
                a, b = answer
            elif answer is not UNHANDLED:
                return answer
        return last(hooks, where, a, b)

    def of_three(hooks: Hooks, where: Where, a: Any, b: Any, c: Any) -> Any:
        hooks.where = where
        for handle in first:
            answer = handle(hooks, where, a, b, c)
            if type(answer) is Operands:
                a, b, c = answer
            elif answer is not UNHANDLED:
                return answer
        return last(hooks, where, a, b, c)

    operands = handlers[0].__code__.co_argcount - 2  # less the hooks and the place
    return (of_one, of_two, of_three)[operands - 1]


class TracingHooks(Hooks):
    """Hooks of one trace, which tell arrays and objects from outside from those of the trace.

    The policy (`with_policy`) has the handlers of each event; none is overridden.
    """

    refusals = REFUSALS
    callee: Any = None  # what the innermost call of the program's calls
    assume: bool | None = None  # the truth of tests of data, in a library's code
    as_index: Callable[[Any], Any]  # an object by the index that it says it is
    bound: Callable[[Where, Any], Any]  # the value of a variable that perhaps has none
    called: Callable[[Where, Any, Args, Named], Any]
    truth: Callable[[Any], Value]  # a test as a boolean of the graph

    def __init__(self, trace: Trace, table: CallTable = TABLE) -> None:
        super().__init__(table)
        self.trace = trace
        self.effects, self.attributes = Effects(trace), Attributes(trace)
        self.functions: dict[FunctionType, None] = {}  # of the program, called so far

    def call(self, where: Where, fn: Any, /, *args: Any, **kwargs: Any) -> Any:
        return self.called(where, fn, args, kwargs)

    def wrap_key(self, fn: Any) -> Callable[..., Any]:
        return functools.partial(check_key, self.trace, self.wrap(fn))

    @property
    def places(self) -> Places:
        return self.trace.part(Places)

    @property
    def watch(self) -> Watch:
        return self.trace.world.watch

    def variables(self, names: Iterable[str], *functions: Callable[..., Any]) -> CellVariables:
        """The variables that converted parts share, and the attributes that are assigned."""
        setters: dict[str, Any] = {}
        for function in functions:
            setters.update(setters_of(function))
        return CellVariables(self.trace, dict.fromkeys([*names, *setters]), *functions,
                             *setters.values())

    # -- what the trace made ----------------------------------------------------------------------

    def note_made(self, obj: Any) -> None:
        """The trace made an object."""
        if isinstance(obj, tuple):
            note_kind(type(obj))
        self.watch.see(obj)
        self.trace.local.objects[id(obj)] = obj
        self.trace.local.births[id(obj)] = new_id()

    def note_new(self, obj: Any, references: int) -> None:
        """The same of a result of unconverted code, where nothing but the caller, with so
        many ``references``, has it."""
        kind = type(obj)
        if references <= _ALONE and kind.__flags__ & HEAP_TYPE and not (
                str(kind.__module__).partition(".")[0] == "fusec"
                or issubclass(kind, (*_ARRAYS, type))):
            self.note_made(obj)

    def note_local(self, result: Any) -> Any:
        """Remembers an array that plain NumPy made of arrays of the trace: a constant."""
        for x in leaves_in(result, with_derived=True):
            if issubclass(type(x), np.ndarray):
                self.trace.local.memory.note(x)
                self.trace.local.arrays[id(x)] = x
        return result

    # -- what is from outside ---------------------------------------------------------------------

    def is_from_outside(self, x: Any) -> bool:
        if not issubclass(type(x), _ARRAYS) or not self.trace.active:
            return False
        if issubclass(type(x), Variable):
            return True
        if type(x) not in (np.ndarray, np.memmap) or not is_compiled(x.dtype):
            guard_content(self.trace, x)
            return False
        return id(x) not in self.trace.local.arrays or self.trace.local.memory.is_traced(x)

    def traced_if_outside(self, x: Any) -> Any:
        return as_traced(self.trace, x) if self.is_from_outside(x) else x

    def took(self, *values: Any) -> None:
        """Python is about to use the values of arrays among these, or of a slice's bounds."""
        for x in values:
            if type(x) in (tuple, slice):
                self.took(*(x if type(x) is tuple else (x.start, x.stop, x.step)))
            elif issubclass(type(x), np.ndarray):
                guard_content(self.trace, x)

    def lifted(self, x: Any) -> Any:
        """An array from outside as a traced value, so that every call reads it anew."""
        if type(x) is TracedArray:
            return x
        if type(x) in (list, tuple):
            return type(x)([i if type(i) is TracedArray else self.lifted(i) for i in x])
        if isinstance(x, (list, tuple, deque)):
            return _with_items(x, x, list(map(self.lifted, x)))
        if isinstance(x, dict):
            return _with_items(x, x.values(), list(map(self.lifted, x.values())))
        if type(x) in DICT_VIEWS and self.trace.active:
            return list(map(self.lifted, x))
        return self.traced_if_outside(x)

    def lifted_items(self, x: Any) -> Any:
        """The same of an iterable; lists and dicts in it stay the program's own, which it may
        change, as does the container: it may be changed while an iterator goes over it."""
        is_view = type(x) in DICT_VIEWS and self.trace.active
        if not is_view and type(x) not in (list, tuple) and not isinstance(x, dict | deque):
            return self.lifted(x)
        old = list(x.values() if isinstance(x, dict) else x)
        return _with_items(x, old, list(map(self.lifted_item, old)))

    def lifted_item(self, x: Any) -> Any:
        if type(x) is TracedArray:
            return x
        if type(x) is tuple:
            return _with_items(x, x, list(map(self.lifted_item, x)))
        return x if isinstance(x, (list, dict, deque, Variable)) else self.lifted(x)


def _with_items(x: Any, old: Iterable[Any], items: list[Any]) -> Any:
    """A container with other items; itself where they are its own."""
    if all(a is b for a, b in zip(items, old, strict=True)):
        return x
    if isinstance(x, dict):
        made = x.copy() if type(x) in (OrderedDict, defaultdict, Counter) else {}
        dict.update(made, zip(x, items, strict=True))
        return made
    if isinstance(x, deque):
        return deque(items, x.maxlen)
    if isinstance(x, tuple):
        return x._make(items) if hasattr(x, "_make") else tuple(items)
    return items


@functools.cache
def with_policy(policy: Policy) -> type[TracingHooks]:
    """The hooks whose events have the handlers of a policy.

    A class, made once: binding 40 methods for each trace took a tenth of the shortest traces.
    """
    return type("TracingHooks", (TracingHooks,), dict(policy.methods))
