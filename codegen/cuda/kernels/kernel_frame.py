"""The frame of a kernel: its parameters, their arguments, and addresses made of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...kernels.specialise import LoopForm
from ..module import CudaKernel, CudaParam, ParamKind
from ..scalars.emitter import BOOL, CudaEmitter, literal, type_name
from .launch_plan import Geometry, Slot

SHARED_CONSTANTS = 6


class KernelFrame:
    """A kernel without its body."""

    has_barriers = False
    max_threads = 256
    least_blocks = 1  # of a multiprocessor at once, for which registers have to do

    def __init__(self, form: LoopForm, name: str, index: str) -> None:
        self.form, self.name, self.index = form, name, index
        self.em = CudaEmitter()
        self.slots: list[Slot] = []
        self.params: list[CudaParam] = []
        self._named: dict[Slot, str] = {}
        self.head: list[str] = []
        self.shared_bytes = 0
        self.stored = {s.access for stage in form.nest.stages for s in stage.stores}

    # -- what a mode says

    def body(self) -> None:
        """The kernel's statements."""
        raise NotImplementedError

    def geometry(self) -> Geometry:
        """How its launches are laid out."""
        raise NotImplementedError

    def write(self) -> tuple[str, CudaKernel]:
        """The kernel's text and its description."""
        for number in range(len(self.form.operands)):
            self.pointer(number)
        self.body()
        if self.form.nest.has_checks:
            status = self.param(("status",), "pointer", "status", is_written=True)
            with self.em.block("if (failed)"):
                self.em.line(f"atomicOr(reinterpret_cast<unsigned *>({status}), 1u);")
            self.head.append("bool failed = false;")
        params = ", ".join(f"{_PARAM_TYPES[p.kind, p.is_written]}{p.name}" for p in self.params)
        bounds = f"__launch_bounds__({self.max_threads}, {self.least_blocks})"
        text = "\n".join([
            f'extern "C" __global__ void {bounds} {self.name}({params}) {{',
            *(f"  {line}" for line in self.head), *self.em.lines, "}"])
        return text, CudaKernel(self.name, tuple(self.params), self.max_threads,
                                self.has_barriers, self.shared_bytes)

    # -- parameters

    def param(self, slot: Slot, kind: ParamKind, name: str, is_written: bool = False) -> str:
        """The parameter that a launch fills from this slot."""
        if slot not in self._named:
            self._named[slot] = name
            self.slots.append(slot)
            self.params.append(CudaParam(name, kind, is_written))
        return self._named[slot]

    @property
    def index_kind(self) -> ParamKind:
        return "int32" if self.index == "i32" else "int64"

    def pointer(self, number: int) -> str:
        return self.param(("operand", number), "pointer", f"p{number}", number in self.stored)

    def extent(self, loop: int) -> str:
        return self.param(("extent", loop), self.index_kind, f"n{loop}")

    def stride(self, number: int, loop: int) -> str:
        """Bytes along a loop: a parameter unless the form knows them."""
        operand = self.form.operands[number]
        if loop == self.form.axis and self.form.stride_class(operand) == "unit":
            return str(operand.dtype.itemsize)
        return self.param(("stride", number, loop), self.index_kind, f"s{number}_{loop}")

    def constant(self, number: int, dtype: np.dtype) -> str:
        """A constant of the program: part of the code, or made of the bits that a launch gives."""
        if constants_of_code(self.form):
            return literal(dtype, self.form.params[number])
        bits = self.param(("param", number), "int64", f"c{number}")
        if dtype.kind == "f":
            whole = f"u{8 * dtype.itemsize}({bits})"
            return f"half_of_bits({whole})" if dtype.itemsize == 2 else f"from_bits({whole})"
        return f"({bits} & 1) != 0" if dtype == BOOL else f"{type_name(dtype)}({bits})"

    # -- loops

    def decoded(self, number: str, loops: Sequence[int]) -> dict[int, str]:
        """Counters of the loops from a linear number, the last loop fastest."""
        counters, em = {}, self.em
        for loop in reversed(loops):
            if loop == loops[0]:
                counters[loop] = number
                break
            rest = self.quotient(number, self.extent(loop), ("divide", loop))
            counters[loop] = em.named(self.index, f"{number} - {rest} * {self.extent(loop)}", "i")
            number = rest
        return counters

    def quotient(self, number: str, divisor: str, slot: Slot) -> str:
        """A number divided by a size: of 32 bits by a product with its reciprocal, which the launch
        is given at this slot."""
        if self.index != "i32":
            return self.em.named(self.index, f"{number} / {divisor}", "q")
        suffix = "_".join(map(str, slot[1:]))
        magic, shift = (
            self.param((f"{slot[0]}_{part}", *slot[1:]), "int32", f"{part}_{slot[0]}{suffix}")
            for part in ("magic", "shift"))
        return self.em.named(self.index, f"quotient({number}, {magic}, {shift})", "q")

    def moved(self, pointers: Sequence[str], counters: dict[int, str]) -> list[str]:
        """Pointers advanced by these counters."""
        result = []
        for number, pointer in enumerate(pointers):
            steps = [f"{counter} * {self.stride(number, loop)}"
                     for loop, counter in counters.items()
                     if not _is_zero(self.form.operands[number].strides[loop])]
            if steps:
                kind = "char *" if number in self.stored else "const char *"
                name = self.em.fresh("at")
                self.em.line(f"{kind}const {name} = {pointer} + ({' + '.join(steps)});")
                pointer = name
            result.append(pointer)
        return result


def constants_of_code(form: LoopForm) -> tuple[bytes, ...]:
    """The constants of a form that has many: as arguments each of them would be loaded for each
    pack.  Kernels that differ in a few share their code."""
    if len(form.params) <= SHARED_CONSTANTS or not all(
            isinstance(value, int | float | np.number | np.bool_) for value in form.params):
        return ()
    return tuple(np.asarray(value).tobytes() for value in form.params)


_PARAM_TYPES = {
    ("pointer", True): "char *", ("pointer", False): "const char *", ("int32", False): "int ",
    ("int64", False): "long long ",
}


def _is_zero(stride: object) -> bool:
    return isinstance(stride, int) and stride == 0
