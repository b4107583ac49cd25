"""Statements of whole calls, which loops have in other forms: library calls, branches and loops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from fusec.core.records import Record, dataclass
from fusec.ir import Node

from ..kernel_statements import RunKernel
from ..memory import View

if TYPE_CHECKING:
    from ...plan.control_runs import ControlRun


@dataclass(eq=False)
class NodeCall:
    """A node that no kernel computes: its results are written to views.

    An operand is a view, or a constant itself.  ``run`` says how a branch or loop runs; without it
    this is a library call, and a fresh array of the library's own that lies as a result does stands
    in its place.  ``saved`` are operands, arguments that it changes, of which there have to be
    copies from before it until the call ends: a step after it may fail, and the program is repeated
    then.
    """

    node: Node
    operands: Sequence[View | Any]
    results: Sequence[View]
    run: ControlRun | None = None
    saved: Sequence[View] = ()

    @property
    def name(self) -> str:
        return self.node.name

    @property
    def kinds(self) -> Node:
        """The node, of whose types only dtypes and kinds may be read."""
        return self.node


class Return(Record):
    """The results of the call: views, or constants."""

    results: tuple[View | Any, ...]


CallStatement = RunKernel | NodeCall
