"""Functions that call themselves until data ends it: values equal Python's."""

from __future__ import annotations

import sys
import threading

import numpy as np
import pytest

import fusec
from fusec.errors import FusecError, UnsupportedError

f8, i8 = np.float64, np.int64
WEIGHTS = np.array([0.5, 0.25, 2.0])


def check(jitted, *calls, native: bool | None = True) -> None:
    """Calls give Python's results, from one trace with a `Call`."""
    for args in calls:
        expected, found = python(jitted, *args), jitted(*args)
        same(found, expected)
    (trace,) = jitted.traces
    assert "Call" in trace.graph.ops
    (step,) = [s.run for s in trace.build.call_plan.externs if s.run is not None]
    assert native is None or step.is_native is native, step.reason


def same(found, expected) -> None:
    if isinstance(expected, (tuple, list)):
        assert type(found) is type(expected) and len(found) == len(expected)
        for a, b in zip(found, expected, strict=True):
            same(a, b)
        return
    assert np.shape(found) == np.shape(expected)
    if isinstance(expected, (np.ndarray, np.generic)):
        assert found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, rtol=1e-14)  # sums of products are contracted


def python(jitted, *args):
    """The function as Python runs it, its calls of itself too."""
    with fusec_off(jitted):
        return jitted(*args)


class fusec_off:
    """Calls of jitted functions of this module run as written."""

    def __init__(self, *functions) -> None:
        self.functions = {*functions, *(f for f in globals().values()
                                        if isinstance(f, type(jit_example)))}

    def __enter__(self) -> None:
        self.old = type(jit_example).__call__
        type(jit_example).__call__ = lambda f, *a, **k: f.python_function(*a, **k)

    def __exit__(self, *_) -> None:
        type(jit_example).__call__ = self.old


@fusec.jit
def jit_example(x):
    return x


# ----------------------------------------------------------------------------------------- numbers


@fusec.jit
def factorial(x):
    if x <= 1:
        return 1.0
    return x * factorial(x - 1)


@fusec.jit
def fibonacci(n):
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


@fusec.jit
def ackermann(m, n):
    if m == 0:
        return n + 1
    if n == 0:
        return ackermann(m - 1, n + 1)
    return ackermann(m - 1, ackermann(m, n - 1))


@fusec.jit
def mccarthy(n):
    return n - 10 if n > 100 else mccarthy(mccarthy(n + 11))


@fusec.jit
def gcd(a, b):
    if b == 0:
        return a
    return gcd(b, a % b)


@fusec.jit
def collatz(n):
    """The number of steps, and the largest number met."""
    if n == 1:
        return 0, n
    steps, most = collatz(n // 2) if n % 2 == 0 else collatz(3 * n + 1)
    return steps + 1, np.maximum(n, most)


@fusec.jit
def is_even(n):
    return True if n == 0 else is_odd(n - 1)


@fusec.jit
def is_odd(n):
    return False if n == 0 else is_even(n - 1)


@fusec.jit
def hanoi(n, a, b, c):
    """Moves of discs, by their sum of pegs."""
    if n < 1:
        return 0.0
    return hanoi(n - 1, a, c, b) + (a * 1.5 + c) + hanoi(n - 1, b, a, c)


@fusec.jit
def tree(depth, x):
    """Three branches, in a loop."""
    if depth == 0:
        return np.sin(x)
    total = x
    for k in range(3):
        total = total + tree(depth - 1, x * 0.5 + k)
    return total


@fusec.jit
def weighted(n, x):
    """Reads an array from outside."""
    if n == 0:
        return x
    return weighted(n - 1, x * WEIGHTS[n % 3] + WEIGHTS.sum())


@pytest.mark.parametrize(("function", "calls"), [
    (factorial, [(f8(5.0),), (f8(0.0),), (f8(20.5),), (f8(-3.0),)]),
    (fibonacci, [(i8(0),), (i8(1),), (i8(17),)]),
    (ackermann, [(i8(2), i8(3)), (i8(0), i8(0)), (i8(1), i8(5)), (i8(3), i8(0))]),
    (mccarthy, [(i8(99),), (i8(200),), (i8(60),)]),
    (gcd, [(i8(48), i8(36)), (i8(17), i8(5)), (i8(5), i8(0)), (i8(0), i8(7))]),
    (collatz, [(i8(27),), (i8(1),), (i8(97),)]),
    (is_even, [(i8(7),), (i8(10),), (i8(0),)]),
    (hanoi, [(i8(5), f8(1), f8(2), f8(3)), (i8(0), f8(1), f8(2), f8(3))]),
    (tree, [(i8(4), f8(0.3)), (i8(0), f8(0.3)), (i8(2), f8(-1.0))]),
    (weighted, [(i8(7), f8(1.0)), (i8(0), f8(2.0))]),
], ids=lambda x: getattr(x, "__name__", ""))
def test_numbers(function, calls) -> None:
    function.clear()
    check(function, *calls)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.uint8, np.complex128])
