"""A back end: what makes code of kernels, and of native loops, for one kind of device.

Everything before it (graph, passes, fusion, loop IR, the places of values) and after it (memory,
steps in order, checks, library calls) is the same for all.  A back end is a folder of its own and a
line in `fusec.codegen.backends`; nothing else names it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from fusec.errors import InternalError
from fusec.ir import Loc
from fusec.ir.dims import Size

if TYPE_CHECKING:
    import numpy as np

    from fusec.ir import Node

    from .control_program import ControlProgram
    from .loop_ir import Kernel, Param
    from .native_nest import CompileStats, NestBlock

Strides = tuple[Size, ...]


class NotNativeError(Exception):
    """Something in a loop that only runs step by step; the message names it."""

    def __init__(self, reason: str, loc: Loc | None = None) -> None:
        super().__init__(reason)
        self.loc = loc


class Backend(ABC):
    """Makes code for one kind of device.

    With ``is_native`` the code of a form is a `NativeNest`, which the launcher calls by address
    with the words of `block`.  Without, it is a Python function ``code(buffers, sizes)`` that runs
    the form on arrays in the memory of its device, for these values of the sizes' symbols, and
    answers whether no check failed; several forms of a kernel run in order.
    """

    name: str
    is_native = False

    @abstractmethod
    def supports(self, op: str, dtype: np.dtype) -> bool:
        """Whether kernels may use the scalar op for results of this dtype."""

    @abstractmethod
    def specialise(self, kernel: Kernel, strides: Sequence[Strides]) -> list[Any]:
        """The forms that the kernel runs as, in order, for buffers with these byte strides.

        A form says in ``mode`` how it runs, and in ``is_static`` whether it is one of known sizes;
        then it counts its ``points``.
        """

    @abstractmethod
    def compile(self, forms: Sequence[Any], stats: CompileStats) -> list[Any]:
        """The code of each form; what it cost is added to ``stats``."""

    def block(self, form: Any, params: tuple[Param, ...]) -> NestBlock:
        """A native form's argument block, with the constants of its kernel."""
        raise InternalError(f"kernels of the back end {self.name!r} have no argument blocks")

    def compile_control(
        self, node: Node, strides: Sequence[tuple[int, ...]], stats: CompileStats
    ) -> ControlProgram:
        """A branch or loop as one native function; ``strides`` are its operands', in bytes.

        Raises `NotNativeError` where it can only run step by step, each sub-graph as a plan.
        """
        raise NotNativeError(f"the back end {self.name!r} has no native loops")

    @abstractmethod
    def clear(self) -> None:
        """Forget compiled code; what is in use lives on with its plans."""
