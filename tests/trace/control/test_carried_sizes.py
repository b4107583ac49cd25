"""Loops whose arrays shrink or grow from iteration to iteration: native, and as NumPy has them."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import fusec
from fusec.ops.graphs.evaluate import evaluate


def neighbours(v: Any) -> Any:
    for _ in range(len(v) - 1):
        v = 0.5 * (v[:-1] + v[1:])
    return v


def down_to_nothing(v: Any) -> Any:
    total = 0.0
    for _ in range(len(v)):
        total = total + v.sum()
        v = v[1:] * 1.5
    return v, total


def in_step(v: Any, w: Any) -> Any:
    """Two arrays of one size in every iteration."""
    out = np.zeros(20)
    for i in range(len(v) - 2):
        v = v[:-1] - v[1:]
        w = w[1:] * 0.5
        v = np.where(w > v, w, v)
        out[i % 20] += v.max()
    return v, w, out


def out_of_step(v: Any, w: Any) -> Any:
    """Two arrays that begin alike and do not stay so."""
    for _ in range(17):
        v, w = v[:-1] + 1.0, w[2:] * 2.0
        v = v + w.sum()
    return v, w


def exchanged(v: Any, w: Any) -> Any:
    for _ in range(19):
        v, w = w[:-1] + 0.0, v[1:] * 2.0
    return v, w


def with_early_end(v: Any, w: Any) -> Any:
    count = 0
    for i in range(30):
        v = v[:-1] + v[1:]
        count = i
        if v[0] > w[0] * 200:
            break
    return v, count


def halves(v: Any) -> Any:
    total = v[0]
    while len(v) > 1 and total < 1e3:
        v = v[::2]
        total = total + v.sum()
    return v, total


def odd_halves(v: Any) -> Any:
    """Numbers of iterations that data decides, from zero on."""
    steps = 0
    while v.size > 2 and v[0] < 8:
        v = v[1::2] + v[: len(v) // 2] * 0.5
        steps += 1
    return v, steps


def selected(v: Any) -> Any:
    steps = 0
    while v.size > 3:
        v = v[v > v.min() + 0.01]
        steps += 1
    return v, steps


def rows(a: Any) -> Any:
    for _ in range(18):
        a = a[1:] + a[:1]
    return a


def columns(a: Any) -> Any:
    for _ in range(18):
        a = a[:, :-1] * 0.5 + a[:, 1:]
    return a


def both_axes(a: Any) -> Any:
    for _ in range(18):
        a = a[:-1, 1:] + a[1:, :-1]
    return a


def written_in_place(v: Any) -> Any:
    v = v * 1.0
    for k in range(18):
        v = v[1:] + 0.0
        v[0] = k
        v[1:] += v[0]
    return v


def a_view_of_itself(v: Any) -> Any:
    first = v
    for _ in range(18):
        v = v[1:]
    return v, first.sum()


def numbers_of_it(v: Any) -> Any:
    """Its length as a number of the program, and as another array's."""
    seen = np.zeros(40)
    for i in range(20):
        seen[i] = len(v) + v.size * 100
        v = v[:-1] + np.arange(len(v) - 1)
    return v, seen


def nested(v: Any) -> Any:
    total = 0.0
    for k in range(20):
        w = v * (k + 1)
        for _ in range(len(v) - 1):
            w = w[1:] + w[:-1]
        total = total + w[0]
    return total


def nested_both(v: Any) -> Any:
    total = 0.0
    for _ in range(18):
        v = v[:-1] + 1.0
        for x in v:
            total = total * 0.5 + x
    return v, total


def kept_elsewhere(v: Any) -> Any:
    last = v
    for _ in range(19):
        last, v = v, v[:-1] + v[1:]
    return last, v


def stored(v: Any) -> Any:
    box = SimpleNamespace(v=v, n=0)
    for _ in range(20):
        box.v = box.v[:-1] + box.v[1:]
        box.n += box.v.shape[0]
    return box.v, box.n


