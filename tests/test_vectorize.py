"""fusec.vectorize: scalar Python functions inside kernels, against the Python function itself."""

from __future__ import annotations

import math
import os
import random
import subprocess
import sys
import textwrap
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fusec
from fusec import config
from fusec.codegen.kernels import reference
from fusec.errors import FusecError, UnsupportedError

LIMIT = 4.0
TABLE = np.arange(5.0)
SLOPE = 0.5
RNG = np.random.default_rng(0)


def collatz(n: int) -> int:
    steps = 0
    while n > 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    return steps


def escape(x: float, y: float) -> int:
    """Iterations until the orbit of x + iy leaves a disc."""
    u, v, count = 0.0, 0.0, 0
    while u * u + v * v < LIMIT and count < 50:
        u, v = u * u - v * v + x, 2 * u * v + y
        count += 1
    return count


def halvings(x: float) -> float:
    """Never ends on numbers below 1 that are not there."""
    count = 0.0
    while x != 1.0:
        x = x * 0.5
        count += 1.0
    return count


def kepler(mean: float, eccentricity: float) -> float:
    """Newton's method for Kepler's equation."""
    e = mean
    for _ in range(50):
        step = (e - eccentricity * math.sin(e) - mean) / (1 - eccentricity * math.cos(e))
        e -= step
        if abs(step) < 1e-13:
            break
    return e


def clipped(x: Any, low: Any = -1, high: Any = 1) -> Any:
    if x < low:
        return low
    return high if x > high else x


def even(n: int) -> bool:
    return n % 2 == 0


def flipped(b: bool, x: float) -> float:
    return -x if b else x


def inverse(x: float) -> float:
    if x == 3.5:
        raise ValueError("three and a half")
    return 1 / x


def by_python(f: Callable[..., Any], *args: Any) -> Any:
    """The Python function on every element."""
    operands = np.broadcast_arrays(*args)
    found = [f(*items) for items in zip(*(o.ravel().tolist() for o in operands), strict=True)]
    return np.array(found).reshape(operands[0].shape)


CASES: list[tuple[Callable[..., Any], tuple[Any, ...]]] = [
    (collatz, (np.arange(1, 200),)), (even, (np.arange(-5, 40),)),
    (collatz, (np.arange(1, 37, dtype=np.int32),)), (collatz, (np.arange(1, 37, dtype=np.uint8),)),
    (escape, (np.linspace(-2, 1, 33), np.linspace(-1, 1, 21)[:, None])),
    (kepler, (np.linspace(0, 6, 100), 0.3)), (halvings, (2.0 ** np.arange(20),)),
    (clipped, (np.linspace(-3, 3, 77),)), (clipped, (np.arange(-5, 9), 0, 3)),
    (flipped, (np.arange(11) % 3 == 0, np.arange(11.0))),
]


@pytest.mark.parametrize(("f", "args"), CASES)
def test_values_in_kernels_and_outside(f: Callable[..., Any], args: Any) -> None:
    vectorized, expected = fusec.vectorize(f), by_python(f, *args)
    compiled = fusec.jit(lambda *a: vectorized(*a))
    for threads in (1, 2):
        with config.override(num_threads=threads, parallel_threshold=1):
            for found in (compiled(*args), vectorized(*args)):
                np.testing.assert_allclose(found, expected, rtol=1e-12)
                assert found.dtype.kind == expected.dtype.kind


@pytest.mark.parametrize("n", [0, 1, 2, 7, 8, 9, 31, 33, 100])
def test_tails_padding_and_strides(n: int) -> None:
    """Lanes that hold no element are not computed: there this function would not end."""
    f = fusec.vectorize(halvings)

    @fusec.jit
    def g(x: Any) -> Any:
        y = f(x * 2.0)
        return y, y.sum(), (y + x).T, (y * x).sum(axis=0)

    x = 2.0 ** (np.arange(3 * n) % 11).reshape(3, n)
    for a in (x, x[:, ::-1], np.asfortranarray(x), np.repeat(x, 2, axis=1)[:, ::2]):
        y = by_python(halvings, a * 2.0) if n else a * 2.0
        for found, expected in zip(g(a), (y, y.sum(), (y + a).T, (y * a).sum(axis=0)), strict=True):
            np.testing.assert_array_equal(found, expected)


