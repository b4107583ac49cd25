"""The verifier: invariants of every graph, checked between passes.

It sits beside the graph but knows the op registry (for type rules), so `fusec.ir` does not import
it; write ``from fusec.ops.graphs.verify import verify``.
"""

from __future__ import annotations

from typing import NoReturn

from fusec.errors import InternalError
from fusec.ir.graph import Graph, Node, Value
from fusec.ir.text.text import node_lines, print_name, print_types
from fusec.ops import registry

CONTEXT = 3
MARK = ">>"


class VerificationError(InternalError):
    """A graph that breaks a rule of the IR: a defect of fusec, shown with the IR around it."""


def verify(graph: Graph) -> None:
    """Raises `VerificationError` unless ``graph`` is well formed.

    Names are unique; every operand and control input comes earlier in ``graph.nodes``; operand
    indices exist; types are those of the op's type rule; parameters are ``Input`` nodes; outputs
    exist; an update has its parameter's dtype and shape.  Sub-graphs in attributes are checked too.
    """
    _check_names(graph)
    _check_parameters(graph)
    before: set[int] = set()
    for node in graph.nodes:
        _check_operands(graph, node, before)
        _check_types(graph, node)
        _check_subgraphs(node)
        before.add(node.id)
    _check_outputs(graph, before)


def _check_names(graph: Graph) -> None:
    names: set[str] = set()
    for node in graph.nodes:
        if node.name in names:
            _fail(graph, f"two nodes are named {node.name!r}", node)
        names.add(node.name)


def _check_parameters(graph: Graph) -> None:
    parameters = {v.node.id for v in graph.inputs}
    if len(parameters) != len(graph.inputs):
        _fail(graph, "a parameter is listed twice in graph.inputs")
    for value in graph.inputs:
        if value.node.op != "Input" or value.index:
            _fail(graph, f"the parameter {value.name} is not an Input node's output 0", value.node)
    for node in graph.nodes:
        if node.op == "Input" and node.id not in parameters:
            _fail(graph, f"the Input node {node.name!r} is not among graph.inputs", node)
        parameters.discard(node.id)
    if parameters:
        _fail(graph, "a parameter's node is not in graph.nodes")


def _check_operands(graph: Graph, node: Node, before: set[int]) -> None:
    for value in node.inputs:
        if not 0 <= value.index < len(value.node.types):
            _fail(graph, f"{value.name} does not exist: the node has {len(value.node.types)} "
                         "outputs", node)
        _check_earlier(graph, node, value.node, before)
    for control in node.control_inputs:
        _check_earlier(graph, node, control, before)


def _check_earlier(graph: Graph, node: Node, operand: Node, before: set[int]) -> None:
    if operand.id in before:
        return
    later = any(other is operand for other in graph.nodes)
    where = "comes later in the graph" if later else "is not in the graph"
    _fail(graph, f"{node.name!r} reads {operand.name!r}, which {where}", node)


def _check_types(graph: Graph, node: Node) -> None:
    try:
        row = registry.get(node.op)
    except KeyError as error:
        _fail(graph, str(error.args[0]), node)
    if row.arity is not None and row.arity != len(node.inputs):
        _fail(graph, f"{node.op} takes {row.arity} operands, not {len(node.inputs)}", node)
    if node.op == "Input" and "type" not in node.attrs:
        return
    try:
        expected = tuple(row.infer([v.type for v in node.inputs], node.attrs))
    except Exception as error:
        raise _error(graph, f"the type rule of {node.op} refuses it: {error!r}", node) from error
    if expected != node.types:
        _fail(graph, f"the type of {node.name!r} is {print_types(node.types)}, the type rule of "
                     f"{node.op} gives {print_types(expected)}", node)
    if row.kind == "elementwise" and not row.mixes_dtypes:
        _check_compute_dtype(graph, node)


def _check_compute_dtype(graph: Graph, node: Node) -> None:
    """Operands of an elementwise op share its compute dtype; a condition is ``bool``."""
    operands = node.inputs[1:] if node.op == "Where" else node.inputs
    if len({v.dtype for v in operands}) > 1:
        types = ", ".join(str(v.type) for v in node.inputs)
        _fail(graph, f"the operands of {node.op} differ in dtype ({types}): a Cast is missing",
              node)
    if node.op == "Where" and node.inputs[0].dtype.kind != "b":
        _fail(graph, f"the condition of Where is {node.inputs[0].type}, not bool", node)


def _check_subgraphs(node: Node) -> None:
    for value in node.attrs.values():
        if isinstance(value, Graph):
            verify(value)


def _check_outputs(graph: Graph, nodes: set[int]) -> None:
    for value in graph.roots:
        if value.node.id not in nodes:
            _fail(graph, f"the output {value.name} is not in the graph")
        if not 0 <= value.index < len(value.node.types):
            _fail(graph, f"the output {value.name} does not exist", value.node)
    for position, value in graph.updates:
        _check_update(graph, position, value)


def _check_update(graph: Graph, position: int, value: Value) -> None:
    if not 0 <= position < len(graph.inputs):
        _fail(graph, f"an update names parameter {position} of {len(graph.inputs)}", value.node)
    target = graph.inputs[position].type
    if (target.dtype, target.shape) != (value.dtype, value.shape):
        name = graph.inputs[position].node.name
        _fail(graph, f"the update of {name!r} has type {value.type}, the parameter {target}",
              value.node)


def _fail(graph: Graph, message: str, node: Node | None = None) -> NoReturn:
    raise _error(graph, message, node)


def _error(graph: Graph, message: str, node: Node | None) -> VerificationError:
    return VerificationError(f"invalid graph {graph.name!r}: {message}\n{excerpt(graph, node)}")


def excerpt(graph: Graph, node: Node | None = None, context: int = CONTEXT) -> str:
    """The node's lines between ``context`` neighbours, marked; the graph's start without a node.

    Unlike `print_graph` this holds for graphs that are not well formed.
    """
    at = next((i for i, n in enumerate(graph.nodes) if n is node), -1)
    first = max(0, at - context)
    names = ", ".join(f"{print_name(v.node.name)}: {v.type}" for v in graph.inputs)
    lines = [f"   graph {print_name(graph.name)}({names}) {{"]
    lines += [f"     … {first} nodes"] if first else []
    for i, neighbour in enumerate(graph.nodes[first : at + context + 1], first):
        mark = MARK if i == at else "  "
        lines += [f"{mark}   {line}" for line in node_lines(neighbour)]
    rest = len(graph.nodes) - (at + context + 1)
    return "\n".join(lines + ([f"     … {rest} nodes"] if rest > 0 else []))
