"""Around a call: pytrees, argument kinds, methods, closures, caching, threads, forks."""

from __future__ import annotations

import gc
import os
import threading
import weakref
from collections import namedtuple
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from arrays import ordinary
from harness import check, run
from tolerance import NEAR

import fusec
from fusec.codegen.cpu.compile import nests_made
from fusec.ir.device_names import runs_cuda

Point = namedtuple("Point", "x y")


@dataclass
class Config:
    scale: float = 2.0
    shift: int = 3


def v(n: int = 6) -> np.ndarray:
    return ordinary("f8", n)


# --------------------------------------------------------------------------------------- pytrees


def test_pytrees_in_and_out() -> None:
    def f(p: Any, rest: Any) -> Any:
        return {"sum": p["a"] + p["b"][0], "rest": [r * 2 for r in rest], "none": None,
                "text": "kept", "point": Point(p["a"], 1)}

    check(f, {"a": v(), "b": (v(), None)}, [v(), 2.5, np.float32(1)])
    check(lambda p: Point(p.y, p.x + 1), Point(v(), v()))
    check(lambda p: (), {})
    check(lambda x: [], v())
    check(lambda x: None, v())
    check(lambda x: ((x,), [[x + 1]], {}), v())


def test_written_pytrees() -> None:
    def f(state: Any) -> Any:
        state["x"] += state["v"] * 0.5
        state["v"][...] = 0
        return state["x"]

    check(f, {"x": v(), "v": v()})


def test_structures_make_traces() -> None:
    function = fusec.jit(lambda p: sum(p))
    for n in (1, 2, 3, 2, 1):
        check(function.python_function, [v()] * n, jitted=function, engines=False)
    assert function.trace_count == 3


# ------------------------------------------------------------------------------------- arguments


def test_defaults_and_keywords() -> None:
    def f(x: Any, a: float = 2.0, *rest: Any, b: int = 3, **more: Any) -> Any:
        total = x * a + b
        for r in rest:
            total = total + r
        return total, {k: m * 2 for k, m in more.items()}

    function = fusec.jit(f, fp="strict")
    check(f, v(), jitted=function)
    check(f, v(), 1.5, jitted=function)
    check(f, v(), kwargs={"a": 4.0}, jitted=function)
    check(f, v(), 1.5, v(), 3.0, kwargs={"b": 4, "c": v()}, jitted=function)
    check(f, kwargs={"x": v()}, jitted=function)


def test_wrong_calls_raise_type_error() -> None:
    def f(x: Any, y: Any) -> Any:
        return x + y

    check(f, v())
    check(f, v(), v(), v())
    check(f, v(), kwargs={"z": 1})


def test_static_arguments() -> None:
    def f(x: Any, axis: Any, mode: str, flag: bool) -> Any:
        y = x.sum(axis=axis) if flag else x.max(axis=axis)
        return np.exp(y) if mode == "exp" else y

    function = fusec.jit(f, static=("axis",))
    for args in ((0, "exp", True), (1, "exp", True), (None, "", False), (0, "exp", False)):
        check(f, ordinary("f8", 3, 4), *args, jitted=function, tolerance=NEAR)
    assert function.trace_count == 4


def test_kinds_of_arguments_differ() -> None:
    function = fusec.jit(lambda x, s: x * s)
    x = ordinary("f4", 5)
    for s in (2, 2.0, True, np.float32(2), np.float64(2), np.int8(2), np.array(2.0), -0.0):
        check(function.python_function, x, s, jitted=function)


def test_float_arguments_do_not_retrace() -> None:
    function = fusec.jit(lambda x, a: x * a + 1 / a, fp="strict")
    for a in (1.0, 2.5, -3.0, 1e300):
        check(function.python_function, v(), a, jitted=function)
    assert function.trace_count == 1


def test_int_arguments_become_dynamic() -> None:
    function = fusec.jit(lambda x, n: x * n + (n - 1), fp="strict")
    for n in (1, 2, 3, -7, 1000, 2**30):
        check(function.python_function, v(), n, jitted=function)
    assert function.trace_count == 2


def test_int_arguments_that_python_needs_stay_static() -> None:
    def f(x: Any, n: int) -> Any:
        for _ in range(n):
            x = x + n
        return x.reshape(n, -1)

    function = fusec.jit(f)
    for n in (1, 2, 3, 6, 2):
        check(f, v(), n, jitted=function, engines=False)
    assert function.trace_count == 4


OUT_OF_RANGE = [
    ("u1", 300), ("u1", -1), ("i1", 128), ("i4", 2**31), ("u8", -1), ("i8", 2**63),
    ("i2", -(2**40)),
]