def of_dtypes(v: Any) -> Any:
    v = v.astype(np.int32)
    for _ in range(20):
        v = v[:-1] * 0.5
    return v


def of_complex(v: Any) -> Any:
    v = v + 1j
    for _ in range(20):
        v = v[:-1] * v[1:] * 0.1
    return v


def of_booleans(v: Any) -> Any:
    v = v > 1
    for _ in range(20):
        v = v[:-1] ^ v[1:]
    return v


def never(v: Any) -> Any:
    while v[0] > 1e9:
        v = v[1:] + v[:-1]
    return v


def nothing_of_it_after(v: Any) -> Any:
    total = 0.0
    for _ in range(20):
        v = v[1:] * 0.5
        total = total + v[-1]
    return total


V, W = np.linspace(0.1, 3.0, 37), np.cos(np.arange(37.0))
A = np.add.outer(np.arange(22.0), np.arange(21.0))
NATIVE: list[tuple[Callable[..., Any], tuple[Any, ...]]] = [
    (neighbours, (V,)), (down_to_nothing, (V,)), (in_step, (V, W)), (out_of_step, (V, W)),
    (exchanged, (V, W)), (with_early_end, (V, W)), (halves, (V,)), (odd_halves, (V,)),
    (selected, (V,)), (rows, (A,)), (columns, (A,)), (both_axes, (A,)), (written_in_place, (V,)),
    (a_view_of_itself, (V,)), (numbers_of_it, (V,)), (nested, (V,)), (nested_both, (V,)),
    (kept_elsewhere, (V,)), (stored, (V,)), (of_dtypes, (V,)), (of_complex, (V,)),
    (of_booleans, (V,)), (never, (V,)), (nothing_of_it_after, (V,)),
]


def same(got: Any, want: Any) -> None:
    if isinstance(want, tuple):
        assert len(got) == len(want)
        for a, b in zip(got, want, strict=True):
            same(a, b)
        return
    assert type(got) is type(want)
    np.testing.assert_allclose(got, want, rtol=1e-12)
    assert np.shape(got) == np.shape(want)
    assert np.asarray(got).dtype == np.asarray(want).dtype


@pytest.mark.parametrize("f, args", NATIVE, ids=lambda x: getattr(x, "__name__", ""))
def test_as_numpy_does_and_native(f: Any, args: Any) -> None:
    jitted = fusec.jit(f)
    for _ in range(2):
        same(jitted(*(x.copy() for x in args)), f(*(x.copy() for x in args)))
    control = jitted.traces[0].control
    assert control
    assert all(c.is_native for c in control), control


def grown(v: Any) -> Any:
    for i in range(20):
        v = np.concatenate([v, v[-1:] + i])
    return v


def doubled_and_cut(v: Any) -> Any:
    for _ in range(18):
        v = np.concatenate([v, v * 0.5])[:50]
    return v


def reversed_parts(v: Any) -> Any:
    for _ in range(18):
        v = v[::-1][1:]
    return v