def test_it_is_one_kernel_with_what_is_around_it() -> None:
    f = fusec.vectorize(kepler)
    compiled = fusec.jit(lambda m, e: (f(m * 2, e) + 1).max())
    m = np.linspace(0, 3, 1000)
    expected = by_python(kepler, m * 2, 0.2).max() + 1
    np.testing.assert_allclose(compiled(m, 0.2), expected, rtol=1e-13)
    kernel, = compiled.traces[0].kernels
    assert not compiled.traces[0].externs
    assert "kepler(" in kernel.source and "user.kepler" in kernel.asm["ll"]
    assert "call" not in kernel.asm["opt"].partition("define internal i32 @user.kepler")[2]


def test_the_reference_interpreter_calls_the_python_function() -> None:
    f = fusec.vectorize(escape)
    compiled = fusec.jit(lambda x, y: f(x, y) * 2)
    x, y = RNG.standard_normal((2, 5, 9))
    out = compiled(x, y)
    kernel = compiled.traces[0].kernels[0].kernel
    found = np.zeros_like(out)
    reference.run_kernel(kernel, [x, y, found])
    np.testing.assert_array_equal(found, out)


def test_kinds_and_weak_numbers() -> None:
    f = fusec.vectorize(clipped)
    assert type(f(2.5)) is np.float64 and f(2.5) == 1.0
    assert type(f(7)) is np.int64
    compiled = fusec.jit(lambda x, k: (f(x[0]), f(k), f(k, high=9), f(x, k)))
    found = compiled(np.array([3.0, 0.5], np.float32), 2.5)
    assert [type(v) for v in found[:3]] == [np.float64] * 3
    assert found[1] == 1.0 and found[2] == 2.5 and found[3].dtype == np.float64


def test_in_branches_and_loops() -> None:
    f = fusec.vectorize(clipped)

    def g(x: Any, n: int) -> Any:
        for i in range(n):
            if x.sum() > i:
                x = f(x * 1.5, -2.0, 2.0)
        return x

    x = np.linspace(-1, 1.5, 7)
    python = by_python(clipped, x, -2.0, 2.0)
    assert python.shape == x.shape
    expected = x
    for i in range(40):
        if expected.sum() > i:
            expected = by_python(clipped, expected * 1.5, -2.0, 2.0)
    np.testing.assert_allclose(fusec.jit(g)(x, 40), expected)


@pytest.mark.parametrize("function", [kepler, escape])
def test_in_a_native_loop(function: Callable[..., Any]) -> None:
    f = fusec.vectorize(function)

    def g(x: Any, n: int) -> Any:
        y = x.copy()
        t = 0.0
        for i in range(1, n):
            t = t + f(t * 0.01, 0.5)
            y[i] = f(y[i - 1] * 0.5, 0.3) * 0.1
        return y, t

    def python(x: Any, n: int) -> Any:
        y, t = x.copy(), 0.0
        for i in range(1, n):
            t = t + f.python(t * 0.01, 0.5)
            y[i] = f.python(y[i - 1] * 0.5, 0.3) * 0.1
        return y, t

    compiled, x = fusec.jit(g), np.linspace(0, 1, 60)
    for found, expected in zip(compiled(x, 60), python(x, 60), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-12)
    control, = compiled.traces[0].control
    assert control.is_native


def test_reasons_are_without_lines_of_the_file() -> None:
    with pytest.raises(UnsupportedError) as found:
        fusec.vectorize(lambda s: s.upper())(np.ones(3))
    assert found.value.diagnostic.notes == ("Unknown attribute 'upper' of type float64",)


