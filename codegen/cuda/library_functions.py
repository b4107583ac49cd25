"""Which library calls CuPy computes, and its functions: they have NumPy's names."""

from __future__ import annotations

import functools
import importlib
import inspect
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from fusec.ir import Node
from fusec.ops.calls.library import LIBRARY, has_operands

# What these parameters say CuPy understands as NumPy does.
_PARAMETERS = ("axis", "axes", "n", "s", "norm", "full_matrices", "compute_uv", "UPLO", "mode")


def is_called_on_gpu(node: Node) -> bool:
    """Whether CuPy computes the node: its row says that CuPy's function does the same, its sizes
    are known, and its numbers are floats or complex."""
    if node.op != "MatMul":
        row = LIBRARY.get(node.op)
        if row is None or not row.gpu or not _is_understood(row.function, node):
            return False
    types = [*(v.type for v in node.inputs), *node.types]
    return all(t.is_static and 0 not in t.shape for t in types) and all(
        t.dtype.kind in "fc" and t.dtype.itemsize > 2 for t in types)


def _is_understood(function: Callable[..., Any], node: Node) -> bool:
    """Whether CuPy has the parameters of all arguments but operands, by position and by name."""
    named = [pair[1] for pair in node.attrs["named"][1:]]
    by_position = zip(_parameters(function), node.attrs["form"][1:], strict=False)
    named += [name for name, form in by_position if not has_operands(form)]
    return all(name in _PARAMETERS for name in named)


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
    own = cupy
    for part in [*(row.function.__module__ or "").split(".")[1:], row.function.__name__]:
        own = getattr(own, part)
    return own


def may_refuse(node: Node) -> bool:
    """Whether NumPy refuses some matrices, as CuPy does inside of `raising` alone."""
    row = LIBRARY.get(node.op)
    return row is not None and row.function.__module__ == "numpy.linalg"


def raising() -> AbstractContextManager[Any]:
    """Without it wrong results stand for matrices that NumPy refuses; with it CuPy waits."""
    state: AbstractContextManager[Any] = importlib.import_module("cupyx").errstate(linalg="raise")
    return state
