"""A back end: what makes code of kernels, and of native loops, for one kind of device.

Everything before it (graph, passes, fusion, loop IR, the places of values) and after it (memory,
steps in order, checks, library calls) is the same for all.  A back end is a folder of its own and a
line in `fusec.codegen.backends`; nothing else names it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol

from fusec.errors import InternalError
from fusec.ir import Loc
from fusec.ir.sizes.dims import Size

if TYPE_CHECKING:
    import numpy as np

    from fusec.ir import Node

    from .kernels.loop_ir import Kernel, Param
    from .machine_code.native_nest import CompileStats, NestBlock
    from .plan.control_program import ControlCode, ControlProgram
    from .plan.open_blocks import OpenBlock
    from .plan.schedule import Schedule

Strides = tuple[Size, ...]


class NotNativeError(Exception):
    """A loop or branch cannot be compiled as one native function; the message says why."""

    def __init__(self, reason: str, loc: Loc | None = None) -> None:
        super().__init__(reason)
        self.loc = loc


class DeviceArrays(Protocol):
    """Arrays in the memory of a device that does not read the host's."""

    def empty(self, shape: tuple[int, ...], dtype: np.dtype, order: str | Sequence[int]) -> Any:
        """A fresh array there; ``order`` is ``"C"`` or the axes from the slowest to the fastest."""

    def bring(self, array: np.ndarray) -> Any:
        """A copy there of an array of the host's, in the same order; it may change afterwards."""

    def write(self, target: Any, source: Any) -> None:
        """Copy elements there; what is to be copied may be the host's."""

    def moment(self, nbytes: int) -> Any:
        """Now, as the device's work goes: for a `fetch` of so many bytes; None: it takes none."""

    def fetch(self, array: Any, after: Any = None) -> np.ndarray:
        """A copy in the host's memory, in the same order, of its contents once the device has done
        all work it was asked for; or the work until a `moment`."""


class ResidentArrays(DeviceArrays, Protocol):
    """Such arrays that the program has itself: as arguments and results, in their own memory.

    ``kind`` is the class of the results.
    """

    kind: type

    def bring_as_it_lies(self, array: np.ndarray) -> Any:
        """As `bring`, with the strides that it has."""

    def lent(self, array: Any) -> np.ndarray:
        """An argument as plans take it."""

    def shown(self, value: Any) -> Any:
        """A result as the program gets it."""

    def wait_for(self, stream: Any) -> None:
        """Until a stream of theirs has done what it was asked."""

    def call(self) -> AbstractContextManager[None]:
        """What is around a call."""

    def prepared(self, schedule: Schedule, numbers: int) -> PreparedKernels | str:
        """The kernels of a plan that has nothing else; or why they cannot be prepared.

        ``numbers``: how many of its cells are numbers that calls give.
        """


class PreparedKernels(Protocol):
    """The steps of a plan, kernels ready to be launched at addresses, and what text that does so
    names.

    ``names``: see `cupy_arrays`.  ``parts`` are segments of kernels, whose
    ``bases`` are the arrays and blocks whose addresses a launch takes, and library calls, which
    make the arrays ``called``; ``nbytes`` is the block that a call borrows, ``numbers`` how many
    cells hold numbers that it gives, ``status`` where in the block checks note that they failed, or
    -1.  ``text`` says for people how they are launched.
    """

    names: dict[str, Any]
    parts: Sequence[Any]
    called: Collection[tuple[str, int]]
    nbytes: int
    numbers: int
    status: int

    def address(self, place: Any) -> tuple[tuple[str, int], int]:
        """The base of a value that kernels read or write, and the bytes after its address."""

    def function(self, node: Node) -> Any:
        """The library's function for a call."""

    def around(self, node: Node) -> Any:
        """What makes a context for the call; None: it needs none."""

    def outside(self, is_packed: bool) -> Any:
        """A function that gives a pointer to a copy there of an array from outside, which has no
        gaps, or as it lies."""

    def constant(self, array: np.ndarray) -> Any:
        """A function that gives an array there with these elements."""

    def over(self, array: np.ndarray) -> Any:
        """An array that is there as the library has arrays."""

    @property
    def text(self) -> str: ...


class Backend(ABC):
    """Makes code for one kind of device.

    ``is_native``: the code of a form is a `NativeNest`.  The launcher calls it by address with the
    argument block that `block` makes.

    Not ``is_native``: the code of a form is a Python function ``code(buffers, sizes)``.  It runs
    the form on arrays in device memory, with ``sizes`` as the values of the symbols, and returns
    True unless a check failed.

    ``arrays`` makes what its kernels read and write on a device with memory of its own; None: they
    read the host's.

    The forms of one kernel run in order.
    """

    name: str
    is_native = False
    arrays: DeviceArrays | None = None

    @abstractmethod
    def supports(self, op: str, dtype: np.dtype) -> bool:
        """Whether kernels may use the scalar op for results of this dtype."""

    def has_kernel(self, node: Node) -> bool:
        """Whether its devices may be given the node: asked before passes make others of it."""
        return True

    def refusal(self, node: Node) -> str:
        """Why there is no kernel for the node, where its kind alone does not say so; else ""."""
        return ""

    @abstractmethod
    def specialise(self, kernel: Kernel, strides: Sequence[Strides]) -> list[Any]:
        """The forms that the kernel runs as, in order, for buffers with these byte strides.

        A form has a ``mode`` (how it runs) and ``is_static`` (whether its sizes are known); a
        static form also has ``points``, their number.
        """

    @abstractmethod
    def compile(self, forms: Sequence[Any], stats: CompileStats) -> list[Any]:
        """The code of each form; what it cost is added to ``stats``."""

    def block(self, form: Any, params: tuple[Param, ...]) -> NestBlock:
        """A native form's argument block, with the constants of its kernel."""
        raise InternalError(f"kernels of the back end {self.name!r} have no argument blocks")

    def open_block(self, form: Any, params: tuple[Param, ...]) -> OpenBlock:
        """The same of a form that has symbols of a trace for sizes."""
        raise InternalError(f"kernels of the back end {self.name!r} have no argument blocks")

    def compile_control(
        self, node: Node, strides: Sequence[tuple[int, ...]], stats: CompileStats
    ) -> ControlProgram | ControlCode:
        """A branch or loop as one function; ``strides`` are its operands', in bytes.

        Raises `NotNativeError` where it can only run step by step, each sub-graph as a plan.
        """
        raise NotNativeError(f"the back end {self.name!r} has no native loops")

    def check_control(self, node: Node, strides: Sequence[tuple[int, ...]]) -> None:
        """Raise `NotNativeError` where `compile_control` would; nothing is compiled."""
        raise NotNativeError(f"the back end {self.name!r} has no native loops")

    def library_call(self, node: Node) -> Callable[[Sequence[Any], Sequence[Any]], Sequence[Any]]:
        """A node that no kernel computes, on a device with arrays of its own that `has_kernel` for
        it: a function of its operands, and of functions that give the memory of each result."""
        raise InternalError(f"the back end {self.name!r} calls no library for {node.op}")

    @abstractmethod
    def clear(self) -> None:
        """Forget compiled code; what is in use lives on with its plans."""
