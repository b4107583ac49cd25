"""Reading and writing parts of arrays at run-time indices."""

from __future__ import annotations

from contextlib import ExitStack

from fusec.codegen.backend import NotNativeError
from fusec.codegen.control_program import ErrorExit
from fusec.codegen.cpu.emitter import I64, Emitter, Operand
from fusec.codegen.cpu.scalar_ops import emit_operation
from fusec.ir import Node, Value
from fusec.ir.dims import Size, is_static

from .arrays import ArrayRef, contiguous
from .copying import copy, stepped
from .graph_emitter import GraphEmitter


def pick(emitter: GraphEmitter, node: Node) -> None:
    """An element in a register, or a part as a view."""
    frame = emitter.frame
    ref = part(emitter, node, emitter.array(node.inputs[0]), node.inputs[1:])
    if ref.shape:
        emitter.env[node.out()] = ref
    else:
        emitter.env[node.out()] = frame.em.load(frame.address(ref), ref.dtype, 1)


def pick_update(emitter: GraphEmitter, node: Node) -> None:
    """Store into the array's own memory where it is not read later, else into a copy."""
    frame = emitter.frame
    _, value, *indices = node.inputs
    # The indices are checked before anything changes.
    target, is_back = emitter.part_to_change(node)
    ref = part(emitter, node, target, indices)
    if is_back:
        emitter.put_back.add(node.out())
    if value in emitter.put_back:
        pass
    elif ref.shape:
        copy(frame, ref, emitter.array(value))
    else:
        frame.em.store(frame.address(ref), emitter.scalar(value))
    emitter.env[node.out()] = target


def check(emitter: GraphEmitter, node: Node) -> None:
    """Emit an early exit where the condition is false."""
    holds = emitter.scalar(node.inputs[0])
    emitter.frame.fail_unless(holds.text, ErrorExit(node))
    emitter.env[node.out()] = holds


def bounds_check(emitter: GraphEmitter, node: Node) -> None:
    """Emit an early exit where an index is out of range."""
    frame, em = emitter.frame, emitter.frame.em
    indices, limit = node.inputs
    size = emitter.scalar(limit).text
    with ExitStack() as stack:
        index = _elements(emitter, stack, indices)
        real = _wrapped(em, index.text, size)
        inside = em.value(f"icmp ult i64 {real}, {size}")
        frame.fail_unless(inside, ErrorExit(node, node.attrs["axis"], None), index.text, size)
    emitter.env[node.out()] = em.const(node.types[0].dtype, True)


def _elements(emitter: GraphEmitter, stack: ExitStack, value: Value) -> Operand:
    """A number, or each element of an array: the loops over it end when the stack is closed."""
    if value.type.kind != "array":
        return emitter.scalar(value)
    em, ref = emitter.frame.em, emitter.array(value)
    address = emitter.frame.address(ref)
    for size, stride in zip(ref.shape, ref.strides, strict=True):
        counter = stack.enter_context(em.loop(0, emitter.frame.number(size)))
        address = stepped(emitter.frame, address, counter, stride, ref)
    return em.load(address, ref.dtype, 1)


def part(
    emitter: GraphEmitter, node: Node, ref: ArrayRef, indices: tuple[Value, ...] | list[Value]
) -> ArrayRef:
    """The view at the indices; each is checked unless it is known to be in range."""
    frame, axes = emitter.frame, node.attrs["axes"]
    offset, element = ref.offset, ref.element
    for axis, value in zip(axes, indices, strict=True):
        index = _index(emitter, node, ref, axis, value)
        if ref.strides[axis] == ref.dtype.itemsize and element == "0":
            element = index  # addressed as an element, so that LLVM sees neighbours as such
        else:
            offset = frame.moved(offset, index, frame.stride(ref.strides[axis], ref.dtype))
    axes_left = [axis for axis in range(len(ref.shape)) if axis not in axes]
    return ArrayRef(ref.token, tuple(ref.shape[a] for a in axes_left),
                    tuple(ref.strides[a] for a in axes_left), ref.dtype, offset, element)


def _index(
    emitter: GraphEmitter, node: Node, ref: ArrayRef, axis: int, value: Value
) -> str:
    frame, em = emitter.frame, emitter.frame.em
    index = emitter.scalar(value)
    if index.dtype != I64:
        index = emit_operation(em, "cast", I64, [index])
    constant = _constant_index(value, ref.shape[axis])
    if constant is not None:
        return str(constant)
    if axis in node.attrs["safe"]:
        return index.text
    size = frame.number(ref.shape[axis])
    real = _wrapped(em, index.text, size)
    if node.attrs.get("unchecked"):
        return real
    inside = em.value(f"icmp ult i64 {real}, {size}")
    frame.fail_unless(inside, ErrorExit(node, axis, ref.shape[axis]), index.text)
    return real


def _constant_index(value: Value, size: Size) -> int | None:
    """The index as a non-negative number, if it is a constant in range (it may have become one in
    the passes)."""
    if value.node.op != "Const" or not is_static((size,)):
        return None
    index, length = int(value.node.attrs["value"]), int(size)
    if not -length <= index < length:
        return None
    return index % length


def _wrapped(em: Emitter, index: str, size: str) -> str:
    """The index; a negative one counts from the end."""
    negative = em.value(f"icmp slt i64 {index}, 0")
    from_end = em.add(index, size) if size != "0" else index
    return em.value(f"select i1 {negative}, i64 {from_end}, i64 {index}")


def reshape(emitter: GraphEmitter, node: Node) -> None:
    """The same memory where it lies in C order, else a copy."""
    value, shape = node.inputs[0], node.types[0].shape
    if not value.type.shape and not shape:
        emitter.env[node.out()] = emitter.location(value)
        return
    ref = emitter.array(value)
    if not (is_static(ref.shape) and is_static(shape)):
        raise NotNativeError("reshape to a size that only the run knows", node.loc)
    if ref.strides != contiguous(ref.shape, ref.dtype.itemsize):
        copied = emitter.temporary(ref.shape, ref.dtype)
        copy(emitter.frame, copied, ref)
        ref = copied
    emitter.env[node.out()] = ArrayRef(
        ref.token, shape, contiguous(shape, ref.dtype.itemsize), ref.dtype, ref.offset,
        ref.element)