def test_an_exception_in_a_native_loop() -> None:
    f = fusec.vectorize(inverse)

    def g(x: Any, n: int) -> Any:
        for i in range(n):
            x[i] = f(x[i]) + 1.0
        return x

    compiled = fusec.jit(g)
    for bad, kind, words in ((0.0, ZeroDivisionError, "division by zero"),
                             (3.5, ValueError, "three and a half")):
        x = np.full(60, 2.0)
        x[40] = bad
        with pytest.raises(kind, match=words) as found:
            compiled(x, 60)
        assert "in g" in "".join(getattr(found.value, "__notes__", ()))
        assert (x[:40] == 1.5).all()
    assert compiled.traces[0].control[0].is_native


def test_arrays_of_a_function_that_raises_in_a_loop_on_data() -> None:
    f = fusec.vectorize(inverse)

    def g(x: Any, n: int) -> Any:
        for i in range(n):
            if x.sum() > i:
                x = f(x) * 0.5 + x
        return x

    compiled, x = fusec.jit(g), np.linspace(1.0, 2.0, 5)
    expected = x
    for i in range(50):
        if expected.sum() > i:
            expected = by_python(inverse, expected) * 0.5 + expected
    np.testing.assert_allclose(compiled(x, 50), expected, rtol=1e-12)
    assert "may raise" in compiled.traces[0].control[0].reason


def test_globals_and_closures_are_watched() -> None:
    global LIMIT
    x, y = np.linspace(-2, 1, 20), np.full(20, 0.3)
    f = fusec.vectorize(escape)
    compiled = fusec.jit(lambda x, y: f(x, y))
    for limit in (4.0, 9.0, 4.0):
        LIMIT = limit
        np.testing.assert_array_equal(compiled(x, y), by_python(escape, x, y))

    def scaled(k: float) -> Any:
        return fusec.vectorize(lambda x: x * k)

    two, three = scaled(2.0), scaled(3.0)
    np.testing.assert_array_equal(fusec.jit(lambda x: two(x) + three(x))(x), x * 2 + x * 3)


def test_its_own_exceptions_reach_the_caller() -> None:
    f = fusec.vectorize(inverse)

    def g(x: Any, out: Any) -> Any:
        y = f(x) + 1
        out[:] = y
        return y

    compiled, x = fusec.jit(g), np.linspace(1, 2, 50)
    out = np.zeros(50)
    np.testing.assert_array_equal(compiled(x, out), 1 / x + 1)
    np.testing.assert_array_equal(out, 1 / x + 1)
    for bad, kind, words in ((0.0, ZeroDivisionError, "division by zero"),
                             (3.5, ValueError, "three and a half")):
        worse, kept = x.copy(), np.zeros(50)
        worse[17] = bad
        with pytest.raises(kind, match=words):
            compiled(worse, kept)
        assert not kept.any()
        with pytest.raises(kind, match=words):
            f(worse)


def test_a_second_process_takes_the_machine_code_from_disk() -> None:
    program = textwrap.dedent("""
        import numpy as np, fusec, sys
        sys.path.insert(0, {path!r})
        from test_vectorize import kepler
        f = fusec.vectorize(kepler)
        compiled = fusec.jit(lambda m: f(m, 0.25) * 3)
        compiled(np.linspace(0, 1, 9))
        code = compiled.traces[0].kernels[0].step.code[0].code
        print(code.times.cached)
    """).format(path=os.path.dirname(__file__))
    runs = [subprocess.run([sys.executable, "-c", program], capture_output=True, text=True,
                           check=True, env=dict(os.environ)).stdout.strip() for _ in range(2)]
    assert runs[1] == "True"


