"""Arrays with a border of constants: what is inside is computed where it will lie.

The way back of a stencil gives each array a part that was computed and zeros around it.  The part
needs no memory of its own, and no copy into the frame.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from fusec.ir import Graph, Node, Value
from fusec.ir.sizes.dims import is_static
from fusec.ops import get
from fusec.ops.regions.cones import is_filled

from ...kernels.loop_ir import Access, Kernel, Nest
from ..memory import I64, Constant, View, contiguous


def frames(nodes: Iterable[Node]) -> dict[Value, Node]:
    """The kernels that put a kernel's result into an array of constants, by that result."""
    found: dict[Value, Node] = {}
    for node in nodes:
        inside = _inside(node)
        if inside is not None and inside.node.op == "Fused" and inside.node is not node:
            found.setdefault(inside, node)
    return found


def _inside(node: Node) -> Value | None:
    """What the kernel puts into constants, where it does nothing else."""
    update = _update(node)
    if update is None or not is_static((*update.types[0].shape, *update.attrs["starts"])):
        return None
    body: Graph = node.attrs["body"]
    return node.inputs[0] if len(body.inputs) == 1 and set(body.inputs) == {update.inputs[1]} and (
        all(get(n.op).is_given or n is update or is_filled(n.out()) for n in body.nodes)
        and is_filled(update.inputs[0])) and min(update.attrs["steps"]) > 0 else None


def _update(node: Node) -> Node | None:
    """The update that makes the only result of a kernel."""
    if node.op != "Fused" or len(node.types) != 1:
        return None
    last: Node = node.attrs["body"].outputs[0].node
    return last if last.op == "SliceUpdate" else None


def part_of_frame(node: Node, whole: View) -> View:
    """Where the frame, in this memory, has what is put there."""
    update = _update(node)
    assert update is not None and whole.is_whole
    starts, steps, sizes = (update.attrs[name] for name in ("starts", "steps", "sizes"))
    strides = contiguous(whole.shape, whole.dtype.itemsize)
    offset = sum(start * stride for start, stride in zip(starts, strides, strict=True))
    return View(whole.memory, sizes, tuple(
        step * stride for step, stride in zip(steps, strides, strict=True)), whole.dtype,
        Constant(offset, I64))


def starts_in_frame(node: Node) -> Sequence[int]:
    """Where the frame has the first element of what is put there, by axis, in steps of 1; nothing
    where it is put there in other steps."""
    update = _update(node)
    assert update is not None
    return update.attrs["starts"] if set(update.attrs["steps"]) == {1} else ()


def shifted(kernel: Kernel, buffer: int, starts: Sequence[int]) -> Kernel:
    """The kernel as it writes the buffer in an array that has it from ``starts`` on."""
    def moved(access: Access) -> Access:
        return access if access.buffer != buffer else Access(buffer, tuple(
            i._replace(start=i.start + start)
            for i, start in zip(access.index, starts, strict=True)))

    return replace(kernel, nests=tuple(
        replace(nest, accesses=tuple(map(moved, nest.accesses))) for nest in kernel.nests))


def border_of(kernel: Kernel) -> Kernel:
    """The kernel of a frame whose inside is there already."""
    return replace(kernel, nests=tuple(n for n in kernel.nests if not _copies(n, 0)))


def _copies(nest: Nest, operand: int) -> bool:
    """Whether the nest stores what it loads from the operand, and nothing else."""
    stores = [store for stage in nest.stages for store in stage.stores]
    return bool(stores) and all(
        store.value.op == "load" and nest.accesses[store.value.attr].buffer == operand
        for store in stores)


__all__ = ["border_of", "frames", "part_of_frame", "shifted", "starts_in_frame"]
