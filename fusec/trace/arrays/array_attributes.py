"""Attributes that ndarray has beside its elements: which there are, its flags, and assignments."""

from __future__ import annotations

import sys
import warnings
from types import FrameType, ModuleType
from typing import Any

import numpy as np

from fusec.errors import FusecError, UnsupportedError, unsupported
from fusec.ir.sizes.dims import is_static

from ..facts.layout import is_c_contiguous
from ..guards.guard import OF_TRACES
from ..index import reinterpretation
from ..operands.operands import as_traced
from ..values.array import TracedArray
from ..values.handlers import array_method
from ..values.operations import OPERATIONS, operation
from . import creation, shaping
from .creation import astype


def has_attribute(x: TracedArray, name: str) -> bool:
    """``hasattr(x, name)``: NumPy is asked, of an array or number of the same type."""
    try:
        return hasattr(_plain(x), name)
    except ValueError as error:  # mT of a vector
        raise x.trace.error(error, [x.value]) from None


def _plain(x: TracedArray) -> Any:
    if x.is_array:
        return np.empty((0,) * x.ndim, x.dtype)
    return x.type.zero


_CALLS_BETWEEN = 6  # frames of ours between a question and its answer


@array_method("__array_namespace__")
def array_namespace(x: TracedArray, /, *, api_version: str | None = None) -> Any:
    """``ndarray.__array_namespace__``; array-api-compat, which SciPy and scikit-learn carry, has a
    namespace of its own for NumPy's arrays and must not see two among its arguments."""
    plain: Any = np.empty(0)
    asked = plain.__array_namespace__(api_version=api_version)
    return _compat_namespace(sys._getframe()) or asked


def _compat_namespace(frame: FrameType | None) -> ModuleType | None:
    """NumPy's namespace in the copy of array-api-compat that asks."""
    for _ in range(_CALLS_BETWEEN):
        frame = None if frame is None else frame.f_back
        name = "" if frame is None else frame.f_globals.get("__name__") or ""
        package, inner, _rest = name.partition("array_api_compat.common")
        if inner:
            return sys.modules.get(f"{package}array_api_compat.numpy")
    return None


@array_method("to_device")
def to_device(x: TracedArray, device: Any, /, *, stream: Any = None) -> TracedArray:
    """``ndarray.to_device``: the array itself, for there is one device."""
    plain: Any = np.empty(0)
    plain.to_device(device, stream=stream)  # which refuses others
    return x


_NAMES = {
    "C": "c_contiguous", "C_CONTIGUOUS": "c_contiguous", "CONTIGUOUS": "c_contiguous",
    "F": "f_contiguous", "F_CONTIGUOUS": "f_contiguous", "FORTRAN": "f_contiguous",
    "W": "writeable", "WRITEABLE": "writeable", "A": "aligned", "ALIGNED": "aligned",
    "FNC": "fnc", "FORC": "forc", "B": "behaved", "BEHAVED": "behaved", "CA": "carray",
    "CARRAY": "carray", "FA": "farray", "FARRAY": "farray", "O": "owndata", "OWNDATA": "owndata",
}


class Flags:
    """``ndarray.flags`` of a traced array; who owns its memory is not known."""

    aligned = True

    def __init__(self, x: TracedArray) -> None:
        self._array = x
        reverse = x.shape[::-1], x.strides[::-1]
        self.c_contiguous = is_c_contiguous(x.shape, x.strides, x.itemsize)
        self.f_contiguous = is_c_contiguous(*reverse, x.itemsize)
        self.contiguous = self.c_contiguous
        self.fnc = self.f_contiguous and not self.c_contiguous
        self.forc = self.f_contiguous or self.c_contiguous
        self.writeable = self.behaved = x.is_writeable
        self.carray = self.behaved and self.c_contiguous
        self.farray = not self.c_contiguous  # as NumPy has it: aligned is enough

    @property
    def num(self) -> int:
        return int(self.owndata)

    @property
    def owndata(self) -> bool:
        raise unsupported("ndarray.flags.owndata", loc=self._array.trace.loc,
                          cure="copy the array, x.copy(), to have one that owns its memory")

    def __getitem__(self, name: str) -> Any:
        if name not in _NAMES:
            raise KeyError("Unknown flag")
        return getattr(self, _NAMES[name])

    def __setattr__(self, name: str, value: Any) -> None:
        if name in ("writeable", "aligned") and hasattr(self, name):
            raise unsupported(f"assignment to ndarray.flags.{name}", loc=self._array.trace.loc,
                              cure="set it before the call")
        object.__setattr__(self, name, value)

    def __setitem__(self, name: str, value: Any) -> None:
        setattr(self, _NAMES.get(name, name), value)


