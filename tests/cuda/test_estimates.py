"""Estimates under fp="fast": the emulated device computes, as the CPU does; NVRTC's PTX of them is
interpreted, with instructions that are exact."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from test_ptx import run_on_ptx

import fusec
from fusec.codegen.cuda.driver import nvrtc
from fusec.codegen.cuda.kernels.kernel_sources import module_of, write_form
from fusec.codegen.kernels.complex_pairs import buffer_strides
from fusec.codegen.kernels.loop_ir import Kernel
from fusec.codegen.kernels.specialise import specialise
from fusec.ops import all_ops
from fusec.ops.exact_fma import exact_fma

needs_nvrtc = pytest.mark.skipif(not nvrtc.is_available(), reason="NVRTC: of the extra test-cuda")
X = np.linspace(-30, 30, 4001, dtype=np.float32)
POSITIVE = np.exp(np.linspace(-60, 60, 4001)).astype(np.float32)
CASES: dict[str, tuple[Callable[..., Any], tuple[np.ndarray, ...]]] = {
    "Div": (lambda x, y: x / y, (X, POSITIVE[::-1].copy())),
    "Reciprocal": (np.reciprocal, (POSITIVE,)), "Sqrt": (np.sqrt, (POSITIVE,)),
    "Exp": (np.exp, (X,)), "Exp2": (np.exp2, (X,)), "Log": (np.log, (POSITIVE,)),
    "Log2": (np.log2, (POSITIVE,)), "Log10": (np.log10, (POSITIVE,)), "Sin": (np.sin, (X,)),
    "Cos": (np.cos, (X,)), "Tan": (np.tan, (X,)), "Tanh": (np.tanh, (X,)),
    "Pow": (lambda x, y: x ** y, (POSITIVE, (X / 40).copy())),
}
# Absolute, relative: of the steps around the instructions, which the interpreter rounds correctly.
ERRORS = {"Sin": (3e-7, 0), "Cos": (3e-7, 0), "Tan": (3e-7, 1e-6), "Exp": (0, 4e-6),
          "Pow": (0, 1e-5), "Log": (1e-7, 1e-6), "Log2": (1e-7, 1e-6), "Log10": (1e-7, 1e-6)}


def gelu_of_quotients(x: np.ndarray, y: np.ndarray) -> Any:
    z = x / np.sqrt(y) + np.exp(-x * x) * np.log(y)
    return 0.5 * z * (1 + np.tanh(0.8 * z)) + y**1.7 * np.sin(x) + np.cos(x) / (1 + y) - np.tan(y)


def kernel_of(function: Callable[..., Any], args: tuple[np.ndarray, ...], fp: Any) -> Any:
    (kernel,) = fusec.jit(lambda *a: function(*a), fp=fp).lower(*args).kernels
    return kernel.step


def ptx_of(step: Any, kernel: Kernel) -> str:
    strides = [buffer_strides(p.dtype, p.strides) for p in step.places]
    (written,) = write_form(specialise(kernel, kernel.nests[0], strides), "i32", "k")
    return nvrtc.compile(module_of([written]), "sm_90").ptx


def test_every_row_has_a_case() -> None:
    estimated = {row.name for row in all_ops() if row.is_estimated}
    # Which test_gpu_products.py and test_any_order.py have.
    assert CASES.keys() == estimated - {"MatMul", "Scatter"}


@needs_nvrtc
@pytest.mark.parametrize("name", CASES)
def test_estimates_follow_the_function(name: str) -> None:
    function, args = CASES[name]
    step = kernel_of(function, args, "fast")
    assert ".approx" in ptx_of(step, step.kernel)
    result = np.empty_like(args[0])
    run_on_ptx(step.kernel, [*args, result])
    with np.errstate(all="ignore"):
        want = function(*(a.astype(np.float64) for a in args))
    absolute, relative = ERRORS.get(name, (0, 1e-6))
    if name == "Tan":
        absolute = absolute * (1 + want**2)
    errors = np.abs(result - want)
    worst = int(np.argmax(errors - absolute - relative * np.abs(want)))
    assert np.all(errors <= absolute + relative * np.abs(want)), (
        [a[worst] for a in args], result[worst], want[worst])


@needs_nvrtc
@pytest.mark.parametrize("fp", ["contract", "strict"])
def test_nothing_is_estimated_without_the_permission(fp: str) -> None:
    args = (X, POSITIVE)
    step = kernel_of(gelu_of_quotients, args, fp)
    text = ptx_of(step, step.kernel)
    assert "ex2" not in text and "lg2" not in text and "sin.approx" not in text
    assert "div.approx" not in text and "sqrt.approx" not in text


@needs_nvrtc
def test_float64_is_computed() -> None:
    args = (X.astype(np.float64), POSITIVE.astype(np.float64))
    step = kernel_of(gelu_of_quotients, args, "fast")
    assert ".approx" not in ptx_of(step, step.kernel)


@needs_nvrtc
def test_a_quotient_by_a_root_is_one_instruction() -> None:
    step = kernel_of(lambda x, y: x / np.sqrt(y), (X, POSITIVE), "fast")
    text = ptx_of(step, step.kernel)
    assert "rsqrt.approx.ftz.f32" in text and "div" not in text


@needs_nvrtc
def test_powers_of_what_is_not_positive_are_computed() -> None:
    x = np.array([-2, -0.0, 0, np.inf, -np.inf, np.nan, 1, 2, -8, 0.5] * 3, np.float32)
    y = np.repeat(np.array([3, -1, 0], np.float32), 10)
    step = kernel_of(lambda a, b: a ** b, (x, y), "fast")
    result = np.empty_like(x)
    run_on_ptx(step.kernel, [x, y, result])
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(result, x ** y, rtol=1e-6)


def test_the_emulated_device_has_the_cpus_bits() -> None:
    f = fusec.jit(gelu_of_quotients, fp="fast")
    x, y = np.linspace(-3, 3, 501, dtype=np.float32), np.linspace(0.1, 9, 501, dtype=np.float32)
    want = f(x, y)
    with fusec.device("/device:CUDAHOST:0"):
        got = f(x, y)
    np.testing.assert_array_equal(np.asarray(got).view(np.uint32), want.view(np.uint32))


def test_the_cpu_computes() -> None:
    """The reference interpreter and NumPy know nothing of the permission."""
    x = np.linspace(0.1, 3, 100, dtype=np.float32)
    plain = fusec.jit(lambda x: np.exp(x) / np.sqrt(x))
    fast = fusec.jit(lambda x: np.exp(x) / np.sqrt(x), fp="fast")
    np.testing.assert_array_equal(plain(x), fast(x))


def test_all_products_are_contracted() -> None:
    a, b, c, d = np.random.default_rng(0).standard_normal((4, 1000))
    got = fusec.jit(lambda a, b, c, d: a * b + c * d, fp="fast")(a, b, c, d)
    np.testing.assert_array_equal(got, exact_fma(a, b, c * d))
    shared = fusec.jit(lambda a, b, c: (a * b + c, a * b - c), fp="fast")(a, b, c)
    np.testing.assert_array_equal(shared, [exact_fma(a, b, c), exact_fma(a, b, -c)])
