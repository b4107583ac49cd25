"""Calls of the user's own scalar functions, element by element: `fusec.vectorize`.

A compiled function's LLVM IR goes into the module of the kernel that calls it.  Where it raises,
the kernel notes a failed check, and the call is repeated through the Python function, which raises
the program's own error.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from fusec.core.records import dataclass
from fusec.errors import InternalError
from fusec.ir import TensorType

from ..admission.row_admissions import SCALAR
from ..registry import Op, Types, register
from ..shapes import broadcast

CHECKED = "checked_call"  # of a function that may raise
CALLS = ("scalar_call", CHECKED)  # scalar ops


@dataclass(eq=False)
class ScalarFunction:
    """A Python function compiled for arguments of these dtypes.

    ``ir`` defines ``i32 symbol(result*, exception**, arguments…)``, which gives 0 unless the
    function raises; booleans are bytes.
    """

    symbol: str
    python: Callable[..., Any]
    arguments: tuple[np.dtype, ...]
    result: np.dtype
    raises: bool
    ir: str

    def __call__(self, *arrays: Any) -> Any:
        """The Python function on every element; raises its exceptions."""
        operands = [_elements(a) for a in np.broadcast_arrays(*arrays)]
        shape = np.broadcast_shapes(*map(np.shape, arrays))
        results = [self.python(*items) for items in zip(*operands, strict=True)]
        return np.array(results, self.result).reshape(shape)[()]

    def error(self, arguments: Sequence[Any]) -> Exception:
        """The Python function's exception on these numbers, on which the compiled one failed."""
        try:
            self(*arguments)
        except Exception as error:
            return error
        return ArithmeticError(f"{self.python.__name__}{tuple(arguments)} failed in compiled code")


def _elements(array: Any) -> list[Any]:
    """Elements as Python numbers; those that Python has no type for as NumPy scalars."""
    flat = np.asarray(array).ravel()
    return flat.tolist() if flat.dtype.char in "?ld" else list(flat)


FUNCTIONS: weakref.WeakValueDictionary[str, ScalarFunction] = weakref.WeakValueDictionary()


class FunctionName(str):
    """A function's symbol, which also keeps the function alive."""

    __slots__ = ("function",)
    function: ScalarFunction

    @classmethod
    def of(cls, function: ScalarFunction) -> FunctionName:
        FUNCTIONS[function.symbol] = function
        name = cls(function.symbol)
        name.function = function
        return name


def infer_call(types: Sequence[TensorType], attrs: Mapping[str, Any]) -> Types:
    shape = broadcast([t.shape for t in types])
    return (TensorType(attrs["dtype"], shape, "array" if shape else "scalar"),)


def call_reference(*arrays: Any, function: str, dtype: np.dtype, raises: bool) -> Any:
    callee = FUNCTIONS.get(str(function))
    if callee is None:
        raise InternalError(f"the function {function!r} of a graph that was parsed is not at hand")
    return callee(*arrays)


register(Op(
    name="ScalarCall", kind="elementwise", scalar="scalar_call", infer=infer_call,
    reference=call_reference, cost=60.0, takes="f", admits=SCALAR,
    called="a function of fusec.vectorize",
    doc="A function of fusec.vectorize on each element. attrs: function, dtype (of its result), "
        "raises.",
))