@pytest.mark.parametrize(("dtype", "n"), OUT_OF_RANGE)
def test_dynamic_ints_overflow_as_in_numpy(dtype: str, n: int) -> None:
    function = fusec.jit(lambda x, n: x + n)
    for value in (1, 2, 3, n, 4, n):
        check(function.python_function, ordinary(dtype, 5), value, jitted=function, engines=False)


def test_dynamic_ints_are_pythons() -> None:
    def f(x: Any, n: int, k: int) -> Any:
        return x + n // k, n % k, n * n * n, n**2, -n, abs(n), n << 2, n & 7, n / k, n < k

    function = fusec.jit(f)
    for n, k in ((1, 1), (2, 3), (-7, 2), (2**31, 5), (10**12, -3), (2**62, 7), (5, 0), (3, 2)):
        check(f, v(), n, k, jitted=function, engines=False)


def numbers(a: Any, b: Any) -> Any:
    return (a + b, a - b, a * b, a / b, a // b, a % b, -a, abs(a), a == b, a < b, (a < b) + (a > b),
            (a < b) * 3, -(a < b), (a < b) & (a > b), ~(a < b), a ** 2, divmod(a, b))


@pytest.mark.parametrize("pair", [(1.5, 2.5), (3.0, -2.0), (-7.5, 2.0), (7, 2.5), (2, 3)], ids=str)
def test_python_numbers_stay_python_numbers(pair: Any) -> None:
    check(numbers, *pair, fp="strict")


@pytest.mark.parametrize("kind", [np.float64, np.float32, np.int32, np.int8, np.uint8, np.int64])
def test_numpy_scalars(kind: Any) -> None:
    def f(a: Any, b: Any) -> Any:
        return a + b, a * b, a / b, a // b, a % b, -a, a < b, np.maximum(a, b), a == b, a - b

    check(f, kind(5), kind(3), fp="strict")
    check(f, kind(0), kind(0), fp="strict")
    check(f, kind(5), 2, fp="strict")


def test_ufuncs_of_python_numbers_give_numpy_scalars() -> None:
    check(lambda a: (np.sqrt(a), np.add(a, 1), np.maximum(a, 2), np.negative(a), np.abs(a)), 1.75)
    check(lambda a: (np.float32(a), np.int64(a), float(a), int(a), round(a)), 2.5)


# --------------------------------------------------------------------------- methods, closures, …


class Model:
    def __init__(self, weight: float, data: np.ndarray) -> None:
        self.weight, self.data, self.calls = weight, data, 3

    @fusec.jit(fp="strict")
    def predict(self, x: Any) -> Any:
        return x * self.weight + self.data * self.calls


def test_methods() -> None:
    a, b = Model(2.0, v()), Model(-1.0, v() + 5)
    for model in (a, b, a):
        np.testing.assert_array_equal(model.predict(v()), v() * model.weight + model.data * 3)
    a.weight = 7.0
    np.testing.assert_array_equal(a.predict(v()), v() * 7.0 + a.data * 3)
    a.data[:] = 0
    np.testing.assert_array_equal(a.predict(v()), v() * 7.0)
    a.data = np.ones(6)
    np.testing.assert_array_equal(a.predict(v()), v() * 7.0 + 3)
    np.testing.assert_array_equal(b.predict(v()), v() * -1.0 + b.data * 3)


def test_instances_are_not_kept_alive() -> None:
    model = Model(2.0, v())
    model.predict(v())
    model.predict(v())
    gone = weakref.ref(model)
    del model
    gc.collect()
    assert gone() is None


def test_nested_jit() -> None:
    inner = fusec.jit(lambda x, a: x * a + 1)
    outer = fusec.jit(lambda x: inner(x, 2.0) + inner(x + 1, 3))
    plain = inner.python_function
    np.testing.assert_array_equal(outer(v()), plain(v(), 2.0) + plain(v() + 1, 3))
    assert outer.trace_count == 1


SCALE = 2.0
TABLE = np.arange(6.0)


def test_globals_are_read_anew() -> None:
    global SCALE, TABLE
    function = fusec.jit(lambda x: x * SCALE + TABLE, fp="strict")
    try:
        for SCALE in (2.0, 3.0, 2, 2.0):
            np.testing.assert_array_equal(function(v()), v() * SCALE + TABLE)
        TABLE[2] = 100
        np.testing.assert_array_equal(function(v()), v() * SCALE + TABLE)
        TABLE = np.ones(6, "f4")
        result = function(v())
        np.testing.assert_array_equal(result, v() * SCALE + 1)
    finally:
        SCALE, TABLE = 2.0, np.arange(6.0)


