"""Errors of native loops that are left through an exit of a check, a number or an index."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fusec.codegen.plan.control_program import OF_NOTHING, OF_NUMBERS, ErrorExit
from fusec.errors import located
from fusec.ir import Node
from fusec.ir.sizes.dims import Dim
from fusec.ops.calls.checks import make_error
from fusec.ops.calls.scalar_calls import FUNCTIONS
from fusec.ops.graphs.evaluate import apply
from fusec.ops.rows.gather import out_of_bounds


def error_at(error_exit: ErrorExit, index: int = 0, given: int = 0) -> BaseException:
    """The error of an exit's node; ``given`` is the size, if the exit does not have it."""
    if error_exit.node.op == "Check":
        return located(make_error(error_exit.node.attrs["error"]), error_exit.node.loc)
    if error_exit.axis == OF_NOTHING:
        return _of_nothing(error_exit.node)
    if error_exit.axis == OF_NUMBERS:
        return _of_numbers(error_exit.node, index)
    size = given if error_exit.size is None or isinstance(error_exit.size, Dim) else (
        error_exit.size)
    return located(out_of_bounds(index, error_exit.axis, int(size)), error_exit.node.loc)


def scalar_error(error_exit: ErrorExit, arguments: Sequence[Any]) -> BaseException:
    """The exception of a function of ``fusec.vectorize`` on these numbers."""
    assert error_exit.call is not None
    return located(FUNCTIONS[error_exit.call[0]].error(arguments), error_exit.node.loc)


def _of_nothing(node: Node) -> Exception:
    """NumPy's error for an extremum of an empty array."""
    shape = [0 if axis in node.attrs["axes"] else 1 for axis in range(node.inputs[0].type.rank)]
    try:
        apply(node, [np.empty(shape, node.inputs[0].dtype)])
    except ValueError as error:
        return located(error, node.loc)
    raise AssertionError(f"internal error: {node.op} of nothing has a value")


def _of_numbers(node: Node, number: int) -> Exception:
    """NumPy's error for a number that it does not take."""
    try:
        apply(node, [number for _ in node.inputs])
    except ValueError as error:
        return located(error, node.loc)
    raise AssertionError(f"internal error: {node.op} of {number} has a value")
