"""The readable source: its text, and that Python and Numba run it alike."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from kernel_harness import build, check, kernels_of, run_source

import fusec
from fusec.codegen.kernels.lower import lower
from fusec.codegen.python.python_source import kernel_source, load_source
from fusec.ir import Graph, Loc, TensorType
from fusec.ops import Builder
from fusec.passes.fusion.fusion import fuse
from tests.programs.corpus import programs


def source_of(function, *arrays: np.ndarray) -> str:
    (kernel,) = kernels_of(build(function, *arrays))
    return kernel_source(kernel)


def test_a_stencil_reads_as_one_would_write_it() -> None:
    def body(b: Builder, x):
        def shifted(at: int):
            return b.emit("Slice", x, starts=(at, 0), steps=(1, 1), sizes=(3, 4))

        return b.emit("Add", shifted(1), shifted(0))

    assert source_of(body, np.zeros((4, 4))) == '''\
import numpy as np


def fused(x0, Add):
    # in x0: float64[4, 4]
    # out Add: float64[3, 4]
    for i0 in range(3):
        for i1 in range(4):
            Add[i0, i1] = x0[i0 + 1, i1] + x0[i0, i1]
'''


def test_reductions_have_accumulators() -> None:
    text = source_of(lambda b, x: b.emit("Sum", b.emit("Mul", x, x), axes=(1,)), np.zeros((3, 4)))
    assert "r0 = np.float64(0.0)" in text
    assert "t0 = x0[i0, i1]" in text
    assert "r0 = r0 + (t0 * t0)" in text
    assert "Sum[i0] = r0" in text


def test_places_in_the_users_file_are_comments(tmp_path: Path) -> None:
    user = tmp_path / "model.py"
    user.write_text("import numpy as np\ny = x * 2.0  # doubled\n")
    b = Builder(loc=Loc(str(user), 2))
    x = b.emit("Input", name="x", index=0, path="x", type=TensorType(np.dtype("f8"), (3,)))
    graph = fuse(Graph.build([x], [b.emit("Mul", x, b.const(np.float64(2)))]))
    text = kernel_source(lower(next(n for n in graph.nodes if n.op == "Fused")))
    assert f"# {user}:2  y = x * 2.0  # doubled" in text
    assert "Mul[i0] = x[i0] * 2.0" in text


def test_names_are_valid_and_distinct() -> None:
    b = Builder()
    kind = TensorType(np.dtype("f8"), (3,))
    names = ["layer 1/w", "layer_1_w", "for", "i0", "np"]
    inputs = [b.emit("Input", name=n, index=i, path=n, type=kind) for i, n in enumerate(names)]
    total = inputs[0]
    for value in inputs[1:]:
        total = b.emit("Sub", total, value)
    graph = Graph.build(inputs, [total])
    arrays = [np.full(3, float(10**i)) for i in range(5)]
    check(graph, *arrays, want=[np.full(3, 1.0 - 11110)], njit=True)


def test_small_integers_keep_their_dtype() -> None:
    x = np.array([100, -128, 127], np.int8)
    assert "np.int8(" in source_of(lambda b, v: b.emit("Add", v, v), x)
    check(build(lambda b, v: b.emit("Abs", b.emit("Add", v, v)), x), x, njit=True)


def test_helpers_are_emitted_only_when_used() -> None:
    x = np.array([7, -7, 0, -(2**63)])
    text = source_of(lambda b, v: b.emit("FloorDiv", v, v), x)
    assert "def int_floor_divide(a, b):" in text
    assert text.count("def ") == 2
    out = np.zeros(4, np.int64)
    load_source(text)(x, out)
    assert out.tolist() == [1, 1, 0, 1]


def softmax(b: Builder, x):
    peak = b.emit("ExpandDims", b.emit("Max", x, axes=(1,)), axes=(1,))
    e = b.emit("Exp", b.emit("Sub", x, peak))
    return b.emit("Div", e, b.emit("ExpandDims", b.emit("Sum", e, axes=(1,)), axes=(1,)))


def update(b: Builder, x):
    attrs = {"starts": (3, 1), "steps": (-1, 2), "sizes": (3, 3)}
    part = b.emit("Sqrt", b.emit("Abs", b.emit("Slice", x, **attrs)))
    return b.emit("SliceUpdate", x, part, **attrs)


def statistics(b: Builder, x):
    best = [b.emit(op, x, axes=(0,)) for op in ("ArgMax", "ArgMin", "Max", "Min")]
    return [*best, b.emit("Any", b.emit("Less", x, b.const(np.float64(0))), axes=(0,))]


def whole(b: Builder, x):
    return b.emit("Sqrt", b.emit("Sum", b.emit("Mul", x, x), axes=(0, 1)))


@pytest.mark.parametrize("function", [softmax, update, statistics, whole])
def test_python_numba_and_the_back_end_agree(function) -> None:
    x = np.random.default_rng(3).standard_normal((5, 8))
    check(build(function, x), x, rtol=1e-14, njit=True)


def test_nan_is_found_first() -> None:
    x = np.array([1.0, np.nan, 3.0, np.nan])
    check(build(lambda b, v: b.emit("ArgMin", v, axes=(0,)), x), x, want=[np.int64(1)], njit=True)


def test_rank_0() -> None:
    x = np.asarray(2.5)
    graph = build(lambda b, v: b.emit("Mul", v, v), x)
    assert "Mul[()] = " in kernel_source(kernels_of(graph)[0])
    check(graph, x, want=[np.asarray(6.25)], njit=True)


def test_a_start_that_only_the_run_knows() -> None:
    f = fusec.jit(lambda x, n: np.cumsum(x)[min(n, 1):] * 2)
    program = next(p for p in programs() if p.name == "csr_transpose")
    for concrete in (f.concrete(np.ones(5), 3),
                     fusec.jit(program.function).concrete(*program.inputs(program.small))):
        assert all(kernel.source for kernel in concrete.kernels)


def test_strided_arrays_are_fine() -> None:
    x = np.arange(40.0).reshape(5, 8)[::2, ::-3]
    (kernel,) = kernels_of(build(lambda b, v: b.emit("Neg", v), x))
    out = np.zeros((3, 3))
    run_source(kernel, [x, out])
    np.testing.assert_array_equal(out, -x)