def test_dtypes(dtype) -> None:
    @fusec.jit
    def power(x, n):
        if n == 0:
            return x * 0 + 1
        return x * power(x, n - 1)

    check(power, (dtype(3), i8(4)), (dtype(2), i8(0)))


def test_python_numbers() -> None:
    factorial.clear()
    for x in (5.0, 10.0, 0.5):
        assert factorial(x) == python(factorial, x) and type(factorial(x)) is float
    assert factorial.trace_count == 1


def test_python_ints_that_are_arguments_of_the_run() -> None:
    @fusec.jit
    def total(n):
        if n == 0:
            return 0
        return n + total(n - 1)

    assert [total(n) for n in (3, 9, 50, 200)] == [6, 45, 1275, 20100]
    assert total.trace_count <= 2


def test_a_global_that_changes_between_calls() -> None:
    weighted.clear()
    assert weighted(i8(3), f8(1.0)) == python(weighted, i8(3), f8(1.0))
    WEIGHTS[1] = 0.125
    try:
        assert weighted(i8(3), f8(1.0)) == python(weighted, i8(3), f8(1.0))
    finally:
        WEIGHTS[1] = 0.25


def test_in_another_function_and_in_a_loop() -> None:
    @fusec.jit
    def sums(x):
        total = 0.0
        for k in range(40):
            total = total + factorial(x[k % 5]) * fibonacci(i8(3))
        return total

    x = np.array([1.0, 2.5, 3.0, 0.0, 6.0])
    assert sums(x) == python(sums, x)


def test_a_method() -> None:
    class Tree:
        def __init__(self, scale):
            self.scale = scale

        @fusec.jit
        def depth(self, x):
            if x < 1.0:
                return x
            return self.scale * self.depth(x / 2.0)

    small, large = Tree(1.5), Tree(3.0)
    assert small.depth(f8(40.0)) == 40 / 64 * 1.5**6
    assert large.depth(f8(40.0)) == 40 / 64 * 3.0**6
    small.scale = 2.0
    assert small.depth(f8(40.0)) == 40.0


def test_keywords_and_defaults() -> None:
    @fusec.jit
    def f(x, step=0.5, *, scale=2.0):
        if x <= 0.0:
            return scale
        return scale + f(x - step, step, scale=scale)

    for args in ((f8(3.0),), (f8(2.0), f8(0.25))):
        assert f(*args) == python(f, *args)


def test_adaptive_quadrature() -> None:
    @fusec.jit
    def simpson(a, fa, b, fb):
        m = (a + b) / 2
        fm = np.exp(-m * m) * np.sin(3 * m)
        return m, fm, np.abs(b - a) / 6 * (fa + 4 * fm + fb)

    @fusec.jit
    def adaptive(a, fa, b, fb, m, fm, whole, tolerance):
        lm, flm, left = simpson(a, fa, m, fm)
        rm, frm, right = simpson(m, fm, b, fb)
        delta = left + right - whole
        if np.abs(delta) <= 15 * tolerance:
            return left + right + delta / 15
        return (adaptive(a, fa, m, fm, lm, flm, left, tolerance / 2)
                + adaptive(m, fm, b, fb, rm, frm, right, tolerance / 2))

    @fusec.jit
    def integral(a, b, tolerance):
        fa, fb = np.exp(-a * a) * np.sin(3 * a), np.exp(-b * b) * np.sin(3 * b)
        m, fm, whole = simpson(a, fa, b, fb)
        return adaptive(a, fa, b, fb, m, fm, whole, tolerance)

    for tolerance in (1e-3, 1e-9):
        args = (f8(-1.0), f8(3.0), f8(tolerance))
        np.testing.assert_allclose(integral(*args), python(integral, *args), rtol=1e-12)
    (step,) = [s.run for s in integral.traces[-1].build.call_plan.externs]
    assert step.is_native


# ------------------------------------------------------------------------------------------ arrays


@fusec.jit
def search(a, x, low, high):
    """Binary search: an array that is only read."""
    if low >= high:
        return low
    middle = (low + high) // 2
    if a[middle] < x:
        return search(a, x, middle + 1, high)
    return search(a, x, low, middle)


