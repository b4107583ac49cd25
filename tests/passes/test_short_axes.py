"""Short last axes: reductions are expressions, results along them are written in parts."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import fusec
from fusec.ir.text.parse import parse_graph
from fusec.passes.rules.short_axes import short_axes

POINTS, WEIGHTS = np.linspace(-1, 1, 120).reshape(40, 3), np.linspace(1, 2, 40)


def graph_of(shape: tuple[int, ...], axes: tuple[int, ...], op: str = "Sum") -> str:
    kept = ",".join(str(n) for d, n in enumerate(shape) if d not in axes)
    return (f"graph main(x: f64[{','.join(map(str, shape))}]) {{\n"
            f"  %r = {op}(%x) {{axes={axes}}} : f64[{kept}]\n  return %r\n}}")


@pytest.mark.parametrize("op", ["Sum", "Prod", "Max", "Min"])
@pytest.mark.parametrize(("shape", "axes"), [
    ((40, 3), (1,)), ((40, 2), (1,)), ((40, 16), (1,)), ((5, 4, 3, 3), (2, 3)), ((2, 3), (1,))])
def test_a_reduction_over_a_few_last_elements_is_an_expression(op, shape, axes):
    result = short_axes(parse_graph(graph_of(shape, axes, op)))
    (fold,) = [n for n in result.nodes if n.op == "Fold"]
    assert dict(fold.attrs) == {"of": op, "axes": axes}


@pytest.mark.parametrize(("shape", "axes"), [
    ((40, 17), (1,)), ((40, 1), (1,)), ((3,), (0,)), ((3, 40), (0,)), ((3, 3), (0, 1)),
    ((40, 5, 4), (1, 2))])
def test_other_reductions_keep_their_loops(shape, axes):
    graph = parse_graph(graph_of(shape, axes))
    assert short_axes(graph) is graph


def test_short_axes_inside_of_short_axes_end_somewhere():
    def program(x):
        for _ in range(3):
            x = np.sqrt(np.abs(x)).sum(-1)
        return x

    x = np.ones((20, 8, 8, 8))
    nodes = fusec.jit(program).trace(x).optimize().graph.nodes
    ops = [n.op for fused in nodes if fused.op == "Fused" for n in fused.attrs["body"].nodes]
    assert (ops.count("Fold"), ops.count("Sum")) == (2, 1)


def test_what_is_too_much_code_stays_a_loop_and_what_goes_with_it():
    def program(x):
        e = np.exp(x - x.max(axis=-1, keepdims=True))
        return e / e.sum(axis=-1, keepdims=True)

    def ops(length):
        (kernel,) = fusec.jit(program).trace(np.ones((20, length))).optimize().graph.nodes[1:]
        return [n.op for n in kernel.attrs["body"].nodes if n.op in ("Fold", "Max", "Sum")]

    assert (ops(8), ops(16)) == (["Fold", "Fold"], ["Max", "Sum"])


def test_distances_to_many_points_compute_each_norm_once():
    def program(p, q):
        return (p * p).sum(-1)[:, None] + (q * q).sum(-1) - 2 * (p @ q.T)

    kernels = fusec.jit(program).concrete(np.ones((20, 16)), np.ones((30, 16))).kernels
    assert sum(k.loops.count("*") for k in kernels) < 60 and len(kernels) == 3


def pairwise(p, m):
    d = p[None] - p[:, None]
    inv = ((d * d).sum(-1) + 1e-3) ** -1.5
    return (d * inv[..., None] * m[None, :, None]).sum(1)


def softmax(p, m):
    e = np.exp(p - p.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def nearest(p, m):
    d = np.linalg.norm(p[None] - p[:, None], axis=-1)
    return d.min(axis=1), d.max(axis=1), d.mean(axis=1)


def in_place(p, m):
    p /= np.linalg.norm(p, axis=-1, keepdims=True)


ONE_KERNEL: dict[str, Callable] = {
    "pairwise forces": pairwise,
    "lengths": lambda p, m: np.linalg.norm(p, axis=-1),
    "unit vectors": lambda p, m: p / np.linalg.norm(p, axis=-1, keepdims=True),
    "softmax": softmax,
    "nearest": nearest,
    "dot products": lambda p, m: (p * p[::-1]).sum(axis=-1) * m,
    "projection": lambda p, m: p - (p * p[0]).sum(-1, keepdims=True) * p[0],
    "standardised": lambda p, m: (p - p.mean(-1, keepdims=True)) / p.std(-1, keepdims=True),
    "weighted": lambda p, m: (p * np.exp(-m)[:, None]).sum(axis=0),
    "costly terms": lambda p, m: np.tanh(p).sum(axis=-1),
    "any and all": lambda p, m: ((p > 0).any(axis=-1), (p > 0).all(axis=-1)),
    "moments": lambda p, m: ((p * p).sum(-1), p.prod(-1), p.max(-1), p.min(-1), p.var(-1)),
}


@pytest.mark.parametrize("name", ONE_KERNEL)
def test_work_per_point_is_one_kernel(name):
    program, args = ONE_KERNEL[name], (POINTS.copy(), WEIGHTS)
    jitted = fusec.jit(program)
    kernels = jitted.concrete(*args).kernels
    assert len(kernels) == 1 and len(kernels[0].kernel.nests) == 1
    np.testing.assert_allclose(jitted(*args), program(*args), rtol=1e-13, atol=1e-13)


def test_an_update_in_parts_is_done_in_place():
    jitted = fusec.jit(in_place)
    p, want = POINTS.copy(), POINTS.copy()
    concrete = jitted.concrete(p, WEIGHTS)
    (step,) = concrete.build.call_plan.kernels
    assert [place.memory.origin for place in step.places] == ["operand", "operand"]
    jitted(p, WEIGHTS)
    in_place(want, WEIGHTS)
    np.testing.assert_allclose(p, want, rtol=1e-15)


def test_the_parts_share_what_they_have_in_common():
    kernel, = fusec.jit(pairwise).concrete(POINTS, WEIGHTS).kernels
    assert kernel.loops.count("sqrt(") == 1  # of the power, once a pair
    assert kernel.loops.count("add-reduce") == 3


def test_plain_loops_stay_whole_vectors():
    kernel, = fusec.jit(lambda p, m: p * 2 + m[:, None]).concrete(POINTS, WEIGHTS).kernels
    assert kernel.loops.count("out") == 1 and kernel.loops.count("[i0, i1] =") == 1


def test_the_machine_code_does_not_know_the_number_of_points():
    for reduce_retracing in (True, False):
        norm = fusec.jit(lambda p: np.linalg.norm(p, axis=-1), reduce_retracing=reduce_retracing)
        plans = [norm.concrete(np.ones((count, 3))) for count in (10, 11, 100)]
        assert [plan.times["llvm"] > 0 for plan in plans[1:]] == [False, False]
