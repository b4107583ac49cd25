"""`config.deterministic = False`, and fp="fast": floats are added to places in any order, by atomic
operations."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import fusec
from fusec import config
from fusec.codegen.cuda import disassembly
from fusec.codegen.cuda.driver import nvrtc
from fusec.codegen.cuda.kernels.kernel_sources import module_of, write_form
from fusec.codegen.kernels.specialise import specialise

HOST = "/device:CUDAHOST:0"
RNG = np.random.default_rng(0)


def added(x: Any, i: Any, v: Any) -> Any:
    x = x.copy()
    np.add.at(x, i, v * 2)
    return x


def stored(x: Any, i: Any, v: Any) -> Any:
    x = x.copy()
    x[i] = v
    return x


def multiplied(x: Any, i: Any, v: Any) -> Any:
    x = x.copy()
    np.multiply.at(x, i, v)
    return x


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "c16", "i4"])
@pytest.mark.parametrize("points", [300, 70_000])
def test_sums_of_floats(points: int, dtype: str) -> None:
    x, v = RNG.normal(size=50).astype(dtype), (RNG.normal(size=points) * 3).astype(dtype)
    i = RNG.integers(-50, 50, points)
    near = {"f2": 1e-1, "f4": 1e-3}.get(dtype, 1e-10)
    with config.override(deterministic=False):
        jitted = fusec.jit(added, device=HOST)
        got = jitted(x, i, v)
        is_atomic = any(f"atomicAdd(reinterpret_cast<{word} *>" in kernel.asm["cu"]
                        for kernel in jitted.traces[0].kernels for word in ("float", "double"))
    want = added(x, i, v)
    if dtype == "f2":
        np.testing.assert_array_equal(got, want)  # no atomic operation: the program's order
    else:
        np.testing.assert_allclose(got, want, rtol=near, atol=near)
    assert is_atomic == (dtype in ("f4", "f8", "c16"))
    np.testing.assert_array_equal(fusec.jit(added, device=HOST)(x, i, v), want)


@pytest.mark.parametrize("program", [stored, multiplied])
def test_what_is_no_sum_keeps_its_order(program: Any) -> None:
    x, v, i = RNG.normal(size=50), RNG.normal(size=300), RNG.integers(0, 50, 300)
    with config.override(deterministic=False):
        np.testing.assert_array_equal(fusec.jit(program, device=HOST)(x, i, v), program(x, i, v))


def test_an_index_out_of_range() -> None:
    x, i = np.zeros(5), np.array([0, 7])
    with config.override(deterministic=False), pytest.raises(IndexError, match="7"):
        fusec.jit(added, device=HOST)(x, i, np.ones(2))


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "c16"])
def test_fast_programs_add_in_any_order(dtype: str) -> None:
    """The mark is the program's: the same kernel for another keeps the order of points."""
    x, v = RNG.normal(size=50).astype(dtype), RNG.normal(size=300).astype(dtype)
    i = RNG.integers(-50, 50, 300)
    fast, usual = (fusec.jit(added, device=HOST, fp=fp) for fp in ("fast", "contract"))
    near = {"f2": 1e-1, "f4": 1e-3}.get(dtype, 1e-10)
    np.testing.assert_allclose(fast(x, i, v), added(x, i, v), rtol=near, atol=near)
    np.testing.assert_array_equal(usual(x, i, v), added(x, i, v))
    np.testing.assert_array_equal(fusec.jit(added, fp="fast")(x, i, v), added(x, i, v))
    assert [any("atomicAdd(" in k.asm["cu"] for k in f.traces[0].kernels)
            for f in (fast, usual)] == [dtype != "f2", False]


@pytest.mark.skipif(disassembly.disassembler() is None or not nvrtc.is_available(),
                    reason="NVRTC and nvdisasm: of the extra test-cuda")
@pytest.mark.parametrize(("fp", "atomic"), [("fast", True), ("contract", False)])
def test_machine_code_of_sums(fp: str, atomic: bool) -> None:
    x, i, v = np.zeros(50, "f4"), np.zeros(300, np.int64), np.ones(300, "f4")
    step = next(k.step for k in fusec.jit(added, fp=fp).lower(x, i, v).kernels
                if any(nest.sequential for nest in k.step.kernel.nests))
    nest = next(nest for nest in step.kernel.nests if nest.sequential)
    form = specialise(step.kernel, nest, [p.strides for p in step.places])
    module = module_of(write_form(form, "i32", "added"))
    text = disassembly.disassembled(nvrtc.compile(module, "sm_90").cubin)
    assert bool(re.search(r"\b(RED|REDG|ATOM|ATOMG)\.\S*ADD\S*", text)) == atomic


def test_a_fast_graph_comes_back_from_json() -> None:
    """Its marks are permissions, which a stranger's graph may give, too."""
    y = RNG.normal(size=(4, 4)).astype("f4")
    text = fusec.jit(lambda y: y @ y, fp="fast").concrete(y).optimized_graph.to_json()
    assert text.count('"estimated"') == 1
    again = fusec.admit(text)
    assert again.to_json().count('"estimated"') == 1
    np.testing.assert_array_equal(again.function()(y), y @ y)
    with pytest.raises(fusec.errors.FusecError, match="estimated is not True"):
        fusec.admit(re.sub(r'("estimated": *)true', r"\1false", text))