def test_an_array_that_is_only_read() -> None:
    a = np.sort(np.random.default_rng(1).normal(size=100))
    search.clear()
    check(search, *((a, f8(x), i8(0), i8(100)) for x in (-3.0, 0.0, 0.5, 9.0)))
    part = np.sort(np.random.default_rng(1).normal(size=200))[::2]
    assert search(part, f8(0.1), i8(0), i8(100)) == np.searchsorted(part, 0.1)


@fusec.jit
def halve(x, limit):
    if np.abs(x).max() <= limit:
        return x
    return halve(x * 0.5, limit)


@fusec.jit
def blend(x, n):
    if n <= 0:
        return x.sum(), x
    a, y = blend(np.sin(x) + 1.0, n - 1)
    b, z = blend(np.cos(x), n - 2)
    return a * b, y + z


@pytest.mark.parametrize(("function", "calls"), [
    (halve, [(np.array([3.0, -40.0, 8.0]), f8(1.0)), (np.array([0.5, 0.25, 0.125]), f8(1.0))]),
    (blend, [(np.array([0.1, 0.2]), i8(5)), (np.array([0.1, 0.2]), i8(0))]),
], ids=["halve", "blend"])
def test_arrays(function, calls) -> None:
    function.clear()
    for args in calls:
        expected, found = python(function, *args), function(*args)
        for a, b in zip(*((x if type(x) is tuple else (x,)) for x in (found, expected)),
                        strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-14)
    assert "Call" in function.traces[-1].graph.ops


def test_an_argument_that_may_be_returned_is_not_written_later() -> None:
    @fusec.jit
    def f(x):
        y = halve(x, 1.0)
        y[0] = 7.0
        return y

    with pytest.raises(FusecError, match="writing to an array that is an argument"):
        f(np.array([3.0, 4.0]))


# ------------------------------------------------------------------------------- errors and checks


def test_what_the_function_raises() -> None:
    @fusec.jit
    def f(x, n):
        if n < 0:
            raise ValueError("too deep")
        if x < 1.0:
            return x
        return f(x / 2.0, n - 1) + 1.0

    assert f(f8(8.0), i8(9)) == python(f, f8(8.0), i8(9))
    with pytest.raises(ValueError, match="too deep"):
        f(f8(8.0), i8(2))
    assert f.trace_count == 1


def test_an_unused_result_that_may_raise_still_raises() -> None:
    @fusec.jit
    def f(n):
        if n < 0:
            raise ValueError("negative")
        if n == 0:
            return 0
        f(n - 2)
        return n

    assert f(i8(4)) == 4
    with pytest.raises(ValueError, match="negative"):
        f(i8(5))


def test_an_index_out_of_range() -> None:
    a = np.arange(5.0)

    @fusec.jit
    def f(n):
        return 0.0 if n == 0 else a[n] + f(n - 1)

    assert f(i8(4)) == 10.0
    with pytest.raises(IndexError, match="index 7 is out of bounds for axis 0 with size 5"):
        f(i8(7))


@fusec.jit
def endless(x):
    return x if x < 0.0 else endless(x + 1.0)


@fusec.jit
def endless_array(x):
    return x if x.sum() < 0.0 else endless_array(x + 1.0)


@pytest.mark.parametrize("argument", [f8(1.0), np.ones(3)], ids=["native", "steps"])
def test_recursion_without_end(argument) -> None:
    function = endless_array if argument.shape else endless
    for _ in range(2):
        with pytest.raises(RecursionError, match="maximum recursion depth exceeded"):
            function(argument)
    assert function(-argument).sum() == -argument.sum()


def test_the_limit_is_pythons() -> None:
    @fusec.jit
    def count(n):
        return i8(0) if n == 0 else count(n - 1) + 1

    assert count(i8(sys.getrecursionlimit() - 10)) == sys.getrecursionlimit() - 10
    with pytest.raises(RecursionError):
        count(i8(sys.getrecursionlimit() + 10))


def test_no_way_out() -> None:
    @fusec.jit
    def f(x):
        if x > 0.0:
            return f(x - 1.0)
        return f(x + 1.0)

    with pytest.raises(UnsupportedError, match="calls itself on every path"):
        f(f8(1.0))


def test_changes_of_what_is_older_are_refused() -> None:
    @fusec.jit
    def f(x, n):
        if n == 0:
            return n
        x[0] = n
        return f(x, n - 1)

    with pytest.raises(UnsupportedError, match="changes what is older than the call"):
        f(np.ones(3), f8(3))
    x = np.ones(3)
    assert f(x, i8(3)) == 0  # an integer can be known while tracing
    assert x.tolist() == [1.0, 1.0, 1.0]
    counter = fusec.Variable(np.float64(0.0))

    @fusec.jit
    def g(n):
        if n == 0:
            return n
        counter.assign_add(1.0)
        return g(n - 1)

    with pytest.raises(UnsupportedError, match="changes what is older than the call"):
        g(f8(3))
    assert counter.numpy() == 0.0


