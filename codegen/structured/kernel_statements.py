"""The statement that runs a kernel."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from fusec.core.records import Record, dataclass, field
from fusec.errors import InternalError
from fusec.ir.lazy_values import lazy
from fusec.ir.sizes.dims import Size

from ..kernels.loop_ir import Kernel, Param
from ..kernels.specialise import LoopForm
from ..machine_code.native_backend import NativeBackend
from .memory import Operand, Register, View

if TYPE_CHECKING:
    from ..backend import Backend
    from ..machine_code.native_nest import NativeNest, NestBlock
    from ..plan.block_templates import OpenBlock


class NestUse(Record):
    """A nest of a kernel for operands of known strides; ``exit``: of its checks, -1: it has none.

    ``largest`` is the form at the upper bounds of its sizes: as much memory as it may need, but for
    partial results of a sum over ``unbounded``, a size that the call brings.
    """

    form: LoopForm
    largest: LoopForm
    params: tuple[Param, ...]
    exit: int = -1
    unbounded: str = ""


def uses_of(forms: Iterable[Any], params: tuple[Param, ...]) -> list[NestUse]:
    """Nests of these forms, at their own sizes."""
    return [NestUse(form, form, params) for form in forms]


@dataclass(eq=False)
class RunKernel:
    """The nests of a kernel, one after the other.

    Its buffers are ``operands``, then ``results``: arrays that it writes, and numbers.

    In the plan of a call a kernel is a statement for itself: ``boundaries`` say why it is not one
    with those before it, ``not_empty`` are sizes over which it takes extrema (of nothing NumPy
    raises), ``code`` is the back end's code of each nest, and ``on_host`` the same as the CPU's, of
    numbers that a device need not compute.
    """

    kernel: Kernel
    nests: Sequence[NestUse]
    operands: Sequence[Operand | View]
    results: Sequence[Register | View]
    boundaries: tuple[str, ...] = ()
    not_empty: tuple[Size, ...] = ()
    code: list[Any] = field(default_factory=list)
    on_host: RunKernel | None = None

    @property
    def name(self) -> str:
        return self.kernel.name

    @property
    def params(self) -> tuple[Param, ...]:
        """The constants that its kernel gets at run time."""
        return self.kernel.params

    @property
    def places(self) -> list[Any]:
        """Of all its buffers, in order."""
        return [*self.operands, *self.results]

    @property
    def forms(self) -> list[Any]:
        """Of its nests."""
        return [use.form for use in self.nests]

    @property
    def pattern(self) -> RunKernel | None:
        """The same with symbols, for all sizes; None where there is only this one."""
        return None

    def filled(self, block: OpenBlock) -> NestBlock:
        """A block of the pattern at the sizes of this step."""
        raise InternalError(f"{self.name} has no pattern")

    @lazy
    def is_static(self) -> bool:
        """Whether all its sizes are known when its nests are compiled."""
        return all(form.is_static for form in self.forms) and all(
            place.is_static for place in self.places)


class NestToRun(NamedTuple):
    """A nest of a kernel as it is launched: argument block, machine code, and the places of the
    kernel's buffers."""

    block: NestBlock
    code: NativeNest
    places: Sequence[Any]


def nests_to_run(kernels: Iterable[RunKernel], backend: Backend) -> Iterator[NestToRun]:
    """Those of the kernels of a back end whose code is called by address, with new blocks."""
    assert isinstance(backend, NativeBackend)
    for step in kernels:
        for form, code in zip(step.forms, step.code, strict=True):
            yield NestToRun(backend.block(form, step.params), code, step.places)
