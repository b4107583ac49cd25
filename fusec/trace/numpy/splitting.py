"""``np.split``, ``np.resize``: of lengths that follow from sizes NumPy's own source asks."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fusec.ir.sizes.symbolic_numbers import Symbolic, is_int
from fusec.ir.sizes.symbolic_sizes import is_symbolic

from ..arrays import shaping
from ..arrays.ranges import arange
from ..operands.operands import as_traced
from ..values.array import TracedArray
from ..values.handlers import entry
from ..values.operations import traced_source
from ..values.trace import Trace


@entry(np.array_split)
def array_split(trace: Trace, ary: Any, indices_or_sections: Any, axis: Any = 0) -> Any:
    """``np.array_split``; the first sections of a length that follows from sizes are one longer."""
    x, count, by_source = as_traced(trace, ary), indices_or_sections, traced_source(np.array_split)
    if not _are_sections(x, count, axis):
        return by_source(trace, ary, count, axis)
    each, longer = divmod(x.shape[axis], count)
    return by_source(trace, x, [k * each + min(longer, k) for k in range(1, count)], axis)


@entry(np.split)
def split(trace: Trace, ary: Any, indices_or_sections: Any, axis: Any = 0) -> Any:
    """``np.split``."""
    x, count = as_traced(trace, ary), indices_or_sections
    if not _are_sections(x, count, axis):
        return traced_source(np.split)(trace, ary, count, axis)
    if x.shape[axis] % count:
        raise trace.error(ValueError("array split does not result in an equal division"))
    return array_split(trace, x, count, axis)


def _are_sections(x: TracedArray, count: Any, axis: Any) -> bool:
    """Whether it is a number of sections, of a length that follows from sizes."""
    return type(count) is type(axis) is int and count > 0 and -x.ndim <= axis < x.ndim and (
        type(x.shape[axis]) is Symbolic)


@entry(np.resize)
def resize(trace: Trace, a: Any, new_shape: Any) -> Any:
    """``np.resize``; so many times the array as follow from sizes by the places of its elements."""
    x = as_traced(trace, a)
    shape = new_shape if type(new_shape) in (list, tuple) else (new_shape,)
    is_open = all(map(is_int, shape)) and is_symbolic((*shape, *x.shape))
    count = math.prod(shape) if is_open else 0
    if not is_open or min(shape, default=0) < 0 or not count or not x.size or type(
            (count + x.size - 1) // x.size) is int:
        return traced_source(np.resize)(trace, a, new_shape)
    flat = shaping.ravel(trace, shaping.spread_scalar(x))
    return shaping.reshape(trace, np.take(flat, arange(trace, count), mode="wrap"), tuple(shape))
