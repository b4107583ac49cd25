"""Which library calls CuPy computes, and its functions: they have NumPy's names."""

from __future__ import annotations

import functools
import importlib
import inspect
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from fusec import config
from fusec.ir import Node
from fusec.ops.calls.library import LIBRARY, LibraryCall, has_operands

from .adapted_functions import adapted

# What these parameters say CuPy understands as NumPy does.
_PARAMETERS = ("axis", "axes", "n", "s", "norm", "full_matrices", "compute_uv", "UPLO", "mode",
               "side", "minlength", "return_index", "return_inverse", "return_counts", "equal_nan",
               "q", "method", "keepdims", "kth", "assume_unique", "invert", "right", "rcond",
               "tol", "bins")
# CuPy's exceptions for contents and shapes that NumPy may refuse, too.  A TypeError is none: an
# array of the host that was given to CuPy is a defect of ours.
REFUSALS = (np.linalg.LinAlgError, ValueError, IndexError)
_MASKED = ("tuple", ("operand", 0), ("operand", 1))  # the form of ``x[mask]``


def is_called_on_gpu(node: Node) -> bool:
    """Whether CuPy computes the node: its row says that CuPy's function does the same for numbers
    of these kinds, and its sizes are known but for those of results that the call decides."""
    if node.op == "MatMul":
        return _has_types(node, "fc")
    row = LIBRARY.get(node.op)
    if row is None or not row.gpu or not _has_types(node, row.gpu):
        return False
    if row.op == "GetItem":
        return _is_masked(node)
    return _is_understood(row, node) and _is_same(row, node)


def _has_types(node: Node, kinds: str) -> bool:
    """Whether its arrays are of these kinds; CuPy's libraries take no float16."""
    row = LIBRARY.get(node.op)
    known = [v.type for v in node.inputs]
    known += [] if row is not None and row.sized else node.types
    # The weights of counts may be floats.
    allowed = [kinds, *[f"{kinds}f" if node.op == "Bincount" else kinds] * len(node.inputs)]
    may_be_empty = node.types if node.op == "LinalgLstsq" else ()  # residuals
    return bool(node.inputs) and all(
        t.is_static and (0 not in t.shape or t in may_be_empty) for t in known) and all(
        v.dtype.kind in kinds and (v.dtype.kind != "f" or v.dtype.itemsize > 2)
        for v, kinds in zip(node.inputs, allowed, strict=False))


def _is_masked(node: Node) -> bool:
    """An integer array of indices is none of these: CuPy lets those out of range wrap around."""
    array, *keys = node.inputs
    return node.attrs["form"] == _MASKED and len(keys) == 1 and keys[0].dtype.kind == "b" and (
        array.type.kind == "array")


def _is_understood(row: LibraryCall, node: Node) -> bool:
    """Whether CuPy has the parameters of all arguments but operands, by position and by name."""
    return all(name in _PARAMETERS or form is None or (name == "kind" and form == "stable")
               for name, form in _arguments(row, node) if not has_operands(form))


def _arguments(row: LibraryCall, node: Node) -> Iterator[tuple[str, Any]]:
    """The arguments' forms, with the names of the parameters as far as NumPy tells them."""
    yield from zip(_parameters(row.function), node.attrs["form"][1:], strict=False)
    yield from ((pair[1], pair[2]) for pair in node.attrs["named"][1:])


def _is_same(row: LibraryCall, node: Node) -> bool:
    """Whether CuPy's results are those of NumPy: its weighted counts add in any order, unique
    elements' places have another shape of more axes than one, and ``kth`` is no array there."""
    if row.op == "Bincount":
        return len(node.inputs) == 1 or not config.deterministic
    if "kth" in row.varying:
        return len(node.inputs) == 1
    return row.op != "Unique" or len(node.inputs[0].shape) == 1


@functools.cache
def _parameters(function: Callable[..., Any]) -> tuple[str, ...]:
    """Those that a position means; none of functions that NumPy has in C."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:
        return ()
    return tuple(p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD)


def function_of(node: Node, cupy: Any) -> Any:
    """CuPy's function for the node."""
    row = LIBRARY.get(node.op)
    if row is None:
        return cupy.matmul
    module = row.function.__module__ or "numpy"
    if not module.startswith("numpy"):
        return row.function  # Python's own, of any arrays
    own = cupy
    for part in [*module.split(".")[1:], row.function.__name__]:
        own = getattr(own, part, None) or _absent
    return adapted(row.op, own, cupy)


def _absent(*args: Any, **named: Any) -> Any:
    """For a function that this CuPy has not: NumPy computes it."""
    raise ValueError("CuPy has no such function")


def may_refuse(node: Node) -> bool:
    """Whether NumPy refuses some matrices, as CuPy does inside of `raising` alone."""
    row = LIBRARY.get(node.op)
    return row is not None and row.function.__module__ == "numpy.linalg"


def raising() -> AbstractContextManager[Any]:
    """Without it wrong results stand for matrices that NumPy refuses; with it CuPy waits."""
    state: AbstractContextManager[Any] = importlib.import_module("cupyx").errstate(linalg="raise")
    return state
