"""The hooks of converted code.  `Hooks` gives every one Python's own meaning; a tracer overrides.

Every hook takes ``where`` first, the place of the construct in the user's source, and notes it:
``hooks.loc`` is the innermost place reached, also after an exception.  The other arguments come in
the order Python evaluates them, so ``setitem`` takes the value before the object and the key.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from types import CellType, FunctionType, MethodType
from typing import Any

from fusec.ir.graph import Loc

from ..facts.policy import stays_plain
from ..rewrite.transformer import Where
from ..source.errors import SourceUnavailable
from ..source.source import HOOKS_NAME
from .cache import convert
from .call_table import CallTable
from .callbacks import CALLS
from .keywords import Keywords, joined
from .logic import Tested, Thunk, untested
from .properties import class_attribute, getter_of
from .python_operators import BINARY, CONVERSIONS, IN_PLACE, UNARY, unary_of_bool

_START: Where = ("", 0, -1, "", -1)


class Hooks:
    """Python's semantics for every hook.

    ``table`` says which callables have handlers.  Functions defined in a converted function may
    outlive the trace: a tracer's hooks must then mean the same.
    """

    table: CallTable = CALLS
    slice = slice  # what ``a[i:j]`` makes, even where the user's module has its own ``slice``

    def __init__(self, table: CallTable | None = None) -> None:
        if table is not None:
            self.table = table
        self.where: Where = _START
        self._reached = _START, Loc._make(_START)
        self.cell = CellType(self)

    @property
    def loc(self) -> Loc:
        """The innermost place in the user's source that was reached."""
        if self.where is not self._reached[0]:
            self._reached = self.where, Loc._make(self.where)
        return self._reached[1]

    # -- calls ------------------------------------------------------------------------------------

    def call(self, where: Where, fn: Any, /, *args: Any, **kwargs: Any) -> Any:
        """``fn(*args, **kwargs)``: a handler, a converted function, or ``fn`` itself."""
        self.where = where
        entry = self.table.find(fn)
        if entry is None:
            result = self.resolve(fn)(*args, **kwargs)
        else:
            result = entry[0](self, *entry[1], *args, **kwargs)
        self.where = where
        return result

    def call_with(self, where: Where, fn: Any, args: tuple[Any, ...], keywords: Keywords) -> Any:
        """``fn(*args, a=1, **mapping)``; if Python joined them, its errors would name `call`."""
        return self.call(where, fn, *args, **joined(fn, keywords))

    def wrap(self, fn: Any) -> Callable[..., Any]:
        """``fn`` as a value that other code will call (``map``, ``key=``): calls reach `call`."""
        return partial(self.call, self.where, fn)

    wrap_key = wrap  # a function by whose results other code orders or groups

    def decorator(self, where: Where, fn: Any) -> Callable[..., Any]:
        """``@fn``, which Python calls."""
        return partial(self.call, where, fn)

    def resolve(self, fn: Any) -> Callable[..., Any]:
        """The function to run for ``fn`` when no handler answers.

        Classes are called as they are, so ``__init__`` and special methods are not converted.
        """
        kind = type(fn)
        if kind is FunctionType:
            return self.converted(fn)
        if kind is MethodType and type(fn.__func__) is FunctionType:
            return self._bound(fn.__func__, fn.__self__, fn)
        if kind is MethodType:
            return partial(self.wrap(fn.__func__), fn.__self__)
        if kind is partial:
            return partial(self.wrap(fn.func), *fn.args, **fn.keywords)
        if isinstance(fn, type):
            return fn
        return self._bound(class_attribute(kind, "__call__"), fn, fn)

    def _bound(self, function: Any, receiver: Any, otherwise: Any) -> Callable[..., Any]:
        """``function`` converted and bound to ``receiver``, if it is a Python function."""
        if type(function) is not FunctionType:
            return otherwise  # type: ignore[no-any-return,unused-ignore]
        return MethodType(self.converted(function), receiver)

    def converted(self, fn: FunctionType) -> Callable[..., Any]:
        """``fn`` converted, or ``fn`` where the policy says so.  Raises ``SourceUnavailable``."""
        if HOOKS_NAME not in fn.__code__.co_freevars and stays_plain(fn):
            return fn
        try:
            return convert(fn, self)
        except SourceUnavailable as error:
            raise error.located(self.loc if self.where[0] else None) from None

    def itself(self, where: Where, value: Any) -> Any:
        """The value, where Python itself goes on with it."""
        self.where = where
        return value

    starred = itself  # what is taken apart in ``f(*value)`` and ``[*value]``
    matched = itself  # the subject of a ``match`` that Python takes apart
    iterate = itself  # what a ``for`` loop or a comprehension goes over instead of the value
    manager = itself  # what a ``with`` statement enters instead of it
    returned = itself  # of a ``return`` inside a loop, which is left after it
    # An operand of ``and``, ``or`` or of a chain of comparisons used as a value: Python tests what
    # this returns, and it may become the result.
    operand = itself

    def hide(self, where: Where, names: Any) -> Any:
        """``locals()``, ``vars()`` or ``dir()`` less the converter's own names."""
        if isinstance(names, dict):
            return {k: v for k, v in names.items() if not _is_hidden(k)}
        return [n for n in names if not _is_hidden(n)] if isinstance(names, list) else names

    # -- attributes and items ---------------------------------------------------------------------

    def getattr(self, where: Where, obj: Any, name: str) -> Any:
        """``obj.name``; a user's property is converted like any function."""
        self.where = where
        fget = getter_of(obj, name)
        return getattr(obj, name) if fget is None else self.call(where, fget, obj)

    def setattr(self, where: Where, value: Any, obj: Any, name: str) -> None:
        self.where = where
        setattr(obj, name, value)

    def delattr(self, where: Where, obj: Any, name: str) -> None:
        self.where = where
        delattr(obj, name)

    def getitem(self, where: Where, obj: Any, key: Any) -> Any:
        self.where = where
        return obj[key]

    def setitem(self, where: Where, value: Any, obj: Any, key: Any) -> None:
        self.where = where
        obj[key] = value

    def delitem(self, where: Where, obj: Any, key: Any) -> None:
        self.where = where
        del obj[key]

    # -- operators --------------------------------------------------------------------------------

    def unop(self, where: Where, op: str, a: Any) -> Any:
        """``op`` is a key of `UNARY`."""
        self.where = where
        return UNARY[op](a) if type(a) is not bool else unary_of_bool(op, a, where)

    def binop(self, where: Where, op: str, a: Any, b: Any) -> Any:
        """``op`` is a key of `BINARY`, comparisons among them; a chain comes as one call a link."""
        self.where = where
        return BINARY[op](a, b)

    compare = binop

    def iop(self, where: Where, op: str, a: Any, b: Any) -> Any:
        """The value that ``a op= b`` binds to its target, ``a`` perhaps changed.

        ``op`` is a key of `IN_PLACE`.
        """
        self.where = where
        return IN_PLACE[op](a, b)

    def contains(self, where: Where, item: Any, container: Any) -> Any:
        """``item in container``; ``not in`` is this and `not_`."""
        self.where = where
        return item in container

    # -- truth ------------------------------------------------------------------------------------

    def test(self, where: Where, value: Any) -> bool:
        """The truth of ``value`` where only that counts: a branch, a loop, an assertion."""
        self.where = where
        return value.truth if type(value) is Tested else bool(value)

    def not_(self, where: Where, value: Any) -> Any:
        """``not value`` used as a value."""
        return not self.test(where, value)

    # -- control flow -----------------------------------------------------------------------------

    def if_(self, where: Where, test: Any, then: Thunk, orelse: Thunk, *_: Any) -> None:
        """``if test: ... else: ...``; more arguments: the names of variables that may be read after
        it, and of those that are, whatever happens.
        """
        (then if self.test(where, test) else orelse)()
        self.where = where

    def if_return(self, where: Where, test: Any, then: Thunk, orelse: Thunk) -> Any:
        """The result of one of two blocks, both at the end of the function."""
        return (then if self.test(where, test) else orelse)()

    if_expression = if_return  # ``then if test else orelse``

    def frame(self, where: Where, variables: Thunk, assigned: tuple[str, ...]) -> Any:
        """A function begins: the cells of ``variables`` are its own, among them those ``assigned``
        by functions inside it.  It keeps this hook's result until it ends."""

    def while_(self, where: Where, test: Thunk, body: Thunk, stop: Thunk | None, *_: Any) -> None:
        """``while test: ...``; ``stop`` says after each iteration whether an exit was taken.

        More arguments: which of the variables that the body binds are read after it, and all these.
        """
        while self.test(where, test()):
            body()
            if stop is not None and self.test(where, stop()):
                break
        self.where = where

    def for_(
        self, where: Where, over: Any, body: Callable[[Any], None], stop: Thunk | None, *_: Any
    ) -> None:
        """``for target in over: ...``; see `while_`."""
        for item in self.iterate(where, over):
            body(item)
            if stop is not None and self.test(where, stop()):
                break
        self.where = where

    def any_flag(self, where: Where, *flags: Any) -> Any:
        """Whether one of the exits was taken."""
        return any(flags)

    def asked_truth(self, test: Any) -> Any:
        """The truth of the object ``test`` by its own method, asked once; others as they are."""
        return test

    def decide(self, test: Any) -> bool | None:
        """The truth of a test in every call; None, which only a tracer says, where data decides."""
        return self.test(self.where, test)

    def and_(self, where: Where, role: str, value: Any, *thunks: Thunk) -> Any:
        """``value and ...``: operands are evaluated as far as Python would.

        ``role`` is the use of the result: its "value", its truth alone ("test"), or both
        ("operand" of another one, which need not ask for its truth again).
        """
        return self.short_circuit(where, role, True, value, thunks)

    def or_(self, where: Where, role: str, value: Any, *thunks: Thunk) -> Any:
        """``value or ...``; see `and_`."""
        return self.short_circuit(where, role, False, value, thunks)

    def short_circuit(
        self, where: Where, role: str, going: bool, value: Any, thunks: tuple[Thunk, ...]
    ) -> Any:
        """``and`` (``going``) or ``or``: the first operand with another truth, or the last."""
        for position, thunk in enumerate(thunks):
            truth = self.asked_truth(self.operand(where, value))
            is_true = self.decide(truth)
            if is_true is None:
                return self.undecided(where, role, going, value, truth, thunks[position:])
            if is_true is not going:
                value = untested(value)
                return value if role == "value" else Tested(value, is_true)
            value = thunk()
        return value

    def undecided(
        self, where: Where, role: str, going: bool, value: Any, asked: Any,
        thunks: tuple[Thunk, ...],
    ) -> Any:
        """``value and ...`` (``going``) or ``value or ...`` where data decides on ``value``,
        whose truth is that of ``asked``."""
        raise NotImplementedError("internal error: plain hooks decide every test")

    def chain(
        self, where: Where, role: str, ops: tuple[str, ...], left: Any, right: Any, *thunks: Thunk
    ) -> Any:
        """``a < b < c``: comparisons joined by ``and``, each operand evaluated once."""
        result = self.link(where, ops[0], left, right)
        if not thunks:
            return result
        return self.and_(where, role, result, lambda: self.chain(
            where, role, ops[1:], right, thunks[0](), *thunks[1:]))

    def link(self, where: Where, op: str, left: Any, right: Any) -> Any:
        """One comparison, ``in`` and ``not in`` among them."""
        if op == "in":
            return self.contains(where, left, right)
        if op == "not in":
            return self.not_(where, self.contains(where, left, right))
        return self.compare(where, op, left, right)

    def assert_(self, where: Where, test: Any, message: Thunk, has_message: bool) -> None:
        """``assert test, message``."""
        if not self.test(where, test):
            raise AssertionError(message()) if has_message else AssertionError

    # -- the rest ---------------------------------------------------------------------------------

    refusals: tuple[type[BaseException], ...] = ()  # that no handler of the program's may catch

    def trying(self, where: Where, caught: Thunk | None) -> Any:
        """Around the body of a ``try`` that catches these exceptions (None: all)."""
        return nullcontext()

    def list_of(
        self, where: Where, over: Any, element: Callable[..., Any], count: int | None,
        plain: Callable[[Any], list[Any]], is_read_whole: bool = False,
    ) -> list[Any]:
        """``[element for target in over]``, which ``plain`` makes in Python; ``count`` is the
        number of names in the target, None for a single name.  ``is_read_whole``: all that the
        program does with it is to give it to a call."""
        self.where = where
        return plain(over)

    def list_to_fill(self, where: Where) -> list[Any]:
        """``[]``, to which one loop appends; all that the program does with it after that is to
        give it to calls."""
        return []

    def reduced_where(
        self, where: Where, fn: Any, over: Any, element: Callable[..., Any],
        condition: Callable[..., Any] | None, count: int | None, plain: Callable[[Any], Any],
    ) -> Any:
        """``fn(element for target in over if condition)``, which ``plain`` computes in Python; the
        condition may be missing."""
        self.where = where
        return plain(over)

    def unpack(self, where: Where, value: Any, count: int | None) -> Any:
        """The iterable that ``a, b = value`` takes apart instead of ``value``; ``count`` is the
        number of names, None where one is starred."""
        self.where = where
        return value

    def format_value(
        self, where: Where, value: Any, conversion: int, spec: str, source: str = ""
    ) -> str:
        """``{value!conversion:spec}`` of an f-string; ``conversion`` is -1 or a character code,
        ``source`` the expression's where the text is that of an exception."""
        self.where = where
        return format(CONVERSIONS[conversion](value), spec)


def _is_hidden(name: str) -> bool:
    return name == HOOKS_NAME or name.startswith("_fusec_")
