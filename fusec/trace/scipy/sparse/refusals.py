"""Refusals of attributes and operands of sparse arrays in a trace."""

from __future__ import annotations

import sys
from typing import Any, NoReturn

import numpy as np

from fusec.errors import unsupported, user_error
from fusec.ir.graph import new_id

from ...values.array import TracedArray
from ...values.trace import current

_HERE = ("A @ x, x @ A, A * 2, A.multiply(d), A / 2, A.T, A.sum(axis), A.mean(axis), A.diagonal(), "
         "A.toarray(), A.tocoo(), A.astype(t) and A.data are compiled; do the rest outside")


def _loc() -> Any:
    trace = current()
    return None if trace is None else trace.loc


def refuse(what: str, cure: str) -> NoReturn:
    """Raise ``UnsupportedError`` at the user's line."""
    raise unsupported(what, loc=_loc(), cure=cure)


def unknown_name(x: Any, name: str) -> NoReturn:
    """Raise for an attribute: as Python does for those that SciPy's class has not, too."""
    if name.startswith("_") or not hasattr(class_of(x), name):
        raise AttributeError(f"'{class_of(x).__name__}' object has no attribute '{name}'")
    raise unsupported(f".{name} of a sparse array", loc=_loc(), cure=_HERE)


def class_of(x: Any) -> Any:
    """SciPy's class of a sparse array."""
    scipys = sys.modules.get("scipy.sparse")
    given = object.__getattribute__(x, "__dict__")
    if scipys is None or "kind" not in given:  # it is being made
        return type(x)
    return getattr(scipys, f"{given['format']}_{given['kind']}")


def note_made(x: Any, parts: Any) -> None:
    """The object is the trace's own, if it holds traced arrays: at the next call there is another.
    """
    for part in parts:
        if type(part) is TracedArray:
            part.trace.local.objects[id(x)] = x
            part.trace.local.births[id(x)] = new_id()
            return


def is_dense(x: Any) -> bool:
    """Whether it is an array of rank 1 or 2."""
    return isinstance(x, (TracedArray, np.ndarray)) and x.ndim in (1, 2)


def is_number(x: Any) -> bool:
    """Whether it is a number, or an array of rank 0."""
    return isinstance(x, (bool, int, float, complex, np.generic)) or (
        isinstance(x, (TracedArray, np.ndarray)) and x.ndim == 0)


def check_length(columns: Any, x: Any, axis: int) -> None:
    """Raise ``ValueError`` unless an array has this length."""
    if columns != x.shape[axis]:
        raise user_error(ValueError, "matmul: dimension mismatch of a sparse array and an array",
                         _loc(), values=[("columns", columns), ("array", x.shape)])


def line_of(axis: Any) -> int:
    """0 or 1.  Raises ``ValueError`` for another axis."""
    if not isinstance(axis, (int, np.integer)) or not -2 <= axis < 2:
        raise user_error(ValueError, "an axis of a sparse array that is none of -2, -1, 0 and 1",
                         _loc(), values=[("axis", axis)])
    return int(axis) % 2


def _refusal(what: str, cure: str) -> Any:
    def method(self: Any, *given: Any) -> NoReturn:
        refuse(f"{what} a sparse array", cure)

    return method


class Refusing:
    """Operators of SciPy's sparse arrays for which `object` would have an answer of its own, or
    Python an error that does not say what is meant."""

    _IN_DATA = "compute with A.data, or take A.toarray()"
    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _refusal("a comparison of", _IN_DATA)
    __abs__ = _refusal("abs() of", _IN_DATA)
    __pow__ = _refusal("a power of", _IN_DATA)
    __round__ = _refusal("round() of", _IN_DATA)
    __bool__ = _refusal("the truth of", "compare what is meant, A.nnz > 0 say")
    __hash__ = object.__hash__


__all__ = [
    "Refusing", "check_length", "class_of", "is_dense", "is_number", "line_of", "note_made",
    "refuse", "unknown_name"]