OF_TRACES.add(Flags)


# ------------------------------------------------------------------------------------- assignment


def assign(x: TracedArray, name: str, value: Any) -> None:
    """``x.name = value``: raises as NumPy does, and for assignments that fusec cannot trace."""
    if x.is_array and name in ("real", "imag"):
        setattr(x, name, value)
    elif x.is_array and name in _LAYOUT:
        _relayout(x, name, value)
    elif x.is_array and name == "flat":
        _fill(x, value)
    else:
        raise _refusal(x, name)


def _relayout(x: TracedArray, name: str, value: Any) -> None:
    """Another shape or dtype of the same memory, in the array that all its names see."""
    _check_relayout(x, name)
    if name == "shape":
        view = shaping.reshape(x.trace, x, value)
        if view.storage is not x.storage:
            raise x.trace.error(AttributeError(
                "Incompatible shape for in-place modification. Use `.reshape()` to make a copy "
                "with the desired shape."), [x.value])
    else:
        view = reinterpretation.view(x, value)
    x.steps = view.steps


_LAYOUT = {"shape": "x = x.reshape(...)", "dtype": "x = x.view(...)"}


def _check_relayout(x: TracedArray, name: str) -> None:
    """The caller's own array would change, or a branch's change would outlive the branch."""
    storage, trace = x.storage, x.trace
    assert storage is not None
    if (storage.origin is not None and not x.steps) or storage.is_constant:
        raise unsupported(f"assignment to ndarray.{name} of an array from outside", loc=trace.loc,
                          values=[("array", x.type)], cure=f"write {_LAYOUT[name]}")
    if trace.in_region and trace.is_older_than_region(storage.born):
        raise unsupported(f"assignment to ndarray.{name} in a branch or loop that data decides",
                          loc=trace.loc, cure=f"write {_LAYOUT[name]}")


def _fill(x: TracedArray, value: Any) -> None:
    """``x.flat = value``: NumPy goes round a shorter value again and again."""
    given = as_traced(x.trace, value)
    if not given.ndim:
        x[...] = astype(x.trace, given, x.dtype)
        return
    if not is_static((x.size, given.size)) or given.size < x.size:
        raise unsupported("assignment to ndarray.flat of another number of elements",
                          loc=x.trace.loc, cure="write x[...] = value",
                          values=[("array", x.type), ("value", given.type)])
    taken = shaping.ravel(x.trace, given)[:x.size]
    x[...] = astype(x.trace, shaping.reshape(x.trace, taken, x.shape), x.dtype)


_CURES = {"strides": "write x = np.lib.stride_tricks.as_strided(x, ...) before the call",
          "data": "write x[...] = value"}


def _refusal(x: TracedArray, name: str) -> FusecError:
    plain = _plain(x)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            setattr(plain, name, getattr(plain, name, None))
    except (AttributeError, TypeError) as error:
        return x.trace.error(error, [x.value])
    return _unsupported(x, name)


def _unsupported(x: TracedArray, name: str) -> UnsupportedError:
    return unsupported(f"assignment to {x.kind_name.replace('numpy.', '')}.{name}",
                       loc=x.trace.loc, cure=_CURES.get(name, "assign it before the call"))


@operation
def zero_imag(x: TracedArray) -> Any:
    """The imaginary part of real numbers: zeros (which NumPy makes read-only)."""
    if x.is_array:
        zeros = creation.ZEROS_LIKE(x.trace, x, order="A")
        return zeros.view_through("ReadOnly", zeros.strides)
    return 0 if x.type.is_weak and x.dtype.kind == "b" else x.type.zero  # of Python's booleans


OPERATIONS.flags = Flags