def half_of_it(v: Any) -> Any:
    for _ in range(18):
        v = v[len(v) // 8:]
    return v


@pytest.mark.parametrize("n", [0, 1, 2, 3, 18, 19, 20, 36, 37, 64, 101])
@pytest.mark.parametrize("f", [
    neighbours, down_to_nothing, odd_halves, halves, selected, grown, doubled_and_cut,
    reversed_parts, half_of_it, a_view_of_itself], ids=lambda f: f.__name__)
def test_of_any_length(f: Any, n: int) -> None:
    """Also sizes that unroll, or leave nothing; NumPy's error where it raises."""
    v = np.linspace(0.5, 2.0, n)
    try:
        want = f(v.copy())
    except IndexError as error:
        with pytest.raises(IndexError) as found:
            fusec.jit(f)(v)
        assert str(found.value).startswith(str(error))
        return
    with np.errstate(all="ignore"):
        same(fusec.jit(f)(v.copy()), want)


WITHOUT_CONSTANTS = [row for row in NATIVE if row[0] is not numbers_of_it]


@pytest.mark.parametrize("f, args", WITHOUT_CONSTANTS, ids=lambda x: getattr(x, "__name__", ""))
def test_the_graph_by_the_oracle(f: Any, args: Any) -> None:
    """The graph's results without any compiled code; elements beyond a size are never read."""
    graph = fusec.jit(f).concrete(*args).graph
    want = f(*(x.copy() for x in args))
    flat = want if isinstance(want, tuple) else (want,)
    for got, value in zip(evaluate(graph, list(args)), flat, strict=True):
        np.testing.assert_allclose(got, value, rtol=1e-12)


def test_compiles_no_more_for_a_longer_array(compiled: list[str]) -> None:
    """The number of iterations is no part of the code."""
    fusec.jit(final_shape_after_one)(np.ones(3), 40)  # compiles the parts of the runtime
    for n in (100, 1000):
        before = len(compiled)
        jitted = fusec.jit(neighbours)
        same(jitted(np.arange(float(n))), neighbours(np.arange(float(n))))
        assert len(jitted.traces[0].kernels) <= 1
        assert len(compiled) - before <= (3 if n == 100 else 0)


def final_shape_after_one(v: Any, n: int) -> Any:
    for i in range(n):
        v = np.zeros(5) + v.sum() + i
    return v


def test_arrays_that_settle_are_no_buffers() -> None:
    """An iteration that leaves one size, whatever it finds, is an ordinary loop after the first."""
    jitted = fusec.jit(final_shape_after_one)
    same(jitted(np.ones(3), 40), final_shape_after_one(np.ones(3), 40))
    assert "Reserve" not in str(jitted.traces[0].graph)
    assert [c.is_native for c in jitted.traces[0].control] == [True]


def written_through_another_name(v: Any) -> Any:
    for _ in range(20):
        v = v[1:]
        v[0] = 7.0
    return v


def test_the_argument_sees_what_its_views_are_written() -> None:
    for _ in range(2):
        got, want = np.arange(30.0), np.arange(30.0)
        same(fusec.jit(written_through_another_name)(got), written_through_another_name(want))
        np.testing.assert_array_equal(got, want)


def without_bound(v: Any, limit: Any) -> Any:
    while v.sum() < limit:
        v = np.concatenate([v, v])
    return v


def test_what_no_buffer_can_hold_says_so() -> None:
    with pytest.raises(TypeError, match="the loop variable 'v' changes its type"):
        fusec.jit(without_bound)(np.ones(3), 100.0)


def raising_half_way(v: Any, limit: Any) -> Any:
    for _ in range(30):
        v = v[:-1] + v[1:]
        if v[0] > limit:
            raise ValueError("too much")
    return v


def out_of_range(v: Any) -> Any:
    total = 0.0
    for _ in range(30):
        v = v[1:] * 1.0
        total = total + v[10]
    return total


def test_exceptions_half_way() -> None:
    v = np.ones(37)
    same(fusec.jit(raising_half_way)(v, 1e300), raising_half_way(v, 1e300))
    with pytest.raises(ValueError, match="too much"):
        fusec.jit(raising_half_way)(v, 1e3)
    with pytest.raises(IndexError, match="index 10 is out of bounds for axis 0 with size 10"):
        fusec.jit(out_of_range)(v)


def lengths_that_meet(v: Any, w: Any) -> Any:
    for i in range(20):
        v = v[:-1] + w[i + 1:]
    return v


def one_beside_more(v: Any) -> Any:
    for _ in range(20):
        v = v[1:] + v[:1]
    return v


def test_two_sizes_of_the_run_that_meet() -> None:
    for f, args in ((lengths_that_meet, (V, W)), (one_beside_more, (V[:22],))):
        same(fusec.jit(f)(*args), f(*args))