def test_closures_are_read_anew() -> None:
    a, table, flag = 1.0, v(), True

    def f(x: Any) -> Any:
        return x * a + table if flag else x

    function = fusec.jit(f, fp="strict")
    for a, flag in ((1.0, True), (2.0, True), (2, True), (2, False), (1.0, True)):  # noqa: B007
        np.testing.assert_array_equal(function(v()), f(v()))
    table += 1
    np.testing.assert_array_equal(function(v()), f(v()))
    table = v() * 3
    np.testing.assert_array_equal(function(v()), f(v()))


def test_helper_functions_are_read_anew() -> None:
    def helper(x: Any) -> Any:
        return x + 1

    function = fusec.jit(lambda x: helper(x) * 2)
    np.testing.assert_array_equal(function(v()), (v() + 1) * 2)

    def helper(x: Any) -> Any:  # noqa: F811
        return x - 1

    np.testing.assert_array_equal(function(v()), (v() - 1) * 2)


def test_objects_as_static_arguments() -> None:
    config = Config()
    function = fusec.jit(lambda x: x * config.scale + config.shift, fp="strict")
    np.testing.assert_array_equal(function(v()), v() * 2.0 + 3)
    config.scale = 5.0
    np.testing.assert_array_equal(function(v()), v() * 5.0 + 3)


def test_results_never_share_memory_between_calls() -> None:
    function = fusec.jit(lambda x: (x + 1, np.ones(3), np.zeros(()), x[0]))
    first, second = function(v()), function(v())
    for a, b in zip(first, second, strict=True):
        assert not np.shares_memory(a, b)
    first[1][:] = 7
    np.testing.assert_array_equal(function(v())[1], np.ones(3))


# -------------------------------------------------------------------------------------- compiling

PROGRAMS: list[tuple[Any, tuple[tuple[int, ...], ...]]] = [
    (lambda x: np.exp(-x) * 2 + np.sin(x), ((40,), (41,), (1000,), (7,))),
    (lambda x: x * 2 + 1, ((4, 50), (5, 60), (16, 33))),
    (lambda x: (x - x.mean(1, keepdims=True)).sum(1), ((4, 50), (5, 60), (17, 33))),
    (lambda x: x.sum(0) / x.max(0), ((4, 50), (5, 60), (17, 33))),
    (lambda x: 0.25 * (x[2:, 1:-1] + x[:-2, 1:-1] + x[1:-1, 2:] + x[1:-1, :-2]),
     ((20, 50), (21, 60), (50, 30))),
    (lambda x: np.concatenate([x, x * 2], axis=1), ((20, 50), (21, 60))),
    (lambda x: np.roll(x, 3), ((50,), (60,))),
    (lambda x: x.T @ x + 1, ((20, 50), (21, 60))),
    (lambda x: np.where(x > 0, x, 0).sum(), ((200,), (333,))),
    (lambda x: x[::2] + x[1::2], ((200,), (338,))),
]


@pytest.mark.parametrize("number", range(len(PROGRAMS)))
def test_new_shapes_compile_nothing(number: int) -> None:
    """On a GPU, none of kinds that were there: whether packs of a row are aligned."""
    f, shapes = PROGRAMS[number]
    function = fusec.jit(f)
    function(ordinary("f8", *shapes[0]))
    if runs_cuda(function.traces[0].optimized_graph.nodes[-1].device):
        for shape in shapes[1:]:
            check(f, ordinary("f8", *shape), jitted=function, tolerance=NEAR, engines=False)
        shapes = tuple((*rest, n + 64) for *rest, n in shapes)
        function(ordinary("f8", *shapes[0]))
    known = nests_made()
    for shape in shapes[1:]:
        check(f, ordinary("f8", *shape), jitted=function, tolerance=NEAR, engines=False)
        assert function.traces[-1].build.stats.compiled == 0
    assert nests_made() == known


def test_clear_and_bounded_cache() -> None:
    function = fusec.jit(lambda x: x + 1, reduce_retracing=False)
    for n in range(2, 6):
        function(np.ones(n))
    assert function.trace_count == 4
    function.clear()
    assert function.trace_count == 0
    np.testing.assert_array_equal(function(np.ones(3)), np.full(3, 2.0))


# ---------------------------------------------------------------------------------- bit identity


