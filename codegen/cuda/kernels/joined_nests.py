"""Nests of one kernel as one launch, of whose blocks each nest has some.

An update of a part of an array is a kernel of several nests: before the part, the part itself,
after it.  Each was a launch; a short one costs as much as a long one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations

from fusec.core.records import dataclass
from fusec.ir.regions import meet

from ...kernels.in_place_updates import written_boxes
from ...kernels.loop_ir import Kernel, walk
from ...kernels.specialise import LoopForm
from ..module import CudaKernel, CudaModule, CudaParam
from .kernel_functions import as_function
from .kernel_sources import WrittenKernel, source_of, write_form

NAME = "joined"
_WORDS = {"blockIdx.x": "my_block", "gridDim.x": "all_blocks"}


def may_be_joined(kernel: Kernel, forms: Sequence[LoopForm]) -> bool:
    """Whether nests of known sizes may run at the same time, where the kernel writes nothing in the
    memory of its operands: they write to places of their own, and read nothing of these."""
    if len(forms) < 2 or any(form.mode != "map" or form.nest.sequential or form.nest.scratch
                             or form.nest.has_checks or not form.is_static for form in forms):
        return False
    outs = [n for n, buffer in enumerate(kernel.buffers) if buffer.role == "out"]
    read = {form.nest.accesses[e.attr].buffer for form in forms
            for e in walk(form.nest.roots) if e.op == "load"}
    return read.isdisjoint(outs) and not any(
        store.combine for form in forms for stage in form.nest.stages for store in stage.stores
    ) and all(_are_apart(kernel, out) for out in outs)


def _are_apart(kernel: Kernel, out: int) -> bool:
    boxes = written_boxes(kernel, out)
    return boxes is not None and not any(meet(a, b) for a, b in combinations(boxes, 2))


@dataclass(frozen=True)
class JoinedKernel:
    """The module of the one kernel.  Its arguments are how many blocks each nest has, then those of
    the nests, in order."""

    parts: tuple[WrittenKernel, ...]
    module: CudaModule

    @property
    def kernel(self) -> CudaKernel:
        return self.module.kernels[0]


def write_joined(forms: Sequence[LoopForm], index: str) -> JoinedKernel:
    """The kernel of nests that `may_be_joined`."""
    parts = tuple(write_form(form, index, f"nest_{number}")[0]
                  for number, form in enumerate(forms))
    counts = [CudaParam(f"blocks_{n}", "int32") for n in range(len(parts))]
    own = [[CudaParam(f"n{n}_{p.name}", p.kind, p.is_written) for p in part.kernel.params]
           for n, part in enumerate(parts)]
    kernel = CudaKernel(NAME, (*counts, *(p for each in own for p in each)),
                        max(part.kernel.max_threads for part in parts))
    functions = [function_of(part.text) for part in parts]
    texts = [*functions, _text(kernel, parts, own)]
    source = source_of([m for part in parts for m in part.math], texts,
                       [f for part in parts for f in part.functions])
    return JoinedKernel(parts, CudaModule(source, (kernel,)))


def function_of(text: str) -> str:
    """The text of a nest's kernel as a function of the one kernel, line by line."""
    return as_function(text, "const int my_block, const int all_blocks", _WORDS)


def index_of(indices: Iterable[str]) -> str:
    """The type of counters and offsets, by those of the nests."""
    return "i32" if all(index == "i32" for index in indices) else "i64"


_TYPES = {"int32": "const i32 ", "int64": "const i64 "}


def _declared(param: CudaParam) -> str:
    of_pointer = "char *" if param.is_written else "const char *"
    return f"{_TYPES.get(param.kind, of_pointer)}{param.name}"


def _text(
    kernel: CudaKernel, parts: Sequence[WrittenKernel], own: Sequence[Sequence[CudaParam]]
) -> str:
    lines = ["  int block = int(blockIdx.x);"]
    for n, (part, params) in enumerate(zip(parts, own, strict=True)):
        arguments = ", ".join(["block", f"blocks_{n}", *(p.name for p in params)])
        lines += [f"  if (block < blocks_{n}) {{ {part.kernel.name}({arguments}); return; }}",
                  f"  block -= blocks_{n};"]
    listed = ", ".join(map(_declared, kernel.params))
    return "\n".join([
        f'extern "C" __global__ void __launch_bounds__({kernel.max_threads}) {NAME}({listed}) {{',
        *lines, "}"])
