"""Whether a program's results depend on the order in which floats are added up, more than by
roundings: terms that cancel, and branches that a sum decides.  A device has an order of its own
then, and nothing can be said of its results."""

from __future__ import annotations

from typing import Any

import numpy as np
from fuzzer.control.judge import ControlJudge
from fuzzer.control.program import ControlProgram
from harness import clone, run

from fusec.compiled.concrete_function import ConcreteFunction
from fusec.ir import Graph, Node
from fusec.ops import registry
from fusec.ops.graphs.evaluate import apply

TRIES = 16


def sums_decide(program: ControlProgram, args: list[Any]) -> bool:
    """Whether NumPy itself gives something else when it adds in another order."""
    judge = ControlJudge(program)
    return program.rounds and judge._is_unstable(run(program.function(), args), args)


def scans_decide(trace: ConcreteFunction, args: list[Any]) -> bool:
    """Whether NumPy's functions give something else where scans join parts that were scanned."""
    graph = trace.graph
    if not any(node.op == "Scan" for node in graph.nodes):
        return False
    leaves = [np.array(x) if isinstance(x, np.ndarray) else x for x in clone(tuple(args))]
    inputs = [leaves[v.node.attrs["index"]] for v in graph.inputs]
    with np.errstate(all="ignore"):
        want = _outputs(graph, inputs, None)
        return any(_differ(want, _outputs(graph, inputs, np.random.default_rng(seed)))
                   for seed in range(TRIES))


def _differ(some: list[Any], others: list[Any]) -> bool:
    return not all(np.allclose(a, b, rtol=1e-9, atol=1e-9, equal_nan=True)
                   for a, b in zip(some, others, strict=True))


def _outputs(graph: Graph, inputs: list[Any], rng: np.random.Generator | None) -> list[Any]:
    """A graph's results; ``rng`` decides which parts scans join, None: they go on one by one."""
    table = dict(zip(graph.inputs, inputs, strict=True))
    sizes: dict[str, int] = {}
    for node in graph.nodes:
        if node.op != "Input":
            operands = [table[v] for v in node.inputs]
            is_joined = rng is not None and node.op == "Scan"
            results = [_joined(node, *operands, rng)] if is_joined else apply(
                node, operands, sizes)
            table.update(zip(node.outputs, results, strict=True))
    return [table[v] for v in graph.roots]


def _joined(node: Node, x: np.ndarray, rng: Any) -> np.ndarray:
    """The scan of a first part, and that of the second on top of the first one's end."""
    axis, join = node.attrs["axes"][0], registry.get(node.attrs["combine"]).ufunc
    size = x.shape[axis]
    if size < 2:
        return x.copy()
    parts = np.split(x, [rng.integers(1, size)], axis)
    first, second = (_joined(node, part, rng) for part in parts)
    return np.concatenate([first, join(np.take(first, [-1], axis), second)], axis)
