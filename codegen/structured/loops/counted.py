"""Loops whose iterations may be computed together, and what an iteration costs."""

from __future__ import annotations

from fusec.core.records import dataclass
from fusec.ir import Graph, Node, Value

from ..memory import I64

NODE_NS = 1  # estimated ns of an operation, for polls


@dataclass(frozen=True)
class Counted:
    """A loop that LLVM may vectorise: it carries a few numbers only, and runs while one of them,
    ``number``, which grows by one, is below a limit."""

    number: int
    limit: Value  # an input of the test, or a constant
    place: int = -1  # the number of that input

    @classmethod
    def of(cls, node: Node) -> Counted | None:
        return cls.in_any(node) if _is_of_numbers(node.attrs["body"]) else None

    @classmethod
    def in_any(cls, node: Node) -> Counted | None:
        """The number and its limit of a loop that carries anything, and ends for nothing else."""
        test: Graph = node.attrs["test"]
        less = test.outputs[0].node
        if less.op != "Less" or any(v.dtype != I64 for v in less.inputs):
            return None
        counter, limit = less.inputs
        carried = test.inputs[: node.attrs["carried"]]
        fixed = limit.node.op == "Const" or limit in test.inputs[len(carried):]
        if not fixed or counter not in carried or not grows(node, carried.index(counter)):
            return None
        place = test.inputs.index(limit) if limit in test.inputs else -1
        return cls(carried.index(counter), limit, place)


def iteration_cost(node: Node) -> int:
    """Estimated ns of an iteration of a loop, those of loops inside not counted."""
    return graph_cost(node.attrs["test"], node.attrs["body"])


def graph_cost(*graphs: Graph) -> int:
    """Estimated ns of the operations of graphs and of the branches inside them; loops inside them
    count their own."""
    return NODE_NS * _count(*graphs)


def _count(*graphs: Graph) -> int:
    return sum(1 + (_count(*node.graphs) if node.op != "Loop" else 0)
               for graph in graphs for node in graph.nodes)


def _is_of_numbers(graph: Graph) -> bool:
    return all(
        node.op not in ("Loop", "HostCall") and all(map(_is_of_numbers, node.graphs))
        and not any(v.shape for v in _new_values(node)) for node in graph.nodes)


def grows(node: Node, number: int) -> bool:
    """Whether each iteration adds one to a carried number."""
    body = node.attrs["body"]
    scalars = [i for i in range(node.attrs["carried"]) if node.types[i].kind != "array"]
    update = body.outputs[scalars.index(number)].node
    return update.op == "Add" and body.inputs[number] in update.inputs and any(
        v.node.op == "Const" and v.node.attrs["value"] == 1 for v in update.inputs)


def _new_values(node: Node) -> list[Value]:
    """The values that a node computes anew; an update of an element changes an array in place."""
    if node.op == "Input":
        return []
    return [node.inputs[1]] if node.op == "PickUpdate" else list(node.outputs)
