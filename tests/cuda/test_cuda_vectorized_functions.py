"""Functions of fusec.vectorize as CUDA C++: the bits of the CPU, and its errors."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numba
import numpy as np
import pytest
from cuda_harness import assert_equal_bits, run_program
from fake_cupy import FakeCupy, as_gpu
from scalar_programs import NUMBERS, Program, arguments
from test_vectorize import (
    CASES,
    by_python,
    clipped,
    collatz,
    escape,
    halvings,
    inverse,
    kepler,
    worded,
)

import fusec
from fusec import config
from fusec.codegen import backends
from fusec.codegen.cuda.driver import nvrtc
from fusec.codegen.cuda.module import CudaModule
from fusec.codegen.cuda.scalars import scalar_functions
from fusec.errors import UnsupportedError
from fusec.ops.calls.scalar_calls import FunctionName

DEVICE = "/device:CUDAHOST:0"


def same_bits(f: Callable[..., Any], *args: Any) -> Any:
    """The CPU's results, and the emulated device's to the bit."""
    want, got = fusec.jit(f)(*args), run_program(f, *args)
    pairs = zip(want, got, strict=True) if isinstance(want, tuple) else [(want, got)]
    for number, (one, other) in enumerate(pairs):
        assert_equal_bits(np.asarray(other), np.asarray(one), f"{f.__name__}, result {number}")
    return want


# ------------------------------------------------------------------------------------------ values


def test_functions_with_branches_and_loops() -> None:
    vectorized = [fusec.vectorize(f) for f, _ in CASES]

    def all_of_them(*groups: Any) -> Any:
        return tuple(v(*g) for v, g in zip(vectorized, groups, strict=True))

    found = same_bits(all_of_them, *(args for _, args in CASES))
    for value, (f, args) in zip(found, CASES, strict=True):
        np.testing.assert_allclose(value, by_python(f, *args), rtol=1e-12)


def gcd(a: int, b: int) -> int:
    while b:
        a, b = b, a % b
    return a


def root(x: float) -> float:
    """Newton's iteration, until nothing changes."""
    y, before = x, 0.0
    while y != before:
        before, y = y, 0.5 * (y + x / y) if y != 0.0 else 0.0
        if y > before > 0.0:
            break
    return y


def bits(n: int) -> int:
    count = 0
    for _ in range(64):
        count += n & 1
        n >>= 1
    return count


def primes(n: int) -> int:
    return (2, 3, 5, 7, 11, 13, 17, 19)[n % 8]


def test_equal_to_numpy_and_python() -> None:
    g, r, b, p = map(fusec.vectorize, (gcd, root, bits, primes))
    n, x = np.arange(1, 200), np.linspace(0.0, 1e6, 199)
    divisors, roots, ones, few = same_bits(
        lambda n, x: (g(n, n[::-1]), r(x), b(n - 100), p(n)), n, x)
    np.testing.assert_array_equal(divisors, np.gcd(n, n[::-1]))
    np.testing.assert_allclose(roots, np.sqrt(x), rtol=1e-15)
    np.testing.assert_array_equal(ones, [(int(k) - 100 & 2**64 - 1).bit_count() for k in n])
    np.testing.assert_array_equal(few, by_python(primes, n))


def arithmetic(a: Any, b: Any) -> Any:
    """Overflows, shifts by too much, and divides by numbers other than 0."""
    c = a * b - (a << 3)
    if b != 0:
        c += a // b + a % b
    return -c if c > a else abs(c) + (b >> 1)


def real(a: Any, b: Any) -> Any:
    c = a * b - a
    if b != 0.0:
        c += a / b + a % b
    return -c if c > a or math.isnan(b) else math.sqrt(abs(c)) + math.copysign(a, b)


def as_integer(x: Any) -> Any:
    return int(x * 3.5)


def is_large(x: Any) -> bool:
    return x > 3 or not x < 100


INTEGERS = [np.dtype(c) for c in "bhilBHIL"]


