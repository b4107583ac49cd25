"""Reading and writing parts of arrays at run-time indices."""

from __future__ import annotations

from fusec.codegen.structured.not_native import NotNativeError
from fusec.ir import Node, Value
from fusec.ir.sizes.dims import Size, is_static
from fusec.ir.sizes.symbolic_numbers import applied

from ...plan.control_program import ErrorExit
from ..loops.graph_builder import GraphBuilder, Slot
from ..memory import I64, Constant, Operand, View, contiguous, is_zero
from ..statements import CheckIndices


def pick(graph: GraphBuilder, node: Node) -> None:
    """An element in a register, or a part as a view."""
    found = part(graph, node, graph.array(node.inputs[0]), node.inputs[1:])
    graph.env[node.out()] = found if found.shape else graph.builder.load(found)


def pick_update(graph: GraphBuilder, node: Node) -> None:
    """Store into the array's own memory where it is not read later, else into a copy."""
    whole, value, *indices = node.inputs
    if node in graph.kept and _is_kept(graph, value, graph.kept[node]):
        graph.env[node.out()] = graph.array(whole)
        return
    # The indices are checked before anything changes.
    target, is_back = graph.part_to_change(node)
    place = part(graph, node, target, indices)
    if is_back:
        graph.put_back.add(node.out())
    if value in graph.put_back:
        pass
    elif place.shape:
        graph.builder.copy(place, graph.array(value))
    else:
        graph.builder.store(place, graph.scalar(value))
    graph.env[node.out()] = target


def _is_kept(graph: GraphBuilder, value: Value, slot: Slot | None) -> bool:
    """Whether the value lies in its entry, which nobody may change from now on.  Where it does not,
    what lies there instead is moved."""
    if slot is None:
        return True
    graph.owned.discard(slot.view.memory)
    if slot.taken and graph.location(value) == slot.view:
        return True
    slot.taken = True
    for other, location in [*graph.env.values_in(slot.view.memory)]:
        if any(p > graph.position for p in graph.readers.get(other, ())):
            graph.env[other] = graph.temporary(location.shape, location.dtype)
            graph.builder.copy(graph.array(other), location)
    return False


def check(graph: GraphBuilder, node: Node) -> None:
    """Leave where the condition is false."""
    holds = graph.scalar(node.inputs[0])
    graph.builder.check(holds, ErrorExit(node))
    graph.env[node.out()] = holds


def bounds_check(graph: GraphBuilder, node: Node) -> None:
    """Leave where an index is out of range."""
    build = graph.builder
    indices, limit = node.inputs
    size, exit_ = graph.scalar(limit), ErrorExit(node, node.attrs["axis"], None)
    if indices.type.kind == "array":
        build.require(*indices.shape)
        build.add(CheckIndices(graph.array(indices), size, build.exit(exit_)))
    else:
        index = graph.scalar(indices)
        build.check(build.in_range(build.wrapped(index, size), size), exit_, index, size)
    graph.env[node.out()] = Constant(True, node.types[0].dtype)


def ran(graph: GraphBuilder, node: Node) -> None:
    """Nothing: the call that it keeps has been written."""
    (result,) = node.inputs
    graph.array(result) if result.type.kind == "array" else graph.scalar(result)
    graph.env[node.out()] = Constant(True, node.types[0].dtype)


def part(
    graph: GraphBuilder, node: Node, source: View, indices: tuple[Value, ...] | list[Value]
) -> View:
    """The view at the indices; each is checked unless it is known to be in range."""
    build, axes = graph.builder, node.attrs["axes"]
    offset, element = source.offset, source.element
    for axis, value in zip(axes, indices, strict=True):
        index = _index(graph, node, source, axis, value)
        if source.strides[axis] == source.dtype.itemsize and is_zero(element):
            element = index  # addressed as an element, so that LLVM sees neighbours as such
        else:
            offset = build.moved(offset, index, build.stride(source.strides[axis], source.dtype))
    axes_left = [axis for axis in range(len(source.shape)) if axis not in axes]
    return View(source.memory, tuple(source.shape[a] for a in axes_left),
                tuple(source.strides[a] for a in axes_left), source.dtype, offset, element)


def _index(graph: GraphBuilder, node: Node, source: View, axis: int, value: Value) -> Operand:
    build, index = graph.builder, graph.index(value)
    constant = _constant_index(value, source.shape[axis])
    if constant is not None:
        return Constant(constant, I64) if type(constant) is int else build.number(constant)
    if axis in node.attrs["safe"]:
        return index
    size = build.number(source.shape[axis])
    real = build.wrapped(index, size)
    if node.attrs.get("unchecked"):
        return real
    build.check(build.in_range(real, size), ErrorExit(node, axis, source.shape[axis]), index)
    return real


def _constant_index(value: Value, size: Size) -> Size | None:
    """The index as a non-negative number, if it is a constant in range (it may have become one in
    the passes)."""
    if value.node.op != "Const" or not is_static((size,)):
        return None
    index, length = applied(int, value.node.attrs["value"]), applied(int, size)
    if not -length <= index < length:
        return None
    return index if index >= 0 else index + length


def reshape(graph: GraphBuilder, node: Node) -> None:
    """The same memory where it lies in C order, else a copy."""
    value, shape = node.inputs[0], node.types[0].shape
    if not value.type.shape and not shape:
        graph.env[node.out()] = graph.location(value)
        return
    source = graph.array(value)
    if not (is_static(source.shape) and is_static(shape)):
        raise NotNativeError("reshape to a size that only the run knows", node.loc)
    if source.strides != contiguous(source.shape, source.dtype.itemsize):
        copied = graph.temporary(source.shape, source.dtype)
        graph.builder.copy(copied, source)
        source = copied
    graph.env[node.out()] = View(
        source.memory, shape, contiguous(shape, source.dtype.itemsize), source.dtype,
        source.offset, source.element)
