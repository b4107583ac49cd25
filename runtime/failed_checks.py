"""The error of a call in which a check failed.

Kernels only note that one failed.  Nothing the caller owns has been written by then, so the call is
run again node by node through NumPy, in the program's own order, which raises its own error at the
node that is wrong.  Where a library call raises, a node before it in the program may have been
about to raise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from fusec.errors import located
from fusec.ir import Graph, Node, Value
from fusec.ir.sizes.bindings import Bindings
from fusec.ir.walks import nodes_behind
from fusec.ops import get
from fusec.ops.graphs.evaluate import ForeignResultError, apply, as_type

from .exit_errors import error_at, scalar_error

if TYPE_CHECKING:
    from fusec.codegen.plan.call_plan import CallPlan
    from fusec.codegen.plan.control_program import EarlyExit

_WHERE = "_fusec_raised_at"


def check_error(call_plan: CallPlan, inputs: Sequence[Any], known: Bindings) -> Exception:
    """NumPy's error on these inputs, with the user's line as a note."""
    return numpy_error(call_plan, inputs, known) or _unexplained(call_plan.graph.nodes)


def kernel_error(node: Node, operands: Sequence[Any]) -> Exception:
    """What NumPy raises for the operands of a kernel in which a check failed."""
    return _first_error([node], dict(zip(node.inputs, operands, strict=True)), {}) or (
        _unexplained([node]))


def early_exit_error(left: EarlyExit) -> BaseException:
    """The error of a branch or loop of a device that was left early."""
    if left.error is not None:
        error: BaseException = located(left.error, left.exit.node.loc)
    elif left.exit.call is not None:
        error = scalar_error(left.exit, left.arguments)
    elif left.exit.node.op == "Fused":
        error = kernel_error(left.exit.node, left.arguments)
    else:
        error = error_at(left.exit, left.index, left.size)
    if left.lane >= 0:
        error.add_note(f"in lane {left.lane}")
    return error


def _unexplained(nodes: Sequence[Node]) -> Exception:
    """The error of a check that failed in compiled code alone."""
    bodies = [n.attrs["body"] for n in nodes if n.op == "Fused"]
    if any(n.attrs.get("raises") for body in bodies for n in body.nodes):
        return ArithmeticError("a function of fusec.vectorize failed in compiled code, though not "
                               "in Python")
    return IndexError("an index is out of bounds")


def numpy_error(
    call_plan: CallPlan, inputs: Sequence[Any], known: Bindings
) -> Exception | None:
    """NumPy's error on these inputs, or None; ``known`` sizes are an enclosing plan's."""
    if call_plan.traced is not None:
        error = _first_error(_program(call_plan), *_arguments(call_plan.traced, inputs, known))
        if error is not None:
            return error
    return _first_error(call_plan.graph.nodes, *_arguments(call_plan.graph, inputs, known))


def error_of(graph: Graph, inputs: Sequence[Any]) -> Exception | None:
    """NumPy's error where a graph of the program is computed node by node on these inputs."""
    return _first_error(graph.nodes, *_arguments(graph, inputs, {}))


def _program(call_plan: CallPlan) -> Sequence[Node]:
    """The nodes of the graph as it was traced, in the program's order."""
    assert call_plan.traced is not None
    nodes = call_plan.traced.nodes
    return nodes if call_plan.states is None else call_plan.states.in_order(nodes)


def do_before(error: Exception, call_plan: CallPlan, inputs: Sequence[Any]) -> None:
    """Carry out the assignments that the program makes before it raises this error."""
    node, table, sizes = error.__dict__.pop(_WHERE, (None, {}, {}))
    if node is None or call_plan.states is None or call_plan.traced is None:
        return
    state = call_plan.states.before(node, call_plan.traced.nodes)
    if state is not None:
        state.apply(partial(_computed, table, sizes), inputs)


