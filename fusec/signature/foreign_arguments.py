"""Arguments that hold arrays and are none of NumPy's: as views of their memory, never as copies.

Tensors of torch and JAX, whatever else says by DLPack where its memory lies, columns of pandas, and
Python's own buffers.  What has no such view (another dtype, another device, texts) is refused.

Source of the protocol: DLPack 1.0, and "Data interchange mechanisms" of the array API standard.
"""

from __future__ import annotations

import array
import ctypes
import mmap
from collections.abc import Callable, Sequence
from types import FunctionType, NoneType
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from fusec.core.records import replace
from fusec.errors import FusecError, user_error
from fusec.signature import blocks
from fusec.trace.call.foreign_arrays import is_foreign_class, is_sparse_class, public_name

Taker = Callable[[Any, str], Any]  # from an argument and its path to the array, or to itself

_HOST, _CUDA, _PINNED, _MANAGED = 1, 2, 3, 13  # DLPack's numbers of devices
_DEVICES = {4: "OpenCL", 7: "Vulkan", 8: "Metal", 9: "VPI", 10: "ROCm", 11: "ROCm", 14: "oneAPI",
            15: "WebGPU", 16: "Hexagon", 17: "MAIA"}
_PLAIN = frozenset((np.ndarray, float, int, bool, complex, str, NoneType, np.float64, np.float32,
                    np.int64, np.bool_))
_BUFFERS = (memoryview, array.array, bytearray, mmap.mmap, ctypes.Array)
_takers: WeakKeyDictionary[Any, Taker | None] = WeakKeyDictionary()


def may_be_among(leaves: Sequence[Any]) -> bool:
    """Whether a foreign array is among a call's leaves; quick where all are plain."""
    return not _PLAIN.issuperset(map(type, leaves)) and any(
        _taker_of(type(leaf)) is not None for leaf in leaves)


def note_arrays(error: Exception, leaves: Sequence[Any]) -> None:
    """Say in an error of a line of the function what it sees in the place of foreign arrays."""
    if not isinstance(error, FusecError) or error.diagnostic.loc is None:
        return
    is_method, may_have_labels = isinstance(error, AttributeError), blocks.may_have_labels()
    names = {public_name(type(x)) for x in leaves if (is_method and _is_noted(x)) or (
        may_have_labels and blocks.are_labelled(x))}
    notes = tuple(map(_seen_as, sorted(names)))
    if notes and notes[0] not in error.diagnostic.notes:
        error.diagnostic = replace(error.diagnostic, notes=(*error.diagnostic.notes, *notes))


def _seen_as(name: str) -> str:
    if name.endswith(".Dataset"):
        return ("the function is computed for each variable of a Dataset, which it sees as an "
                "array of NumPy's; dict(ds) is a dict of them")
    return (f"a value of class {name} is an array of NumPy's in the function, without methods and "
            "labels of its own")


def _is_noted(x: Any) -> bool:
    return not is_sparse_class(type(x)) and is_taken(type(x))


def is_taken(kind: Any) -> bool:
    """Whether objects of the class are taken as arrays."""
    return _taker_of(kind) is not None


def taken_flat(args: Sequence[Any], names: Sequence[str]) -> list[Any] | None:
    """Arguments of which none is a container and one at least is foreign, as `taken`; else None."""
    views = None
    for position, arg in enumerate(args):
        if type(arg) in _PLAIN:
            continue
        taker = _takers.get(type(arg))
        if taker is None:
            return None
        if views is None:
            views = list(args)
        views[position] = taker(arg, names[position])
    return views


def check_static(
    leaves: Sequence[Any], paths: Sequence[str], is_static: Sequence[bool]
) -> None:
    """Raise ``TypeError`` for a sparse array among static arguments."""
    for leaf, path, static in zip(leaves, paths, is_static, strict=True):
        if static and is_sparse_class(type(leaf)):
            raise _refusal(leaf, path, "and static", "leave it out of static=: the arrays that it "
                           "consists of are read at each call")


def taken(leaves: Sequence[Any], paths: Sequence[str]) -> list[Any]:
    """The leaves with views of NumPy for foreign arrays; those on a CUDA device stay.

    Raises ``TypeError`` that names the argument where there is no such view.
    """
    return [_taken(leaf, path) for leaf, path in zip(leaves, paths, strict=True)]


def _taken(leaf: Any, path: str) -> Any:
    taker = _taker_of(type(leaf))
    return leaf if taker is None else taker(leaf, path)


def _taker_of(kind: Any) -> Taker | None:
    if kind in _PLAIN:
        return None
    try:
        return _takers[kind]
    except KeyError:
        found = _takers[kind] = _found_taker(kind)
        return found


def _found_taker(kind: Any) -> Taker | None:
    if issubclass(kind, (np.ndarray, np.generic)) or not isinstance(kind.__module__, str):
        return None
    if issubclass(kind, _BUFFERS):
        return _of_buffer
    if any(base.__module__ == "torch" and base.__name__ == "Tensor" for base in kind.__mro__):
        return _of_torch
    if is_sparse_class(kind):
        return _sparse_taker(kind)
    if kind.__module__.partition(".")[0] == "pandas":
        # Its instants, which are one value each, have the method too.
        is_column = hasattr(kind, "to_numpy") and hasattr(kind, "__len__")
        return _of_pandas if is_column else None
    protocol = getattr(kind, "__dlpack__", None)
    # A class of the program is traced as its other classes are.
    is_array = protocol is not None and (
        is_foreign_class(kind) or not isinstance(protocol, FunctionType))
    return _of_dlpack if is_array and hasattr(kind, "__dlpack_device__") else None


