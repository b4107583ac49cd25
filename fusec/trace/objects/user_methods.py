"""Special methods of the user's classes, found as Python finds them."""

from __future__ import annotations

import linecache
from types import CodeType, FunctionType
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
        code.co_filename.startswith("<attrs ") or not _is_written(code))
    return None if is_made or code.co_flags & _GENERATOR else function


def _is_written(code: CodeType) -> bool:
    """Whether it stands in the text of its file.  Code that dataclasses and namedtuple compile says
    that it is from ``<string>``, and so does the text of ``python -c``, which Python 3.13 keeps."""
    word = "lambda" if code.co_name == "<lambda>" else f"def {code.co_name}"
    lines = linecache.getlines(code.co_filename)[code.co_firstlineno - 1:]
    return not code.co_qualname.startswith("__create_fn__.") and any(word in line for line in lines)
