"""Prints the nests of kernels as calls of their functions, by all blocks of a persistent kernel."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

from fusec.codegen.structured.not_native import NotNativeError
from fusec.ir.sizes.bindings import Bindings

from ..compiled_nests import CudaForm, raw_bits
from .hazards import ON_CHIP
from .nest_calls import DeviceNest, NestGrid
from .program_kernel import STATUS, ProgramKernel

MOST_SHARED = 48 << 10  # bytes that a block has without asking for more
_OWN = frozenset({"partials", "scratch"})  # memory of a nest beside its operands


def call_nest(
    kernel: ProgramKernel, form: CudaForm, places: Sequence[str], read: Iterable[Any],
    written: Iterable[Any],
) -> None:
    """All blocks of a nest's functions; ``places``: the addresses of the kernel's buffers."""
    if not form.is_static:
        loops = form.loops
        kernel.require_outer(
            loops.extents, *((o.offset, o.strides, o.gathered) for o in loops.operands))
    read, written, own = set(read), set(written), kernel.nests
    kernel.nests += 1
    kernel.operations = max(kernel.operations, form.kernel.operations)
    for function in kernel.functions.of(form):
        grid = NestGrid(form, function)
        kernel.grids.append(grid)
        if form.is_static and grid.shared_bytes({}) > MOST_SHARED:
            raise NotNativeError("more shared memory than a block has")
        if form.is_static and not function.has_barriers and not grid.divides_blocks({}):
            raise NotNativeError("a kernel whose blocks do not share another's threads")
        kernel.note_launch(not kernel.hazards.suspended)
        slots = function.written.slots
        extra = {("own", own, slot[0]) for slot in slots if slot[0] in _OWN}
        if ("status",) in slots:
            written.add(STATUS)
        on_chip = {ON_CHIP} if function.has_barriers else set()
        kernel.wait_for(read | extra, written | extra | on_chip)
        values = [_slot(kernel, slot, grid, places, own) for slot in slots]
        _call(kernel, function, grid, values)


def _slot(
    kernel: ProgramKernel, slot: Any, grid: NestGrid, places: Sequence[str], own: int
) -> str:
    """The argument of a nest's function."""
    match slot[0]:
        case "operand":
            operand = grid.form.loops.operands[int(slot[1])]
            place, offset = places[operand.buffer], operand.offset
            is_first = type(offset) is int and offset == 0
            return place if is_first else f"{place} + {kernel.size(offset)}"
        case "status":
            return kernel.state(STATUS)
        case "partials":
            return _borrowed(
                kernel, ("partials", own), lambda sizes: grid.layout(sizes).partials, grid)
        case "scratch":
            itemsize = grid.form.loops.nest.scratch[int(slot[1])].itemsize
            return _borrowed(
                kernel, ("scratch", own, slot[1]),
                lambda sizes: max(grid.layout(sizes).scratch, 1) * itemsize, grid)
    if slot[0] == "param":
        param = grid.form.kernel.params[int(slot[1])]
        return kernel.number_of(("constant", param.dtype, repr(param.value)),
                                lambda sizes: raw_bits(param, sizes))
    return _integer(kernel, slot, grid, lambda sizes: grid.argument(slot, sizes))


def _borrowed(
    kernel: ProgramKernel, key: tuple[Any, ...], nbytes: Callable[[Bindings], int], grid: NestGrid
) -> str:
    """Memory of a nest's own; its two kernels have one."""
    if not grid.form.is_static:
        return kernel.argument(("lent", *key), of=nbytes)
    if key not in kernel.offsets:
        kernel.offsets[key] = kernel.reserve(nbytes({}))
    return kernel.in_scratch(kernel.offsets[key])


def _integer(
    kernel: ProgramKernel, key: Any, grid: NestGrid, of: Callable[[Bindings], int]
) -> str:
    """An integer of a nest: part of the code where its sizes are."""
    if grid.form.is_static:
        return str(of({}))
    return kernel.number_of(("grid", kernel.grids.index(grid), *key), of)


def _threads_along(grid: NestGrid, axis: int, sizes: Bindings) -> int:
    return grid.layout(sizes).threads[axis]


def _call(
    kernel: ProgramKernel, function: DeviceNest, grid: NestGrid, values: Sequence[str]
) -> None:
    size_x, size_y = (
        f"u32({_integer(kernel, ('threads', axis), grid, partial(_threads_along, grid, axis))})"
        for axis in (0, 1))
    blocks = _integer(kernel, ("blocks",), grid, lambda at: grid.layout(at).blocks)
    call = f"{function.name}(here, {', '.join(values)});"
    em = kernel.em
    if not function.has_barriers:
        with em.block(f"for (Here here = first_here({size_x}, {size_y}, u32({blocks})); "
                      f"here.block < here.blocks; here.block += played({size_x}, {size_y}))"):
            em.line(call)
        return
    with em.block(f"if (threadIdx.x < {size_x} * {size_y})"), em.block(
            f"for (Here here = first_team({size_x}, {size_y}, u32({blocks})); "
            "here.block < here.blocks; here.block += gridDim.x)"):
        em.line(call)
        em.line("__barrier_sync_count(1, here.size_x * here.size_y);")