def _refusal(x: Any, path: str, why: str, cure: str, **given: Any) -> FusecError:
    return user_error(TypeError, f"argument {path} is a {public_name(type(x))} {why}", None, cure,
                      values=[(name, str(value)) for name, value in given.items()])


def _elsewhere(x: Any, path: str, device: Any, cure: str) -> FusecError:
    return _refusal(x, path, "in the memory of another device, which fusec has no code for", cure,
                    device=device)


# ---------------------------------------------------------------------------------------- buffers


def _of_buffer(x: Any, path: str) -> Any:
    """The array over a buffer of Python."""
    try:
        return np.asarray(memoryview(x))
    except (BufferError, ValueError, TypeError) as error:
        raise _refusal(x, path, "without a view of NumPy", "pass np.array(x)", reason=error,
                       ) from None


# ------------------------------------------------------------------------------------------ torch


def _of_torch(x: Any, path: str) -> Any:
    """The tensor's memory; torch itself refuses views that NumPy would read wrongly."""
    if not x.is_cpu:
        if x.is_cuda:
            return x
        raise _elsewhere(x, path, x.device, "pass x.cpu()")
    if x.requires_grad:
        raise _refusal(
            x, path, "that requires a gradient, and torch would not see what is computed here",
            "pass x.detach(), and differentiate with fusec.grad", dtype=x.dtype)
    try:
        return x.numpy()
    except (TypeError, RuntimeError) as error:
        raise _refusal(x, path, "without a view of NumPy", _torch_cure(x), dtype=x.dtype,
                       reason=str(error).splitlines()[0]) from None


def _torch_cure(x: Any) -> str:
    layout = str(x.layout)
    if layout != "torch.strided":
        return "pass x.to_dense(), or its arrays: x.values() and its indices"
    if x.is_conj() or x.is_neg():
        return "pass x.resolve_conj().resolve_neg()"
    if x.is_quantized:
        return "pass x.dequantize()"
    return "pass x.float(), and convert the result back" if x.dtype.is_floating_point else (
        "pass x.numpy(force=True)")


# ----------------------------------------------------------------------------------------- sparse


def _sparse_taker(kind: Any) -> Taker:
    """What takes the arrays that a sparse array of SciPy's consists of."""
    if kind.__module__.startswith("scipy.sparse"):
        from .sparse_arguments import taken

        return taken
    return _of_derived


def _of_derived(x: Any, path: str) -> Any:
    raise _refusal(x, path, "whose class is derived from one of SciPy's, and its own methods "
                   "would not be followed", f"pass scipy.sparse.{x.format}_array(A)")


# ----------------------------------------------------------------------------------------- pandas


def _of_pandas(x: Any, path: str) -> Any:
    """The values of a column; its labels stay behind."""
    dtype = getattr(x, "dtype", None)
    if getattr(x, "ndim", 1) != 1 or dtype is None:
        raise _refusal(
            x, path, "with columns and labels, which compiled code would not follow",
            "pass the columns that it needs, x['name'], all of them as a dict, dict(x), or one "
            "array, x.to_numpy()")
    if isinstance(dtype, np.dtype):
        return x.to_numpy()
    raise _refusal(x, path, "whose dtype is none of NumPy's", f"pass {_pandas_cure(dtype)}",
                   dtype=dtype)


def _pandas_cure(dtype: Any) -> str:
    name, kind = type(dtype).__name__, getattr(dtype, "kind", "O")
    if name == "CategoricalDtype":
        return "x.cat.codes, the numbers of the categories"
    if name == "SparseDtype":
        return "x.sparse.to_dense()"
    if kind in "biuf":
        return "x.to_numpy(dtype=float, na_value=np.nan): what is missing has no other number"
    if kind in "Mm":
        return "x.astype('int64'), the count of its units"
    return "numbers: x.astype('category').cat.codes has one for each text"


# ----------------------------------------------------------------------------------------- DLPack


def _of_dlpack(x: Any, path: str) -> Any:
    """The array over what DLPack shows; read-only where the owner says so."""
    try:
        device = int(x.__dlpack_device__()[0])
    except Exception as error:  # whatever a foreign library raises is the reason
        raise _unseen(x, path, error) from None
    if device in (_CUDA, _MANAGED):
        return x
    if device not in (_HOST, _PINNED):
        raise _elsewhere(x, path, _DEVICES.get(device, f"number {device} of DLPack"),
                         "copy it to the host first")
    try:
        return np.from_dlpack(x)
    except Exception as error:  # as above
        raise _unseen(x, path, error) from None


def _unseen(x: Any, path: str, error: Exception) -> FusecError:
    dtype = getattr(x, "dtype", None)
    is_short = str(dtype).startswith(("bfloat16", "float8", "float4"))
    return _refusal(
        x, path, "without a view of NumPy",
        "pass x.astype(np.float32), and convert the result back" if is_short else
        "pass np.array(x), a copy, if that is what is meant", dtype=dtype,
        reason=(str(error).splitlines() or [type(error).__name__])[0])
