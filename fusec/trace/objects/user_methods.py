"""Special methods of the user's classes, found as Python finds them."""

from __future__ import annotations

import linecache
from types import FunctionType
from typing import Any

from ..convert.properties import class_attribute
from ..facts.code_names import HEAP_TYPE
from ..facts.policy import stays_plain
from ..values.array import TracedArray

_GENERATOR = 0x20  # inspect.CO_GENERATOR


def method_of(obj: Any, name: str) -> FunctionType | None:
    """The user's function behind a special method; None where Python's or a library's answers."""
    kind = type(obj)
    if kind is TracedArray or not kind.__flags__ & HEAP_TYPE:
        return None
    return users_function(class_attribute(kind, name))


def users_function(function: Any) -> FunctionType | None:
    if type(function) is not FunctionType or stays_plain(function):
        return None
    code = function.__code__
    is_made = code.co_filename.startswith("<") and (  # by dataclasses, namedtuple or attrs
        code.co_filename.startswith("<attrs ") or not linecache.getlines(code.co_filename))
    return None if is_made or code.co_flags & _GENERATOR else function
