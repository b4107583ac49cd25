"""Values for Variables: those of their dtype and shape, without loss."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fusec.errors import FusecError, user_error

if TYPE_CHECKING:
    from .variable import Variable

PYTHON = (bool, int, float, complex)
_SIZES = {"f": (2, 4, 8), "c": (8, 16)}


def title(name: str) -> str:
    """``Variable W``, or ``a Variable`` where nobody gave it a name."""
    return "a Variable" if name == "Variable" else f"Variable {name}"


def describe(dtype: Any, shape: Any) -> str:
    """``float32[3, 2]``"""
    return f"{dtype}{list(shape)}"


def fitting(variable: Variable, value: Any) -> Any:
    """The assigned value, in the Variable's dtype where it is no traced value; raises where that
    would lose something."""
    dtype = variable.dtype
    if type(value) in PYTHON:
        variable.check_dtype(np.result_type(dtype, type(value)(0)))
        return np.asarray(value, dtype)
    if isinstance(value, (list, tuple)):
        array = np.asarray(value)
        if array.dtype != object:
            if not np.can_cast(array.dtype, dtype, "same_kind"):
                variable.check_dtype(array.dtype)
            return np.asarray(value, dtype)
    if isinstance(value, (np.ndarray, np.generic)) and type(value).__module__ == "numpy":
        variable.check_dtype(value.dtype)
    return value


def operand(delta: Any, dtype: np.dtype) -> Any:
    """Lists of Python's numbers adapt to the Variable's dtype, as the numbers do."""
    if not isinstance(delta, (list, tuple)):
        return delta
    array = np.asarray(delta)
    return np.asarray(delta, dtype) if np.can_cast(array.dtype, dtype, "same_kind") else array


def first_buffer(value: Any, dtype: Any, name: str) -> np.ndarray:
    """The memory of a Variable that begins with this value: of its own, in C order.

    Raises ``TypeError`` as `Variable` says.
    """
    array = np.asarray(value)
    wanted = np.dtype(array.dtype if dtype is None else dtype).newbyteorder("=")
    if not (wanted.kind in "biu" or wanted.itemsize in _SIZES.get(wanted.kind, ())):
        raise refused_dtype(name, wanted)
    if not np.can_cast(array.dtype, wanted, "same_kind"):
        raise user_error(
            TypeError, f"{title(name)} of dtype {wanted} cannot begin with values of "
            f"{array.dtype}", None, f"give x.astype(np.{wanted})")
    source = value if isinstance(value, (list, tuple, *PYTHON)) else array
    return np.array(source, wanted, order="C", subok=False)


def refused_dtype(name: str, dtype: np.dtype, loc: Any = None) -> FusecError:
    """The error for a dtype that is not compiled."""
    return user_error(TypeError, f"{title(name)} cannot be of dtype {dtype}", loc,
                      "bool, integers, floats and complex numbers of 16 to 64 bits a part can")


__all__ = ["describe", "first_buffer", "fitting", "operand", "refused_dtype", "title"]
