"""Plain data as JSON: what of a call is no array, such as static arguments and constants.

Numbers, texts, None and tuples are written as attributes of graphs are; beside those stand
``{"bytes": hex}``, ``{"list": […]}`` and ``{"slice": […]}``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fusec.ir.sizes.dims import Dim
from fusec.ir.text.json_form import attribute_form, read_attribute
from fusec.ir.types import is_supported_dtype

_MOST_DEPTH = 64


class NotPlainError(ValueError):
    """Something that no JSON of plain data holds."""


def plain_form(value: Any, depth: int = 0) -> Any:
    """The JSON form; raises `NotPlainError` for objects that are no plain data.

    Sizes that only the run knows are data of views.
    """
    if depth > _MOST_DEPTH:
        raise NotPlainError("it is nested too deeply")
    if type(value) is tuple:
        return [plain_form(item, depth + 1) for item in value]
    if type(value) is list:
        return {"list": [plain_form(item, depth + 1) for item in value]}
    if type(value) is slice:
        return {"slice": [plain_form(part, depth + 1)
                          for part in (value.start, value.stop, value.step)]}
    if type(value) is bytes:
        return {"bytes": value.hex()}
    if not (_is_attribute(value) or type(value) is Dim):
        raise NotPlainError(f"a {type(value).__name__} is no plain data")
    return attribute_form(value)


def _is_attribute(value: Any) -> bool:
    if isinstance(value, (np.generic, np.dtype)):
        return is_supported_dtype(np.dtype(getattr(value, "dtype", value)))
    return value is None or type(value) in (bool, int, float, complex, str)


def plain_value(form: Any, depth: int = 0, *, with_sizes: bool = False) -> Any:
    """The value of a JSON form; raises `NotPlainError`, or `GraphSyntaxError` for numbers.
    ``with_sizes``: sizes that only the run knows may stand in it."""
    if depth > _MOST_DEPTH:
        raise NotPlainError("it is nested too deeply")
    if type(form) is list:
        return tuple(plain_value(item, depth + 1, with_sizes=with_sizes) for item in form)
    if type(form) is not dict:
        return form
    if len(form) == 1:
        (kind, content), = form.items()
        if kind == "list" and type(content) is list:
            return [plain_value(item, depth + 1) for item in content]
        if kind == "slice" and type(content) is list and len(content) == 3:
            return slice(*(plain_value(part, depth + 1) for part in content))
        if kind == "bytes" and type(content) is str:
            return _bytes(content)
        if kind == "attr":
            return _number(form, with_sizes)
    raise NotPlainError(f"{str(form)[:60]} is no plain data")


def _bytes(text: str) -> bytes:
    try:
        return bytes.fromhex(text)
    except ValueError:
        raise NotPlainError("its bytes are no hexadecimal digits") from None


def _number(form: dict[str, Any], with_sizes: bool) -> Any:
    value = read_attribute(form)
    if not _is_attribute(value) and not (with_sizes and type(value) is Dim):
        raise NotPlainError(f"{str(form)[:60]} is no number")
    return value


def same_value(a: Any, b: Any) -> bool:
    """Whether two static values are the same for a trace: 1, True and 1.0 differ."""
    if type(a) is not type(b):
        return False
    if type(a) in (tuple, list):
        return len(a) == len(b) and all(map(same_value, a, b))
    if type(a) is slice:
        return all(same_value(getattr(a, n), getattr(b, n)) for n in ("start", "stop", "step"))
    if isinstance(a, (float, complex, np.generic)):
        return repr(a) == repr(b)
    return bool(a == b)
