"""A branch or loop of the graph as a program of the structured IR."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from fusec.core.records import dataclass, field
from fusec.ir import Graph, Node, Value
from fusec.ops import get
from fusec.ops.calls.subgraph_ops import changed_operands, lane_operands
from fusec.ops.rows.windows import is_unset
from fusec.passes.pipeline import BodyPasses

from ..plan.control_program import ErrorExit, HostSite
from .analyses.aliases import Aliases
from .analyses.outer_sizes import outer_limits, outer_sizes
from .builder import Builder, Origins, Shared
from .loops.graph_builder import GraphBuilder
from .memory import BOOL, Constant, Location, Memory, Strides, View, contiguous
from .statements import Block, If, Input, IsAt, Output, Point
from .steps import steps
from .text import print_blocks

UNKNOWN = -1  # the number of bytes of an operand that is only read


@dataclass
class StructuredProgram:
    """A branch or loop as statements.

    ``outer``: symbols that are defined before it.  ``copied``: for each result, the operand that
    it starts as a copy of; -1: none.  ``has_loops``: whether any part may run twice.
    ``may_outgrow``: whether there may be no room for a result, so that all has to run again.
    ``is_divisible``: whether iterations may run at the same time, each range of them as a call.
    ``passes``: what the sub-graphs went through.  ``limits``: upper bounds of sizes of the run.
    """

    node: Node
    body: Block
    exits: list[ErrorExit]
    sites: list[HostSite]
    copied: list[int]
    outer: frozenset[str]
    has_loops: bool
    may_outgrow: bool = False
    is_divisible: bool = False
    passes: Sequence[BodyPasses] = ()
    limits: Mapping[str, int] = field(default_factory=dict)

    def __str__(self) -> str:
        return "\n".join([f"structured {self.node.name}:", *print_blocks(self.body, self.exits)])


def build_program(
    node: Node, strides: Sequence[Strides], sources: Mapping[int, Value] = MappingProxyType({}),
    origins: Origins | None = None,
) -> StructuredProgram:
    """The program of a ``Loop``, ``Cond`` or ``Call``, or of another step of a call; ``strides``
    are those of its operands in bytes.

    ``sources``: of operands that are views, by position, the values that they are views of: the
    program takes these, with their strides.  ``origins`` is filled, where it is given.

    Raises `NotNativeError` where a part can only run step by step.
    """
    shared = Shared(outer=outer_sizes(node), limits=outer_limits(node),
                    repeats=node.op != "Call" and _may_repeat(node), origins=origins)
    builder, copied = Builder(shared), changed_operands(node)
    operands: list[Location] = []
    owned = []
    for position, value in enumerate(node.inputs):
        location = _operand(builder, position, sources.get(position, value), strides[position],
                            copied, lane_operands(node))
        operands.append(location)
        if position in copied and isinstance(location, View):
            owned.append(location.memory)
    graph = GraphBuilder.of(builder, _wrapped(node, sources), operands, owned)
    steps.build(graph)
    is_divisible = _is_divisible(node, builder, owned)
    _finish(graph)
    begun = [-1 if k < 0 or is_unset(node.inputs[k].node) else k for k in copied]
    return StructuredProgram(node, tuple(builder.statements), shared.exits, shared.sites, begun,
                             shared.outer, _has_loops(node), bool(shared.guessed),
                             is_divisible, shared.passes[1:], shared.limits)


def _is_divisible(node: Node, builder: Builder, results: Sequence[Memory]) -> bool:
    """Whether lanes call nobody and write to results where these lie."""
    if not lane_operands(node) or builder.shared.sites:
        return False
    aliases = Aliases(builder.statements)
    return not any(map(aliases.is_moved, results))


def _may_repeat(node: Node) -> bool:
    """Whether nobody sees that it has run, but by what it writes."""
    return all(n.op != "HostCall" and _may_repeat(n) for graph in node.graphs for n in graph.nodes)


def _has_loops(node: Node) -> bool:
    inside = (op for graph in node.graphs for op in graph.ops)
    return any(get(op).repeats for op in (node.op, *inside))


def _wrapped(node: Node, sources: Mapping[int, Value]) -> Graph:
    """A graph with the node as its only step, besides views of its operands."""
    inputs, operands = [], []
    for position, value in enumerate(node.inputs):
        source = sources.get(position, value)
        attrs = {"index": position, "path": f"operand_{position}", "type": source.type}
        inputs.append(Node("Input", (), (source.type,), attrs, name=f"operand_{position}").out())
        operands.append(_seen(value, source, inputs[-1]))
    types = get(node.op).infer([v.type for v in operands], node.attrs)
    copy = node.with_(inputs=operands, types=types, control_inputs=(), device="")
    return Graph.build(inputs, copy.outputs, name=node.name)


def _seen(value: Value, source: Value, operand: Value) -> Value:
    """The views that lead from a value to another, of the operand."""
    if value == source:
        return operand
    shown = _seen(value.node.inputs[0], source, operand)
    return value.node.with_(inputs=[shown], control_inputs=(), device="").out()


def _operand(
    builder: Builder, position: int, value: Value, strides: Strides, copied: Sequence[int],
    own: Sequence[int],
) -> Location:
    type_ = value.type
    if value.node.op == "Const" and position not in own:
        return builder.constant(type_.dtype, value.node.attrs["value"])
    if type_.kind != "array":
        result = builder.register(type_.dtype)
        builder.add(Input(result, position))
        return result
    if value.node.op == "Extent":  # the array that only has the size
        return Constant(False, type_.dtype)
    nbytes = type_.nbytes if type_.is_static else UNKNOWN
    if position in copied:
        number = copied.index(position)
        memory = builder.memory(nbytes, type_.dtype, "target", number, number)
        strides = contiguous(type_.shape, type_.dtype.itemsize)
    else:
        memory = builder.memory(nbytes, type_.dtype, "operand", position)
    return View(memory, type_.shape, strides, type_.dtype)


# -- moving the results to their targets: loops may have swapped the memory of several


def _finish(graph: GraphBuilder) -> None:
    builder, arrays = graph.builder, {}
    for number, value in enumerate(graph.graph.outputs):
        location = graph.location(value)
        if isinstance(location, View):
            arrays[number] = location
        else:
            builder.add(Output(number, location))
    targets = {number: builder.memory(array.memory.nbytes, array.dtype, "target", number)
               for number, array in arrays.items()}
    aliases = Aliases(builder.statements)
    sources = {
        number: _set_aside(builder, array, tuple(
            targets[n] for n, other in arrays.items()
            if n != number and other.memory.nbytes == array.memory.nbytes
            and aliases.may_meet(array.memory, targets[n])))
        for number, array in arrays.items()}
    for number, source in sources.items():
        _deliver(builder, source, targets[number])


def _set_aside(builder: Builder, array: View, others: tuple[Memory, ...]) -> View:
    """The array, or a copy where it lies in another result's target, which would overwrite it."""
    if not others or not array.is_whole:  # loops swap whole arrays of equal size only
        return array
    alias = builder.memory(array.memory.nbytes, array.dtype, "alias")
    builder.add(Point(alias, array.memory))
    lies = builder.register(BOOL)
    builder.add(IsAt(lies, array.memory, others))
    with builder.block() as then:
        dense = builder.temporary(array.shape, array.dtype)
        builder.copy(dense, array)
        builder.add(Point(alias, dense.memory))
    builder.add(If(lies, tuple(then)))
    return View(alias, array.shape, array.strides, array.dtype)


def _deliver(builder: Builder, source: View, target: Memory) -> None:
    is_elsewhere = builder.register(BOOL)
    builder.add(IsAt(is_elsewhere, source.memory, (target,), elsewhere=True))
    with builder.block() as moving:
        dense = contiguous(source.shape, source.dtype.itemsize)
        builder.copy(View(target, source.shape, dense, source.dtype), source)
    builder.add(If(is_elsewhere, tuple(moving)))


__all__ = ["StructuredProgram", "build_program"]
