"""Functions over Dask's arrays: equal to one machine's, one task a block and stage, refusals."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import fusec
from fusec.compiled import tracing_compiler
from fusec.distributed.joins import FEW, MANY, group_of, joined
from fusec.trace.tracer import trace_function

da = pytest.importorskip("dask.array")
import dask  # noqa: E402

from tests.distributed.chunked import compared  # noqa: E402

RNG = np.random.default_rng(0)
X, Y, V = RNG.standard_normal((60, 20)), RNG.standard_normal((20, 30)), RNG.standard_normal(90)


def softmax(x: Any) -> Any:
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def standardised(x: Any) -> Any:
    return np.tanh((x - x.mean(axis=0)) / x.std(axis=0))


def stencil(x: Any) -> Any:
    for _ in range(3):
        y = x.copy()
        y[1:-1, 1:-1] = 0.25 * (x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:])
        x = y
    return x


def contracted(x: Any) -> Any:
    """Products that a sum takes, or does not take, by how often they are read."""
    p = x * 1.1
    return p + 3.3, (x * 2.2 + 0.1).sum(axis=1), p - x


def read(x: Any, table: Any) -> Any:
    return table[(np.abs(x) * 3).astype(int) % len(table)]


EXACT = {
    "symmetric": (lambda x: x[:20] + x[:20].T, (X,), ((7, 9),)),
    "softmax": (softmax, (X,), ((7, 20),)),
    "stencil": (stencil, (X,), ((10, 8),)),
    "contracted": (contracted, (X,), ((9, 20),)),
    "gathered": (read, (V, np.arange(7.0)), (11, None)),
    "padded": (lambda x: np.pad(x, 2), (V,), (11,)),
    "joined": (lambda x: np.concatenate([x, x * 2]), (X,), ((60, 7),)),
    "shapes": (lambda x: (x.reshape(60, 4, 5), x[None], x.T[..., None]), (X,), ((7, 20),)),
    "positions": (lambda x: (x.argmax(axis=0), x.argmin(axis=0), x.argmax(axis=1)),
                  (X.round(1),), ((7, 20),)),
    "extrema": (lambda x: (x.max(), x.min(axis=0), (x > 0).any(axis=0), (x > 3).all()),
                (X,), ((7, 9),)),
    "counts": (lambda x: np.bincount((np.abs(x) * 3).astype(int) % 5, minlength=5), (V,), (11,)),
    "histogram": (lambda x: np.histogram(x, bins=10, range=(-3, 3))[0], (V,), (11,)),
    "taken": (lambda x: (x[3], x[-1], x[:, 2], x - x[40]), (X,), ((7, 20),)),
    "parts": (lambda x: (x[5:40], x[1:] - x[:-1], x[:10]), (V,), (11,)),
    "along others": (lambda x: (np.sort(x, axis=1), np.median(x, axis=1), np.cumsum(x, axis=1)),
                     (X,), ((7, 20),)),
    "counters": (lambda x: x * np.arange(len(x)), (V,), (11,)),
    "two grids": (lambda x, y: x * y, (V, V + 1), (11, 14)),
    "whole beside": (lambda x, w: x * w, (V, V + 1), (11, None)),
    "random": (lambda x: x + fusec.random.normal(fusec.random.key(3), x.shape), (X,), ((7, 9),)),
    "row products": (lambda x, w: x @ w, (np.round(X), np.round(Y)), ((7, 20), None)),
}


@pytest.mark.parametrize("name", EXACT)
def test_row_by_row(name: str) -> None:
    function, args, chunks = EXACT[name]
    compared(function, *args, chunks=chunks)


JOINED = {
    "standardised": (standardised, (X,), ((7, 20),)),
    "moments": (lambda x: (x.mean(), x.std(ddof=1), x.var(axis=0), x.sum(axis=(0, 1))),
                (X,), ((7, 9),)),
    "products": (lambda x, y: (x @ y, (x @ y).sum(), x.T @ x), (X, Y), ((7, 9), (6, 8))),
    "einsum": (lambda x, y: (np.einsum("ij,jk->ik", x, y), np.einsum("ij->j", x)),
               (X, Y), ((7, 20), None)),
    "solved": (lambda x: x @ np.linalg.inv(x.T @ x + np.eye(20)), (X,), ((7, 20),)),
    "softmax over all": (softmax, (X,), ((7, 9),)),
    "three stages": (lambda x: ((x - x.mean()) / x.std()).max() + x.min(), (V,), (2,)),
    "many": (lambda x: (x.mean(), x.prod(), x.std()), (V * 0.1 + 1,), (1,)),
}


@pytest.mark.parametrize("name", JOINED)
def test_joined_over_blocks(name: str) -> None:
    function, args, chunks = JOINED[name]
    compared(function, *args, chunks=chunks, exact=False)


def test_pytrees_keywords_and_objects() -> None:
    @fusec.jit
    def f(state: Any, *, scale: float) -> Any:
        return {"y": state["x"] * scale, "n": 3, "x": state["x"]}

    x = da.from_array(V, chunks=20)
    result = f({"x": x}, scale=2.0)
    assert result["n"] == 3 and result["x"] is x
    np.testing.assert_array_equal(result["y"].compute(scheduler="sync"), V * 2)


def test_traced_once_for_sizes_and_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    traced = []

    def counted(*args: Any) -> Any:
        traced.append(args[1])
        return trace_function(*args)

    monkeypatch.setattr(tracing_compiler, "trace_function", counted)
    f = fusec.jit(lambda x: x - x.mean())
    for size, chunk in ((90, 11), (90, 30), (64, 10), (70, 70)):
        x = da.from_array(V[:size], chunks=chunk)
        np.testing.assert_allclose(f(x).compute(scheduler="sync"), V[:size] - V[:size].mean())
    assert len(traced) == 1, traced


def test_values_from_outside_are_those_of_the_call() -> None:
    weights = {"w": np.full(90, 2.0)}

    @fusec.jit
    def f(x: Any) -> Any:
        return x * weights["w"]

    lazy = f(da.from_array(V, chunks=20))
    weights["w"][:] = 5.0
    np.testing.assert_array_equal(lazy.compute(scheduler="sync"), V * 2)
    np.testing.assert_array_equal(
        f(da.from_array(V, chunks=20)).compute(scheduler="sync"), V * 5)


def test_one_task_a_block_and_stage() -> None:
    blocks = 40
    x = da.from_array(np.ones(400), chunks=10)
    source = len(dict(x.dask))
    joins = math.ceil(blocks / MANY)  # of all sums that have the same blocks
    lazy = fusec.jit(lambda x: x * 2 + 1)(x)
    assert len(dict(lazy.dask)) == source + blocks + 1  # and the stage's graphs
    lazy = fusec.jit(lambda x: np.tanh((x - x.mean()) / x.std()))(x)
    results = 2
    assert len(dict(lazy.dask)) == source + 2 * blocks + joins + results + 2


@pytest.mark.parametrize("count", [1, 2, 7, 8, 9, 31, 40, 65, 77])
def test_sums_have_the_same_bits_for_groups_of_any_power_of_two(count: int) -> None:
    partials = [(x,) for x in np.random.default_rng(count).standard_normal(count)]
    whole = joined("add", partials)
    for group in (FEW, MANY):
        row = partials
        while len(row) > 1:
            row = [joined("add", row[k:k + group]) for k in range(0, len(row), group)]
        assert row == [whole]


def test_large_partials_are_joined_a_few_at_a_time() -> None:
    """A task that joins has all of them in memory."""
    assert group_of(24) == MANY > FEW == group_of(8 << 20)
    x = da.from_array(np.random.default_rng(0).standard_normal((320, 100)), chunks=(8, 100))
    lazy = fusec.jit(lambda x: x.T @ x)(x)
    joins = [task for key, task in dict(lazy.dask).items() if "-join-" in str(key)]
    assert [len(task.dependencies) for task in joins] == [FEW] * 5


def test_the_order_of_sums_is_the_blocks_alone() -> None:
    x = da.from_array(RNG.standard_normal(1000), chunks=7)
    f = fusec.jit(lambda x: (x.sum(), x.std(), x.mean()))
    results = [dask.compute(f(x), scheduler=s, num_workers=n)[0]
               for s, n in (("sync", 1), ("threads", 2), ("threads", 4))]
    assert results[0] == results[1] == results[2]


def test_parts_beside_a_block_are_all_that_is_read_of_others() -> None:
    lazy = fusec.jit(lambda x: x[2:] - x[:-2])(da.from_array(V, chunks=30))
    cuts = [task for key, task in dict(lazy.dask).items()
            if isinstance(key, tuple) and "-part" in key[0]]
    assert sum(math.prod(stop - start for start, stop in task.args[1]) for task in cuts) == 2 * 2


# --------------------------------------------------------------------------------------- refusals

def written(x: Any) -> Any:
    x[0] = 1.0
    return x


def placed(x: Any) -> Any:
    with fusec.device("/device:CPU:1"):
        return x * 2


def drawn(x: Any) -> Any:
    return x + np.random.normal(size=90)


REFUSED = {
    "sort": (lambda x: np.sort(x), "np.sort along axis 0, which is in 9 blocks",
             "x.rechunk({0: -1})"),
    "median": (lambda x: np.median(x), "blocks along axis 0", "x.rechunk({0: -1})"),
    "fft": (lambda x: np.fft.fft(x), "blocks along axis 0", "x.rechunk({0: -1})"),
    "step": (lambda x: x[::2], "a slice with a step along axis 0", "x.rechunk({0: -1})"),
    "reverse": (lambda x: x[::-1], "a slice with a step along axis 0", "x.rechunk({0: -1})"),
    "gather": (lambda x: x[np.array([5, 3, 80])], "np.take along axis 0", "x.rechunk({0: -1})"),
    "merge": (lambda x: x.reshape(9, 10), "merges or divides an axis", "x.rechunk({0: -1})"),
    "sort of rows": (lambda x: np.sort(x), "np.sort along axis 0", "x.rechunk({0: -1})"),
    "mask": (lambda x: x[x > 0], "only the run knows", "np.where"),
    "write": (written, "writing to x", "return it"),
    "draw": (drawn, "drawing from np.random", "fusec.random"),
    "far": (lambda x: x[25:] - x[:-25], "reading 25 elements beyond a block",
            "x.rechunk({0: -1})"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_before_anything_runs(name: str) -> None:
    function, message, cure = REFUSED[name]
    with pytest.raises(fusec.errors.UnsupportedError) as caught:
        fusec.jit(function)(da.from_array(V, chunks=10))
    text = str(caught.value)
    assert message in text and cure in text, text
    assert "test_split.py" in text, text


def test_unknown_lengths_are_refused() -> None:
    x = da.from_array(V, chunks=10)
    with pytest.raises(ValueError, match=r"unknown length along axis 0(.|\n)*compute_chunk_sizes"):
        fusec.jit(lambda x: x + 1)(x[x > 0])


def test_static_arguments_are_no_arrays_in_blocks() -> None:
    with pytest.raises(fusec.errors.UnsupportedError, match="static"):
        fusec.jit(lambda x, n: x, static="n")(V, da.from_array(V, chunks=10))


def test_indices_out_of_range_raise_numpys_error_in_the_task() -> None:
    lazy = fusec.jit(lambda x, t: t[x])(da.from_array(np.arange(9), chunks=4), np.ones(5))
    with pytest.raises(IndexError, match=r"index [5-8] is out of bounds for axis 0 with size 5"):
        lazy.compute(scheduler="sync")


def test_checks_of_what_all_blocks_share_are_made_at_the_call() -> None:
    @fusec.jit
    def scaled(x: np.ndarray, table: np.ndarray, k: int) -> Any:
        if table[0] < 0:
            raise ValueError("a negative table")
        return x * table[0] + table[k]

    x = da.ones((40,), chunks=10)
    np.testing.assert_array_equal(scaled(x, np.array([2.0, 1.0]), 1).compute(scheduler="sync"), 3)
    with pytest.raises(ValueError, match="a negative table"):
        scaled(x, np.array([-2.0, 1.0]), 1)
    with pytest.raises(IndexError, match="index 7 is out of bounds for axis 0 with size 2"):
        scaled(x, np.array([2.0, 1.0]), 7)


def test_variances_that_differ_in_axes_alone_are_tasks_of_their_own() -> None:
    """Each function's tasks have keys of their own, though the rest of the graphs is equal."""
    whole = np.arange(9.0).reshape(3, 3)
    functions = [lambda x: x.var(axis=0), lambda x: x.var(axis=1), lambda x: x.var(axis=0, ddof=1)]
    lazy = [fusec.jit(f)(da.from_array(whole, chunks=2)) for f in functions]
    for got, f in zip(dask.compute(*lazy, scheduler="sync"), functions, strict=True):
        np.testing.assert_allclose(got, f(whole))


