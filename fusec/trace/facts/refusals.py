"""Arrays and dtypes that fusec does not hold: which, why, and the cure."""

from __future__ import annotations

from typing import Any

import numpy as np

from fusec.errors import FusecError, unsupported, user_error
from fusec.ir import Loc

from . import this_numpy

_COMPILED = "bool, integers, floats and complex numbers of 16 to 64 bits a part are compiled"
_SIZES = {"f": (2, 4, 8), "c": (8, 16)}
_CURES = {
    "O": "use x.astype(float), or split it into arrays of numbers",
    "c": "use x.astype(np.complex128)",
    "M": "pass x.astype('i8'), the count of its units",
    "m": "pass x.astype('i8'), the count of its units",
    "V": "use its fields one by one: x['name']",
    "S": "use numbers", "U": "use numbers", "T": "use numbers",
}
_SUBCLASS_CURES = {
    "MaskedArray": "use x.data and x.mask, or x.filled(value)",
    "matrix": "use np.asarray(x): then * multiplies elements and @ matrices",
    "memmap": "use np.asarray(x): the same file, as a plain array",
}


_SHORT = ("bfloat16", "float8", "float6", "float4")  # of ml_dtypes


def is_compiled(dtype: np.dtype) -> bool:
    """Whether it is compiled: bool, integers, floats and complex numbers, in native order."""
    if not dtype.isnative:
        return False
    return dtype.kind in "biu" or dtype.itemsize in _SIZES.get(dtype.kind, ())


def gives_objects(ufunc: np.ufunc) -> bool:
    """Whether it takes and gives objects alone, as those of ``np.frompyfunc`` do."""
    return set("".join(ufunc.types)) <= set("O->")


def check_array(array: np.ndarray, what: str, loc: Loc | None = None) -> np.ndarray:
    """The array itself when fusec can hold it; else an error that says why and how to cure it."""
    if type(array) is not np.ndarray:
        raise _subclass_error(array, what, loc)
    check_dtype(array.dtype, what, loc)
    return array


def _subclass_error(array: np.ndarray, what: str, loc: Loc | None) -> FusecError:
    kind = type(array)
    cure = "use np.asarray(x), if a plain array's rules are what you want"
    return user_error(
        TypeError,
        f"{what} is a {kind.__module__}.{kind.__qualname__}: subclasses of ndarray have rules of "
        f"their own, which compiled code would not follow", loc,
        _SUBCLASS_CURES.get(kind.__name__, cure),
    )


def check_dtype(dtype: np.dtype, what: str, loc: Loc | None = None) -> None:
    """Raise the user error for a dtype that is not compiled."""
    if is_compiled(dtype):
        return
    if not dtype.isnative and is_compiled(dtype.newbyteorder("=")):
        raise user_error(
            TypeError, f"{what} has dtype {dtype.str!r}, whose byte order is not this machine's",
            loc, f"use x.astype({dtype.newbyteorder('=').str!r})")
    raise user_error(TypeError, f"{what} has dtype {dtype}, which is not compiled", loc,
                     _dtype_cure(dtype), notes=[_COMPILED])


def _dtype_cure(dtype: np.dtype) -> str:
    if dtype.name.startswith(_SHORT):  # of the kind "V"
        return "use x.astype(np.float32), and convert the result back"
    if dtype.kind == "f":
        return f"use x.astype(np.float{32 if dtype.itemsize < 4 else 64})"
    return _CURES.get(dtype.kind, "convert it with x.astype(...)")


def target_dtype(dtype: Any, what: str, loc: Loc | None, default: Any = float) -> np.dtype:
    """The dtype that the function asks for; raises for no dtype and for one not compiled.

    ``what`` completes "… of dtype float16 is not supported".
    """
    try:
        result = np.dtype(default if dtype is None else dtype)
    except TypeError as error:
        raise user_error(TypeError, str(error), loc,
                         "name a dtype: np.float64, 'f4', int") from None
    if not is_compiled(result):
        raise unsupported(f"{what} of dtype {result if result.isnative else result.str}", loc=loc,
                          cure="use bool, integers, float32, float64, complex64 or complex128, in "
                               "native byte order")
    return result


def is_index(x: Any) -> bool:
    """Whether ``operator.index`` takes it."""
    is_bool: bool = this_numpy.BOOLS_ARE_INDICES and x.dtype.kind == "b" and not x.is_array
    return bool(not x.ndim and (x.dtype.kind in "iu" or is_bool))


def not_an_index(x: Any) -> Exception:
    """The error of ``operator.index`` for anything but integers and their arrays of rank 0."""
    text = ("only integer scalar arrays can be converted to a scalar index" if x.is_array
            else f"'{x.kind_name}' object cannot be interpreted as an integer")
    error: Exception = x.trace.error(TypeError(text), [x.value])
    return error
