"""Indices out of range in loops and kernels: NumPy's text, its first index, its state."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from harness import is_of_one_device

import fusec
from fusec.codegen.plan.control_runs import ControlRun

X, NEAR = np.arange(1.0, 201.0), np.array([0, 3, 5])
MANY = np.array([4, -7, 0, 2, 9, 1, -3, 8, 6])
A = np.arange(300.0 * 200).reshape(300, 200)


def element(x, n):
    s = 0.0
    for k in range(n):
        s += x[k]
    return s


def negative(x, n):
    s = 0.0
    for k in range(n):
        s += x[-1 - k]
    return s


def column(a, n):
    for k in range(n):
        a[3, k] = a[k % 2, 0] + 1
    return a


def row(a, n):
    s = 0.0
    for k in range(n):
        s += a[k].sum()
    return s


def in_a_window(x, n):
    s = 0.0
    for k in range(2, n):
        s += x[:k][k if k == 60 else k - 1]
    return s


def gather(x, i, n):
    s = 0.0
    for k in range(n):
        s += x[i + k].sum()
    return s


def second_axis(a, i, n):
    s = 0.0
    for k in range(n):
        s += a[i % 3, i + k].sum()
    return s


def whole_columns(a, i, n):
    s = 0.0
    for k in range(n):
        s += a[:, i + k].max()
    return s


def mixed(a, i, n):
    s = 0.0
    for k in range(n):
        s += a[k % 5, i + k].sum()
    return s


def take(x, i, n):
    s = 0.0
    for k in range(n):
        s += np.take(x, i + k).sum()
    return s


def take_one(x, n):
    s = 0.0
    for k in range(n):
        s += np.take(x, k + 1)
    return s


def take_axis(a, i, n):
    s = 0.0
    for k in range(n):
        s += a.take(i + k, axis=1)[0, 1]
    return s


def along_axis(a, i, n):
    s = 0.0
    for k in range(n):
        s += np.take_along_axis(a, i[None] + k, 1).sum()
    return s


def write(x, i, n):
    for k in range(n):
        x[i + k] = k
    return x


def write_values(x, i, n):
    for k in range(n):
        x[i + k] = x[: len(i)] * 2
    return x


def update(x, i, n):
    for k in range(n):
        x[i + k] += k
    return x


def at(x, i, n):
    for k in range(n):
        np.add.at(x, i + k, 1.0)
    return x


def put(x, i, n):
    for k in range(n):
        np.put(x, i + k, 1.0)
    return x


def swapped(x, y, i, n):
    for k in range(n):
        y[:] = x + y[i[0] + k]
        x, y = y, x
    return x


def two_statements(x, y, i, n):
    s = 0.0
    for k in range(n):
        first = x[i + k]
        second = y[i[::-1] + 2 * k]
        s += (second * 2 + first).sum()
    return s


def two_of_one(a, i, n):
    s = 0.0
    for k in range(n):
        s += a[i + 40 * k, i + 50 * k].sum()
    return s


def until(x):
    k = 0
    while x[k] > 0:
        k += 1
    return k


def helper(x, k):
    return x[k] * 2


def in_a_helper(x, n):
    s = 0.0
    for k in range(n):
        if k > 3:
            s += helper(x, k)
    return s


LOOPS: list[tuple[Callable[..., Any], tuple[Any, ...]]] = [
    (element, (X, 500)), (negative, (X, 500)), (column, (A, 500)), (row, (A, 500)),
    (in_a_window, (X, 500)), (gather, (X, NEAR, 500)), (gather, (X, MANY, 500)),
    (second_axis, (A, NEAR, 500)), (whole_columns, (A, NEAR, 500)), (mixed, (A, NEAR, 500)),
    (take, (X, MANY, 500)), (take_one, (X, 500)), (take_axis, (A, MANY, 500)),
    (along_axis, (A, MANY, 500)), (write, (X, MANY, 500)), (write_values, (X, NEAR, 500)),
    (update, (X, MANY, 500)), (at, (X, MANY, 500)), (put, (X, MANY, 500)),
    (swapped, (X, X[::-1].copy(), NEAR, 500)), (swapped, (X, X * 2, NEAR + 1, 501)),
    (two_statements, (X, X[:150].copy(), NEAR, 500)),
    (two_statements, (X[:90].copy(), X, NEAR, 500)),
    (two_of_one, (A, MANY, 500)), (until, (X,)), (in_a_helper, (X, 500)),
]
TURNING = {swapped}  # what a turn of several iterations began is written only when it is done
PARTLY_WRITTEN = {put}  # NumPy has written the elements before the one that is out of range


def raised(f: Callable[..., Any], args: tuple[Any, ...]) -> tuple[Exception, tuple[Any, ...]]:
    mine = copy.deepcopy(args)
    with pytest.raises(IndexError) as found:
        f(*mine)
    return found.value, mine


@pytest.mark.parametrize(("f", "args"), LOOPS, ids=[f"{f.__name__}{i}" for i, (f, _) in
                                                    enumerate(LOOPS)])
def test_loops_raise_as_numpy_does(f: Callable[..., Any], args: tuple[Any, ...]) -> None:
    expected, numpys = raised(f, args)
    jitted = fusec.jit(f)
    for _ in range(2):
        error, mine = raised(jitted, args)
        assert error.args[0] == expected.args[0]
        assert f"in {'helper' if f is in_a_helper else f.__name__}" in "".join(error.__notes__)
        is_one = is_of_one_device(jitted.traces[-1])
        if f not in PARTLY_WRITTEN:
            # Over several devices arguments are written when everything has run.
            before = (f in TURNING or not is_one) and all(map(np.array_equal, args, mine))
            for a, b in zip(args if before else numpys, mine, strict=True):
                np.testing.assert_array_equal(a, b)
    if is_one:
        runs = [s.run for s in jitted.traces[-1].build.call_plan.externs]
        reasons = {r.reason for r in runs if isinstance(r, ControlRun) and f is not put}
        assert reasons <= {""}


def test_the_note_shows_the_line_and_nothing_twice() -> None:
    error, _ = raised(fusec.jit(two_statements), (X[:90].copy(), X, NEAR, 500))
    (note,) = error.__notes__
    assert note.startswith("raised by compiled code\n") and "first = x[i + k]" in note


@pytest.mark.parametrize("dtype", ["i1", "u1", "i4", "u4", "i8", "u8"])
def test_index_dtypes(dtype: str) -> None:
    x, i = np.arange(100.0), np.array([3, 120, 1, 101], dtype)

    def f(x, i, n):
        s = 0.0
        for k in range(n):
            s += x[i].sum() + k
        return s

    expected, _ = raised(f, (x, i, 100))
    assert raised(fusec.jit(f), (x, i, 100))[0].args[0] == expected.args[0]


def test_the_first_of_many_whatever_the_threads() -> None:
    """A nest large enough for threads, failures in many of its tasks, in two checks."""
    def f(x, y, i, j, n):
        z = x[:0]
        for _ in range(n):
            z = (x[i] + y[j]).sum()
        return z

    rng = np.random.default_rng(0)
    x, y = rng.normal(size=1000), rng.normal(size=500)
    jitted = fusec.jit(f)
    for threads in (1, 2, 7):
        with fusec.config.override(num_threads=threads, parallel_threshold=0):
            for _ in range(5):
                i, j = rng.integers(-1000, 1000, 200_000), rng.integers(-500, 500, 200_000)
                i[rng.integers(0, i.size, 5)] = rng.integers(1000, 2000, 5)
                j[rng.integers(0, j.size, 3)] = rng.integers(-2000, -500, 3)
                expected, _ = raised(f, (x, y, i, j, 100))
                assert raised(jitted, (x, y, i, j, 100))[0].args == expected.args
                i %= 1000
                expected, _ = raised(f, (x, y, i, j, 100))
                assert raised(jitted, (x, y, i, j, 100))[0].args == expected.args


@pytest.mark.parametrize("size", [1, 2, 7, 8, 9, 15, 16, 17, 40, 100])
@pytest.mark.parametrize("kind", [np.float64, np.float32, np.int8])
def test_every_lane_and_tail(size: int, kind: type) -> None:
    """Whole vectors, partial ones, and their tails, of each width."""
    def f(x, i, n):
        y = x[i]
        for _ in range(n):
            y = np.maximum(y, x[i])
        return y, y.sum()

    x = np.arange(50).astype(kind)
    jitted = fusec.jit(f)
    for position in range(size):
        i = np.arange(size) % 50
        i[position:] += 60
        with pytest.raises(IndexError, match=f"index {i[position]} is out of bounds for axis 0 wi"):
            jitted(x, i, 99)


def test_a_call_after_a_failed_one() -> None:
    jitted = fusec.jit(gather)
    for n in (500, 150, 501, 151):
        if n < 200:
            np.testing.assert_allclose(jitted(X, NEAR, n), gather(X, NEAR, n), rtol=1e-13)
        else:
            raised(jitted, (X, NEAR, n))


# --- without checks -----------------------------------------------------------------------------


def in_range(args: tuple[Any, ...]) -> tuple[Any, ...]:
    return copy.deepcopy(tuple(50 if type(a) is int else a for a in args))


UNCHECKED = [(f, args) for f, args in LOOPS if f not in (until, two_of_one, put, swapped)]


@pytest.mark.parametrize(("f", "args"), UNCHECKED, ids=lambda x: getattr(x, "__name__", ""))
def test_unchecked_loops(f: Callable[..., Any], args: tuple[Any, ...]) -> None:
    """The same values, negative indices included."""
    mine, numpys = in_range(args), in_range(args)
    jitted = fusec.jit(f, check_indices=False)
    np.testing.assert_allclose(jitted(*mine), f(*numpys), rtol=1e-13)
    for a, b in zip(numpys, mine, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-13)
    assert "CheckIndex" not in str(jitted.traces[-1].optimized_graph)


@pytest.mark.one_device
@pytest.mark.parametrize(("f", "args"), UNCHECKED, ids=lambda x: getattr(x, "__name__", ""))
def test_unchecked_loops_are_native(f: Callable[..., Any], args: tuple[Any, ...]) -> None:
    jitted = fusec.jit(f, check_indices=False)
    for run in jitted.concrete(*in_range(args)).control:
        assert run.is_native and exits(run) == 0
    # For trip counts at which the indices are not known to be in range: compiled, not run.
    assert all(exits(run) == 0 for run in jitted.concrete(*args).control)
    assert all(exits(run) for run in fusec.jit(f).concrete(*args).control)


def exits(run: Any) -> int:
    """How many ways there are to leave a native loop because of an index."""
    return run.asm["ll"].count("\nbad")


def looked_up(x, i, n):
    s = 0.0
    for k in range(n):
        x[i[k % len(i)]] += x[i[k % 4] - 1]
        s += x[i[k % 3] - k % 2] * x[k % 5]
    return s


def test_unchecked_negative_indices_of_the_run() -> None:
    for check in (True, False):
        mine, numpys = X.copy(), X.copy()
        found = fusec.jit(looked_up, check_indices=check)(mine, MANY, 500)
        np.testing.assert_allclose(found, looked_up(numpys, MANY, 500), rtol=1e-12)
        np.testing.assert_allclose(mine, numpys, rtol=1e-12)
    raised(fusec.jit(looked_up), (X[:7], MANY, 500))


def gathered_and_put(x, i):
    y = x[i] * 2 + np.take(x, i - 1)
    x[i] = y
    return y


@pytest.mark.parametrize("checked", [True, False])
def test_values_of_unchecked_kernels(checked: bool) -> None:
    mine, numpys = X.copy(), X.copy()
    found = fusec.jit(gathered_and_put, check_indices=checked)(mine, MANY)
    np.testing.assert_array_equal(found, gathered_and_put(numpys, MANY))
    np.testing.assert_array_equal(mine, numpys)


@pytest.mark.one_device
def test_unchecked_kernels() -> None:
    texts = {}
    for checked in (True, False):
        jitted = fusec.jit(gathered_and_put, check_indices=checked)
        jitted(X.copy(), MANY)
        texts[checked] = "\n".join(k.loops + k.asm["ll"] for k in jitted.traces[-1].kernels)
    assert "check" in texts[True] and "note_failure" in texts[True]
    assert "check" not in texts[False] and "note_failure" not in texts[False]


def test_unchecked_is_the_functions_own_option() -> None:
    """Two functions of one source, a method, a constant index, an index of a library call."""
    loose, strict = fusec.jit(gather, check_indices=False), fusec.jit(gather)
    assert loose(X, NEAR, 50) == strict(X, NEAR, 50)
    raised(strict, (X, NEAR, 500))

    class Holder:
        @fusec.jit(check_indices=False)
        def read(self, x, i):
            return x[i]

    holder = Holder()
    assert holder.read(X, NEAR)[1] == 4.0
    assert "CheckIndex" not in str(holder.read.traces[-1].optimized_graph)
    with pytest.raises(IndexError, match="index 200 is out of bounds for axis 0 with size 200"):
        fusec.jit(lambda x: x[200], check_indices=False)(X)


# --- writes at index arrays in loops -----------------------------------------------------------


def stale(x, i, n):
    """Values and indices that come from the array being written; another name for it."""
    y = x[::2]
    s = 0.0
    for k in range(n):
        before = x.sum()
        x[i + k] = x[i + k + 1] * 0.5 + before * 1e-3
        x[x[:5].astype(np.int64) % 7] += 1.0
        y[i % 3] = k
        s += y[k % 4] + x[k]
    return s, y


def rows_and_masks(a, i, n):
    for k in range(n):
        a[k % 3, i + k] = a[k % 5, i] + k
        a[i, k % 7] += a[k % 2, i]
        a[:, k % 4][i] = k
        np.add.at(a, (i, i + k), a[0, k])
        if a[k % 5, 0] > 3:
            a[i + 1] = a[i] * 0.5
    return a


def two_arrays(x, y, i, n):
    for k in range(n):
        x[i + k] = y[i]
        y[i + 1] = x[i + k] + 1
        y[2:5] = x[k: k + 3]
    return x + y


@pytest.mark.parametrize(("f", "args"), [
    (stale, (X, NEAR, 60)), (rows_and_masks, (A, NEAR, 60)),
    (two_arrays, (X, X[::-1].copy(), NEAR, 90)), (two_arrays, (X[:150], X[:150] * 2, NEAR, 90)),
])
@pytest.mark.parametrize("check_indices", [True, False])
def test_scatters_in_loops(
    f: Callable[..., Any], args: tuple[Any, ...], check_indices: bool
) -> None:
    mine, numpys = copy.deepcopy(args), copy.deepcopy(args)
    jitted = fusec.jit(f, check_indices=check_indices)
    found, expected = jitted(*mine), f(*numpys)
    for a, b in zip((*np.atleast_1d(*mine), found), (*np.atleast_1d(*numpys), expected),
                    strict=True):
        for p, q in zip(a if isinstance(a, tuple) else (a,), b if isinstance(b, tuple) else (b,),
                        strict=True):
            np.testing.assert_allclose(p, q, rtol=1e-12)
    concrete = jitted.traces[-1]
    assert not is_of_one_device(concrete) or all(run.is_native for run in concrete.control)


@pytest.mark.one_device
def test_scatters_in_loops_copy_nothing() -> None:
    """A write of three elements costs no memory of the array's size."""
    jitted = fusec.jit(write)
    jitted(np.zeros(100_000), NEAR, 100)
    (control,) = jitted.traces[-1].control
    temporaries = [w.value for w in control.run.program.words if w.kind == "temp"]
    assert max(temporaries, default=0) < 1000 and control.run.nests == 2


def along_nothing(x, i):
    return np.take_along_axis(x, i, 0)


def write_along_nothing(x, i):
    x = x.reshape(2, -1) * 1.0
    np.put_along_axis(x, i[None], 1.0, 1)
    return x


@pytest.mark.parametrize("f", [along_nothing, write_along_nothing])
def test_an_axis_without_elements_names_the_first_index(f: Callable[..., Any]) -> None:
    compiled = fusec.jit(f)
    for n in (2, 20, 0):
        x, i = np.arange(float(n)), np.array([4, -9])
        try:
            expected = f(x, i)
        except IndexError as error:
            with pytest.raises(IndexError, match=re.escape(str(error))):
                compiled(x, i)
        else:
            np.testing.assert_array_equal(compiled(x, i), expected)
