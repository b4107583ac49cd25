"""Legal arguments that are seldom given: findings of hunts through NumPy's signatures."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from harness import check

import fusec

X = np.array([3.0, -1.0, 2.0, 0.5])
A = np.arange(6.0).reshape(2, 3)
I = np.array([4, 1, 3])  # noqa: E741
B = np.array([[True, True, False], [False, True, True], [True, False, True]])


@pytest.mark.parametrize("reduce", [
    lambda x: x.sum(1, keepdims=1), lambda x: np.max(x, axis=0, keepdims=2),
    lambda x: np.mean(x, 1, keepdims=1), lambda x: np.std(x, axis=0, keepdims=1),
    lambda x: np.argmax(x, 1, keepdims=1), lambda x: np.add.reduce(x, 1, keepdims=1),
    lambda x: np.nansum(x, 1, keepdims=1), lambda x: np.ptp(x, 0, keepdims=1),
    lambda x: np.linalg.norm(x, axis=1, keepdims=1), lambda x: x.sum(1, keepdims=0),
    lambda x: np.count_nonzero(x, axis=1, keepdims=1)])
def test_keepdims_as_a_number(reduce: Callable[..., Any]) -> None:
    check(reduce, A)
    check(lambda x: x / reduce(x), A + 1)


@pytest.mark.parametrize("x", [A, A.T, np.asfortranarray(A), A[:, ::2]], ids=str)
def test_flat(x: Any) -> None:
    """Parts of it are copies; it is written to in C order."""
    def program(x: Any) -> Any:
        part = x.flat[1:4]
        part[0] = 99
        x.flat[2] = 7
        x.flat[[0, -1]] = 3
        x.flat[1:3] += 1
        return part, x.sum(), [v * 2 for v in x.flat], x.flat[1]

    check(program, x.copy(order="K"))


@pytest.mark.parametrize("order", ["C", "F", "A", "K"])
@pytest.mark.parametrize("x", [A, A.T], ids=["C", "F"])
def test_order_of_ufuncs(x: Any, order: Any) -> None:
    check(lambda x: (np.exp(x, order=order), np.add(x, 1, order=order)), x)


def test_choose_of_several_arrays() -> None:
    chosen = np.array([0, 1, 1])
    check(lambda c: c.choose(I, [7, 8, 9]), chosen)
    check(lambda c: c.choose([I, I * 2]), chosen)
    check(lambda c: c.choose(I, I * 2, I * 3, mode="clip"), chosen + 1)


@pytest.mark.parametrize("program", [
    lambda i: np.divide(i, 2, out=np.zeros_like(i), where=i > 1),
    lambda i: np.concatenate([i * 0.5, i], dtype=int),
    lambda i: np.stack([i * 0.5, i * 0.5], dtype=int),
    lambda i: np.average(i, weights=i * 0), lambda i: np.average([i, i], axis=1, weights=i - i),
    lambda i: np.zeros(3, "u1").__setitem__(slice(2), [1, 300]),
])
def test_wrong_calls(program: Callable[..., Any]) -> None:
    with pytest.raises((TypeError, ZeroDivisionError, OverflowError)) as want:
        program(I)
    kind = next(k for k in (ZeroDivisionError, OverflowError, TypeError)
                if isinstance(want.value, k))
    with pytest.raises(kind):
        fusec.jit(program)(I)


@pytest.mark.parametrize("program", [
    lambda x: np.average(x, weights=x * x), lambda x: x.reshape(1, 4)[:0, x.nonzero()[0]],
    lambda x: np.take(x, []), lambda x: np.take(x, ()),
    lambda x: np.polyfit(np.arange(4.0), x, 1, cov=True),
    lambda x: np.argsort([x[0] * 2, x[1], x[2]]), lambda x: np.sort([v * 2 for v in x]),
    lambda x: np.searchsorted([x[1], x[3], x[2]], 1.0),
    lambda x: np.interp(1.5, [0, 1, 2], [x[0], x[1], x[2]]),
    lambda x: np.random.default_rng(3).choice(range(4), p=np.abs(x) / np.abs(x).sum()),
])
def test_calls_that_were_refused(program: Callable[..., Any]) -> None:
    check(program, X)


@pytest.mark.parametrize("dtype", ["f4", "f8", "i4"])
def test_linspace_between_numbers_of_both_kinds(dtype: str) -> None:
    check(lambda x: (np.linspace(0, x.max(), 3), np.linspace(x, 1, 4), np.linspace(-1.0, x[0], 3)),
          X.astype(dtype))


@pytest.mark.parametrize("program", [
    lambda x: x.view(">f8") * 2, lambda x: np.std(x, out=np.zeros((), int)),
    lambda x: min(x[0], x.astype("f4")[1]) + 1 if x[2] > 0 else 1.0])
def test_refusals_name_their_line(program: Callable[..., Any]) -> None:
    with pytest.raises(fusec.errors.FusecError, match=r"test_unusual_arguments\.py"):
        fusec.jit(program)(X)


def test_numbers_in_place() -> None:
    def program(x: Any, mask: Any) -> None:
        np.place(x, mask, [1.5])

    check(program, np.arange(4), np.array([True, False, True, False]))


@pytest.mark.parametrize("kind", [np.int8, np.int32, np.uint64])
def test_integers_of_numpy_decide_sizes(kind: Any) -> None:
    """Each has a trace of its own, as Python's have."""
    for k in (1, 2):
        check(lambda x, k: (np.diff(x, k), np.tile(x, k), np.round(x, k)), X, kind(k))
    jitted = fusec.jit(lambda x, k: x * k)
    assert [jitted(X, kind(k))[2] for k in (1, 2)] == [2.0, 4.0] and len(jitted.traces) == 1


