"""Rules of derivatives judged on a program: by differences of it, and each direction by the other.

A program's graph is differentiated as it was traced, and evaluated node by node by NumPy: the rules
are judged, not passes and kernels.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import fusec
from fusec.ir import Graph, Value
from fusec.ops import Builder
from fusec.ops.build import Namer
from fusec.ops.derivatives import DIFFERENTIABLE, Term
from fusec.ops.graphs.evaluate import evaluate, evaluate_all
from fusec.passes.gradient import pull, push

Program = Callable[..., Any]
Arrays = list[np.ndarray]
STEP = 2.0**-8
CONSISTENT, DIFFERENCES = 1e-12, 1e-7


class Derivatives:
    """Both directions of a program's derivative by its float arguments, at these arguments."""

    def __init__(self, program: Program, arguments: Sequence[Any]) -> None:
        stage = fusec.jit(program).trace(*arguments)
        self.graph: Graph = stage.graph
        given = [stage.call.leaves[k] for k in stage.traced.positions]
        self.arguments = [np.array(a) for a in (*given, *stage.traced.captured)]
        self.variables = [k for k, v in enumerate(self.graph.inputs) if _is_smooth(v)]
        self.results = [k for k, v in enumerate(self.graph.roots) if _is_smooth(v)]
        assert self.variables and self.results, "nothing to differentiate"

    def values(self, arguments: Sequence[Any]) -> Arrays:
        """The float results, and the float arguments afterwards."""
        outputs, updates = evaluate_all(self.graph, arguments)
        found = [*outputs, *(value for _, value in updates)]
        return [np.asarray(found[k]) for k in self.results]

    def pushed(self, tangents: Arrays) -> Arrays:
        """The results' tangents."""
        builder, given = self._started(tangents, [self.graph.inputs[k] for k in self.variables])
        at = [self.graph.inputs[k] for k in self.variables]
        values = [self.graph.roots[k] for k in self.results]
        found = push(builder, dict(zip(at, given, strict=True)), values)
        return self._evaluated(given, found, self.values(self.arguments), tangents)

    def pulled(self, cotangents: Arrays) -> Arrays:
        """The variables' cotangents."""
        at = [self.graph.roots[k] for k in self.results]
        builder, given = self._started(cotangents, at)
        values = [self.graph.inputs[k] for k in self.variables]
        together: dict[Value, Term] = {}
        for value, term in zip(at, given, strict=True):
            together[value] = together[value] + term if value in together else term
        like = [self.arguments[k] for k in self.variables]
        return self._evaluated(given, pull(builder, together, values), like, cotangents)

    def _started(self, arrays: Arrays, like: Sequence[Value]) -> tuple[Builder, list[Term]]:
        builder = Builder(Namer(n.name for n in self.graph.nodes))
        first = len(self.graph.inputs)
        return builder, [
            Term(builder, builder.source("Input", "given", index=first + k, path=f"given{k}",
                                        type=value.type))
            for k, value in enumerate(like)]

    def _evaluated(
        self, given: Sequence[Term], found: Sequence[Term | None], like: Arrays, arrays: Arrays,
    ) -> Arrays:
        inputs = (*self.graph.inputs, *(t.value for t in given))
        graph = Graph.build(inputs, [t.value for t in found if t is not None])
        values = iter(evaluate(graph, [*self.arguments, *arrays]))
        return [np.zeros_like(a) if t is None else np.asarray(next(values))
                for t, a in zip(found, like, strict=True)]

    def differences(self, tangents: Arrays, step: float = STEP) -> Arrays:
        """The results' tangents by central differences, extrapolated (Richardson) from five steps.
        """
        rows = [self._difference(tangents, step / 2**k) for k in range(5)]
        for order in range(1, 5):
            rows = [[(4**order * b - a) / (4**order - 1) for a, b in zip(r, s, strict=True)]
                    for r, s in itertools.pairwise(rows)]
        return rows[0]

    def _difference(self, tangents: Arrays, step: float) -> Arrays:
        after, before = (self.values(self._moved(tangents, s)) for s in (step, -step))
        return [(a - b) / (2 * step) for a, b in zip(after, before, strict=True)]

    def _moved(self, tangents: Arrays, step: float) -> list[Any]:
        arguments = list(self.arguments)
        for k, t in zip(self.variables, tangents, strict=True):
            arguments[k] = arguments[k] + step * t
        return arguments


def _is_smooth(value: Value) -> bool:
    return value.dtype.kind in DIFFERENTIABLE


def inner(a: Arrays, b: Arrays) -> float:
    """``Re(sum(conj(a) * b))`` over all arrays."""
    return float(sum(np.sum((np.conj(x) * y).real) for x, y in zip(a, b, strict=True)))


def random_like(rng: np.random.Generator, arrays: Arrays) -> Arrays:
    """Normal numbers of these shapes and dtypes."""
    def one(a: np.ndarray) -> np.ndarray:
        x = rng.standard_normal(a.shape)
        return (x + 1j * rng.standard_normal(a.shape) if a.dtype.kind == "c" else x).astype(a.dtype)

    return [np.asarray(one(a)) for a in arrays]


def judge(
    program: Program, *arguments: Any, seed: int = 0, step: float = STEP,
    differences: float = DIFFERENCES, consistent: float = CONSISTENT,
) -> None:
    """Tangents are the differences, and ``<u, J v> = <J^T u, v>``, for random directions."""
    found, rng = Derivatives(program, arguments), np.random.default_rng(seed)
    v = random_like(rng, [found.arguments[k] for k in found.variables])
    u = random_like(rng, found.values(found.arguments))
    forward, backward = found.pushed(v), found.pulled(u)
    for value, right in zip(forward, found.differences(v, step), strict=True):
        size = 1 + np.max(np.abs(right), initial=0)
        np.testing.assert_allclose(value, right, rtol=differences, atol=differences * size)
    one, other = inner(u, forward), inner(backward, v)
    size = sum(float(np.sum(np.abs(a) * np.abs(b))) for a, b in zip(u, forward, strict=True))
    size += sum(float(np.sum(np.abs(a) * np.abs(b))) for a, b in zip(backward, v, strict=True))
    assert abs(one - other) <= consistent * (1 + size), (one, other)
