"""Messages of failed checks in C: the texts of their exceptions, without values of the run."""

from __future__ import annotations

from fusec.core.locations import Loc
from fusec.ir import Node
from fusec.ops.calls.checks import make_error
from fusec.ops.rows.gather import kernel_checks

from ..plan.control_program import OF_NOTHING, OF_NUMBERS, ErrorExit
from .parts import CheckFailure


def failure_of(node: Node, loc: Loc | None, axis: int | None = None) -> CheckFailure:
    """That of a node which checks something; ``axis``: of an index out of range."""
    if "error" in node.attrs:
        error = make_error(node.attrs["error"])
        return CheckFailure(f"{type(error).__name__}: {error}".partition("\n")[0], loc)
    if node.op == "Call":
        return CheckFailure("RecursionError: a function calls itself too deep", loc)
    axis = node.attrs.get("axis") if axis is None else axis
    where = "" if axis is None or axis < 0 else f" for axis {axis}"
    return CheckFailure(f"IndexError: an index is out of bounds{where}", loc)


def failures_of(node: Node) -> list[CheckFailure]:
    """By number, those of the checks of a kernel."""
    return [failure_of(check, check.loc or node.loc)
            for check in kernel_checks(node.attrs["body"])]


def failures_of_exit(exit_: ErrorExit) -> list[CheckFailure]:
    """Those of an exit of a branch or loop: of a kernel one for each of its checks."""
    node = exit_.node
    if node.op == "Fused":
        return failures_of(node) or [failure_of(node, node.loc)]
    if exit_.axis == OF_NOTHING:
        return [CheckFailure(f"ValueError: {node.op} of an array without elements", node.loc)]
    if exit_.axis == OF_NUMBERS:
        return [CheckFailure(f"ValueError: {node.op} does not take the number", node.loc)]
    return [failure_of(node, node.loc, exit_.axis)]
