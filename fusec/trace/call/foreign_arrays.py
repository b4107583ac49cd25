"""Arrays of other libraries: refused by name, with the way to convert each into a NumPy array."""

from __future__ import annotations

import os
import sys
from types import CellType, FunctionType
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from fusec.errors import FusecError, user_error
from fusec.ir import Loc

from ..facts.code_names import globals_in
from ..values.array import TracedArray

_ARRAY_PROTOCOLS = ("__array_namespace__", "__array_interface__", "__array_struct__", "__dlpack__",
              "__cuda_array_interface__")
_INSTALLED = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")
_CURES = {
    "pandas": "x.to_numpy()", "xarray": "x.to_numpy()", "polars": "x.to_numpy()",
    "pyarrow": "x.to_numpy()", "dask": "x.compute()", "torch": "x.numpy()",
    "cupy": "x.get() (or make it an argument: those may be on a GPU)", "zarr": "x[...]",
    "tensorflow": "x.numpy()", "sparse": "x.todense()", "scipy": "x.toarray()", "h5py": "x[...]",
    "netCDF4": "x[...]", "pint": "x.magnitude",
}
_TAKEN = ("torch", "jax", "jaxlib", "pandas")  # as arguments; see fusec.signature.foreign_arguments
_SPARSE_CURE = (
    "pass it as an argument (of format csr, csc or coo), or call what needs it outside")

# A class is not ours to keep: what its methods can reach may be all that a program has made.
_answers: WeakKeyDictionary[Any, bool] = WeakKeyDictionary()


def is_foreign(x: Any) -> bool:
    """Whether it is an array, table or tensor of another library."""
    kind = type(x)
    if kind is TracedArray or issubclass(kind, (np.ndarray, np.generic, type)):
        return False
    return is_foreign_class(kind)


def is_foreign_class(kind: Any) -> bool:
    """Whether objects of the class are foreign arrays."""
    answer = _answers.get(kind)
    if answer is None:
        answer = _answers[kind] = _is_foreign_class(kind)
    return answer


def _is_foreign_class(kind: Any) -> bool:
    if not isinstance(kind.__module__, str):  # a descriptor, for Cython's functions
        return False
    root = kind.__module__.partition(".")[0]
    if is_sparse_class(kind):
        return True
    if root in ("numpy", "fusec") or issubclass(kind, np.ndarray):
        return False
    if root in _CURES:
        return hasattr(kind, "__array__")
    # Other objects with ``__array__`` may hold several arrays: their attributes are traced.
    is_array = any(hasattr(kind, name) for name in _ARRAY_PROTOCOLS) or all(
        hasattr(kind, name) for name in ("__array__", "dtype", "shape"))
    return is_array and any(part in _file_of(kind) for part in _INSTALLED)


def is_sparse_class(kind: type) -> bool:
    """Whether it is one of SciPy's sparse arrays and matrices, or derived from one."""
    return hasattr(kind, "toarray") and any(
        str(base.__module__).startswith("scipy.sparse") for base in kind.__mro__)


def _file_of(kind: type) -> str:
    return str(getattr(sys.modules.get(kind.__module__), "__file__", None) or "")


def public_name(kind: type) -> str:
    """``pandas.DataFrame``"""
    if kind.__module__.startswith("jaxlib"):
        return f"jax.{kind.__name__.removesuffix('Impl')}"
    parts = kind.__module__.split(".")
    for count in range(1, len(parts)):
        home = ".".join(parts[:count])
        if getattr(sys.modules.get(home), kind.__qualname__, None) is kind:
            return f"{home}.{kind.__qualname__}"
    return f"{kind.__module__}.{kind.__qualname__}"


def refusal(x: Any, what: str, loc: Loc | None) -> FusecError:
    """The error for a foreign array; ``what`` names it: "argument df"."""
    return user_error(
        TypeError, f"{what} is a {public_name(type(x))}: only arrays of NumPy are compiled", loc,
        _cure(type(x)))


def _cure(kind: type) -> str:
    root = kind.__module__.partition(".")[0]
    if is_sparse_class(kind):
        return _SPARSE_CURE
    if root == "jax" and kind.__name__.endswith("Tracer"):
        return ("a value that JAX traces has no elements yet: call the function outside of "
                "jax.jit, or through jax.pure_callback")
    if kind.__name__ == "PRNGKeyArray":
        return "pass jax.random.key_data(x), or a key of fusec.random"
    values = _CURES.get(root, "np.asarray(x)")
    return (f"pass it as an argument, or its values, {values}" if root in _TAKEN else
            f"pass its values, {values}, and put the result back after the call")


def check_names(fn: FunctionType, loc: Loc | None) -> None:
    """Raise for foreign arrays that the function reads as globals or closure variables."""
    for name in globals_in(fn.__code__):
        if is_foreign(fn.__globals__.get(name)):
            raise refusal(fn.__globals__[name], f"global {name}", loc)
    for name, cell in zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=False):
        if cell != CellType() and is_foreign(cell.cell_contents):
            raise refusal(cell.cell_contents, f"closure variable {name}", loc)