def test_the_derivative_is_a_function_of_numbers_too() -> None:
    @fusec.vectorize(derivative=lambda x: 2 * x if x > 0 else -SLOPE)
    def square(x: float) -> float:
        return x * x if x > 0 else -SLOPE * x

    x = np.array([3.0, -1.0])
    assert square(3.0) == 9.0 and square.__name__ == "square" and "square" in repr(square)
    np.testing.assert_array_equal(fusec.grad(lambda x: square(x).sum())(x), [6.0, -SLOPE])
    np.testing.assert_array_equal(fusec.jvp(square, (x,), (x,))[1], [18.0, SLOPE])


def test_derivatives_by_several_arguments() -> None:
    def derivative(x: float, y: float) -> tuple[float, float]:
        return (y, x) if x > y else (2 * x * y, x * x)

    @fusec.vectorize(derivative=derivative)
    def product(x: float, y: float) -> float:
        return x * y if x > y else x * x * y

    x, y = np.array([[3.0], [1.0]]), np.array([2.0, 5.0, 0.5])
    by_x, by_y = fusec.grad(lambda x, y: product(x, y).sum(), (0, 1))(x, y)
    steps = np.where(x > y, y, 2 * x * y), np.where(x > y, x, x * x)
    np.testing.assert_allclose(by_x, steps[0].sum(1, keepdims=True))
    np.testing.assert_allclose(by_y, steps[1].sum(0))


def test_a_function_without_a_derivative_is_refused() -> None:
    twice = fusec.vectorize(lambda x: 2 * x)
    with pytest.raises(UnsupportedError, match=r"(?s)derivative of.*fusec\.vectorize.*derivative="):
        fusec.grad(lambda x: twice(x).sum())(np.ones(2))


# --- bad input ----------------------------------------------------------------------------------


def no_numba(x: float) -> Any:
    y = x + 1
    return {"x": y, 1: "a"}


def unknown_method(x: float) -> float:
    y = x * 2
    return y.no_such_thing()


def text(x: float) -> str:
    return "a" if x > 0 else "b"


def with_numpy_random(x: float) -> float:
    return x + np.random.rand()


def with_random(x: float) -> float:
    return x + random.random()


def with_table(i: int) -> float:
    return TABLE[i]


def with_print(x: float) -> float:
    print(x)
    return x


@pytest.mark.parametrize(("f", "words"), [
    (no_numba, "cannot compile no_numba|returns"), (unknown_method, "cannot compile unknown_meth"),
    (text, "which returns unicode_type"), (with_numpy_random, "drawing random numbers"),
    (with_random, "drawing random numbers"), (with_table, "reading the array TABLE"),
    (with_print, "print in with_print"),
])
def test_what_cannot_be_compiled_names_the_line(f: Callable[..., Any], words: str) -> None:
    for call in (fusec.vectorize(f), fusec.jit(lambda x: fusec.vectorize(f)(x))):
        with pytest.raises(UnsupportedError, match=words) as found:
            call(np.arange(3.0))
        assert "cure:" in str(found.value)
        first = f.__code__.co_firstlineno
        assert f"test_vectorize.py:{first}" in str(found.value) or (
            f"test_vectorize.py:{first + 2}" in str(found.value))


def test_functions_that_a_compiled_one_defines_are_refused() -> None:
    @fusec.jit
    def outer(x: Any) -> Any:
        return fusec.vectorize(lambda a: a * 2)(x)

    with pytest.raises(UnsupportedError, match=r"(?s)defining <lambda> .* outside of the compiled"):
        outer(np.arange(3.0))


def test_numbas_reason_and_line_are_shown() -> None:
    with pytest.raises(UnsupportedError) as found:
        fusec.vectorize(unknown_method)(np.arange(3.0))
    shown = str(found.value)
    line = unknown_method.__code__.co_firstlineno + 2
    assert f"test_vectorize.py:{line}" in shown and "no_such_thing" in shown


