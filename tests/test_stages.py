"""Stages as public objects: each prints itself and its parts."""

from __future__ import annotations

import numpy as np
import pytest

import fusec


def softmax(x):
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def layer(x, w):
    return np.tanh(x @ w).sum(axis=1)


X = np.linspace(-1, 1, 60).reshape(12, 5)


def test_each_stage_shows_its_own_artefact():
    traced = fusec.jit(softmax).trace(X)
    assert [n.op for n in traced.graph.nodes][:2] == ["Input", "Max"]
    assert traced.as_text().startswith("graph softmax(x: f64[12,5])")
    optimised = traced.optimize()
    assert "fusion" in optimised.as_text() and optimised.passes[0].name == "twins"
    lowered = optimised.lower()
    (kernel,) = lowered.kernels
    assert "for i0 in 12:" in lowered.as_text()
    assert "def fused(" in kernel.source and kernel.lines
    with pytest.raises(AttributeError, match=r"call \.compile"):
        _ = kernel.asm
    compiled = lowered.compile()
    assert "define void" in compiled.kernels[0].asm["ll"]
    assert list(compiled.times) == ["trace", "passes", "codegen", "llvm", "plan"]


def test_a_stage_is_not_cached():
    function = fusec.jit(softmax)
    function.lower(X).compile()
    assert function.trace_count == 0


def test_a_run_can_report_its_steps():
    w = np.ones((5, 3))
    concrete = fusec.jit(layer).concrete(X, w)
    result, metadata = concrete.run(X, w, options=fusec.RunOptions(trace=True))
    np.testing.assert_allclose(result, layer(X, w), rtol=1e-14)
    assert [name for name, _ in metadata.steps] == ["MatMul", "fused"]
    assert all(us > 0 for _, us in metadata.steps)
    assert concrete.run(X, w)[1].steps == []


def test_a_concrete_function_refuses_other_signatures():
    concrete = fusec.jit(softmax).concrete(X)
    with pytest.raises(TypeError, match=r"x: f64\[12,5\] before, f64\[5,12\] now"):
        concrete.run(X.reshape(5, 12))
