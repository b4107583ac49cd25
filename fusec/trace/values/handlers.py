"""Handlers of callables when an argument is traced; all other calls run as without.

`when_called` and `everywhere` are for callables that converted code reaches by its hooks; `entry`
for NumPy's functions and the methods of arrays, which NumPy's own dispatch leads to traced values.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Literal, TypeVar

from fusec.core.code_roles import ON_BEHALF
from fusec.core.records import dataclass
from fusec.errors import InternalError
from fusec.ir.sizes.symbolic_numbers import Symbolic

from ..convert.call_table import CallTable
from ..convert.callbacks import CALLS
from ..facts.trees import leaves_in
from .array import TracedArray
from .operations import OPERATIONS

FUSEC_ROLE = ON_BEHALF

Function = TypeVar("Function", bound=Callable[..., Any])
TABLE = CallTable(CALLS)  # what converted code calls in place of what knows no traced values
NUMPYS_TABLE = CallTable(TABLE)  # what NumPy's own Python code calls, where it is traced


def is_traced_inside(items: Any) -> bool:
    return any(type(x) is TracedArray or (
        type(x) is slice and TracedArray in (type(x.start), type(x.stop), type(x.step)))
        for x in leaves_in(items, with_derived=True))


def holds_symbols(items: Any) -> bool:
    """Whether there are numbers in lists or tuples that follow from sizes of arguments."""
    return any(type(x) is Symbolic for x in leaves_in(items))


def any_traced(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether an argument is traced, or a sequence that holds a traced value."""
    return is_traced_inside(args) or is_traced_inside(tuple(kwargs.values()))


def when_traced(table: CallTable, function: Any) -> Callable[..., Any]:
    """Registers ``handler(hooks, *args, **kwargs)`` in ``table``, as a decorator.

    Calls without a traced argument go to the handler that stood there, or to ``function``.
    """
    previous = table.find(function)

    def decorate(handler: Callable[..., Any]) -> Callable[..., Any]:
        def call(hooks: Any, *args: Any, **kwargs: Any) -> Any:
            if any_traced(args, kwargs):
                return handler(hooks, *args, **kwargs)
            if previous is not None:
                return previous[0](hooks, *previous[1], *args, **kwargs)
            return function(*args, **kwargs)

        table.register(function, call)
        return handler

    return decorate


def everywhere(function: Any) -> Callable[..., Any]:
    """Registers for all calls, those without traced arguments too."""
    def decorate(handler: Callable[..., Any]) -> Callable[..., Any]:
        TABLE.register(function, handler)
        return handler

    return decorate


when_called = partial(when_traced, TABLE)


# ------------------------------------------------------------------------------ NumPy's functions


@dataclass(frozen=True, slots=True)
class Entry:
    """The handler of a function of NumPy, or of a method of its arrays.

    The trace comes before the call's own arguments, unless ``of_array``: such a method knows it.
    ``of_scalars``: NumPy asks a method, and those of scalars give no arrays of rank 0.  ``hooked``:
    NumPy does not ask the arguments, so the hooks of converted code lead here, when one is traced
    or always.  A handler that only calls a library gives way to any other one.
    """

    handler: Callable[..., Any]
    of_scalars: bool = False
    hooked: Literal["", "traced", "always"] = ""
    is_library: bool = False
    of_array: bool = False


FUNCTIONS: dict[Any, Entry] = {}
METHODS: dict[str, Entry] = {}


def entry(*functions: Any, method: str = "", **columns: Any) -> Callable[[Function], Function]:
    """Registers ``handler(trace, *args, **kwargs)`` for functions, and a method, as a decorator."""
    def decorate(handler: Function) -> Function:
        row = Entry(handler, **columns)
        for function in functions:
            _add(FUNCTIONS, function, row)
            _lead_here(function, row.hooked)
        if method:
            _add_method(method, row)
        return handler

    return decorate


def array_method(*names: str) -> Callable[[Function], Function]:
    """Registers ``handler(array, *args, **kwargs)`` for methods, as a decorator."""
    def decorate(handler: Function) -> Function:
        for name in names:
            _add_method(name, Entry(handler, of_array=True))
        return handler

    return decorate


def _add(table: dict[Any, Entry], key: Any, row: Entry) -> None:
    """The row of a library stands where no other does, whichever came first."""
    standing = table.get(key)
    if standing is not None and standing.is_library == row.is_library:
        raise InternalError(f"two handlers answer for {key}")
    if standing is None or standing.is_library:
        table[key] = row


def _add_method(name: str, row: Entry) -> None:
    _add(METHODS, name, row)

    def call(self: TracedArray, *args: Any, **kwargs: Any) -> Any:
        return OPERATIONS.call_method(self, name, METHODS[name], args, kwargs)

    call.__name__ = name
    OPERATIONS.methods[name] = call


def _lead_here(function: Any, hooked: str) -> None:
    """Calls that NumPy's dispatch would not lead here: by its own code, below the dispatcher, and
    by the program, of ``hooked`` ones."""
    def call(hooks: Any, *args: Any, **kwargs: Any) -> Any:
        if hooked == "always" and hooks.trace.active and args:
            args = (hooks.as_index(args[0]), *args[1:])
        if hooks.trace.active and (hooked == "always" or any_traced(args, kwargs) or (
                hooks.trace.builder.is_symbolic and holds_symbols(args))):
            return OPERATIONS.call_function(hooks.trace, function, args, kwargs)
        return function(*args, **kwargs)

    if hooked:
        TABLE.register(function, call)
    below = getattr(function, "_implementation", None)
    if below is not None and below not in NUMPYS_TABLE:
        @when_traced(NUMPYS_TABLE, below)
        def call_below(hooks: Any, *args: Any, **kwargs: Any) -> Any:
            return FUNCTIONS[function].handler(hooks.trace, *args, **kwargs)
