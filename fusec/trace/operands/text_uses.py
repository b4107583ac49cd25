"""Uses of texts with values that only the run knows: what looks into them is refused.

Such a text has the values' expressions in their place (`texts`), which do for the text of an
exception or of a warning.  Its length, its letters and its order would be those of the expressions.
"""

from __future__ import annotations

import functools
import logging
import sys
import warnings
from abc import ABCMeta
from collections.abc import Callable, Iterator
from types import FunctionType, MethodType
from typing import Any

import numpy as np

from fusec.errors import FusecError, UnsupportedError, unsupported

from ..convert.properties import class_attribute
from ..facts.code_names import HEAP_TYPE
from ..facts.policy import PLAIN_PACKAGES, stays_plain
from ..values.array import Markers
from ..values.trace import Trace
from .texts import Marker, is_marked

_FORMATTING = frozenset({"join", "format", "format_map", "ljust", "rjust", "center", "zfill"})
_TEXTS = (str, repr, ascii, format)
_OUTPUT = (logging.__name__, warnings.__name__, "_warnings")  # they show texts
_BLIND: tuple[Any, ...] = (  # they take texts as they are
    print, isinstance, issubclass, type, bool, id, callable, functools.partial, sys.exit, super)
# They take containers apart, but not the texts in them.
_SHALLOW: tuple[Any, ...] = (len, list, tuple, enumerate, zip, reversed, iter, next, map, filter,
                             any, all, setattr)
_MOVING = frozenset({"append", "insert", "extend", "pop", "copy", "clear", "reverse"})
_CONTAINERS = (list, tuple, set, frozenset, dict)
_BUILT_IN = (*_CONTAINERS, str, bytes, bytearray, int, float, complex, np.generic, np.ndarray)