def edges(dtype: np.dtype) -> np.ndarray:
    info = np.iinfo(dtype)
    return np.array([info.min, info.min + 1, 0, 1, 2, 3, 7, 100, info.max // 3, info.max], dtype)


def test_every_dtype() -> None:
    f, g, h, k = map(fusec.vectorize, (arithmetic, real, as_integer, is_large))

    def of_all(*arrays: Any) -> Any:
        results = []
        for a in arrays:
            pairs = a[:, None], a[None, :]
            results.append(f(*pairs) if a.dtype.kind in "iu" else g(*pairs))
            results += [k(a), h(a)] if a.dtype.kind == "f" else [k(a)]
        return tuple(results)

    with np.errstate(over="ignore"):
        floats = [NUMBERS, NUMBERS.astype(np.float32)]
    found = same_bits(of_all, *map(edges, INTEGERS), *floats)
    assert {x.dtype.kind for x in found} == {"i", "u", "f", "b"}


def flags(p: bool, q: bool, x: float) -> bool:
    return (p and x > 1.0) or (q and not p)


def test_bools_in_and_out() -> None:
    f, t = fusec.vectorize(flags), np.array([True, False])
    x = np.linspace(0, 2, 5)
    found = same_bits(lambda p, q, x: f(p, q, x), t[:, None, None], t[:, None], x)
    np.testing.assert_array_equal(found, by_python(flags, t[:, None, None], t[:, None], x))


MATH = ("sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh",
        "atanh", "exp", "expm1", "log", "log2", "log10", "log1p", "sqrt", "erf", "erfc", "lgamma",
        "floor", "ceil", "trunc", "fabs")


def test_math_functions() -> None:
    """Also far from their domains, of which they give NaN there."""
    names = [n for n in MATH if n not in ("floor", "ceil", "trunc")]
    functions = []
    for name in names:
        scope: dict[str, Any] = {"math": math}
        exec(f"def f(x):\n    return math.{name}(x)", scope)
        functions.append(fusec.vectorize(scope["f"]))
    two = fusec.vectorize(lambda x, y: math.atan2(x, y) + math.hypot(x, y) * math.pow(abs(x), y))

    def of_all(*arrays: Any) -> Any:
        return (*(f(x) for f in functions for x in arrays), *(two(x, x[::-1]) for x in arrays))

    x = np.concatenate([NUMBERS, np.linspace(-3, 3, 40)])
    with np.errstate(over="ignore"):
        same_bits(of_all, x, x.astype(np.float32))


def test_functions_that_differ_in_a_constant_alone() -> None:
    def scaled(k: float) -> Any:
        def f(x: float) -> float:
            return x * k if x > 0 else k
        return fusec.vectorize(f)

    two, three = scaled(2.0), scaled(3.0)
    x = np.linspace(-1, 1, 9)
    got = run_program(lambda x: two(x) + 10 * three(x), x)
    np.testing.assert_allclose(got, np.where(x > 0, 32 * x, 32.0), rtol=1e-15)
    np.testing.assert_array_equal(run_program(lambda x: three(x), x), np.where(x > 0, 3 * x, 3.0))


# ----------------------------------------------------------------------------------- where they are


@pytest.mark.parametrize("seed", [0, 3])
@pytest.mark.parametrize("n", [1, 7, 33, 100])
def test_in_reductions_tails_and_strides(n: int, seed: int) -> None:
    """No thread computes an element that is not there: the function would not end."""
    f = fusec.vectorize(halvings)

    def g(x: Any) -> Any:
        y = f(x * 2.0)
        return y, y.sum(), (y + x).T + 0.0, y.sum(axis=0), y.max(axis=1), y.argmax(axis=0)

    x = 2.0 ** (np.arange(3 * n) % 11).reshape(3, n)
    with config.override(cuda_host_seed=seed):
        for a in (x, np.repeat(x, 2, axis=1)[:, ::2], np.asfortranarray(x)):
            y = by_python(halvings, a * 2.0)
            wanted = y, y.sum(), (y + a).T, y.sum(axis=0), y.max(axis=1), y.argmax(axis=0)
            for found, want in zip(fusec.jit(g, device=DEVICE)(a), wanted, strict=True):
                np.testing.assert_array_equal(found, want)


def test_beside_transposed_operands_and_scans() -> None:
    f = fusec.vectorize(halvings)
    x = 2.0 ** (np.arange(40 * 50) % 11).reshape(40, 50)
    same_bits(lambda x: f(x) + f(x.T.copy().T * 4.0) * x, x)
    same_bits(lambda x, y: f(x) + f(y.T), x, np.ascontiguousarray(x.T))
    np.testing.assert_array_equal(run_program(lambda x: np.cumsum(f(x), axis=1), x),
                                  np.cumsum(by_python(halvings, x), axis=1))


def test_in_gathers_and_scatters() -> None:
    f, c = fusec.vectorize(kepler), fusec.vectorize(collatz)
    x, index = np.linspace(0, 3, 50), np.arange(90) * 7 % 50

    def g(x: Any, index: Any) -> Any:
        counts = np.zeros(200, np.int64)
        np.add.at(counts, c(index + 1), 1)
        return f(x[index], 0.2), counts

    found, counts = same_bits(g, x, index)
    np.testing.assert_allclose(found, by_python(kepler, x[index], 0.2), rtol=1e-12)
    np.testing.assert_array_equal(counts, np.bincount(by_python(collatz, index + 1), None, 200))
    with pytest.raises(IndexError, match="index 50 is out of bounds"):
        run_program(g, x, index + 1)


def iterated(x: Any, n: int) -> Any:
    y, t = x.copy(), 0.0
    for i in range(1, n):
        t = t + KEPLER(t * 0.01, 0.5)
        y[i] = KEPLER(y[i - 1] * 0.5, 0.3) * 0.1
    return y, t


def until(x: Any, limit: float) -> Any:
    n = 0
    while x.max() < limit:
        x, n = CLIPPED(x * 1.5, -2.0, 9.0) + 0.01, n + ESCAPE(x[0], 0.25)
    return x, n


KEPLER, CLIPPED, ESCAPE = map(fusec.vectorize, (kepler, clipped, escape))
INVERSE = fusec.vectorize(inverse)


@pytest.mark.parametrize(("f", "args"), [
    (iterated, (np.linspace(0, 1, 60), 60)), (until, (np.linspace(-1, 1.5, 7), 6.0))])
def test_in_loops(f: Callable[..., Any], args: tuple[Any, ...]) -> None:
    wanted = same_bits(f, *args)
    on_device = fusec.jit(f, device=DEVICE)
    for found, want in zip(on_device(*args), wanted, strict=True):
        np.testing.assert_array_equal(found, want)
    with backends.using("cudahost"):
        whole = fusec.jit(f)
        whole(*args)
    assert whole.traces[0].control[0].is_native


def test_beside_other_operations_it_is_one_kernel_of_the_device() -> None:
    f = fusec.jit(lambda m, e: (KEPLER(m * 2, e) + 1).max(), device=DEVICE)
    m = np.linspace(0, 3, 1000)
    np.testing.assert_allclose(f(m, 0.2), by_python(kepler, m * 2, 0.2).max() + 1, rtol=1e-13)
    shown = str(fusec.explain(f, m, 0.2))
    assert "\n  CUDAHOST:0  fused" in shown and "\n  CPU:0  fused" not in shown
    with backends.using("cudahost"):
        whole = fusec.jit(lambda m, e: KEPLER(m * 2, e) + 1)
        whole(m, 0.2)
    assert "bool user_kepler_" in whole.traces[0].kernels[0].asm["cu"]


@pytest.fixture
def cupy(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeCupy]:
    with as_gpu(monkeypatch) as fake:
        yield fake


def test_on_arrays_of_a_gpu(cupy: FakeCupy) -> None:
    """No array is copied, the second call is one function; so are calls that may raise."""
    f = fusec.jit(lambda x: (CLIPPED(x, -1.0, 2.0), INVERSE(x + 10) * 2))
    for number in range(3):
        x = np.linspace(-3, 3, 50) + number
        given = cupy.asarray(x)
        cupy.sent.clear()
        found = f(given)
        assert max(cupy.sent, default=0) < 64  # whether one raised
        wanted = fusec.jit(lambda x: (CLIPPED(x, -1.0, 2.0), INVERSE(x + 10) * 2))(x)
        for one, other in zip(found, wanted, strict=True):
            np.testing.assert_array_equal(one.get(), other)
    with pytest.raises(ZeroDivisionError):
        f(cupy.asarray(np.array([0.0, -10.0])))


def test_loops_on_arrays_of_a_gpu(cupy: FakeCupy) -> None:
    x = np.linspace(-1, 1.5, 7)

    def g(x: Any, n: int) -> Any:
        for i in range(n):
            if x.sum() > i:
                x = CLIPPED(x * 1.5, -2.0, 2.0)
        return x

    np.testing.assert_array_equal(fusec.jit(g)(cupy.asarray(x), 40).get(), fusec.jit(g)(x, 40))


# ------------------------------------------------------------------------------------------ errors


def told(x: float) -> float:
    """Numba builds the message where it raises."""
    if x < 0:
        raise ValueError(f"{x} is negative")
    return math.sqrt(x)


def by_helper(x: float) -> float:
    return checked(x) + checked(x * 0.5)


@numba.njit  # type: ignore[untyped-decorator]
def checked(x: float) -> float:
    if x > 4:
        raise OverflowError("too large")
    return x + 1


@pytest.mark.parametrize(("f", "bad", "kind", "words"), [
    (inverse, 0.0, ZeroDivisionError, "division by zero"),
    (inverse, 3.5, ValueError, "three and a half"),
    (worded, 2.5, ValueError, "an undef , or poison"), (told, -2.0, ValueError, "-2.0 is negative"),
    (by_helper, 5.0, OverflowError, "too large"),
])
def test_exceptions(f: Any, bad: float, kind: type, words: str) -> None:
    """The call is repeated through Python, which raises; arguments are as they were."""
    v = fusec.vectorize(f)

    def g(x: Any, out: Any) -> Any:
        out[:] = v(x) + 1
        return out.sum()

    x, out = np.linspace(1, 2, 50), np.zeros(50)
    for compiled in (fusec.jit(g, device=DEVICE), g):
        run = compiled if compiled is not g else run_program
        args = (x, out) if compiled is not g else (g, x, out)
        run(*args)
        worse, kept = x.copy(), np.zeros(50)
        worse[17] = bad
        with pytest.raises(kind, match=words):
            run(*(args[:-2]), worse, kept)
        assert not kept.any()
    np.testing.assert_array_equal(out, by_python(f, x) + 1)


@pytest.mark.parametrize(("bad", "kind"), [(0.0, ZeroDivisionError), (3.5, ValueError)])
def test_exceptions_in_loops(bad: float, kind: type) -> None:
    def g(x: Any, n: int) -> Any:
        for i in range(n):
            x[i] = INVERSE(x[i]) + 1.0
        return x

    for device in (DEVICE, ""):
        x = np.full(60, 2.0)
        x[40] = bad
        with pytest.raises(kind), backends.using("cudahost" if not device else "cpu"):
            fusec.jit(g, device=device or None)(x, 60)
        assert (x[:40] == 1.5).all()


# ------------------------------------------------------------------------------------ what is not


@numba.njit  # type: ignore[untyped-decorator]
def fibonacci(n: int) -> int:
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


def recursive(n: int) -> int:
    return fibonacci(n)


def through_a_list(n: int) -> int:
    values = [n, n + 1]
    values.append(3 * n)
    return values[2]


def gamma(x: float) -> float:
    return math.gamma(x)


@pytest.mark.parametrize(("f", "reason"), [
    (recursive, "it calls itself"), (through_a_list, "NRT_|memory|constant"),
    (gamma, "a call of numba_gamma")])
def test_what_has_no_text_stays_on_the_cpu(f: Any, reason: str) -> None:
    v, x = fusec.vectorize(f), np.arange(1, 12)
    compiled = fusec.jit(lambda x: v(x) * 2, device=DEVICE)
    np.testing.assert_allclose(compiled(x), by_python(f, x) * 2)
    shown = str(fusec.explain(compiled, x))
    line = next(x for x in shown.splitlines() if "no kernel for ScalarCall" in x)
    assert f"{f.__name__} of fusec.vectorize has no CUDA C++: " in line
    with pytest.raises(UnsupportedError, match=f"{f.__name__} of fusec.vectorize.*({reason})"):
        run_program(lambda x: v(x) * 2, x)


# ---------------------------------------------------------------------------------------- in bulk


@pytest.mark.repeats
@pytest.mark.parametrize("seed", range(6))
def test_random_functions(seed: int) -> None:
    """`scalar_programs` has more of them; one in some hundred keeps numbers in memory."""
    args, functions = arguments(seed), []
    for number in range(3):
        v = fusec.vectorize(Program(seed, f"f{number}").function)
        try:
            name = FunctionName.of(v.compiled(tuple(a.dtype for a in args)))
        except UnsupportedError:  # an integer and a float in one variable's shift, say
            continue
        if not scalar_functions.refusal(name):
            functions.append(v)
    same_bits(lambda *args: tuple(f(*args) for f in functions), *args)


@pytest.mark.skipif(not nvrtc.is_available(), reason="NVRTC: of the extra cuda")
def test_nvrtc_compiles_them() -> None:
    scope = [(f, args) for f, args in (*CASES, (primes, (np.arange(3),)), (told, (np.ones(3),)))]
    args = arguments(1)
    scope += [(Program(1, f"f{k}").function, args) for k in range(3)]
    functions = [(fusec.vectorize(f), args) for f, args in scope]
    with backends.using("cudahost"):
        whole = fusec.jit(lambda *all_args: tuple(
            f(*args) for (f, _), args in zip(functions, all_args, strict=True)))
        whole(*(args for _, args in functions))
    sources = [kernel.asm["cu"] for kernel in whole.traces[0].kernels]
    for architecture in nvrtc.ARCHITECTURES:
        for source in sources:
            compiled = nvrtc.compile(CudaModule(source, ()), architecture)
            assert f".target {architecture}" in compiled.ptx and "user_" in source
