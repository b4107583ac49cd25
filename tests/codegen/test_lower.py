"""Lowering: boxes of piecewise ops, slice updates, row scratch, several results."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from kernel_harness import build, check, kernels_of

import fusec
from fusec.ops import Builder
from fusec.ops.rows.views import region, slice_update_reference


def rng() -> np.random.Generator:
    return np.random.default_rng(21)


def whole_slice(shape: tuple[int, ...], start: int, size: int) -> dict[str, tuple[int, ...]]:
    """Attributes of a slice of the last axis."""
    lead = len(shape) - 1
    return {
        "starts": (0,) * lead + (start,), "steps": (1,) * (lead + 1), "sizes": (*shape[:-1], size),
    }


REGIONS = [
    ((1, 1), (1, 1), (8, 10)),
    ((0, 0), (1, 1), (10, 12)),
    ((0, 3), (1, 1), (10, 4)),
    ((5, 0), (1, 1), (0, 12)),
    ((9, 11), (-1, -1), (10, 12)),
    ((8, 1), (-3, 2), (3, 5)),
    ((0, 11), (2, -4), (5, 3)),
    ((4, 4), (-1, 5), (1, 1)),
]


@pytest.mark.parametrize(("starts", "steps", "sizes"), REGIONS)
def test_slice_updates(starts: tuple, steps: tuple, sizes: tuple) -> None:
    x, value = rng().standard_normal((10, 12)), rng().standard_normal(sizes)
    attrs = {"starts": starts, "steps": steps, "sizes": sizes}

    def body(b: Builder, t, v):
        doubled = b.emit("Add", v, v)
        return b.emit("SliceUpdate", b.emit("Neg", t), doubled, **attrs)

    want = slice_update_reference(-x, value + value, **attrs)
    check(build(body, x, value), x, value, want=[want])


def test_a_strided_update_read_by_others() -> None:
    """It is written in pieces, so readers elsewhere must wait for all of them."""
    x = rng().standard_normal(11)
    attrs = {"starts": (9,), "steps": (-2,), "sizes": (5,)}

    def body(b: Builder, t):
        new = b.emit("SliceUpdate", t, b.emit("Slice", t, starts=(0,), steps=(1,), sizes=(5,)),
                     **attrs)
        shifted = b.emit("Slice", new, starts=(1,), steps=(1,), sizes=(10,))
        return new, b.emit("Mul", shifted, shifted), b.emit("Sum", new, axes=(0,))

    new = slice_update_reference(x, x[:5], **attrs)
    check(build(body, x), x, want=[new, new[1:] ** 2, new.sum()], rtol=1e-14)


def test_piecewise_ops_split_the_domain_into_boxes() -> None:
    x = rng().standard_normal((10, 12))
    attrs = {"starts": (1, 1), "steps": (1, 1), "sizes": (8, 10)}

    def body(b: Builder, t):
        zeros = b.emit("BroadcastTo", b.const(np.float64(0)), shape=(10, 12))
        inner = b.emit("Slice", t, **attrs)
        return b.emit("SliceUpdate", zeros, b.emit("Mul", inner, inner), **attrs)

    want = np.zeros((10, 12))
    want[1:-1, 1:-1] = x[1:-1, 1:-1] ** 2
    graph = build(body, x)
    (kernel,) = kernels_of(graph)
    assert len(kernel.nests) == 5
    assert kernel.bytes_stored == want.nbytes
    check(graph, x, want=[want], njit=True)


@pytest.mark.parametrize("axis", [0, 1])
def test_concat(axis: int) -> None:
    x = rng().standard_normal((6, 7))
    parts = [x, x[:, :0] if axis else x[:0], x * 2]

    def body(b: Builder, *values):
        return b.emit("Sqrt", b.emit("Abs", b.emit("Concat", *values, axis=axis)))

    check(build(body, *parts), *parts, want=[np.sqrt(np.abs(np.concatenate(parts, axis)))])


def test_concat_of_shifted_slices_and_a_reduction() -> None:
    """``np.roll`` as a concat, then a sum over it."""
    x = rng().standard_normal((5, 9))

    def body(b: Builder, t):
        left = b.emit("Slice", t, **whole_slice(t.shape, 6, 3))
        right = b.emit("Slice", t, **whole_slice(t.shape, 0, 6))
        rolled = b.emit("Concat", left, right, axis=1)
        return rolled, b.emit("Sum", rolled, axes=(1,))

    rolled = np.roll(x, 3, 1)
    check(build(body, x), x, want=[rolled, rolled.sum(1)], rtol=1e-14)


def test_nested_piecewise_ops() -> None:
    x = rng().standard_normal(20)

    def body(b: Builder, t):
        first = b.emit("SliceUpdate", t, b.emit("Slice", t, starts=(10,), steps=(1,), sizes=(5,)),
                       starts=(3,), steps=(1,), sizes=(5,))
        second = b.emit("SliceUpdate", first,
                        b.emit("Slice", first, starts=(0,), steps=(1,), sizes=(8,)),
                        starts=(6,), steps=(1,), sizes=(8,))
        return b.emit("Concat", second, b.emit("Neg", second), axis=0)

    want = x.copy()
    want[3:8] = x[10:15]
    want[6:14] = want[:8].copy()
    check(build(body, x), x, want=[np.concatenate([want, -want])])


def softmax(b: Builder, x):
    peak = b.emit("ExpandDims", b.emit("Max", x, axes=(1,)), axes=(1,))
    e = b.emit("Exp", b.emit("Sub", x, peak))
    total = b.emit("ExpandDims", b.emit("Sum", e, axes=(1,)), axes=(1,))
    return b.emit("Div", e, total)


@pytest.mark.parametrize("shape", [(4, 9), (3, 300), (1, 17), (5, 1)])
def test_softmax_keeps_the_exponentials_in_scratch(shape: tuple[int, int]) -> None:
    x = rng().standard_normal(shape)
    graph = build(softmax, x)
    kernels = kernels_of(graph)
    assert len(kernels) == 1
    assert len(kernels[0].nests[0].scratch) == 1
    e = np.exp(x - x.max(1, keepdims=True))
    check(graph, x, want=[e / e.sum(1, keepdims=True)], rtol=1e-14)
    check(build(softmax, x[:, ::-1]), x[:, ::-1], rtol=1e-14)
    column = np.asfortranarray(x)
    check(build(softmax, column), column, rtol=1e-14)


def test_scratch_over_two_inner_loops() -> None:
    """Rows that do not collapse: scratch is addressed by position within the inner loops."""
    whole = rng().standard_normal((4, 6, 12))
    x = whole[:, ::2, :7]

    def body(b: Builder, t):
        e = b.emit("Exp", t)
        total = b.emit("Sum", e, axes=(1, 2))
        return b.emit("Div", e, b.emit("ExpandDims", total, axes=(1, 2)))

    e = np.exp(x)
    graph = build(body, x)
    assert len(kernels_of(graph)) == 1
    check(graph, x, want=[e / e.sum((1, 2), keepdims=True)], rtol=1e-14)


def test_several_results_of_one_kernel() -> None:
    x, y = rng().standard_normal((2, 6, 8))

    def body(b: Builder, p, q):
        total = b.emit("Add", p, q)
        return total, b.emit("Mul", total, p), b.emit("Less", p, q), b.emit("Transpose", total,
                                                                           perm=(1, 0))

    graph = build(body, x, y)
    check(graph, x, y, want=[x + y, (x + y) * x, x < y, (x + y).T])


def test_reductions_and_their_epilogues_share_a_kernel() -> None:
    x = rng().standard_normal((6, 40))

    def body(b: Builder, t):
        mean = b.emit("Div", b.emit("Sum", t, axes=(1,)), b.const(np.float64(40)))
        centred = b.emit("Sub", t, b.emit("ExpandDims", mean, axes=(1,)))
        var = b.emit("Sum", b.emit("Mul", centred, centred), axes=(1,))
        return mean, centred, var, b.emit("ArgMin", centred, axes=(1,))

    centred = x - x.mean(1, keepdims=True)
    want = [x.mean(1), centred, (centred**2).sum(1), centred.argmin(1)]
    graph = build(body, x)
    assert len(kernels_of(graph)) == 1
    check(graph, x, want=want, rtol=1e-13)


def test_counters() -> None:
    x = rng().standard_normal((3, 10))

    def body(b: Builder, t):
        i = b.emit("Iota", size=10, dtype=np.dtype(np.float64))
        back = b.emit("Slice", i, starts=(9,), steps=(-1,), sizes=(10,))
        return b.emit("Add", t, i), b.emit("Mul", t, back)

    check(build(body, x), x, want=[x + np.arange(10.0), x * np.arange(10.0)[::-1]])


@pytest.mark.parametrize("shape", [(), (1,), (1, 1), (0,), (3, 0), (0, 3), (1, 5), (5, 1)], ids=str)
def test_small_and_empty_shapes(shape: tuple[int, ...]) -> None:
    x, y = rng().standard_normal((2, *shape))
    graph = build(lambda b, p, q: b.emit("Mul", b.emit("Add", p, q), q), x, y)
    check(graph, x, y, want=[(x + y) * y])
    if shape:
        axes = tuple(range(len(shape)))
        check(build(lambda b, p: b.emit("Sum", p, axes=axes), x), x, want=[x.sum()], rtol=1e-14)


def test_broadcasting_over_every_axis() -> None:
    x, row, column = rng().standard_normal((4, 5)), rng().standard_normal(5), rng().random((4, 1))

    def body(b: Builder, p, q, r):
        return b.emit("Add", b.emit("Mul", p, q), r)

    args = (x, row, column)
    check(build(body, *args), *args, want=[x * row + column], njit=True)


def test_region_of_zero_elements_is_empty() -> None:
    assert np.zeros(5)[region((4,), (-1,), (0,))].size == 0


@pytest.mark.parametrize(("function", "count"), [
    (lambda x: x.sum(), 1), (lambda x: x.sum() > 1, 1), (lambda x: x.mean(), 1),
    (lambda x: x * 2 + 1, 2), (lambda x: (x - x[0]).max(), 2), (lambda x: x[0] * 2 + 1, 2),
    (lambda x: x.cumsum(), 1), (lambda x: x * np.sqrt(x[0]), 1)])
def test_operations_per_element(function: Any, count: int) -> None:
    compiled = fusec.jit(function)
    compiled(np.arange(100.0))
    kernel = compiled.traces[0].kernels[0]
    assert kernel.ops == count
    assert repr(kernel).endswith(f": {count} operation{'s' * (count > 1)}, 1 nest>")
