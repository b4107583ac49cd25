"""Checks: nodes that raise the program's own exception where a condition does not hold.

A check has an effect, so passes neither remove nor move it; a branch or loop that holds one has an
effect too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fusec.ir import Graph, Node, TensorType

from .registry import Op, Types, get, register

CHECKS = frozenset({"Check", "BoundsCheck"})
PLAIN = (str, bytes, int, float, complex, bool, type(None))
_classes: dict[str, type[Exception]] = {}


def describe_error(error: Exception) -> tuple[str, tuple[Any, ...]] | None:
    """An exception as plain data, its class by name; None if its arguments are no plain data."""
    if not all(type(a) in PLAIN for a in error.args):
        return None
    kind = type(error)
    name = kind.__qualname__ if kind.__module__ == "builtins" else (
        f"{kind.__module__}.{kind.__qualname__}")
    _classes[name] = kind
    return name, tuple(error.args)


def make_error(error: tuple[str, tuple[Any, ...]]) -> Exception:
    """The exception that `describe_error` described in this process."""
    name, args = error
    return _classes[name](*args)


def infer_check(types: Sequence[TensorType], attrs: Mapping[str, Any]) -> Types:
    return (TensorType(np.dtype(np.bool_), (), "scalar"),)


def check_reference(holds: Any, error: tuple[str, tuple[Any, ...]]) -> Any:
    if not holds:
        raise make_error(error)
    return np.bool_(True)


def verify_reference(holds: Any, error: Any = None) -> Any:
    """As `check_reference`; without ``error`` the condition alone, as kernels compute it."""
    return check_reference(holds, error) if error is not None else np.bool_(holds)


def has_effects(node: Node) -> bool:
    """Whether running the node does more than give its results."""
    if get(node.op).stateful:
        return True
    return node.op in ("Cond", "Loop", "Fused") and any(
        get(op).stateful for value in node.attrs.values() if isinstance(value, Graph)
        for op in value.ops)


register(Op(
    name="Check", kind="extern", arity=1, infer=infer_check, reference=check_reference,
    stateful=True,
    doc="Raises where its operand is false; attrs: error: the exception's class and arguments.",
))
register(Op(
    name="Verify", kind="elementwise", arity=1, scalar="verify", infer=infer_check,
    reference=verify_reference, stateful=True,
    doc="A Check that a kernel makes; where its operand is false the call is repeated through "
        "NumPy, which raises. attrs: error.",
))
