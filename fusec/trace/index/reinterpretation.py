"""Arrays seen or taken as other things: ``view``, ``item``, ``tolist``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fusec.errors import unsupported
from fusec.ir.sizes.dims import is_static

from ..facts.refusals import target_dtype
from ..operands.operands import cast
from ..operands.python_errors import check_integer
from ..operands.python_numbers import weak
from ..values.array import TracedArray, from_value
from ..values.handlers import array_method
from ..values.rows import nested

MOST_LISTED = 128  # elements of a list of traced numbers
_PYTHON = {"b": np.bool_, "i": np.int64, "u": np.int64, "f": np.float64, "c": np.complex128}


@array_method("view")
def view(self: TracedArray, *args: Any, **kwargs: Any) -> Any:
    """``ndarray.view(dtype=None, type=None)``: the same memory, as a dtype of the same size."""
    target = _viewed_dtype(self, *args, **kwargs)
    if target == self.dtype:
        return TracedArray(self.trace, self.storage, self.steps) if self.is_array else self
    same = self.dtype.itemsize == target.itemsize
    if not same or self.dtype.kind not in "biuf" or target.kind not in "iuf":
        raise unsupported(
            f"a view {'as such a dtype' if same else 'of another item size'}", loc=self.trace.loc,
            values=[("array", self.type), ("dtype", target)],
            cure="view dtypes of one size, such as float64 as int64; convert with astype")
    if self.is_array:
        return self.view_through("Reinterpret", self.strides, dtype=target)
    return from_value(self.trace, self.trace.emit("Reinterpret", self.value, dtype=target))


def _viewed_dtype(array: TracedArray, dtype: Any = None, type: Any = None) -> np.dtype:
    if dtype is np.ndarray:
        dtype, type = None, dtype
    if type not in (None, np.ndarray):
        raise unsupported("a view as a subclass of ndarray", loc=array.trace.loc,
                          cure="use plain arrays")
    viewed = array.dtype if dtype is None else np.dtype(dtype)
    return viewed if viewed.isnative else target_dtype(viewed, "a view", array.trace.loc)


@array_method("item")
def item(self: TracedArray, *args: Any) -> Any:
    """``ndarray.item``: an element as a Python number, known when the code runs."""
    if len(args) == 1 and isinstance(args[0], tuple):
        args = args[0]
    if args and not (len(args) == 1 or len(args) == self.ndim):
        raise self.trace.error(ValueError("incorrect number of indices for array"), [self.value])
    if not args:
        if self.size != 1:
            raise self.trace.error(ValueError(
                "can only convert an array of size 1 to a Python scalar"), [self.value])
        return _number(self)
    return _number(self[args] if len(args) == self.ndim else self.flat[args[0]])


def _number(x: TracedArray) -> TracedArray:
    """The only element as a Python number."""

    value = x.value
    if x.ndim:
        value = x.trace.emit("Squeeze", value, axes=tuple(range(x.ndim)))
    if x.dtype.kind == "u":
        check_integer(x.trace, value)
    return TracedArray(x.trace, None, (), weak(x.trace, value, np.dtype(_PYTHON[x.dtype.kind])))


@array_method("tolist")
def tolist(self: TracedArray) -> Any:
    """``ndarray.tolist``: nested lists of Python numbers."""
    if not self.ndim:
        return _number(self)
    if is_static(self.shape) and self.size <= MOST_LISTED:
        return _listed(self, self.shape)
    if not is_static(self.shape) or self.dtype == np.uint64:
        return self.concrete(
            f"a list of more than {MOST_LISTED} numbers", "call .tolist() on the result").tolist()
    python = np.dtype(_PYTHON[self.dtype.kind])
    return nested(self.trace, cast(self.trace, self.value, python), (*map(int, self.shape),),
                  "weak")


def _listed(x: TracedArray, shape: Sequence[int]) -> list[Any]:
    if len(shape) == 1:
        return [_number(x[k]) for k in range(shape[0])]
    return [_listed(x[k], shape[1:]) for k in range(shape[0])]
