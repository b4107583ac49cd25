"""Prints the nests of kernels as calls of their functions, by all blocks of a persistent kernel."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np

from fusec.codegen.structured.not_native import NotNativeError
from fusec.ir.sizes.bindings import Bindings

from ..compiled_nests import CudaForm, raw_bits
from ..scalars.emitter import BOOL, type_name
from .hazards import ON_CHIP
from .nest_calls import DeviceNest, NestGrid
from .program_kernel import STATUS, ProgramKernel

MOST_SHARED = 48 << 10  # bytes that a block has without asking for more
MOST_OWN = 1 << 30  # bytes beside its operands of a nest whose sizes the run decides
_OWN = frozenset({"partials", "scratch"})  # memory of a nest beside its operands


def call_nest(
    kernel: ProgramKernel, form: CudaForm, places: Sequence[str], read: Iterable[Any],
    written: Iterable[Any],
) -> None:
    """All blocks of a nest's functions; ``places``: the addresses of the kernel's buffers."""
    limits = kernel.limits_of(_sizes_of(form))
    read, written, own = set(read), set(written), kernel.nests
    kernel.nests += 1
    kernel.operations = max(kernel.operations, form.kernel.operations)
    for function in kernel.functions.of(form):
        grid = NestGrid(form, function, limits, kernel.loops > 0)
        kernel.grids.append(grid)
        if not grid.is_of_call and grid.shared_bytes({}) > MOST_SHARED:
            raise NotNativeError("more shared memory than a block has")
        if not grid.is_of_call and not function.has_barriers and not grid.divides_blocks({}):
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
        if not kernel.is_of_call(param.value):
            return _bits(kernel.size(param.value), param.dtype)
        return kernel.number_of(("constant", param.dtype, repr(param.value)),
                                lambda sizes: raw_bits(param, sizes))
    if grid.limits is not None:
        return kernel.size(grid.size_for(slot))
    return _integer(kernel, slot, grid, lambda sizes: grid.argument(slot, sizes))


def _bits(size: str, dtype: np.dtype) -> str:
    """The bytes of a constant that is a size which the kernel computes."""
    if dtype.kind == "f":
        number = f"narrowed(f32({size}))" if dtype.itemsize == 2 else f"{type_name(dtype)}({size})"
        return f"i64(to_bits({number}))"
    return f"i64({size} != 0)" if dtype == BOOL else f"({size})"


def _sizes_of(form: CudaForm) -> tuple[Any, ...]:
    loops = form.loops
    return (loops.extents, *((o.offset, o.strides, o.gathered) for o in loops.operands))


def _borrowed(
    kernel: ProgramKernel, key: tuple[Any, ...], nbytes: Callable[[Bindings], int], grid: NestGrid
) -> str:
    """Memory of a nest's own; its two kernels have one."""
    if grid.is_of_call:
        return kernel.argument(("lent", *key), of=nbytes)
    if key not in kernel.offsets:
        needed = nbytes({})
        if needed > MOST_OWN:
            raise NotNativeError("more memory for sizes that only the run knows than is worth it")
        kernel.offsets[key] = kernel.reserve(needed)
    return kernel.in_scratch(kernel.offsets[key])


def _integer(
    kernel: ProgramKernel, key: Any, grid: NestGrid, of: Callable[[Bindings], int]
) -> str:
    """An integer of a nest that has sizes of the call: part of the code where these are."""
    if grid.form.is_static:
        return str(of({}))
    return kernel.number_of(("grid", kernel.grids.index(grid), *key), of)


def _shape(kernel: ProgramKernel, grid: NestGrid) -> tuple[str, str, str]:
    """Threads along both axes of a block of the nest's, and how many blocks there are."""
    if grid.limits is not None:
        at = grid.of_run
        x, y, blocks = (kernel.size_once(size) for size in (*at.threads, at.blocks))
        return x, y, blocks
    x, y = (_integer(kernel, ("threads", axis), grid, partial(_threads_along, grid, axis))
            for axis in (0, 1))
    return x, y, _integer(kernel, ("blocks",), grid, lambda at: grid.layout(at).blocks)


def _threads_along(grid: NestGrid, axis: int, sizes: Bindings) -> int:
    return grid.layout(sizes).threads[axis]


def _call(
    kernel: ProgramKernel, function: DeviceNest, grid: NestGrid, values: Sequence[str]
) -> None:
    x, y, blocks = _shape(kernel, grid)
    size_x, size_y = f"u32({x})", f"u32({y})"
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
