"""A back end: what makes code of kernels, and of branches and loops, for one kind of device.

Everything before it (graph, passes, fusion, loop IR, the places of values) and after it (memory,
steps in order, checks) is the same for all.  A back end is a folder of its own and a line in
`fusec.codegen.backends`; nothing else names it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from fusec.ir.sizes.dims import Size

from .structured.not_native import NotNativeError

if TYPE_CHECKING:
    import numpy as np

    from fusec.ir import Node

    from .kernels.loop_ir import Kernel
    from .machine_code.native_nest import CompileStats
    from .plan.control_program import ControlCode, ControlProgram

Strides = tuple[Size, ...]


class DeviceArrays(ABC):
    """Memory of a device that does not read the host's: NumPy's arrays over addresses of its own,
    which the host shapes and slices, and whose elements only kernels and these methods touch."""

    @abstractmethod
    def empty(self, shape: tuple[int, ...], dtype: np.dtype, order: str | Sequence[int]) -> Any:
        """A fresh array there; ``order`` is ``"C"`` or the axes from the slowest to the fastest."""

    @abstractmethod
    def is_there(self, array: np.ndarray) -> bool:
        """Whether its elements are the device's."""

    @abstractmethod
    def bring(self, array: np.ndarray) -> Any:
        """A copy there of an array of the host's, in the same order; it may change afterwards."""

    @abstractmethod
    def write(self, target: Any, source: Any) -> None:
        """Copy elements there; what is to be copied may be the host's."""

    @abstractmethod
    def fetch(self, array: Any, after: Any = None) -> np.ndarray:
        """A copy in the host's memory, in the same order, of its contents once the device has done
        all work it was asked for; or the work until the `moment` ``after``."""

    def moment(self, nbytes: int) -> Any:
        """Now, as the device's work goes: for a `fetch` of so many bytes; None: it takes none."""
        return None


LibraryFunction = Callable[[Sequence[Any], Sequence[Any]], Sequence[Any]]


class Backend(ABC):
    """Makes code for one kind of device, whose memory is ``arrays``; None: it reads the host's.

    The code of a form is a function ``code(buffers, sizes)``, which runs it on arrays there with
    ``sizes`` as the values of the symbols, and returns True unless a check failed; that of one that
    ``is_native`` is a `NativeNest`, see `NativeBackend`.  The forms of a kernel run in order.
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

    def leaves_whole(self, node: Node) -> bool:
        """Whether a branch or loop without a kernel is no slower elsewhere as a whole than divided:
        each iteration would be a step over several devices."""
        return False

    @abstractmethod
    def specialise(self, kernel: Kernel, strides: Sequence[Strides]) -> list[Any]:
        """The forms that the kernel runs as, in order, for buffers with these byte strides: each
        has a ``mode`` (how it runs), ``is_static`` (whether its sizes are known) and, where it is,
        ``points``, their number."""

    @abstractmethod
    def compile(self, forms: Sequence[Any], stats: CompileStats) -> list[Any]:
        """The code of each form; what it cost is added to ``stats``."""

    def compile_control(
        self, node: Node, strides: Sequence[Strides], stats: CompileStats
    ) -> ControlProgram | ControlCode:
        """A branch or loop as one function; ``strides`` are its operands', in bytes.  Raises
        `NotNativeError` where it can only run step by step, each sub-graph as a plan."""
        raise NotNativeError(f"the back end {self.name!r} has no native loops")

    def library_call(self, node: Node) -> LibraryFunction | None:
        """A node that no kernel computes, of a device with ``arrays``: a function of its operands,
        and of functions that give the memory of each result; None: NumPy computes it, of copies."""
        return None

    def status(self) -> Iterable[str]:
        """What its devices need and have of this machine, a line each, for ``fusec doctor``."""
        return ()

    def wait(self) -> None:  # noqa: B027
        """Return when the kernels that were launched have ended: at once, where launching them
        takes until then."""

    @abstractmethod
    def clear(self) -> None:
        """Forget compiled code; what is in use lives on with its plans."""
