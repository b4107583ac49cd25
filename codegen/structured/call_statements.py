"""Statements of whole calls, which loops have in other forms: library calls, branches and loops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from fusec.core.records import Record, dataclass
from fusec.ir import Node

from .kernel_statements import RunKernel
from .memory import View

if TYPE_CHECKING:
    from ..plan.schedule import ControlRun


@dataclass(eq=False)
class NodeCall:
    """A node that no kernel computes: its results are written to views.

    An operand is a view, or a constant itself.
    """

    node: Node
    operands: Sequence[View | Any]
    results: Sequence[View]

    @property
    def name(self) -> str:
        return self.node.name

    @property
    def kinds(self) -> Node:
        """The node, of whose types only dtypes and kinds may be read."""
        return self.node


@dataclass(eq=False)
class CallLibrary(NodeCall):
    """A library call.

    A fresh array of the library's own that lies as a result does stands in its place.
    """

    run: ClassVar[None] = None


@dataclass(eq=False)
class RunProgram(NodeCall):
    """A branch or loop, as its ``run`` says."""

    run: ControlRun


class Return(Record):
    """The results of the call: views, or constants."""

    results: tuple[View | Any, ...]


CallStatement = RunKernel | CallLibrary | RunProgram