def test_results_that_do_not_agree() -> None:
    @fusec.jit
    def f(n):
        if n == 0:
            return np.zeros(3)
        return f(n - 1)[1:]

    with pytest.raises(TypeError, match="return different things"):
        f(f8(3))
    assert f(i8(2)).tolist() == [0.0]  # an integer can be known while tracing


# ------------------------------------------------------------------------------------------ around


def test_threads() -> None:
    fibonacci.clear()
    halve.clear()
    wrong = []

    def run(k: int) -> None:
        for n in range(k, 20):
            if fibonacci(i8(n)) != FIBONACCI[n]:
                wrong.append(n)
            if not np.array_equal(halve(np.array([2.0**n, 1.0]), f8(1.0)), [1.0, 2.0**-n]):
                wrong.append(-n)

    threads = [threading.Thread(target=run, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong and fibonacci.trace_count == 1


FIBONACCI = [0, 1]
for _ in range(20):
    FIBONACCI.append(FIBONACCI[-1] + FIBONACCI[-2])


def test_results_that_lie_in_memory_otherwise() -> None:
    @fusec.jit
    def f(x, n):
        if n <= 0:
            return np.asfortranarray(x * 2)
        return f(x + 1.0, n - 1) * 1.0

    @fusec.jit
    def g(x, n):
        return f(x, n).reshape(6), f(x.T, n).ravel(order="F")

    x = np.arange(6.0).reshape(2, 3)
    for n in (f8(0.0), f8(3.0)):
        same(g(x, n), python(g, x, n))


def test_a_number_that_counts_the_calls() -> None:
    @fusec.jit
    def f(x, depth, most=50):
        if x < 1.0 or depth >= most:
            return x, depth
        return f(x * 0.5, depth + 1, most)

    @fusec.jit
    def g(x):
        y, n = f(x, 0)
        return y * n

    for x in (f8(3000.0), f8(0.5)):
        same(g(x), python(g, x))


def test_what_the_function_is_given_in_lists() -> None:
    @fusec.jit
    def f(params, x):
        if x > 100.0:
            return x
        return f(params, x * params["w"][0] + params["b"])

    params = {"w": [f8(1.5), f8(0.0)], "b": f8(2.0)}
    for x in (f8(1.0), f8(500.0)):
        np.testing.assert_allclose(f(params, x), python(f, params, x), rtol=1e-14)


def test_one_trace_for_all_sizes() -> None:
    halve.clear()
    for n in (4, 5, 7, 30):
        x = np.linspace(1.0, 9.0, n)
        np.testing.assert_array_equal(halve(x, f8(1.0)), python(halve, x, f8(1.0)))
    assert halve.trace_count == 1


def test_handlers_of_the_program_catch_what_it_raises() -> None:
    @fusec.jit
    def f(n):
        if n <= 0:
            return n
        try:
            return f(n - 1) + 1.0
        except Exception:
            return n * 100.0

    assert f(f8(5.0)) == 5.0


def test_texts_of_such_graphs_run_elsewhere() -> None:
    graph = fibonacci.concrete(i8(3)).graph
    for text in (graph.to_json(), str(graph)):
        assert fusec.admit(text).function()(i8(15)) == FIBONACCI[15]
    alone = "graph f(n: i64) {\n  %r = Recursion(%n) {function=\"f\", results=(type(i64),)} : i64\n"
    with pytest.raises(FusecError):
        fusec.admit(alone + "  return %r\n}").function()(i8(1))


def test_timeouts_and_a_deep_call_in_a_small_thread() -> None:
    for concrete, args in ((fibonacci.concrete(i8(3)), (i8(70),)),
                           (blend.concrete(np.ones(3), i8(3)), (np.ones(3), i8(60)))):
        with pytest.raises(TimeoutError):
            concrete.run(*args, options=fusec.RunOptions(timeout=0.3))


def test_recursion_of_known_depth_is_traced_out() -> None:
    @fusec.jit(static=("n",))
    def power(x, n):
        return x if n == 0 else power(x * x, n - 1)

    assert power(np.full(3, 1.1), 3).tolist() == pytest.approx([1.1**8] * 3)
    assert "Call" not in power.traces[0].graph.ops
