"""How much branches and loops compute, in additions of vector code, by the bounds of numbers.

Numbers are followed from constants into the graphs of loops: a counter is half-way, on average,
and the counter of an inner loop may begin or end at that of an outer one.  Arrays whose size only
the run knows are mostly parts of those that the loop uses, of half their length.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from fusec.ir import Graph, Node, Value
from fusec.ops import get
from fusec.ops.calls.library_work import GUESSED_SIZE, WORK, points_of
from fusec.ops.calls.subgraph_ops import has_placed_parts
from fusec.ops.regions.loop_numbers import ARITHMETIC, ENDS, STEPS, is_and, writes_part

from ..fusion.kernel_work import work_of

GUESSED_TRIPS = 100.0
STATEMENT = 5.0  # one on a number, in a native loop, in additions of vector code
IN_LOOPS = 3.0  # an element there, against one of a kernel
STEP = 300_000.0  # over several devices, what is computed there aside: 25 us
LIBRARY_CALL = 60_000.0  # with the way into Python and back

Numbers = Mapping[Value, float]


def control_work(node: Node, numbers: Numbers, size: int = GUESSED_SIZE) -> float:
    """The work of a branch, loop or call of another graph; ``numbers`` are those known around,
    ``size`` a guess for sizes that are not."""
    if node.op == "Loop":
        return _loop_work(node, numbers, size)
    step = STEP if has_placed_parts(node) else 0.0
    inside = [step + graph_work(graph, _entering(node, graph, numbers), size)
              for graph in node.graphs]
    return sum(inside) / len(inside) if inside else GUESSED_TRIPS * STATEMENT


def graph_work(graph: Graph, numbers: Numbers, size: int = GUESSED_SIZE) -> float:
    """The work of all nodes of a branch or of a loop's body, once."""
    known = dict(numbers)
    return sum(_node_work(node, _followed(node, known), size) for node in graph.nodes
               if not get(node.op).is_given)


def number_of(value: Value, numbers: Numbers) -> float | None:
    """The number that a value is, as far as that is known."""
    if value in numbers:
        return numbers[value]
    if value.node.op == "Const" and not value.shape and value.dtype.kind in "iufb":
        return float(value.node.attrs["value"])
    return None


def _followed(node: Node, known: dict[Value, float]) -> Numbers:
    """The known numbers, the node's own result included."""
    rule = ARITHMETIC.get(node.op)
    if rule is not None and not node.out().shape:
        operands = [number_of(v, known) for v in node.inputs]
        if None not in operands:
            known[node.out()] = rule(*operands)
    return known


def _node_work(node: Node, numbers: Numbers, size: int) -> float:
    row = get(node.op)
    if row.is_control:
        return STATEMENT + control_work(node, numbers, size)
    touched = _touched(node, size)
    if node.op == "MatMul":  # loops compute small ones by themselves
        return STATEMENT + 2.0 * IN_LOOPS * touched
    rule = WORK.get(node.op)
    if row.kind == "extern" and row.numpy:
        return LIBRARY_CALL + (4.0 * touched if rule is None else rule(node, touched))
    each = max(work_of(node.outputs[0]) if node.outputs else 0.0, 1.0)
    return STATEMENT + IN_LOOPS * each * touched


def _touched(node: Node, size: int) -> float:
    """Elements that a node reads or writes: of a part that it reads or replaces, those alone."""
    row = get(node.op)
    values = (*node.inputs, *node.outputs)
    if writes_part(node):
        values = node.inputs[1:2]
    elif row.picks or row.kind == "gather" or row.kind == "view":
        values = tuple(node.outputs)
    return max((points_of(v.shape, size) for v in values), default=1.0)


def _entering(node: Node, graph: Graph, numbers: Numbers) -> dict[Value, float]:
    """The known numbers inside of a branch, whose graphs take the operands after the condition."""
    operands = node.inputs[len(node.inputs) - len(graph.inputs):]
    return {inner: number for inner, outer in zip(graph.inputs, operands, strict=False)
            if (number := number_of(outer, numbers)) is not None}


# ---- loops -----------------------------------------------------------------------------------


def _loop_work(node: Node, numbers: Numbers, size: int) -> float:
    carried = node.attrs["carried"]
    fixed = {i: number for i, v in enumerate(node.inputs[carried:], carried)
             if (number := number_of(v, numbers)) is not None}
    test, body = node.attrs["test"], node.attrs["body"]
    counted = _counted(node, fixed, numbers)
    length = _longest(node, size)
    trips = min(length or GUESSED_TRIPS, GUESSED_TRIPS) if counted is None else counted[2]
    known = dict(fixed)
    if counted is not None:
        known[counted[0]] = counted[1]
    part = max(round(length / 2), 1) if length else size
    step = STEP if has_placed_parts(node) else 0.0
    return trips * (step + sum(
        graph_work(graph, {graph.inputs[i]: n for i, n in known.items()}, part)
        for graph in (test, body)))


def _longest(node: Node, size: int) -> float:
    """The longest axis of a loop's arrays: it mostly walks along one; 0 where it uses numbers."""
    return max((points_of(v.shape[i: i + 1], size) for v in node.inputs
                for i in range(len(v.shape))), default=0.0)


def _counted(
    node: Node, fixed: Mapping[int, float], numbers: Numbers
) -> tuple[int, float, float] | None:
    """The position of a counter, its value half-way, and how often the loop runs at most."""
    test: Graph = node.attrs["test"]
    inside = {test.inputs[i]: n for i, n in fixed.items()}
    for comparison in _comparisons(test.outputs[0]):
        counter, end = comparison.inputs
        last = number_of(end, inside)
        if counter not in test.inputs or last is None:
            continue
        position = test.inputs.index(counter)
        first, step = number_of(node.inputs[position], numbers), _step(node, position)
        if first is None or not step:
            continue
        trips = (last - first) / step + ENDS[comparison.op]
        if math.isfinite(trips):
            return position, (first + last) / 2, max(trips, 0.0)
    return None


def _comparisons(value: Value) -> Iterator[Node]:
    """Those that must hold for the loop to go on."""
    node = value.node
    if is_and(node):
        for operand in node.inputs[:2]:
            yield from _comparisons(operand)
    elif value.node.op in ENDS:
        yield value.node


def _step(node: Node, position: int) -> float | None:
    """The step of a carried number in an iteration."""
    body: Graph = node.attrs["body"]
    scalars = [i for i, v in enumerate(body.inputs[:node.attrs["carried"]])
               if v.type.kind != "array"]
    if position not in scalars or len(scalars) > len(body.outputs):
        return None
    after = body.outputs[scalars.index(position)].node
    if after.op not in STEPS or body.inputs[position] not in after.inputs:
        return None
    other = next((v for v in after.inputs if v is not body.inputs[position]), None)
    number = None if other is None else number_of(other, {})
    return None if number is None else STEPS[after.op] * number