def do_before_call(
    failed: Node, call_plan: CallPlan, inputs: Sequence[Any], known: Bindings
) -> None:
    """The same of a library call that raises."""
    graph = call_plan.traced
    if graph is None or call_plan.states is None:
        return
    read = partial(_computed, *_arguments(graph, inputs, known))
    node = _as_traced(failed, call_plan, graph.nodes, read)
    state = None if node is None else call_plan.states.before(node, graph.nodes)
    if state is not None:
        state.apply(read, inputs)


def _computed(table: dict[Value, Any], sizes: dict[str, int], value: Value) -> Any:
    """A value, of those before the node that raised; some nothing else needs."""
    for node in nodes_behind([value], table.__contains__):
        results = apply(node, [table[v] for v in node.inputs], sizes)
        table.update(zip(node.outputs, results, strict=True))
    return table[value]


def earlier_error(
    failed: Node, call_plan: CallPlan, inputs: Sequence[Any], known: Bindings
) -> Exception | None:
    """The program's error before it reaches the failed node, or None.

    Loops, which may take long, and nodes that depend on loops are not run again.
    """
    graph = call_plan.traced
    if graph is None or not any(op == "Cond" or get(op).checks for op in graph.ops):
        return None
    nodes = _program(call_plan)
    table, sizes = _arguments(graph, inputs, known)
    reached = _as_traced(failed, call_plan, nodes, partial(_computed, dict(table), sizes))
    until = len(nodes) if reached is None else nodes.index(reached)
    for node in nodes[:until]:
        if not has_loops(node) and all(v in table for v in node.inputs):
            error = _first_error([node], table, sizes)
            if error is not None and not isinstance(error, ForeignResultError):
                return error
    return None


def _as_traced(
    failed: Node, call_plan: CallPlan, nodes: Sequence[Node], read: Callable[[Value], Any]
) -> Node | None:
    """The node of the program that became the failed one: of those of the line as many come before
    it; where not all are left, as of iterations that call a library with equal operands, the first
    that raises."""
    def like(nodes: Iterable[Node]) -> list[Node]:
        return [n for n in nodes if n.op == failed.op and n.loc == failed.loc]

    of_program, left = like(nodes), like(call_plan.graph.nodes)
    if len(of_program) == len(left) and failed in left:
        return of_program[left.index(failed)]
    return next((n for n in of_program if _raises(n, read)), next(iter(of_program), None))


def _raises(node: Node, read: Callable[[Value], Any]) -> bool:
    """Whether NumPy raises at this node; not asked where loops would have to be repeated."""
    if any(map(has_loops, nodes_behind(node.outputs))):
        return False
    try:
        read(node.outputs[0])
    except Exception:  # of any class: the repetition that follows raises it
        return True
    return False


def has_loops(node: Node) -> bool:
    return node.op == "Loop" or any(
        has_loops(inner) for graph in node.graphs for inner in graph.nodes)


def _arguments(
    graph: Graph, inputs: Sequence[Any], known: Bindings
) -> tuple[dict[Value, Any], dict[str, int]]:
    sizes = dict(known)
    return {v: as_type(a, v.type, v.node, sizes)
            for v, a in zip(graph.inputs, inputs, strict=True)}, sizes


def _first_error(
    nodes: Iterable[Node], table: dict[Value, Any], sizes: dict[str, int]
) -> Exception | None:
    misfit = None
    for node in nodes:
        if node.op == "Input" or (misfit is not None and not all(v in table for v in node.inputs)):
            continue
        operands = [table[v] for v in node.inputs]
        if node.op == "Fused":
            body = node.attrs["body"]
            inner = dict(zip(body.inputs, operands, strict=True))
            error = _first_error(body.nodes, inner, sizes)
            if error is not None:
                return error
            results = [inner[v] for v in body.outputs]
        else:
            try:
                results = apply(node, operands, sizes)
            except Exception as raised:
                error = located(raised, node.loc)
                if isinstance(error, ForeignResultError):  # compiled code had no use for it
                    misfit = misfit or error
                    continue
                error.__dict__[_WHERE] = node, table, sizes
                return error
        table.update(zip(node.outputs, results, strict=True))
    return misfit