def check_use(trace: Trace, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Refuse a call that would look into a text with markers."""
    if trace.part(Markers) and not _takes_texts(fn) and any(
            _seen_by(trace, fn, (*args, *kwargs.values()))):
        raise refused(trace, f"{_name(fn)} of")


def check_letters(trace: Trace, x: Any) -> None:
    """Refuse to go over the letters of ``x``, or over keys with markers."""
    markers = trace.part(Markers)
    if markers and any(is_marked(markers, t) for t in _outside(x)):
        raise refused(trace, "taking apart")


def check_inside(trace: Trace, *values: Any) -> None:
    """Refuse texts with markers that lie in containers where these are compared."""
    markers = trace.part(Markers)
    if markers and any(is_marked(markers, t) for x in values for t in texts_in(x)):
        raise refused(trace, "comparing or looking up")


def checked_items(trace: Trace, x: Any) -> Any:
    """``x``; the items of an iterator are asked when Python compares them."""
    is_asked = trace.in_region and hasattr(type(x), "__next__")
    return map(functools.partial(check_key, trace, lambda item: item), x) if is_asked else x


def check_key(trace: Trace, fn: Callable[..., Any], *args: Any) -> Any:
    """The key of an item that is ordered or grouped by it."""
    key = fn(*args)
    if type(key) in (str, tuple, list):
        check_inside(trace, key)
    return key


def formats(trace: Trace, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether it makes a text of others, among them texts with markers."""
    return bool(trace.part(Markers)) and _is_formatting(fn) and not _is_join(fn) and has_marked(
        trace, getattr(fn, "__self__", None), args, kwargs)


def has_marked(trace: Trace, *values: Any) -> bool:
    """Whether texts with markers, or markers, are in there."""
    markers = trace.part(Markers)
    return bool(markers) and any(
        type(t) is Marker or is_marked(markers, t) for x in values for t in leaves(x))


def formatted(trace: Trace, make: Callable[[], Any]) -> Any:
    """A text of others with markers, which has to have markers, too."""
    try:
        text = make()
    except FusecError:
        raise
    except Exception as error:  # a marker as a template, a width or an attribute's owner
        raise refused(trace, "this formatting of") from error
    if not is_marked(trace.part(Markers), text):
        raise refused(trace, "this formatting of")
    return text


def refused(trace: Trace, use: str) -> UnsupportedError:
    return unsupported(
        f"{use} a text with a value that is only known when the compiled code runs", loc=trace.loc,
        cure="compare or compute with the numbers themselves, or make the text after the call; "
             "texts of exceptions may have such values")


def leaves(x: Any) -> Iterator[Any]:
    """What lies in containers, keys among it, at any depth."""
    todo, visited = [x], set[int]()
    while todo:
        item = todo.pop()
        if not isinstance(item, _CONTAINERS):
            yield item
        elif id(item) not in visited:
            visited.add(id(item))
            todo += item
            todo += item.values() if isinstance(item, dict) else ()


def texts_in(x: Any) -> Iterator[str]:
    return (t for t in leaves(x) if isinstance(t, str))


def _outside(x: Any) -> Iterator[str]:
    """A text itself, the keys of a dict or set."""
    return texts_in(x if isinstance(x, (str, set, frozenset)) else
                    list(x) if isinstance(x, dict) else ())


def _seen_by(trace: Trace, fn: Any, given: tuple[Any, ...]) -> Iterator[bool]:
    markers, owner = trace.part(Markers), getattr(fn, "__self__", None)
    if _is_join(fn) or any(fn is f for f in _SHALLOW):
        within = [_outside(x) for x in given]
    elif _is_formatting(fn):
        within = []
    elif isinstance(owner, (str, *_CONTAINERS)):
        is_moving = isinstance(owner, dict) or getattr(fn, "__name__", "") in _MOVING
        within = [_outside(owner) if is_moving else texts_in(owner), *map(texts_in, given)]
        if isinstance(owner, (list, dict, set)):  # texts themselves are asked for in `calls.run`
            is_stored = isinstance(owner, list) and is_moving
            within = within[:1] if is_stored else [
                within[0], *(texts_in(x) for x in given if not isinstance(x, str))]
    else:
        within = [texts_in(x) for x in given]
    return (is_marked(markers, t) for found in within for t in found)


def _takes_texts(fn: Any) -> bool:
    """Whether it takes a text as it is, or is code of the program's, which is traced."""
    if any(fn is f for f in _BLIND) or getattr(fn, "__module__", None) in _OUTPUT:
        return True
    owner = getattr(fn, "__self__", getattr(fn, "__objclass__", None))
    if isinstance(owner, BaseException) or _is_exception(owner) or any(
            owner is stream for stream in (sys.stdout, sys.stderr) if stream is not None):
        return True
    if isinstance(fn, type):
        return _is_exception(fn) or _is_programs(fn)
    if getattr(fn, "__name__", "") == "__setattr__" or type(fn) is functools.partial:
        return True
    function = fn.__func__ if type(fn) is MethodType else fn
    if type(function) is not FunctionType:
        function = class_attribute(type(function), "__call__")
    return type(function) is FunctionType and not stays_plain(function)


def _is_formatting(fn: Any) -> bool:
    return any(fn is f for f in _TEXTS) or (
        type(getattr(fn, "__self__", None)) is str and fn.__name__ in _FORMATTING)


def _is_join(fn: Any) -> bool:
    return type(getattr(fn, "__self__", None)) is str and bool(fn.__name__ == "join")


def _is_exception(x: Any) -> bool:
    return isinstance(x, type) and issubclass(x, BaseException)


def _is_programs(kind: type) -> bool:
    """Whether a class of the program's keeps what it is given, as others may not: an enum looks for
    it, a text or set reads it."""
    root = str(kind.__module__).partition(".")[0]
    is_library = root != "__main__" and (root in sys.stdlib_module_names or root in PLAIN_PACKAGES)
    is_record = issubclass(kind, tuple) and hasattr(kind, "_fields")
    return is_record or (
        bool(kind.__flags__ & HEAP_TYPE) and type(kind) in (type, ABCMeta) and not is_library
        and not issubclass(kind, _BUILT_IN))


def _name(fn: Any) -> str:
    owner = getattr(fn, "__self__", None)
    name = getattr(fn, "__name__", type(fn).__name__)
    return f"{type(owner).__name__}.{name}()" if type(owner) in (str, *_CONTAINERS) else f"{name}()"
