"""Lengths of new arrays, steps of slices and sizes of parts that data decides, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from harness import check

import fusec
from fusec.errors import UnsupportedError
from fusec.trace.facts.this_numpy import BOOLS_ARE_INDICES

INTS = ["i1", "i4", "i8", "u1", "u4", "u8"]
X = np.arange(20.0)
A = np.arange(60.0).reshape(6, 10)


@pytest.mark.parametrize("dtype", INTS)
@pytest.mark.parametrize("numbers", [[3, 1, 2], [0, 1, 2]])
def test_new_arrays(dtype: str, numbers: list[int]) -> None:
    k = np.array(numbers, dtype)
    check(lambda k: (np.zeros(k[0]), np.ones((2, k[0]), "i2"), np.full(k[2], k[0]),
                     np.empty(k[0]).shape, np.zeros_like(k, shape=(k[1], k[2]))), k)
    check(lambda k: (np.arange(k[0]), np.arange(1, k[0] + 2, dtype="f4"),
                     np.arange(k[0], 10, 3), np.arange(k[2], -4, -2)), k)


def test_a_negative_length() -> None:
    check(lambda k: np.zeros(k[0]), np.array([-2]))
    check(lambda k: np.arange(k[0]), np.array([-2]))


def test_equal_lengths_are_one_size() -> None:
    def f(k: Any) -> Any:
        n = k.max()
        return np.zeros(n) + np.ones(n), np.ones((n, n + 1)) @ np.ones(n + 1)

    for k in ([3, 1], [1, 1], [4, 9]):
        check(f, np.array(k))


def test_unequal_lengths_are_numpys_error() -> None:
    for k in ([3, 3], [3, 1], [3, 2]):
        check(lambda k: np.zeros(k[0]) + np.ones(k[1]), np.array(k))
        check(lambda k, x: np.zeros(k[0]) + x, np.array(k), np.ones(3))


def test_lengths_of_numbers_among_the_arguments_stay_static() -> None:
    compiled = fusec.jit(lambda n: np.zeros(n))
    assert compiled(3).shape == (3,) and compiled(4).shape == (4,)
    check(lambda k, n: (np.zeros(k[0] + n), np.zeros(n)), np.array([2, 1]), 3)


def count_sort(a: Any) -> Any:
    counts = np.zeros(a.max() + 1, int)
    for v in a:
        counts[v] += 1
    return counts


def fibonacci(a: Any) -> Any:
    n = a[0]
    f = np.empty(n + 2, int)
    f[0], f[1] = 0, 1
    for i in range(2, n + 2):
        f[i] = f[i - 1] + f[i - 2]
    return f


def arrays_in_a_loop(a: Any) -> Any:
    total = 0.0
    for v in a:
        w = np.zeros(v + 1)
        for k in range(v + 1):
            w[k] = k
        total += w.sum()
    return total


def made_in_a_branch(a: Any) -> Any:
    return np.zeros(a[0]) if a[0] > 2 else np.ones(a[0])


def sieve(a: Any) -> Any:
    n = a.sum() + 30
    s = np.ones(n, bool)
    s[:2] = False
    i = 2
    while i * i < n:
        if s[i]:
            s[i * i::i] = False
        i += 1
    return np.nonzero(s)[0]


@pytest.mark.parametrize(
    "program", [count_sort, fibonacci, arrays_in_a_loop, made_in_a_branch, sieve])
def test_programs_of_lengths(program: Any) -> None:
    for a in ([3, 1, 2], [3, 0, 5], [1, 1]):
        check(program, np.array(a))


# ----------------------------------------------------------------------------------------- steps


@pytest.mark.parametrize("step", [1, 2, 3, 30])
def test_steps_of_data(step: int) -> None:
    k = np.int64(step)
    check(lambda x, k: x[::k], X, k)
    check(lambda x, k: (x[1::k][::-1], x[:7:k] * 2), X, k)

    def written(x: Any, k: Any) -> Any:
        part = x[3::k]
        x[3] = -1
        part[0] += 100
        x[::k] *= 2
        return part, part.sum()

    check(written, X, k)


def test_steps_that_are_none() -> None:
    check(lambda x, k: x[::k], X, np.int64(0))
    compiled = fusec.jit(lambda x, k: x[::k])
    with pytest.raises(UnsupportedError, match=r"negative step.*: .*Python int.*x\[::-1\]"):
        compiled(X, np.int64(-2))
    np.testing.assert_array_equal(fusec.jit(lambda x, k: x[::-1][::k])(X, np.int64(2)), X[::-2])


@pytest.mark.parametrize("turned", [False, True])
def test_steps_in_loops(turned: bool) -> None:
    def loop(A: Any, k: Any) -> Any:
        total = 0.0
        for i in range(1, 6):
            A[i, ::i] *= 2
            A[::i, 0] = A[0, 0] + i
            total += A[:, ::i].sum() + A[i:, k::i].max()
            part = A[:, ::i]
            part[0, 0] = total
            row = A[i, 1::i]
            row[-1] -= 3
        return total

    check(loop, A.T if turned else A, np.int64(2))


def transform(x: Any) -> Any:
    y, s = x[:16].copy(), 1
    while s < 16:
        for j in range(s):
            y[j::2 * s] += y[j + s::2 * s]
        s *= 2
    return y


def sieve_of_an_argument(x: Any) -> Any:
    n = len(x) * 10
    s = np.ones(n, bool)
    s[:2] = False
    for i in range(2, n):
        if i * i >= n:
            break
        if s[i]:
            s[i * i::i] = False
    return np.nonzero(s)[0]


@pytest.mark.parametrize("program", [transform, sieve_of_an_argument])
def test_programs_of_steps(program: Any) -> None:
    check(program, X)


# ----------------------------------------------------------------------- parts of unequal sizes


def ragged(counts: Any, values: Any) -> Any:
    ends = np.zeros(len(counts) + 1, int)
    ends[1:] = np.cumsum(counts)
    rows = np.zeros((len(counts), counts.max()))
    for i in range(len(counts)):
        rows[i, :counts[i]] = values[ends[i]:ends[i + 1]]
    return rows


def test_parts_assigned_to_parts() -> None:
    for counts in ([2, 3, 1], [1, 1, 4], [2, 2, 2]):
        check(ragged, np.array(counts), np.arange(6.0))

    def corners(k: Any, A: Any) -> Any:
        out = np.zeros((3, 6, 10))
        for i in range(3):
            n = k[i]
            out[i, :n, :n + 1] = A[6 - n:, 10 - n - 1:]
        return out

    check(corners, np.array([2, 3, 1]), A)


@pytest.mark.parametrize("k", [[3, 3], [2, 9], [0, 20]])
def test_parts_that_do_not_fit(k: list[int]) -> None:
    def f(k: Any, x: Any) -> Any:
        y = np.zeros(12)
        y[:k[0]] = x[k[1]:k[1] + 3]
        return y

    check(f, np.array(k), X)
    check(lambda k: np.zeros(k[0])[:] * 1, np.array(k))


def test_one_element_for_many_is_refused() -> None:
    def f(k: Any, x: Any) -> Any:
        x[:k[0]] = x[:k[1]]
        return x

    check(f, np.array([3, 3]), X)
    with pytest.raises(UnsupportedError, match="one element beside more"):
        fusec.jit(f)(np.array([3, 1]), X.copy())


@pytest.mark.parametrize("axis", [None, 0, 1, -1])
def test_rolled_by_data(axis: int | None) -> None:
    for shift in (0, 3, -4, 25):
        check(lambda A, k: np.roll(A, k, axis=axis), A, np.int64(shift))
        check(lambda A, k: np.roll(A.T, k[0] - k[1], axis=axis), A, np.array([shift, 1]))
    check(lambda x: np.roll(x, np.argmax(x)), X)


def test_slices_of_arrays_made_in_the_program() -> None:
    check(lambda k: (np.arange(100.0)[:k[0]] * 2, np.array([1.0, 2.0, 3.0])[k[0]:]), np.array([2]))


@pytest.mark.parametrize("k", [2, 7, 18, 19])
def test_parts_taken_apart(k: int) -> None:
    def f(x: Any, k: Any) -> Any:
        a, b, c = x[k - 1:k + 2]
        return a + b * c

    check(f, X, np.int64(k))
    check(lambda x, k: [f(x, k) if k < 19 else x[0]], X, np.int64(k))


@pytest.mark.parametrize("dtype", INTS)
def test_ranges_between_numbers_of_data_count_in_pythons_ints(dtype: str) -> None:
    def up(a: Any) -> Any:
        n = 0
        for k in range(a[0], a[1]):
            n += k
        for k in range(a[1]):
            n -= 2 * k
        return n

    def down(a: Any) -> Any:
        n = 0
        for k in range(a[1], a[0], -2):
            n += k
        return n

    for ends in ([7, 3], [3, 7], [0, 0], [100, 120]):
        check(up, np.array(ends, dtype))
        check(down, np.array(ends, dtype))
    if BOOLS_ARE_INDICES:  # as in older NumPys; but how many there are, is for the run to say
        with pytest.raises(fusec.ConcreteValueError):
            fusec.jit(lambda a: list(range(a[0]))[:0])(np.array([True]))
    else:
        check(lambda a: list(range(a[0]))[:0], np.array([True]))


@pytest.mark.parametrize("k", [[2, 3], [1, 3], [9, 3]])
def test_rows_assigned_to_parts_of_their_length(k: list[int]) -> None:
    def program(A: Any, k: Any) -> Any:
        A[:, :k[0]] = A[0, :k[0]]
        A[:k[1] - 1] = A[1]
        for i in range(3):
            A[i:, :k[0]] = A[i, :k[0]] * 2
        return A

    check(program, A[:3, :4].copy(), np.array(k))


def test_operands_of_equal_lengths_in_a_loop() -> None:
    def program(weights: Any, values: Any, table: Any) -> Any:
        for i in range(len(weights)):
            w, v = weights[i], values[i]
            candidate = table[i, :table.shape[1] - w] + v
            table[i + 1] = table[i]
            table[i + 1, w:] = np.maximum(table[i, w:], candidate)
            table[0, w:] += table[1, :table.shape[1] - w]
        return table

    random = np.random.default_rng(3)
    weights, values = random.integers(1, 9, 40), random.integers(1, 50, 40)
    check(program, weights, values, np.zeros((41, 60), np.int64))
    compiled = fusec.jit(program)
    compiled(weights, values, np.zeros((41, 60), np.int64))
    assert [loop.is_native for loop in compiled.traces[0].control] == [True]


def test_operands_of_unequal_lengths_in_a_loop() -> None:
    def program(x: Any, k: Any) -> Any:
        total = 0.0
        for i in range(len(k) - 1):
            total += (x[:k[i]] * x[1:1 + k[i + 1]]).sum()
        return total

    check(program, X, np.full(30, 4))
    check(program, X, np.array([4] * 29 + [5]))
    with pytest.raises(UnsupportedError, match="one element beside more"):
        fusec.jit(program)(X, np.array([4] * 29 + [1]))

    def one_on_purpose(x: Any, k: Any) -> Any:
        for i in range(len(k)):
            x[k[i]:] = x[k[i]:] - x[k[i] - 1:k[i]]
        return x

    check(one_on_purpose, X, np.arange(1, 30) % 7 + 1)


def test_rolled_arrays_of_run_time_lengths() -> None:
    def program(a: Any) -> Any:
        g = np.zeros((a[0], a[0]))
        g[0] = 1
        g[:, 0] += 2
        for _ in range(4):
            g = np.roll(g, 1, 0) + np.roll(g, -1, 1)
        return g, np.roll(g[0], a[1]), np.roll(g, 2)

    for a in ([3, 2], [5, 2], [1, 1]):
        check(program, np.array(a))


def test_strides_of_run_time_lengths() -> None:
    check(lambda a: (np.zeros((2, a[0])).strides, np.zeros((2, a[0])).nbytes), np.array([3]))


def over_range(k: Any, x: Any) -> Any:
    """The array that the loop writes, and its last item."""
    last = 0
    for i in range(k[0], k[1], k[2]):
        x[i] += i
        last = last * 3 % 1001 + i
    return last


@pytest.mark.parametrize("numbers", [
    [0, 20, 1], [0, 20, 3], [3, 20, 7], [5, 5, 2], [9, 2, 2], [0, 20, 100], [0, 20, (1 << 63) - 1],
    [-4, 4, 3]])
def test_ranges_of_data(numbers: list[int]) -> None:
    check(over_range, np.array(numbers), X.copy())


def test_ranges_to_ends_of_data_with_steps_that_python_knows() -> None:
    """The end may be any int of 64 bits, so its distance plus a step may be none."""
    def program(k: Any, x: Any) -> Any:
        count = 0
        for i in range(0, k[0], 3):
            count = count * 2 % 1001 + i
        for i in range(k[0], -2, -4):
            count = count * 2 % 1001 + i
        for _ in range(0, int(x.sum()), 5):
            count += 1
        return count

    for end in (17, 18, 0, -5):
        check(program, np.array([end]), np.array([end + 0.5]))


def test_a_range_by_a_symbol_to_an_end_of_data() -> None:
    def program(x: Any) -> Any:
        total = 0.0
        for i in range(0, int(x[0]), len(x)):
            total += i
        return total

    jitted = fusec.jit(program)
    for n in (3, 4, 5, 9):
        assert jitted(np.full(n, 19.0)) == program(np.full(n, 19.0))
    assert jitted.trace_count == 1


STEPS = ((0, 9, 2), (9, 0, -1), (9, 0, -2), (9, 0, -3), (3, 9, -1), (9, 3, 1), (19, -1, -4),
         (5, 5, -1), (-1, -9, -3), (0, -5, -2**63), (0, 5, 2**63 - 1), (30, 0, -1))


def test_a_range_with_a_step_of_data_of_either_sign() -> None:
    jitted, x = fusec.jit(over_range), np.zeros(20)
    for bounds in map(np.array, STEPS):
        wanted, found = np.zeros(20), np.zeros(20)
        outcomes = [_outcome(over_range, bounds, wanted), _outcome(jitted, bounds, found)]
        assert outcomes[0] == outcomes[1]
        np.testing.assert_array_equal(found, wanted)
    with pytest.raises(ValueError, match=r"range\(\) arg 3 must not be zero"):
        jitted(np.array([0, 9, 0]), x)
    assert not x.any()


def _outcome(function: Any, *args: Any) -> str:
    try:
        function(*args)
    except IndexError as error:
        return str(error).splitlines()[0]
    return ""
