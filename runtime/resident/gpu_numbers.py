"""Numbers that calls with CuPy's arrays are given, in the text of `gpu_calls`."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any

from fusec.ir.types import RUN_TIME_INT

_FORMATS = {"f8": "d", "f4": "f4x", "f2": "e6x", "i8": "q", "i4": "i4x", "i2": "h6x", "i1": "b7x",
            "u8": "Q", "u4": "I4x", "u2": "H6x", "u1": "B7x", "b1": "?7x", "c16": "dd", "c8": "ff"}
Bind = Callable[[str, Any], str]


def is_such(x: str, type_: Any, bind: Bind) -> str:
    """A test whether the number has the type of a graph's input."""
    if type_.kind == "scalar":
        return f"type({x}) is {bind('number', type_.dtype.type)}"
    if type_.dtype.kind == "i":
        return f"type({x}) is int and {RUN_TIME_INT[0]} <= {x} <= {RUN_TIME_INT[1]}"
    return f"type({x}) is {'complex' if type_.dtype.kind == 'c' else 'float'}"


def packed(numbers: Sequence[tuple[str, Any]], bind: Bind) -> str:
    """The bytes of numbers, each in words of its own; of each its name and its type."""
    formats, values = "=", []
    for x, type_ in numbers:
        formats += _FORMATS[f"{type_.dtype.kind}{type_.dtype.itemsize}"]
        values += [f"{x}.real", f"{x}.imag"] if type_.dtype.kind == "c" else [x]
    return f"{bind('pack', struct.Struct(formats).pack)}({', '.join(values)})"