def scattered(i: np.ndarray, w: np.ndarray) -> Any:
    out = np.ones((5, 4))
    np.add.at(out, i, w)
    return out, out.sum()


def test_a_scatter_whose_weights_are_in_blocks_twice() -> None:
    i, w = np.array([0, 1, 1, 4, 3, 2]), np.arange(24.0).reshape(6, 4)
    lazy = fusec.jit(scattered)(
        da.from_array(i, chunks=((2, 4),)), da.from_array(w, chunks=((2, 4), 2)))
    for got, want in zip(dask.compute(*lazy, scheduler="sync"), scattered(i, w), strict=True):
        np.testing.assert_array_equal(got, want)


def test_masked_blocks_are_refused() -> None:
    masked = da.ma.masked_array(da.arange(6.0, chunks=3), mask=da.arange(6, chunks=3) % 2 == 0)
    with pytest.raises(TypeError, match="blocks of MaskedArray"):
        fusec.jit(lambda x: x.sum())(masked)


def test_parts_of_a_reshaped_table() -> None:
    w, z = np.arange(12.0), np.ones((2, 6))
    got = fusec.jit(lambda w, z: w.reshape(2, 6) + z)(w, da.from_array(z, chunks=(1, 3)))
    np.testing.assert_array_equal(got.compute(scheduler="sync"), w.reshape(2, 6) + z)


def test_axes_without_elements() -> None:
    f = fusec.jit(lambda x: x * 2)
    assert f(da.from_array(np.zeros((0, 3)), chunks=((0, 0), (3,)))).compute().shape == (0, 3)
    with np.errstate(all="ignore"):
        assert np.isnan(fusec.jit(lambda x: x.var(axis=(0, 1)))(
            da.from_array(np.zeros((4, 0)), chunks=((2, 2), (0,)))).compute(scheduler="sync"))


def test_scopes_are_refused() -> None:
    with fusec.config.override(logical_cpu_devices=2), pytest.raises(
            fusec.UnsupportedError, match=r"a scope of /device:CPU:1(.|\n)*Dask's scheduler"):
        fusec.jit(placed)(da.from_array(V, chunks=10))
