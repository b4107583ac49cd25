"""Texts of a kernel's code whose lines are linked with the lines of its loops."""

from __future__ import annotations

from fusec.core.records import dataclass

from ..kernels.loop_ir import Expr, Kernel, kernel_lines

Rows = list[list[int]]  # for each line of a text the lines of the loops that it is of


@dataclass
class Listing:
    """A text of a kernel with its links; ``unlinked``: why it has none, or ""."""

    text: str
    rows: Rows
    unlinked: str = ""


def lines_of_expressions(kernel: Kernel) -> list[dict[Expr, list[int]]]:
    """For each nest, and each expression of it, the lines of the loops that compute, store or join
    it."""
    found: list[dict[Expr, list[int]]] = [{} for _ in kernel.nests]
    nest = -1
    for number, (text, e) in enumerate(kernel_lines(kernel)):
        if text.startswith("  nest "):
            nest += 1
        elif e is not None:
            found[nest].setdefault(e, []).append(number)
    return found