def test_products_of_booleans_in_loops() -> None:
    def program(b: Any, x: Any) -> Any:
        n, row = 0, b[0]
        for v in x:
            if v > 0:
                n += (b @ b).sum()
                row = b @ row
        return n, row, np.dot(b, b)

    check(program, B, X)


def test_spreads_of_numbers_in_loops() -> None:
    def program(x: Any) -> Any:
        s = 0.0
        for v in x:
            if v > 2.5:
                continue
            s += np.var(v) + np.std(v) + np.var(v, ddof=0)
        return s, np.var(x[0], ddof=1), np.std(x[1] * np.inf)

    check(program, X)


def test_indices_that_become_constants() -> None:
    """Of one element each; negative ones once addressed memory before the array."""
    def program(x: Any, n: int) -> Any:
        w, near = np.zeros(4), np.ones((3, 1))
        for k in range(n):
            x[-1 - k % len(x)] += 1
            w[0 * k - 1] += x[k % len(x)]
            near[k % 3, k % near.shape[1] - 1] += w[-1]
            if x[0] > 90:
                break
        return w, near

    for size in (1, 3):
        check(program, np.ones(size), 20)


@pytest.mark.parametrize("program", [
    lambda x: (x == None, x != None, x[0] == None, x[0] != None),  # noqa: E711
    lambda x: (x == "a", np.any(x != "a"), x[0] == None),  # noqa: E711
    lambda x: (x.sum() == None, np.array(x[0]) == None),  # noqa: E711
])
def test_comparisons_with_what_is_no_number(program: Callable[..., Any]) -> None:
    check(program, X)
    check(program, I)


@pytest.mark.parametrize("options", [
    {"dtype": float}, {"dtype": np.float32}, {"dtype": np.int16}, {"casting": "unsafe"},
    {"casting": "safe"}, {"dtype": float, "casting": "safe"}])
@pytest.mark.parametrize("bounds", [(0, 3), (None, 3), (0, None), (-0.5, 2.5)])
def test_clip_in_a_dtype(bounds: Any, options: Any) -> None:
    check(lambda i: np.clip(i, *bounds, **options), I)
    check(lambda x: x.clip(*bounds, **options), X.astype(np.float32))


@pytest.mark.parametrize("casting", ["no", "equiv", "safe", "same_kind", "unsafe"])
@pytest.mark.parametrize("other", [1, 1.0, I, X, np.float32(2), np.True_], ids=str)
def test_casting_rules(casting: Any, other: Any) -> None:
    size = min(np.size(other), 3)
    for x in (X[:size], X[:size].astype(np.float32), I[:size]):
        check(lambda x: np.add(x, other[:size] if np.ndim(other) else other, casting=casting), x)


@pytest.mark.parametrize("program", [
    lambda x: np.var(x, ddof=1, correction=1), lambda x: np.std(x, ddof=2, correction=0),
    lambda x: x.var(correction=1), lambda x: x.std(ddof=2, correction=1),
    lambda x: np.diff(x, -1), lambda x: np.array(x, np.float32, copy=False),
    lambda x: np.asarray(x, dtype=np.float32, copy=False), lambda x: np.array(x, copy=False) * 2,
    lambda x: np.array([x[0], 1.0], copy=False), lambda x: np.round(x, 1.5),
    lambda x: x.round(np.float64(1)), lambda x: np.sum(x, axis=[0]), lambda x: x.max(axis=[0]),
    lambda x: np.nansum(x, axis=[0]), lambda x: np.all(x, axis=[0]), lambda x: np.ptp(x, axis=[0]),
])
def test_arguments_that_numpy_refuses(program: Callable[..., Any]) -> None:
    check(program, X)


def test_python_integers_of_unsigned_numbers() -> None:
    u = np.array([5, 2 ** 63 - 1], np.uint64)
    check(lambda u: (int(u[0]), u[1].item(), int(u[1]), u.tolist()), u)
    for program in (lambda u: int(u[0]), lambda u: u[0].item(), lambda u: u.tolist()):
        with pytest.raises(OverflowError, match="into 64 bits"):
            fusec.jit(program)(u + np.uint64(2 ** 63))
