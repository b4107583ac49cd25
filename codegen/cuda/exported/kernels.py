"""The kernels of a library: one module for all of its functions."""

from __future__ import annotations

from typing import Any

from fusec.core.records import dataclass, replace
from fusec.errors import InternalError
from fusec.ir import Node
from fusec.ir.sizes.symbolic_numbers import stored

from ...kernels.specialise import LoopForm, LoopOperand
from ...structured.calls.call_statements import NodeCall
from ...structured.program import StructuredProgram
from ..backend import CudaBackend
from ..compiled_nests import CudaForm, code_key
from ..kernels.kernel_sources import WrittenKernel, source_of, write_form
from ..module import CudaKernel, CudaModule, CudaParam
from ..persistent.program import WrittenProgram, helpers, written
from .loops import ExportedLoop, exported_loop, skipped_where_failed

WORDS = 8  # that one launch of the kernel for numbers writes


def _no_driver() -> Any:
    raise InternalError("code that is exported is launched by no driver of this process")


class ExportBackend(CudaBackend):
    """The CUDA back end for plans that leave the process: it writes kernels, and runs none."""

    def __init__(self) -> None:
        super().__init__("cuda_export", _no_driver)

    def library_call(self, node: Node) -> Any:
        raise InternalError(f"{node.op} is refused before")


BACKEND = ExportBackend()


class OpenForm(LoopForm):
    """A form whose code is for any sizes, though at a launch its sizes are numbers."""

    @property
    def is_static(self) -> bool:
        return False


def with_stored_sizes(form: LoopForm) -> LoopForm:
    """The form with expressions for sizes of arguments: its code asks nothing of these."""
    operands = tuple(LoopOperand(**{**_fields(o), **{
        name: _stored(getattr(o, name)) for name in ("offset", "strides", "gathered")}})
        for o in form.operands)
    return LoopForm(**{**_fields(form), "extents": _stored(form.extents), "operands": operands,
                       "params": _stored(form.params)})


def at_numbers(form: LoopForm, number: Any) -> LoopForm:
    """The form at numbers of the host's, for a launch."""
    operands = tuple(LoopOperand(**{
        **_fields(o), "offset": number(o.offset), "strides": tuple(map(number, o.strides)),
        "gathered": tuple(map(number, o.gathered))}) for o in form.operands)
    kind = LoopForm if form.is_static else OpenForm
    return kind(**{**_fields(form), "extents": tuple(map(number, form.extents)),
                   "operands": operands})


def _fields(record: Any) -> dict[str, Any]:
    return {name: getattr(record, name) for name in type(record).__dataclass_fields__}


def _stored(x: Any) -> Any:
    return tuple(map(stored, x)) if isinstance(x, tuple) else stored(x)


@dataclass(frozen=True)
class ExportedNest:
    """A nest with its kernels, and the number of each in the library."""

    form: CudaForm
    kernels: list[WrittenKernel]
    numbers: list[int]


class ExportedKernels:
    """See the module docstring; nests of equal structure share their kernels."""

    def __init__(self, library: str) -> None:
        self.library = library
        self.kernels: list[CudaKernel] = [_number_kernel(library)]
        self._written: dict[Any, list[WrittenKernel]] = {}
        self._first: dict[Any, int] = {}
        self._programs: list[WrittenProgram] = []

    def nest(self, given: Any) -> ExportedNest:
        """That of a `CudaForm`, which a `NestUse` of CUDA has."""
        form = CudaForm(with_stored_sizes(given.loops), given.kernel)
        key = code_key(form)
        if key not in self._written:
            written = write_form(form.loops, form.index, f"{self.library}_nest{len(self._written)}")
            self._written[key], self._first[key] = written, len(self.kernels)
            self.kernels += [w.kernel for w in written]
        first, written = self._first[key], self._written[key]
        return ExportedNest(form, written, [*range(first, first + len(written))])

    def loop(self, step: NodeCall, program: StructuredProgram) -> tuple[ExportedLoop, int]:
        """The kernel of a step, and its number."""
        stem = f"{self.library}_loop{len(self._programs)}"
        loop = exported_loop(step, program, stem)
        made = written(loop.made, stem)
        kernel = replace(made.kernel, params=(
            *made.kernel.params, CudaParam("checks", "pointer"), CudaParam("count", "int64")))
        *functions, text = made.texts
        self._programs.append(replace(
            made, kernel=kernel, texts=[*functions, skipped_where_failed(text)]))
        self.kernels.append(kernel)
        return loop, len(self.kernels) - 1

    def module(self) -> CudaModule:
        """Of all of them."""
        every = [w for written in self._written.values() for w in written]
        texts = [_number_text(self.library), *(w.text for w in every)]
        texts += [helpers()] if self._programs else []
        texts += [text for program in self._programs for text in program.texts]
        source = source_of(
            [r for w in every for r in w.math] + [r for p in self._programs for r in p.math], texts,
            [f for w in every for f in w.functions] + [f for p in self._programs for f in p.called])
        return CudaModule(source, tuple(self.kernels))


def _number_kernel(library: str) -> CudaKernel:
    """The kernel that puts numbers into words: no memory of the host's has to outlive the call."""
    words = (CudaParam(f"w{k}", "int64") for k in range(WORDS))
    return CudaKernel(f"{library}_words", (
        CudaParam("to", "pointer", True), CudaParam("count", "int64"), *words), 32)


def _number_text(library: str) -> str:
    kernel = _number_kernel(library)
    words = ", ".join(f"long long w{k}" for k in range(WORDS))
    stores = " ".join(f"if (count > {k}) store<i64>(to + {8 * k}, w{k});" for k in range(WORDS))
    return "\n".join([
        f'extern "C" __global__ void __launch_bounds__(32, 1) {kernel.name}(char *to, '
        f"long long count, {words}) {{", f"  if (threadIdx.x == 0) {{ {stores} }}", "}"])