@pytest.mark.parametrize(("make", "words"), [
    (lambda: fusec.vectorize(np.sin), "needs a Python function, got a ufunc"),
    (lambda: fusec.vectorize(lambda *x: x), "plain parameters only"),
    (lambda: fusec.vectorize(collatz, derivative=3), "derivative is a int"),
    (lambda: fusec.vectorize(collatz)(), "missing a required argument"),
    (lambda: fusec.vectorize(collatz)(np.array(["a"])), "dtype|array"),
    (lambda: fusec.vectorize(clipped)(np.float16(1.0)), "convert it"),
])
def test_bad_input(make: Callable[[], Any], words: str) -> None:
    with pytest.raises(TypeError, match=words) as found:
        make()
    assert isinstance(found.value, (TypeError, FusecError))


# --- the same bits wherever they are computed ---------------------------------------------------


def shifted(a: int, count: int) -> int:
    return (a << count) ^ (a >> count)


def as_int8(x: float) -> int:
    return np.int8(x)


def whole(x: float) -> int:
    return int(x)


def or_zero(x: float) -> float:
    try:
        return 1 / x
    except Exception:  # Numba knows no other
        return 0.0


def worded(x: float) -> float:
    if x == 2.5:
        raise ValueError("an undef , or poison\n call double @exp(double %x) noinline optnone ")
    return x


def squares(n: int) -> int:
    total = 0
    for i in range(n):
        total += (i * i) ^ (i >> 1)
    return total


WIDE = np.array([300.7, -1.0, 1e30, np.nan, -np.inf, 40000.0, 2.0**63, -(2.0**63), 1e10])


@pytest.mark.parametrize(("f", "args"), [
    (shifted, (np.arange(-4, 12), np.array([0, 1, 31, 62, 63, 64, 65, -1, 127, 200, -64, 5,
                                            6, 7, 8, 9]))),
    (as_int8, (WIDE,)), (whole, (WIDE,)), (or_zero, (np.array([1.0, 0.0, -0.0, 4.0, np.nan]),)),
    (squares, (np.arange(60),)),
])
def test_an_element_alone_has_the_bits_that_it_has_among_others(
    f: Callable[..., Any], args: tuple[np.ndarray, ...]
) -> None:
    """Shifts by too much and floats that no integer holds are NumPy's."""
    vectorized = fusec.vectorize(f)
    together = vectorized(*args)
    alone = [vectorized(*(a[k] for a in args)) for k in range(len(args[0]))]
    np.testing.assert_array_equal(together, alone)
    if f is shifted:
        a, count = args
        np.testing.assert_array_equal(together, np.left_shift(a, count) ^ np.right_shift(a, count))
    if f is whole:
        np.testing.assert_array_equal(together, fusec.jit(lambda x: x.astype(np.int64))(*args))


def test_words_of_the_program_are_no_instructions() -> None:
    f = fusec.jit(lambda x: fusec.vectorize(worded)(x) + 1)
    np.testing.assert_array_equal(f(np.arange(5.0)), np.arange(5.0) + 1)
    with pytest.raises(ValueError, match="an undef , or poison\n call double"):
        f(np.array([2.5]))


MATH = {"exp": "exp", "log1p": "log1p", "sin": "sin", "tan": "tan", "asin": "arcsin",
        "atan": "arctan", "cosh": "cosh", "erf": None, "log2": "log2", "expm1": "expm1"}


@pytest.mark.parametrize("name", MATH)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_math_functions_are_those_of_kernels(name: str, dtype: Any) -> None:
    """Not those of a C library, whose last bits differ from one to the next."""
    function, numpys = getattr(math, name), getattr(np, MATH[name] or "", None)
    x = np.linspace(-0.99, 0.99, 41).astype(dtype)
    x = x + 1 if name == "log2" else x
    found = fusec.vectorize(lambda x: function(x))(x)
    np.testing.assert_allclose(found, [function(a) for a in x.tolist()], rtol=1e-5)
    if numpys is not None:
        np.testing.assert_array_equal(found, fusec.jit(lambda x: numpys(x))(x))
