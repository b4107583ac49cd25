"""Values in messages: arrays and numbers, never pickles.

A large array travels as Dask sends NumPy's arrays, its memory as it is; a small one as its bytes
within the message, which takes a third of the time; a number as an array without axes and the word
which kind of number it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from distributed.protocol import to_serialize

SERIALIZERS = ("dask", "msgpack", "error")  # of Dask's ways to send: not pickle
_ARRAY, _SCALAR, _PYTHON = "array", "scalar", "python"
_KINDS = "biufc"
_SMALL = 1 << 16  # bytes


def packed(values: Sequence[Any], copies: bool) -> list[list[Any]]:
    """The values as a message has them; ``copies`` where whoever receives it shares this memory."""
    return [_packed(value, copies) for value in values]


def _packed(value: Any, copies: bool) -> list[Any]:
    kind = _ARRAY if isinstance(value, np.ndarray) else (
        _SCALAR if isinstance(value, np.generic) else _PYTHON)
    array = np.asarray(value, order="C")
    if array.dtype.kind not in _KINDS:
        raise TypeError(f"a value of dtype {array.dtype} cannot be sent")
    if array.nbytes <= _SMALL:
        return [kind, array.dtype.str, array.shape, array.tobytes()]
    return [kind, to_serialize(array.copy() if copies else array)]  # Dask looks into lists


def unpacked(items: Sequence[Sequence[Any]]) -> list[Any]:
    """The values of a message; raises ``TypeError`` for what is none."""
    return [_unpacked(*item) for item in items]


def _unpacked(kind: str, array: Any, shape: Any = None, data: bytes = b"") -> Any:
    if shape is not None:
        dtype = np.dtype(str(array))
        array = np.frombuffer(bytearray(data), dtype).reshape(shape) if (
            dtype.kind in _KINDS) else None
    if type(array) is not np.ndarray or array.dtype.kind not in _KINDS:
        raise TypeError(f"a message has a {type(array).__name__} for a value")
    if kind == _ARRAY:  # at an odd address NumPy would add up products otherwise
        return array if array.flags.writeable and array.flags.aligned else array.copy()
    return array[()] if kind == _SCALAR else array.item()