def wavy(x: Any, y: Any) -> Any:
    return np.sin(x) * np.exp(-y) + np.sqrt(np.abs(x * y + 1)) - np.tanh(x) / (1 + y * y)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_slicing_commutes_with_elementwise_functions(dtype: str) -> None:
    rng = np.random.default_rng(7)
    x, y = ordinary(dtype, 1003), ordinary(dtype, 1003, seed=1)
    function = fusec.jit(wavy)
    whole = function(x, y)
    for _ in range(12):
        i, j = sorted(rng.integers(0, 1004, 2))
        np.testing.assert_array_equal(function(x[i:j], y[i:j]), whole[i:j])
    np.testing.assert_array_equal(function(x[::3], y[::3]), whole[::3])
    np.testing.assert_array_equal(function(x[::-1], y[::-1]), whole[::-1])
    grid = function(x[:1000].reshape(25, 40).T, y[:1000].reshape(25, 40).T)
    np.testing.assert_array_equal(grid, whole[:1000].reshape(25, 40).T)


def test_bits_do_not_depend_on_threads_or_repetition() -> None:
    x, y = ordinary("f8", 400, 1500), ordinary("f8", 400, 1500, seed=1)

    def f(x: Any, y: Any) -> Any:
        z = wavy(x, y)
        return z, z.sum(), z.sum(0), z.mean(1), (z - z.mean()).std()

    def results() -> list[np.ndarray]:
        function = fusec.jit(f)
        return [np.asarray(r) for r in function(x, y)]

    before = fusec.config.num_threads
    first = results()
    try:
        for threads in (1, 2, 3):
            fusec.config.num_threads = threads
            for a, b in zip(first, results(), strict=True):
                np.testing.assert_array_equal(a, b)
    finally:
        fusec.config.num_threads = before


# ------------------------------------------------------------------------- threads and processes


def test_threads_call_one_function() -> None:
    def f(x: Any, a: float) -> Any:
        x += a
        return (x * a).sum(0), x - x.mean()

    function, failures = fusec.jit(f), []

    def work(number: int) -> None:
        for k in range(25):
            x = np.full((10 + k % 3, 5), float(number))
            want = run(f, (x, k + 0.5))
            got = run(function, (x, k + 0.5))
            if not all(np.allclose(a, b, rtol=1e-14) for a, b in
                       zip(got.leaves, want.leaves, strict=True)):
                failures.append((number, k))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failures
    assert function.trace_count == 1


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_computes_the_same(request: pytest.FixtureRequest) -> None:
    """Or is told that no child can use a GPU: a child that goes on would be a second test run."""
    x = ordinary("f8", 500, 400)
    function = fusec.jit(lambda x: (np.exp(x) + x.sum(0)).sum())
    want = function(x)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            same = function(x) == want and fusec.jit(lambda x: x * 3)(x)[0, 0] == x[0, 0] * 3
            code = 0 if same else 1
        except RuntimeError as error:
            code = 2 if "get_context('spawn')" in str(error) else 1
        finally:
            os._exit(code)
    on_a_gpu = "GPU" in request.config.getoption("--on-device")
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == (2 if on_a_gpu else 0)


# ----------------------------------------------------------------------------------------- errors


ERRORS: dict[str, tuple[Any, tuple]] = {
    "shapes": (lambda x, y: x + y, (v(5), v(6))),
    "matmul": (lambda x, y: x @ y, (v(5), v(6))),
    "index": (lambda x: x[9], (v(),)),
    "too many indices": (lambda x: x[0, 0], (v(),)),
    "reshape": (lambda x: x.reshape(4, 2), (v(),)),
    "axis": (lambda x: x.sum(axis=3), (v(),)),
    "assignment": (lambda x: x.__setitem__(slice(2), np.ones(3)), (v(),)),
    "casting": (lambda x: x.__iadd__(1.5), (np.arange(4),)),
    "bits of floats": (lambda x: x & 1, (v(),)),
    "negative power": (lambda x: x**-1, (np.arange(4),)),
    "boolean minus": (lambda x: x - x, (np.ones(3, bool),)),
    "overflow": (lambda x: x + 300, (np.ones(3, "u1"),)),
    "truth": (lambda x: 1 if x else 2, (v(),)),
    "concatenate": (lambda x: np.concatenate([x, x[None]]), (v(),)),
    "broadcast_to": (lambda x: np.broadcast_to(x, (2, 5)), (v(),)),
    "read-only view": (lambda x: np.broadcast_to(x, (2, 6)).__setitem__(0, 1), (v(),)),
    "squeeze": (lambda x: np.squeeze(x, 0), (v(),)),
    "users own": (lambda x: {}["missing"], (v(),)),
    "empty max": (lambda x: x.max(), (v(0),)),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors_have_numpys_type(name: str) -> None:
    f, args = ERRORS[name]
    check(f, *args)


def test_shape_errors_leave_arguments_alone() -> None:
    def f(x: Any, y: Any) -> Any:
        x += 1
        return x + y

    x = v(5)
    with pytest.raises(ValueError, match="broadcast"):
        fusec.jit(f)(x, v(6))
    np.testing.assert_array_equal(x, v(5))
